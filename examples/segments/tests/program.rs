//! The program: its table and its error messages.

use std::process::Command;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_segments")).args(arguments).output().expect("the program starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).expect("text"))
}

#[test]
fn the_program_prints_a_table_and_misses_nothing() {
    let (status, table) = run(&["--keys", "3_000", "--segments", "2,5", "--seconds", "0.001"]);
    assert_eq!(status, Some(0), "{table}");
    for row in ["| 2 | one maplet |", "| 2 | a filter for each |", "| 5 | one maplet |", "| 5 | a filter for each |"] {
        let numbers = table.lines().find_map(|line| line.strip_prefix(row)).expect(row).split('|');
        assert_eq!(numbers.filter(|number| number.trim().parse::<f64>().is_ok()).count(), 8, "{table}");
    }
}

#[test]
fn bad_arguments_are_errors() {
    for (arguments, expected, mention) in [
        (["--keys", "0"], 2, "from 1000 to 100000000"),
        (["--segments", "128"], 2, "from 1 to 127"),
        (["--rate", "1"], 2, "above 0 and below 1"),
        (["--rate", "1e-15"], 1, "1e-15"),
    ] {
        let (status, message) = run(&arguments);
        assert!(status == Some(expected) && message.contains(mention), "{message}");
    }
}
