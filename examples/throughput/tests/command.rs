//! Runs the program as its users do: as a process, with arguments, files and pipes.
#![cfg(not(miri))]

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::{TempDir, tempdir};

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

    /// The cells of the table's rows: threads, set, keys a call, five speeds.
    fn rows(&self) -> Vec<Vec<&str>> {
        let lines = self.stdout.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
        lines.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect()).collect()
    }

    #[track_caller]
    fn assert_success(&self, items: &str, real: &str) {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert!(self.field("keys ").starts_with(&format!("{items}: {real} from ")), "{}", self.stdout);
        assert!(self.field("misses ").starts_with("0 (in "), "{}", self.stdout);
    }

    /// Asserts that the run failed without a report, and with a message that holds all of these parts.
    #[track_caller]
    fn assert_failure(&self, status: i32, message: &[&str]) {
        assert_eq!(self.status, Some(status), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        for part in message {
            assert!(self.stderr.contains(part), "no '{part}' in: {}", self.stderr);
        }
    }
}

/// Runs the program quickly, with one pass of each workload.
fn run_into(stdout: impl Into<Stdio>, arguments: &[&str], input: &[u8]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughput"));
    command.args(["--seconds", "0"]).args(arguments).stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // It may end without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Outcome { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn run(arguments: &[&str], input: &[u8]) -> Outcome {
    run_into(Stdio::piped(), arguments, input)
}

/// A new folder, and the path of a file in it that does not exist.
fn new_path(name: &str) -> (TempDir, String) {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join(name).into_os_string().into_string().expect("a path of text");
    (folder, path)
}

/// The first number in a text.
fn first_number(text: &str) -> Option<f64> {
    text.split_whitespace().find_map(|word| word.trim_end_matches([',', '.']).parse().ok())
}

#[test]
fn bad_arguments_are_errors() {
    for (option, values, advice) in [
        ("--items", &["0", "many", "1_000_000_001", "99999999999999999999"][..], "from 1 to 1000000000"),
        ("--threads", &["0", "1,0", "1,,2", "", "257", "two"], "from 1 to 256"),
        ("--rate", &["0", "1", "NaN", "inf", "low"], "above 0 and below 1"),
        ("--plot", &["plot.png", "plot", "-", ".svg", ""], "ends in .svg"),
    ] {
        for value in values {
            run(&[option, value], b"").assert_failure(2, &["error: ", option, advice]);
        }
    }
    run(&["--item", "5"], b"").assert_failure(2, &["error: unexpected argument", "--items"]);
    run(&["keys.txt"], b"").assert_failure(2, &["error: unexpected argument", "keys.txt"]);
    run(&["--rate", "1e-15"], b"").assert_failure(2, &["--rate", "1e-15", "cannot go below 9.3"]);
    // The error comes before any work is done: the keys would be refused too.
    let (_folder, nowhere) = new_path("no-such-directory/plot.svg");
    run(&["--plot", &nowhere, "--keys", "-"], b"").assert_failure(2, &["error: can't write the plot", &nowhere]);
}

#[test]
fn keys_come_from_a_file_or_standard_input() {
    let (_folder, path) = new_path("keys");
    fs::write(&path, "one\ntwo\nthree").expect("a temporary file");
    let outcome = run(&["--items", "300", "--threads", "1", "--keys", &path], b"");
    outcome.assert_success("300", "3");
    assert!(outcome.field("keys ").contains(&path), "{}", outcome.stdout);

    let outcome = run(&["--items", "2", "--keys", "-", "--threads", "2"], b"one\ntwo\nthree\nfour\nfive\n");
    outcome.assert_success("2", "2");
    assert!(outcome.stdout.contains("leaves out the other 3\n"), "{}", outcome.stdout);
    run(&["--items", "1", "--threads", "2"], b"").assert_success("1", "1");
}

