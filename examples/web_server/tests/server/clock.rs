//! A clock that has gone back, or has jumped, since the identifiers were saved.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Loader, RotatingCuckooFilter, StableState};

use crate::support::{Server, data, wait_for};

/// Seconds of a generation, of five within the window of 400 seconds.
const PERIOD: u64 = 100;
const ARGUMENTS: [&str; 4] = ["--window", "400", "--generations", "5"];

/// Changes the snapshot as if the clock had shown a time that is later by so many periods, or earlier, when it was made.
fn shift_clock(data: &Path, periods: i64) {
    let schema = "web-server: request identifiers, version 1";
    let path = data.join("request-ids.snapshot");
    let hasher = StableState::with_key(fs::read(data.join("key")).unwrap().try_into().unwrap());
    let loader = Loader::<RotatingCuckooFilter<str, StableState>, _>::new(hasher, 1 << 24);
    let loaded = loader.schema(schema).read_path(&path).unwrap();
    let tick = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / PERIOD;
    loaded.filter.restart_clock(tick.saturating_add_signed(periods));
    loaded.filter.begin_save().unwrap().attachment(loaded.attachment).write_to_path(&path).unwrap();
}

#[track_caller]
fn metric(server: &Server, name: &str) -> u64 {
    let page = server.client().get("/metrics").body;
    let name = format!("cuckoo_filter_{name}{{filter=\"request_ids\"}} ");
    page.lines().find_map(|line| line.strip_prefix(&name)).expect("the metric").parse().expect("a number")
}

#[test]
fn a_clock_that_is_behind_is_told_and_lets_no_replay_pass() {
    let data = data();
    let server = Server::start(data.path(), &ARGUMENTS);
    assert_eq!(server.client().protected("good", Some("id")), 200);
    server.end();

    shift_clock(data.path(), 1000);
    let server = Server::start(data.path(), &ARGUMENTS);
    assert_eq!(server.client().protected("good", Some("id")), 409);
    wait_for("more than one step back", || metric(&server, "clock_steps_back_total") > 3);
    // It is said once, although there is a step back four times a second.
    assert_eq!(server.said().matches("behind what it showed before").count(), 1, "{}", server.said());
    assert!(!server.said().contains("at once"), "{}", server.said());
    server.end();

    // The remedy that it names.
    fs::remove_file(data.path().join("request-ids.snapshot")).unwrap();
    let server = Server::start(data.path(), &ARGUMENTS);
    assert!(!server.said().contains("behind"), "{}", server.said());
}

#[test]
fn a_clock_that_jumps_is_told() {
    let data = data();
    let server = Server::start(data.path(), &ARGUMENTS);
    assert_eq!(server.client().protected("good", Some("id")), 200);
    server.end();

    shift_clock(data.path(), -3);
    let server = Server::start(data.path(), &ARGUMENTS);
    assert!(!server.said().contains("warning: the clock"), "{}", server.said());
    assert_eq!(server.client().protected("good", Some("id")), 409, "three periods of five are not over");
    assert_eq!(metric(&server, "clock_jumps_total"), 0);
    server.end();

    shift_clock(data.path(), -1000);
    let server = Server::start(data.path(), &ARGUMENTS);
    assert!(server.said().contains("100000 s at once") || server.said().contains("100100 s"), "{}", server.said());
    assert_eq!(metric(&server, "clock_jumps_total"), 1);
    assert_eq!(server.client().protected("good", Some("id")), 200);
}
