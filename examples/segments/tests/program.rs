//! The program: its commands, its table, and its error messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_segments"))
        .args(arguments)
        // The bench's stores need not survive a power cut.
        .env("TMPDIR", if Path::new("/dev/shm").is_dir() { Path::new("/dev/shm").into() } else { std::env::temp_dir() })
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

#[track_caller]
fn stdout(arguments: &[&str]) -> String {
    let output = run(arguments);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
fn assert_failure(arguments: &[&str], status: i32, mentions: &[&str]) {
    let output = run(arguments);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    for mention in mentions {
        assert!(stderr.contains(mention), "no '{mention}' in: {stderr}");
    }
}

#[test]
fn keys_are_put_and_got_and_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store").to_str().expect("a name").to_owned();
    let with = |strategy: &str, rest: &[&str]| stdout(&[&["--path", &path, "--strategy", strategy], rest].concat());
    for strategy in ["maplet", "filters", "engine"] {
        with(strategy, &["put", "apple", "red"]);
        assert!(with(strategy, &["flush"]).starts_with("segment "));
        with(strategy, &["put", "apple", "green"]);
        with(strategy, &["put", "pear", strategy]);
        assert_eq!(with(strategy, &["get", "apple", "pear"]), format!("green\n{strategy}\n"));
        assert_eq!(with(strategy, &["flush"]).lines().count(), 2);
        with(strategy, &["delete", "apple"]);
        let get = &["--path", &path, "--strategy", strategy, "get", "apple"];
        assert_failure(get, 1, &["no such key: apple"]);
        let segments = with(strategy, &["compact"]);
        assert!(segments.ends_with(": 1 keys\n") && segments.lines().count() == 1, "{segments}");
        assert_failure(get, 1, &["no such key: apple"]);
        with(strategy, &["delete", "pear"]);
        assert_eq!(with(strategy, &["compact"]), "", "nothing is left, not even a segment");
    }
}

#[test]
fn the_bench_prints_a_table_and_misses_nothing() {
    let table = stdout(&["bench", "--keys", "3000", "--segments", "2,5", "--seconds", "0.001", "--rounds", "1"]);
    for mention in ["3000 keys", "2 segments", "5 segments", "one maplet", "a filter for each", "one tree", "absent"] {
        assert!(table.contains(mention), "no '{mention}' in:\n{table}");
    }
    assert_eq!(table.matches("wrong answers: 0;").count(), 2, "{table}");
}

#[test]
fn bad_arguments_are_errors() {
    assert_failure(&["get", "key"], 2, &["error: no store was named", "give --path DIRECTORY"]);
    assert_failure(&["--path", "x", "get"], 2, &["<KEY>"]);
    for (arguments, mention) in [
        (["bench", "--keys", "0"], "from 1 to 100000000"),
        (["bench", "--segments", "251"], "from 1 to 250"),
        (["bench", "--threads", "257"], "from 1 to 256"),
        (["bench", "--rate", "1"], "above 0 and below 1"),
        (["bench", "--strategy", "none"], "maplet"),
    ] {
        assert_failure(&arguments, 2, &["error: invalid value", mention, arguments[1], arguments[2]]);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("a name");
    fs::write(directory.path().join("manifest.json"), "this is no manifest").expect("a file");
    assert_failure(&["--path", path, "flush"], 1, &["can't open the store", "give --path another directory"]);
    fs::remove_file(directory.path().join("manifest.json")).expect("a file");
    let open = segments::Store::open(path, segments::Options::new(segments::Strategy::Engine)).expect("a store");
    assert_failure(&["--path", path, "flush"], 1, &["can't open the store", "another process has this store open"]);
    drop(open);
    stdout(&["--path", path, "--rate", "0.01", "flush"]);
    assert_failure(&["--path", path, "--rate", "1e-15", "flush"], 1, &["can't be built", "1e-15"]);
}