#[test]
fn keys_are_any_bytes_and_no_key_counts_twice() {
    let list = b"one\r\ntwo\r\n\r\none\n\nuser\n\xff\xfe\n\x80\x1b[31m\nuser7@two\ntwo";
    let outcome = run(&["--items", "50", "--threads", "1", "--keys", "-"], list);
    outcome.assert_success("50", "6");
    assert!(outcome.stdout.contains("lines that repeat an earlier one, left out: 2\n"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\x1b'), "{}", outcome.stdout);
}

#[test]
fn a_list_that_is_unreadable_or_empty_is_an_error() {
    run(&["--keys", "-"], b"\r\n\n").assert_failure(1, &["error: standard input holds no key", "one key a line"]);
    let (_folder, missing) = new_path("no-such-keys");
    run(&["--keys", &missing], b"").assert_failure(1, &["error: can't read the keys", &missing, "give --keys"]);
}

#[test]
fn the_report_has_everything_and_says_what_it_means() {
    // 12,345 is no multiple of the 1,000 keys of a batch.
    let outcome = run(&["--items", "12_345", "--threads", "1,3"], b"");
    outcome.assert_success("12,345", "8,883");
    let rows = outcome.rows();
    let kinds: Vec<_> = rows.iter().map(|row| row[..3].join(" ")).collect();
    let expected = ["filter 1", "filter 1,000", "HashSet 1", "HashSet 1,000"];
    assert_eq!(kinds, ["1", "3"].map(|threads| expected.map(|kind| format!("{threads} {kind}"))).concat());
    let speed = |row: usize, workload: usize| first_number(rows[row][3 + workload]).expect("a speed");
    // There is no mix in batches.
    let dashes: Vec<_> = (0..rows.len()).filter(|&row| rows[row][6] == "-").collect();
    assert_eq!(dashes, [1, 3, 5, 7], "{}", outcome.stdout);
    for (row, workload) in (0..rows.len()).flat_map(|row| (0..5).map(move |workload| (row, workload))) {
        assert!((row % 2 == 1 && workload == 3) || speed(row, workload) >= 0.0, "{}", outcome.stdout);
    }
    assert!(outcome.field("keys ").contains(", 3,462 synthetic such as user"), "{}", outcome.stdout);
    assert!(outcome.field("filter ").contains("-bit fingerprints; capacity 12,"), "{}", outcome.stdout);

    // Three rounds on each of two numbers of threads, and in each round single calls and batches.
    assert!(outcome.stdout.contains(" of 1,200,000 lookups, of 100,000 different absent keys"), "{}", outcome.stdout);
    let rates: Vec<f64> = outcome.field("false positives ").split(" %").filter_map(first_number).collect();
    let [measured, expected, asked] = rates[..] else { panic!("{rates:?}") };
    assert_eq!(asked, 0.1);
    assert!(expected <= asked && (0.7..1.4).contains(&(measured / expected)), "{rates:?}");
    let bits: Vec<f64> = outcome.field("bits per item ").split(" in the filter, ").filter_map(first_number).collect();
    assert!((10.0..40.0).contains(&bits[0]) && (200.0..800.0).contains(&bits[1]), "{bits:?}");

    // The factors follow from the table, whose speeds are rounded. Those that are nearly 0 because the machine is busy say
    // too little.
    let sentences = outcome.stdout.split("\nOn 3 threads, ").nth(1).expect("sentences");
    let said: Vec<f64> = sentences.split(' ').filter_map(first_number).collect();
    let factor = |(row, workload): (usize, usize), (other, same): (usize, usize)| {
        let (speed, than) = (speed(row, workload), speed(other, same));
        let tolerance = 0.06 + speed / than * 0.006 * (1.0 / speed + 1.0 / than);
        if speed.min(than) < 0.1 { (0.0, f64::INFINITY) } else { (speed / than, tolerance) }
    };
    let figures =
        [factor((4, 1), (6, 1)), factor((4, 2), (6, 2)), factor((4, 3), (6, 3)), (100.0 * bits[0] / bits[1], 0.06)];
    let growth = [factor((4, 1), (0, 1)), factor((4, 3), (0, 3)), factor((6, 1), (2, 1)), factor((6, 3), (2, 3))];
    let growth = [&[(1.0, 0.0), (3.0, 0.0)], &growth[..]].concat();
    for (said, (computed, tolerance)) in said.iter().zip(figures.iter().chain(&growth)) {
        assert!((said - computed).abs() <= *tolerance, "{said} {computed}\n{}", outcome.stdout);
    }
    assert!(said.len() >= 10 && sentences.ends_with("add --plot FILE.svg.\n"), "{sentences}");
}

#[test]
fn a_reader_that_leaves_early_does_no_harm() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let outcome = run_into(writer, &["--items", "500", "--threads", "2"], b"");
    assert_eq!((outcome.status, outcome.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_plot_shows_every_workload_by_threads() {
    let (_folder, path) = new_path("plot.SVG");
    // An earlier file stays until there is a new plot.
    fs::write(&path, "earlier").expect("a temporary file");
    run(&["--plot", &path, "--keys", "-"], b"").assert_failure(1, &["error: standard input holds no key"]);
    assert_eq!(fs::read_to_string(&path).expect("a file"), "earlier");
    // One number of threads has points too.
    for (threads, points) in [("1,2,4", 3), ("256", 1)] {
        let outcome = run(&["--items", "9000", "--threads", threads, "--plot", &path], b"");
        outcome.assert_success("9,000", "8,883");
        assert!(outcome.stdout.ends_with(&format!("The plot is in {path}.\n")), "{}", outcome.stdout);
        let svg = fs::read_to_string(&path).expect("a plot");
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for label in ["throughput (million operations a second)", "filter: insert", "HashSet: lookup present, batch"] {
            assert!(svg.contains(label), "no '{label}' in {svg}");
        }
        // The filter's single calls have round points: one for each number of threads, and one in the legend.
        assert_eq!(svg.matches("<circle").count(), 5 * (points + 1), "{svg}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_plot_that_fails_in_the_end_leaves_the_report() {
    let (_folder, path) = new_path("full.svg");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let outcome = run(&["--items", "500", "--threads", "2", "--plot", &path], b"");
    assert_eq!((outcome.status, outcome.rows().len()), (Some(1), 4), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("error: can't write the plot"), "{}", outcome.stderr);
}
