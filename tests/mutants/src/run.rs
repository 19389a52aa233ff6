//! Runs tests, each in a process of its own.

use std::collections::HashSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cargo::Tests;

/// A test, how long it takes, and the mutants that it reaches.
pub struct Test {
    program: Tests,
    pub name: String,
    time: Duration,
    pub reaches: HashSet<u32>,
}

/// How a test has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    Failed,
    TimedOut,
}

/// A test that takes longer than this is left out.
const LONGEST: Duration = Duration::from_secs(5);

fn command(tests: &Tests) -> Command {
    let mut command = Command::new(&tests.program);
    command.current_dir(&tests.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // The smallest input that fails is of no interest, and must not be kept for the next mutant.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    command.env("RUST_BACKTRACE", "0").env_remove("MUTANTS_REACHED").env("MUTANT", "0");
    command
}

/// Runs the command. Ends it, with all that it has started, after this time.
fn run(command: &mut Command, limit: Duration) -> End {
    let mut child = command.process_group(0).spawn().expect("the test starts");
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return if status.success() { End::Passed } else { End::Failed };
        }
        if start.elapsed() > limit {
            let group = format!("-{}", child.id());
            _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            child.wait().expect("it is a child");
            return End::TimedOut;
        }
        thread::sleep(Duration::from_millis(2).min(start.elapsed() / 8));
    }
}

impl Test {
    /// Runs the test with this mutant.
    pub fn run_with(&self, mutant: u32) -> End {
        let limit = Duration::from_secs(5) + 10 * self.time;
        run(command(&self.program).args(["--exact", &self.name]).env("MUTANT", mutant.to_string()), limit)
    }
}

/// The tests of these programs that pass in some seconds and reach mutants, the fastest first.
pub fn measure(programs: &[Tests], scratch: &Path) -> Vec<Test> {
    let mut tests = Vec::new();
    for program in programs {
        let list = command(program).args(["--list", "--format", "terse"]).stdout(Stdio::piped()).output();
        let list = String::from_utf8(list.expect("it lists its tests").stdout).expect("names of tests are text");
        for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
            let test = || {
                let mut command = command(program);
                command.args(["--exact", name]);
                command
            };
            _ = fs::remove_file(scratch);
            // It may fail, because recording takes memory and time.
            run(test().env("MUTANTS_REACHED", scratch), 3 * LONGEST);
            let reached = fs::read_to_string(scratch).unwrap_or_default();
            let reaches: HashSet<u32> = reached.lines().filter_map(|line| line.parse().ok()).collect();
            if reaches.is_empty() {
                continue;
            }
            let start = Instant::now();
            if run(&mut test(), LONGEST) != End::Passed {
                println!("left out: {name}, which fails or takes too long");
                continue;
            }
            let program = Tests { program: program.program.clone(), folder: program.folder.clone() };
            tests.push(Test { program, name: name.to_owned(), time: start.elapsed(), reaches });
        }
    }
    tests.sort_by_key(|test| test.time);
    tests
}
