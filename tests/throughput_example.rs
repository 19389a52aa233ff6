//! Runs the `throughput` example as its users do: as a process, with arguments, files and pipes.
//!
//! `cargo test` builds it before the tests run. With a choice of targets (`--test throughput_example`) it does not:
//! build it with `cargo build --example throughput` then.
#![cfg(not(miri))]

use std::env::consts::EXE_SUFFIX;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What a run left behind.
struct Outcome {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Outcome {
    /// The text after a label at the start of a line of the report.
    #[track_caller]
    fn field(&self, label: &str) -> &str {
        let line = self.stdout.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("no line '{label}' in:\n{}\n{}", self.stdout, self.stderr)).trim()
    }

    /// The rows of the table: the number of threads, and five speeds.
    fn rows(&self) -> Vec<Vec<f64>> {
        let lines = self.stdout.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
        let rows = lines.take_while(|line| !line.is_empty());
        rows.map(|row| row.split_whitespace().map(|cell| cell.parse().expect("a number")).collect()).collect()
    }

    /// That everything went well, on so many keys of which so many are real.
    #[track_caller]
    fn assert_success(&self, items: &str, real: &str) {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert!(self.field("keys ").starts_with(&format!("{items}: {real} from ")), "{}", self.stdout);
        assert!(self.field("misses ").starts_with("0 (in "), "{}", self.stdout);
    }

    /// That it failed with this status, and with a message that holds all of these.
    #[track_caller]
    fn assert_failure(&self, status: i32, message: &[&str]) {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        for part in message {
            assert!(self.stderr.contains(part), "no '{part}' in: {}", self.stderr);
        }
    }
}

fn example() -> Command {
    // Tests lie in target/<profile>/deps, examples in target/<profile>/examples.
    let mut path = std::env::current_exe().expect("the test's own path");
    path.pop();
    path.pop();
    path.extend(["examples", &format!("throughput{EXE_SUFFIX}")]);
    assert!(path.exists(), "{} is missing: run `cargo build --example throughput` first", path.display());
    Command::new(path)
}

