//! Runs the program as its users do: as a process, with arguments.
#![cfg(not(miri))]

use std::process::Command;

/// Runs the program quickly, with one pass of each workload. Returns its exit status, what it printed, and errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throughput"));
    let output = command.arg("--milliseconds=0").args(arguments).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The numbers after a label at the start of a line of the report.
#[track_caller]
fn numbers(report: &str, label: &str) -> Vec<f64> {
    let line = report.lines().find_map(|line| line.strip_prefix(label)).expect(label);
    let word = |word: &str| word.trim_start_matches('(').replace(',', "").parse().ok();
    line.split_whitespace().filter_map(word).collect()
}

#[test]
fn bad_arguments_are_errors() {
    for (argument, status, said) in
        [("--items=0", 2, "--items"), ("--threads=1,0", 2, "--threads"), ("--rate=1e-15", 1, "cannot go below 9.3")]
    {
        let (code, report, errors) = run(&[argument]);
        assert_eq!((code, &*report), (Some(status), ""), "{errors}");
        assert!(errors.contains(said), "no {said} in: {errors}");
    }
}

#[test]
fn one_key_is_enough_and_more_threads_than_keys_do_no_harm() {
    let (code, report, errors) = run(&["--items=1", "--threads=2"]);
    assert_eq!((code, numbers(&report, "misses ")[0]), (Some(0), 0.0), "{errors}");
}

#[test]
fn the_report_has_everything() {
    // 12,345 is no multiple of the 1,000 keys of a batch.
    let (code, report, errors) = run(&["--items=12345", "--threads=1,3"]);
    assert_eq!((code, numbers(&report, "misses ")[0]), (Some(0), 0.0), "{report}{errors}");
    for said in [
        "keys       12,345: 8,883 from examples/data/disposable-email-domains.txt, 3,462 synthetic such as user",
        "-bit fingerprints; capacity 12,",
        // Three rounds on each of two numbers of threads, and in each round single calls and batches.
        " of 1,200,000 lookups, of 100,000 different absent keys",
    ] {
        assert!(report.contains(said), "no {said} in: {report}");
    }
    let lines = report.lines().skip_while(|line| !line.starts_with("threads ")).skip(1);
    let rows: Vec<Vec<_>> = lines.take(6).map(|line| line.split_whitespace().collect()).collect();
    let kinds: Vec<_> = rows.iter().map(|row| row[..3].join(" ")).collect();
    let expected = ["filter 1", "filter 1,000", "HashSet 1"];
    assert_eq!(kinds, ["1", "3"].map(|threads| expected.map(|kind| format!("{threads} {kind}"))).concat());
    for row in &rows {
        // There is no mix in batches.
        let speeds = row[3..].iter().filter(|cell| cell.parse::<f64>().is_ok()).count();
        assert_eq!((row.len(), speeds, row[6] == "-"), (8, if row[2] == "1" { 5 } else { 4 }, row[2] != "1"));
    }

    let rates = numbers(&report.replace('%', ""), "false positives ");
    let [measured, expected, asked] = rates[..] else { panic!("{rates:?}") };
    assert!(asked == 0.1 && expected <= asked && (0.7..1.4).contains(&(measured / expected)), "{rates:?}");
    let bits = numbers(&report, "bits per item ");
    assert!((10.0..40.0).contains(&bits[0]) && (200.0..800.0).contains(&bits[1]), "{bits:?}");
    // The factors are those of the last rows. Speeds are rounded, and nearly 0 on a busy machine.
    for (workload, factor) in [4, 5, 6].into_iter().zip(numbers(&report, "times as fast ")) {
        let [filter, set] = [3, 5].map(|row: usize| rows[row][workload].parse::<f64>().expect("a speed"));
        let tolerance = 0.06 + filter / set * 0.006 * (1.0 / filter + 1.0 / set);
        assert!(filter.min(set) < 0.1 || (factor - filter / set).abs() <= tolerance, "{factor}: {report}");
    }
}
