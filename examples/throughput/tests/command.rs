//! Runs the program as its users do: as a process, with arguments, files and pipes.
#![cfg(not(miri))]

use std::process::Command;

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

    #[track_caller]
    fn assert_success(&self, items: &str, real: &str) {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        assert!(self.field("keys ").starts_with(&format!("{items}: {real} from ")), "{}", self.stdout);
        assert!(self.field("misses ").starts_with("0 (in "), "{}", self.stdout);
    }
}

/// Runs the program quickly, with one pass of each workload.
fn run(arguments: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughput"));
    let output = command.arg("--milliseconds=0").args(arguments).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Outcome { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().filter_map(|word| word.trim_end_matches([',', '.']).parse().ok()).collect()
}

#[test]
fn bad_arguments_are_errors() {
    for (argument, status, said) in
        [("--items=0", 2, "--items"), ("--threads=1,0", 2, "--threads"), ("--rate=1e-15", 1, "cannot go below 9.3")]
    {
        let outcome = run(&[argument]);
        assert_eq!((outcome.status, &*outcome.stdout), (Some(status), ""), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(said), "no {said} in: {}", outcome.stderr);
    }
}

#[test]
fn one_key_is_enough_and_more_threads_than_keys_do_no_harm() {
    run(&["--items=1", "--threads=2"]).assert_success("1", "1");
}

#[test]
fn the_report_has_everything_and_says_what_it_means() {
    // 12,345 is no multiple of the 1,000 keys of a batch.
    let outcome = run(&["--items=12345", "--threads=1,3"]);
    outcome.assert_success("12,345", "8,883");
    let lines = outcome.stdout.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
    let rows: Vec<Vec<_>> = lines.take(6).map(|line| line.split_whitespace().collect()).collect();
    let kinds: Vec<_> = rows.iter().map(|row| row[..3].join(" ")).collect();
    let expected = ["filter 1", "filter 1,000", "HashSet 1"];
    assert_eq!(kinds, ["1", "3"].map(|threads| expected.map(|kind| format!("{threads} {kind}"))).concat());
    for row in &rows {
        // There is no mix in batches.
        let speeds = [1.0; 5].iter().zip(&row[3..]).filter(|(_, cell)| cell.parse::<f64>().is_ok()).count();
        assert_eq!((row.len(), speeds, row[6] == "-"), (8, if row[2] == "1" { 5 } else { 4 }, row[2] != "1"));
    }
    assert!(outcome.field("keys ").contains(", 3,462 synthetic such as user"), "{}", outcome.stdout);
    assert!(outcome.field("filter ").contains("-bit fingerprints; capacity 12,"), "{}", outcome.stdout);

    // Three rounds on each of two numbers of threads, and in each round single calls and batches.
    assert!(outcome.stdout.contains(" of 1,200,000 lookups, of 100,000 different absent keys"), "{}", outcome.stdout);
    let rates = numbers(outcome.field("false positives "));
    let [measured, expected, asked] = rates[..] else { panic!("{rates:?}") };
    assert!(asked == 0.1 && expected <= asked && (0.7..1.4).contains(&(measured / expected)), "{rates:?}");
    let bits = numbers(outcome.field("bits per item "));
    assert!((10.0..40.0).contains(&bits[0]) && (200.0..800.0).contains(&bits[1]), "{bits:?}");

    // The factors follow from the table, whose speeds are rounded. Those that are nearly 0 because the machine is busy say
    // too little.
    let said = numbers(outcome.stdout.split("\nOn 3 threads, ").nth(1).expect("sentences"));
    let factors = [(3, 5, 1), (3, 5, 2), (3, 5, 3), (3, 0, 1), (3, 0, 3), (5, 2, 1), (5, 2, 3)];
    for ((row, other, workload), said) in factors.into_iter().zip(said[..3].iter().chain(&said[6..])) {
        let [speed, than] = [row, other].map(|row: usize| rows[row][3 + workload].parse::<f64>().expect("a speed"));
        let tolerance = 0.06 + speed / than * 0.006 * (1.0 / speed + 1.0 / than);
        assert!(speed.min(than) < 0.1 || (said - speed / than).abs() <= tolerance, "{said}\n{}", outcome.stdout);
    }
    assert!((said[3] - 100.0 * bits[0] / bits[1]).abs() < 0.06 && said[4..6] == [1.0, 3.0], "{said:?}");
}
