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

    /// The rows of the table.
    fn rows(&self) -> Vec<Row> {
        let lines = self.stdout.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
        lines.take_while(|line| !line.is_empty()).map(Row::parse).collect()
    }

    /// The numbers of threads of the rows for single calls, and of those for batches.
    fn thread_counts(&self) -> [Vec<usize>; 2] {
        [1, 1_000].map(|keys| {
            let rows = self.rows();
            rows.iter().filter(|row| row.keys_a_call == keys).map(|row| row.threads).collect()
        })
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

/// A row of the table.
#[derive(Debug)]
struct Row {
    threads: usize,
    keys_a_call: usize,
    /// Of inserts, lookups of present and of absent keys, the mix, and removes; none where there is a dash.
    speeds: Vec<Option<f64>>,
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
fn number(text: &str) -> f64 {
    let digits = text.split_whitespace().next().expect("a word").replace(',', "");
    digits.parse().unwrap_or_else(|_| panic!("no number: {text}"))
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

/// A file that is gone at the end of the test.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new(name: &str, text: &[u8]) -> Self {
        let file = Self::to_be(name);
        fs::write(&file.0, text).expect("a temporary file");
        file
    }

    /// One that is not there yet.
    fn to_be(name: &str) -> Self {
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id())))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("a file of text")
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn the_report_has_everything() {
    let outcome = run(&["--items", "12_000", "--threads", "3"], b"");
    outcome.assert_success("12,000", "8,883");
    assert_eq!(outcome.thread_counts(), [[1, 2, 3], [1, 2, 3]]);
    for row in outcome.rows() {
        assert_eq!(row.speeds.len(), 5, "{row:?}");
        assert!(row.speeds.iter().flatten().all(|&speed| speed > 0.0), "{row:?}");
        // There is no mix in batches.
        let missing: Vec<usize> = (0..5).filter(|&workload| row.speeds[workload].is_none()).collect();
        assert_eq!(missing, if row.keys_a_call == 1 { &[][..] } else { &[3] }, "{row:?}");
    }

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

    // No terminal, so a line for each of the five workloads, the four in batches, and one for the keys.
    assert_eq!(outcome.stderr.lines().count(), 3 * (5 + 4) + 1, "{}", outcome.stderr);
    assert!(outcome.stderr.lines().all(|line| line.contains(" operations in ")), "{}", outcome.stderr);
}

/// The number before the first `%`.
fn percent(text: &str) -> f64 {
    text.split('%').next().and_then(|number| number.trim().parse().ok()).expect("a percentage")
}

#[test]
fn every_answer_is_checked_in_batches_too() {
    // 12,345 is no multiple of the 1,000 keys of a batch, and neither are the shares of three threads.
    let outcome = run(&["--items", "12_345", "--threads", "3,"], b"");
    outcome.assert_success("12,345", "8,883");
    for workload in ["insert", "lookup present", "remove"] {
        let line = format!("3 threads: {workload} in batches: 12,345 operations in ");
        assert!(outcome.stderr.contains(&line), "no '{line}' in:\n{}", outcome.stderr);
    }
    // Once each key one by one, once in batches.
    assert!(outcome.stdout.contains(" of 200,000 lookups, of 100,000 different absent keys"), "{}", outcome.stdout);
    // In both ways each key is looked up and removed. The mix has 950 answers a thread, and some 100 removes before it.
    let checks = number(outcome.field("misses ").strip_prefix("0 (in ").expect("no misses"));
    let mix = checks - 4.0 * 12_345.0;
    assert!((3.0 * 950.0..3.0 * 1_100.0).contains(&mix), "{checks}");
}

#[test]
fn threads_are_a_maximum_or_a_list() {
    for (threads, expected) in [("1", &[1][..]), ("2,", &[2]), ("3,1", &[3, 1]), ("4", &[1, 2, 4])] {
        let outcome = run(&["--items", "500", "--threads", threads], b"");
        assert_eq!(outcome.thread_counts(), [expected, expected], "{threads}");
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
    let file = TemporaryFile::new("keys", b"one\ntwo\nthree");
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
    let file = TemporaryFile::new("empty", b"");
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

/// The labels of a plot's series.
const SERIES: [&str; 9] = [
    "insert",
    "insert, batched",
    "lookup present",
    "lookup present, batched",
    "lookup absent",
    "lookup absent, batched",
    "90/5/5 mix",
    "remove",
    "remove, batched",
];

/// That this is an SVG document, every element of which ends where it should.
#[track_caller]
fn assert_is_svg(text: &str) {
    assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{text}");
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag's end");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{text}");
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().expect("a tag's name"));
        }
    }
    assert!(open.is_empty(), "{open:?} in {text}");
}

