//! Runs the program as its users do: as a process, with arguments.
#![cfg(not(miri))]

use std::process::Command;

/// The exit status, what was printed, and errors.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_throughput")).args(arguments).output().expect("the program starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn bad_arguments_are_errors() {
    for (argument, said) in [("--keys=0", "--keys"), ("--threads=1,0", "--threads"), ("--rounds", "--rounds")] {
        let (code, report, errors) = run(&[argument]);
        assert_eq!((code, &*report), (Some(2), ""), "{errors}");
        assert!(errors.contains(said), "no {said} in: {errors}");
    }
}

/// The cells of each row of all tables, without their headings.
fn rows(report: &str) -> Vec<Vec<&str>> {
    let tables = report.lines().filter(|line| line.starts_with('|') && !line.contains("---"));
    tables
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|row| !row[0].starts_with("threads:"))
        .collect()
}

#[test]
fn the_quick_mode_checks_every_set_and_shows_it() {
    let (code, report, errors) = run(&["--quick", "--threads=1,3"]);
    assert_eq!(code, Some(0), "{report}{errors}");
    assert!(report.contains("Every answer was right"), "{report}");
    let rows = rows(&report);
    assert_eq!(rows.len(), 2 * 7, "{report}");
    for row in rows {
        let speeds = row[1..5].iter().filter(|cell| cell.parse::<f64>().is_ok()).count();
        assert_eq!(speeds, if row[0].contains("Bloom") { 3 } else { 4 }, "{row:?}");
        let bits: f64 = row[5].parse().expect("bits per key");
        let is_exact = row[0].contains("Hash");
        assert!(if is_exact { bits > 150.0 } else { (10.0..30.0).contains(&bits) }, "{row:?}");
        assert_eq!(row[6] == "none", is_exact, "{row:?}");
    }
}

#[test]
fn more_threads_than_keys_do_no_harm() {
    let (code, report, errors) = run(&["--keys=1", "--threads=2"]);
    assert_eq!(code, Some(0), "{report}{errors}");
}
