//! What a run reports, and that it checks all answers.

use std::process::Stdio;

use crate::process::{number, run, throughput};

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

    // Standard error is no terminal, so it has a line for each of the five workloads, for each of the four in
    // batches, and one for the keys.
    assert_eq!(outcome.stderr.lines().count(), 3 * (5 + 4) + 1, "{}", outcome.stderr);
    assert!(outcome.stderr.lines().all(|line| line.contains(" operations in ")), "{}", outcome.stderr);
}

/// The number before the first `%`.
fn percent(text: &str) -> f64 {
    text.split('%').next().and_then(|number| number.trim().parse().ok()).expect("a percentage")
}

#[test]
fn every_answer_is_checked_in_batches_too() {
    // 12,345 is no multiple of the 1,000 keys of a batch. Nor are the shares of three threads.
    let outcome = run(&["--items", "12_345", "--threads", "3,"], b"");
    outcome.assert_success("12,345", "8,883");
    for workload in ["insert", "lookup present", "remove"] {
        let line = format!("3 threads: {workload} in batches: 12,345 operations in ");
        assert!(outcome.stderr.contains(&line), "no '{line}' in:\n{}", outcome.stderr);
    }
    // Each key once in single calls, and once in batches.
    assert!(outcome.stdout.contains(" of 200,000 lookups, of 100,000 different absent keys"), "{}", outcome.stdout);
    // In both ways each key is looked up and removed. The mix has 950 answers a thread, and some 100 removes before
    // it.
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
fn a_reader_that_leaves_early_does_no_harm() {
    let mut child = throughput()
        .args(["--seconds", "0", "--items", "500", "--threads", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}