/// The texts in an SVG document.
fn labels(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    texts.filter_map(|text| Some(text.split_once('>')?.1.split_once('<')?.0.trim())).collect()
}

#[test]
fn the_plot_shows_every_workload_by_threads() {
    let plot = TemporaryFile::to_be("plot.svg");
    let outcome = run(&["--items", "9000", "--threads", "4", "--plot", plot.path()], b"");
    outcome.assert_success("9,000", "8,883");
    let svg = plot.text();
    assert_is_svg(&svg);
    let labels = labels(&svg);
    for label in ["threads", "throughput (million operations a second)", "1", "2", "3", "4"].iter().chain(&SERIES) {
        assert!(labels.contains(label), "no '{label}' in {labels:?}");
    }
    assert!(labels[1].starts_with("9,000 items; ") && labels[1].ends_with("batches of 1,000 keys"), "{labels:?}");
    // Two series have round points, one for each number of threads and one in the legend.
    assert_eq!(svg.matches("<circle").count(), 2 * (3 + 1), "{svg}");
}

#[test]
fn a_plot_for_one_number_of_threads_has_points() {
    let plot = TemporaryFile::to_be("points.SVG");
    for threads in ["1,", "256,"] {
        let outcome = run(&["--items", "500", "--threads", threads, "--plot", plot.path()], b"");
        assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
        let svg = plot.text();
        assert_is_svg(&svg);
        assert!(SERIES.iter().all(|series| labels(&svg).contains(series)), "{svg}");
        assert!(labels(&svg).contains(&threads.trim_end_matches(',')), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2 * (1 + 1), "{svg}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_earlier_plot_stays_until_there_is_a_new_one() {
    let earlier = "an earlier plot ".repeat(10_000);
    let plot = TemporaryFile::new("earlier.svg", earlier.as_bytes());
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let status = example().args(["--plot", plot.path()]).stdout(full).stderr(Stdio::null()).status();
    assert_eq!(status.expect("the example starts").code(), Some(1));
    assert!(plot.text() == earlier);

    let outcome = run(&["--items", "500", "--threads", "1", "--plot", plot.path()], b"");
    assert_eq!(outcome.status, Some(0), "{}", outcome.stderr);
    assert_is_svg(&plot.text());
}

#[test]
fn a_plot_that_cannot_be_written_is_a_bad_argument() {
    let nowhere = concat!(env!("CARGO_TARGET_TMPDIR"), "/no-such-directory/plot.svg");
    let directory = TemporaryFile::to_be("directory.svg");
    fs::create_dir(&directory.0).expect("a directory");
    for path in [nowhere, directory.path()] {
        let outcome = run(&["--plot", path], b"");
        outcome.assert_failure(2, &["error: can't write the plot", path, "give --plot a file"]);
        // That is known before anything is done.
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    }
    fs::remove_dir(&directory.0).expect("an empty directory");

    for path in ["plot.png", "plot", "-", ".svg", "svg"] {
        run(&["--plot", path], b"").assert_failure(2, &["error: invalid value", path, "--plot", "ends in .svg"]);
    }
    for arguments in [&["--plot"][..], &["--plot", ""]] {
        run(arguments, b"").assert_failure(2, &["error: a value is required for '--plot <FILE.svg>'"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_plot_that_fails_in_the_end_leaves_the_report() {
    let full = TemporaryFile::to_be("full.svg");
    std::os::unix::fs::symlink("/dev/full", &full.0).expect("a link");
    let outcome = run(&["--items", "500", "--threads", "2,", "--plot", full.path()], b"");
    assert_eq!(outcome.status, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("error: can't write the plot"), "{}", outcome.stderr);
    assert_eq!(outcome.thread_counts(), [[2], [2]]);
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
    for option in ["--keys", "--items", "--threads", "--rate", "--encoding", "--seconds", "--plot"] {
        assert!(outcome.stdout.contains(option), "no {option} in:\n{}", outcome.stdout);
    }
}
