//! Bad arguments, and the help.

use crate::process::run;

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
    run(&too_low, b"")
        .assert_failure(2, &["error: ", "1e-15", "the lowest that", "can have is 9.3", "give a higher --rate"]);
    let too_low_for_it = ["--rate", "1e-8", "--encoding", "semi-sorted"];
    run(&too_low_for_it, b"").assert_failure(2, &["error: ", "1e-8", "without --encoding"]);
}

#[test]
fn help_names_every_option() {
    let outcome = run(&["--help"], b"");
    assert_eq!(outcome.status, Some(0));
    for option in ["--keys", "--items", "--threads", "--rate", "--encoding", "--seconds", "--plot"] {
        assert!(outcome.stdout.contains(option), "no {option} in:\n{}", outcome.stdout);
    }
}
