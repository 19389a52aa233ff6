//! The program: its table and its error messages.

use std::process::Command;

fn run(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_segments")).args(arguments).output().expect("the program starts");
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).expect("text"))
}

#[test]
fn the_program_prints_a_table_and_misses_nothing() {
    let (succeeds, table) = run(&["--keys=3000", "--segments=2,5", "--milliseconds=1"]);
    assert!(succeeds, "{table}");
    for row in ["| 2 | one maplet |", "| 2 | a filter for each |", "| 5 | one maplet |", "| 5 | a filter for each |"] {
        let numbers = table.lines().find_map(|line| line.strip_prefix(row)).expect(row).split('|');
        assert_eq!(numbers.filter(|number| number.trim().parse::<f64>().is_ok()).count(), 7, "{table}");
    }
}

#[test]
fn bad_arguments_are_errors() {
    for (argument, mention) in [("--keys=0", "1000.."), ("--segments=128", "1..128"), ("--rate=1e-15", "1e-15")] {
        let (succeeds, message) = run(&[argument]);
        assert!(!succeeds && message.contains(mention), "{message}");
    }
}
