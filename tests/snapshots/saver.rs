//! The example `saver`, run within the test.

use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs, process, thread};

#[path = "../../examples/saver.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod program;

#[test]
fn a_filter_in_a_static_is_saved_at_intervals_and_at_the_end_and_loaded_again() {
    let folder = env::temp_dir().join(format!("ccf-saver-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("revoked.ccf");

    // Without its file it does not start with an empty filter.
    let mut answers = Vec::new();
    let hour = Duration::from_secs(3600);
    let missing = program::serve(&path, hour, &b"one\n"[..], &mut answers).unwrap_err().to_string();
    assert!(missing.contains(&format!("{path:?}: there is no snapshot")) && missing.contains("install"), "{missing}");
    assert!(answers.is_empty() && !path.exists());

    program::install(&path).unwrap();
    assert!(program::load(&path).unwrap().is_empty());
    // A second time, it would replace the tokens of the first by none.
    let before = fs::read(&path).unwrap();
    let refused = program::install(&path).unwrap_err().to_string();
    assert!(refused.contains(&format!("{path:?} exists already")), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
    // No interval ends before the input does, so it is the last save that has the tokens.
    program::serve(&path, hour, &b"one\ntwo\none\n"[..], &mut answers).unwrap();
    assert_eq!(String::from_utf8(answers).unwrap(), "revoked\nrevoked\nwas revoked before\n");
    let loaded = program::load(&path).unwrap();
    assert!(loaded.contains("one") && loaded.contains("two") && loaded.len() == 2);

    // A save at an interval has what was inserted before it. The test waits until there is one.
    static FILTER: OnceLock<program::Revoked> = OnceLock::new();
    let filter = FILTER.get_or_init(|| loaded);
    let running = program::Saver::start(filter, path.clone(), Duration::ZERO);
    filter.insert("three").unwrap();
    while !program::load(&path).unwrap().contains("three") {
        thread::yield_now();
    }
    filter.insert("four").unwrap();
    running.stop().unwrap();
    assert!(program::load(&path).unwrap().contains("four"), "the last save has all changes");

    // An error of the last save is returned.
    let running = program::Saver::start(filter, folder.join("no such folder/revoked.ccf"), hour);
    running.stop().unwrap_err();
    fs::remove_dir_all(&folder).unwrap();
}
