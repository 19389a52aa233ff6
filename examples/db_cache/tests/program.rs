//! The program: its commands, its table, and its error messages.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_db-cache"))
        .args(arguments)
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

fn temporary(name: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name).to_str().expect("a name").to_owned();
    (directory, path)
}

#[test]
fn keys_are_put_and_got_and_deleted() {
    let (_directory, path) = temporary("words.redb");
    let with = |rest: &[&str]| stdout(&[&["--path", &path], rest].concat());
    assert_eq!(with(&["put", "apple", "red"]), "added\n");
    assert_eq!(with(&["put", "apple", "green"]), "replaced\n");
    assert_eq!(with(&["get", "apple"]), "green\n");
    assert_eq!(with(&["delete", "apple", "pear"]), "deleted\nno such key\n");
    assert_failure(&["--path", &path, "get", "apple"], 1, &["no such key: apple"]);
}

#[test]
fn a_file_is_loaded_and_the_statistics_know_it() {
    let (directory, path) = temporary("loaded.redb");
    let keys = directory.path().join("keys.txt");
    let lines: String = (0..2500).map(|key| format!("key {key}\tvalue {key}\n")).collect();
    fs::write(&keys, lines + "key 7\tseven\r\nno value").expect("a file");
    let keys = keys.to_str().expect("a name");
    assert_eq!(stdout(&["--path", &path, "load", keys]), "2,501 keys added, 1 replaced\n");
    assert_eq!(stdout(&["--path", &path, "get", "key 7", "key 2499", "no value"]), "seven\nvalue 2499\n\n");
    assert!(Path::new(&(path.clone() + ".filter")).exists());

    let stats: serde_json::Value = serde_json::from_str(&stdout(&["--path", &path, "stats"])).expect("JSON");
    assert_eq!(stats["len"], 2501);
    let room = stdout(&["--path", &path, "--capacity", "3_000_000", "rebuild"]);
    assert!(room.starts_with("room for 3,000,"), "{room}");
    assert!(room.ends_with(" keys, 2,501 taken\n"), "{room}");
}

#[test]
fn the_bench_prints_a_table_and_misses_nothing() {
    let (directory, path) = temporary("bench.redb");
    let bench = ["bench", "--keys", "3000", "--absent", "20_000", "--seconds", "0", "--rounds", "2"];
    let table = stdout(&[&["--path", &path, "--cache-mib", "1,8"], &bench[..]].concat());
    for mention in ["3,000 keys", "redb's cache 1 MiB", "redb's cache 8 MiB", "absent keys", "present keys", "expected"]
    {
        assert!(table.contains(mention), "no '{mention}' in:\n{table}");
    }
    assert_eq!(table.matches("from a snapshot and 0 entries of the log").count(), 2, "{table}");
    assert_eq!(table.matches("misses            0\n").count(), 2, "{table}");
    // It does not touch a database that exists.
    assert_failure(&[&["--path", &path], &bench[..]].concat(), 2, &["bench.redb", "exists", "give --path"]);
    drop(directory);
    assert_failure(&[&["--path", &path], &bench[..]].concat(), 1, &["can't open the database", "bench.redb"]);
}

#[test]
fn bad_arguments_are_errors() {
    assert_failure(&["get", "key"], 2, &["error: no database was named", "give --path FILE"]);
    assert_failure(&["--path", "x", "get"], 2, &["<KEY>"]);
    for (arguments, mention) in [
        (["bench", "--keys", "0"], "from 1 to 1000000000"),
        (["bench", "--threads", "257"], "from 1 to 256"),
        (["bench", "--seconds", "-1"], "from 0 to 60"),
        (["bench", "--rate", "1"], "above 0 and below 1"),
        (["bench", "--cache-mib", "0"], "from 1 to"),
        (["bench", "--rounds", "many"], "from 1 to 1000"),
    ] {
        assert_failure(&arguments, 2, &["error: invalid value", mention, arguments[1], arguments[2]]);
    }
    let (directory, path) = temporary("no.redb");
    fs::write(&path, "this is no database").expect("a file");
    assert_failure(&["--path", &path, "stats"], 1, &["can't open the database", "no.redb", "give --path"]);
    let missing = directory.path().join("no such file");
    let (_other, path) = temporary("new.redb");
    assert_failure(&["--path", &path, "load", missing.to_str().expect("a name")], 1, &["can't read", "no such file"]);
    assert_failure(&["--path", &path, "--rate", "1e-15", "stats"], 1, &["can't be built", "1e-15", "lowest"]);
}
