//! Runs of the program, and their results.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The result of a run.
pub(crate) struct Outcome {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The text after a label at the start of a line of the report.
    #[track_caller]
    pub(crate) fn field(&self, label: &str) -> &str {
        let line = self.stdout.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("no line '{label}' in:\n{}\n{}", self.stdout, self.stderr)).trim()
    }

    /// The rows of the table.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let lines = self.stdout.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
        lines.take_while(|line| !line.is_empty()).map(Row::parse).collect()
    }

    /// The numbers of threads of the rows for single calls, and of those for batches.
    pub(crate) fn thread_counts(&self) -> [Vec<usize>; 2] {
        [1, 1_000].map(|keys| {
            let rows = self.rows();
            rows.iter().filter(|row| row.keys_a_call == keys).map(|row| row.threads).collect()
        })
    }

    /// Asserts that the run succeeded, on so many keys of which so many are real.
    #[track_caller]
    pub(crate) fn assert_success(&self, items: &str, real: &str) {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert!(self.field("keys ").starts_with(&format!("{items}: {real} from ")), "{}", self.stdout);
        assert!(self.field("misses ").starts_with("0 (in "), "{}", self.stdout);
    }

    /// Asserts that the run failed with this status, and with a message that holds all of these parts.
    #[track_caller]
    pub(crate) fn assert_failure(&self, status: i32, message: &[&str]) {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        for part in message {
            assert!(self.stderr.contains(part), "no '{part}' in: {}", self.stderr);
        }
    }
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) threads: usize,
    pub(crate) keys_a_call: usize,
    /// Of inserts, lookups of present keys, lookups of absent keys, the mix and removes. `None` where the table has a
    /// dash.
    pub(crate) speeds: Vec<Option<f64>>,
}

impl Row {
    fn parse(line: &str) -> Self {
        let mut cells = line.split_whitespace();
        let mut count = || number(cells.next().expect("a cell")) as usize;
        let (threads, keys_a_call) = (count(), count());
        Self { threads, keys_a_call, speeds: cells.map(|cell| (cell != "-").then(|| number(cell))).collect() }
    }
}

/// The number at the start of a text, which may have commas.
#[track_caller]
pub(crate) fn number(text: &str) -> f64 {
    let digits = text.split_whitespace().next().expect("a word").replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

pub(crate) fn throughput() -> Command {
    Command::new(env!("CARGO_BIN_EXE_throughput"))
}

/// Runs the program quickly, with one pass of each workload.
pub(crate) fn run(arguments: &[&str], input: &[u8]) -> Outcome {
    let mut child = throughput()
        .args(["--seconds", "0"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It may end without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A file that is deleted at the end of the test.
pub(crate) struct TemporaryFile(pub(crate) PathBuf);

impl TemporaryFile {
    pub(crate) fn new(name: &str, text: &[u8]) -> Self {
        let file = Self::to_be(name);
        fs::write(&file.0, text).expect("a temporary file");
        file
    }

    /// One that does not exist yet.
    pub(crate) fn to_be(name: &str) -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id())))
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("a file of text")
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