/// Runs the example; quickly, with one pass of each workload.
fn run(arguments: &[&str], input: &[u8]) -> Outcome {
    let mut child = example()
        .args(["--seconds", "0"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    // It may end without reading what it is given.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("the example ends");
    Outcome {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A file of keys that is gone at the end of the test.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new(name: &str, text: &[u8]) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a temporary file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn the_report_has_everything() {
    let outcome = run(&["--items", "12_000", "--threads", "3"], b"");
    outcome.assert_success("12,000", "8,883");
    let rows = outcome.rows();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    assert!(rows.iter().all(|row| row.len() == 6 && row.iter().all(|&cell| cell > 0.0)), "{rows:?}");

    assert!(outcome.field("keys ").contains(", 3,117 synthetic such as user"), "{}", outcome.stdout);
    assert!(outcome.field("filter ").contains("-bit fingerprints; capacity 12,"), "{}", outcome.stdout);
    assert!(outcome.field("machine ").starts_with("hardware threads: "));
    let bits: f64 = outcome.field("bits per item ").parse().expect("a number");
    assert!((10.0..40.0).contains(&bits), "{bits}");

    // 100,000 absent keys, three filters.
    let rates: Vec<f64> = outcome.field("false positives ").split(',').map(percent).collect();
    let [measured, expected, asked] = rates[..] else { panic!("{rates:?}") };
    assert_eq!(asked, 0.1);
    assert!(expected <= asked && (0.5..1.5).contains(&(measured / expected)), "{rates:?}");

    // No terminal, so a line for each of the five workloads and one for the keys.
    assert_eq!(outcome.stderr.lines().count(), 3 * 5 + 1, "{}", outcome.stderr);
    assert!(outcome.stderr.lines().all(|line| line.contains(" operations in ")), "{}", outcome.stderr);
}

/// The number before the first `%`.
fn percent(text: &str) -> f64 {
    text.split('%').next().and_then(|number| number.trim().parse().ok()).expect("a percentage")
}

#[test]
fn threads_are_a_maximum_or_a_list() {
    for (threads, expected) in [("1", &[1.0][..]), ("2,", &[2.0]), ("3,1", &[3.0, 1.0]), ("4", &[1.0, 2.0, 4.0])] {
        let outcome = run(&["--items", "500", "--threads", threads], b"");
        assert_eq!(outcome.rows().iter().map(|row| row[0]).collect::<Vec<_>>(), expected, "{threads}");
    }
}

#[test]
fn each_encoding_can_be_had() {
    for encoding in ["plain", "semi-sorted"] {
        let outcome = run(&["--items", "9000", "--threads", "2,", "--rate", "0.01", "--encoding", encoding], b"");
        outcome.assert_success("9,000", "8,883");
        assert!(outcome.field("filter ").starts_with(encoding), "{}", outcome.stdout);
    }
}

#[test]
fn fewer_items_than_keys_take_the_first_keys() {
    let outcome = run(&["--items", "2", "--keys", "-", "--threads", "2"], b"one\ntwo\nthree\nfour\nfive\n");
    outcome.assert_success("2", "2");
    assert!(outcome.stdout.contains("leaves out the other 3\n"), "{}", outcome.stdout);
    run(&["--items", "1", "--threads", "2"], b"").assert_success("1", "1");
}

#[test]
fn keys_come_from_a_file() {
    let file = KeyFile::new("keys", b"one\ntwo\nthree");
    let outcome = run(&["--items", "300", "--threads", "1", "--keys", file.path()], b"");
    outcome.assert_success("300", "3");
    assert!(outcome.field("keys ").contains(file.path()), "{}", outcome.stdout);
}

#[test]
fn line_ends_duplicates_and_empty_lines_are_no_keys() {
    let outcome = run(&["--items", "50", "--threads", "1", "--keys", "-"], b"one\r\ntwo\r\n\r\none\n\nthree\ntwo");
    outcome.assert_success("50", "3");
    assert!(outcome.stdout.contains("lines that repeat an earlier one, left out: 2\n"), "{}", outcome.stdout);
}

#[test]
fn keys_are_any_bytes() {
    let outcome =
        run(&["--items", "50", "--threads", "2", "--keys", "-"], b"\xff\xfe\n\x80\x1b[31m\nuser1@\xff\xfe\nuser\n");
    outcome.assert_success("50", "4");
    assert!(!outcome.stdout.contains('\x1b'), "{}", outcome.stdout);
}

#[test]
fn a_list_without_keys_is_an_error() {
    let file = KeyFile::new("empty", b"");
    run(&["--keys", file.path()], b"").assert_failure(1, &["error: ", file.path(), "holds no key", "one key a line"]);
    run(&["--keys", "-"], b"\r\n\n").assert_failure(1, &["error: standard input holds no key"]);
}

#[test]
fn an_unreadable_file_is_an_error() {
    let missing = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-such-keys");
    run(&["--keys", missing], b"").assert_failure(1, &["error: can't read the keys", missing, "give --keys"]);
    let directory = env!("CARGO_TARGET_TMPDIR");
    run(&["--keys", directory], b"").assert_failure(1, &["error: can't read the keys", directory]);
}

#[test]
fn bad_arguments_are_errors() {
    for (option, values, limits) in [
        ("--items", &["0", "-5", "many", "1_000_000_001", "99999999999999999999"][..], "from 1 to 1,000,000,000"),
        ("--threads", &["0", "1,0", "1,,2", "", ",", "-1", "257", "two"], "from 1 to 256"),
        ("--rate", &["0", "1", "NaN", "-0.5", "inf", "low"], "above 0 and below 1"),
        ("--encoding", &["sorted"], "plain, semi-sorted"),
    ] {
        for value in values {
            run(&[option, value], b"").assert_failure(2, &["error: invalid value", value, option, limits]);
        }
    }
    run(&["--item", "5"], b"").assert_failure(2, &["error: unexpected argument", "--items"]);
    run(&["keys.txt"], b"").assert_failure(2, &["error: unexpected argument", "keys.txt"]);
}

#[test]
fn a_rate_that_no_layout_meets_is_a_bad_argument() {
    let too_low = ["--rate", "1e-15"];
    run(&too_low, b"").assert_failure(2, &["error: ", "1e-15", "the lowest possible", "give a higher --rate"]);
    let too_low_for_it = ["--rate", "1e-8", "--encoding", "semi-sorted"];
    run(&too_low_for_it, b"").assert_failure(2, &["error: ", "1e-8", "without --encoding"]);
}

#[test]
fn a_reader_that_leaves_early_does_no_harm() {
    let mut child = example()
        .args(["--seconds", "0", "--items", "500", "--threads", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the example starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the example ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

#[test]
fn help_names_every_option() {
    let outcome = run(&["--help"], b"");
    assert_eq!(outcome.status, Some(0));
    for option in ["--keys", "--items", "--threads", "--rate", "--encoding", "--seconds"] {
        assert!(outcome.stdout.contains(option), "no {option} in:\n{}", outcome.stdout);
    }
}
