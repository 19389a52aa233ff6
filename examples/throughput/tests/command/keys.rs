//! Which keys a run takes.

use crate::process::{TemporaryFile, run};

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
