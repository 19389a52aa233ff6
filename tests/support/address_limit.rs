//! Tests that run a second time, in a process whose addresses are limited. The words of a growing filter are then in
//! segments, as on systems that cannot reserve addresses.

use std::env;
use std::process::Command;

/// Says that this process was started by [`run_with_limit`].
const STARTED: &str = "CCF_TEST_WITH_LIMIT";

pub(crate) fn is_limited() -> bool {
    env::var_os(STARTED).is_some()
}

/// Whether the words of a large growing filter are in a range of addresses, and not in segments.
#[allow(dead_code, reason = "one test does not ask")]
pub(crate) fn has_ranges() -> bool {
    cfg!(all(any(target_os = "linux", target_os = "macos"), target_pointer_width = "64", not(miri))) && !is_limited()
}

/// Runs these tests of this program in a process with this limit: options of the shell's `ulimit`.
pub(crate) fn run_with_limit(limit: &str, tests: &[&str]) {
    let program = env::current_exe().expect("it is a file");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")]).arg(program).arg("--exact").args(tests);
    let output = shell.env(STARTED, "1").output().expect("there is a shell");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).join("\n");
    assert!(output.status.success() && text.contains(&format!("{} passed", tests.len())), "{limit}: {text}");
}
