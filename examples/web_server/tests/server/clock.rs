//! A clock that goes back or jumps: between two runs, and while the server runs.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{Loader, RotatingCuckooFilter, StableState};

use crate::support::{Clock, Server, data, wait_for};
use crate::tokens::assert_all_revoked;

/// How many seconds a generation has. Five cover the window of 400 seconds.
const PERIOD: u64 = 100;
const ARGUMENTS: [&str; 4] = ["--window", "400", "--generations", "5"];

/// Changes the snapshot as if the clock had been ahead by so many periods, or behind, when it was made.
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
    metric_of(server, "request_ids", name)
}

#[track_caller]
fn metric_of(server: &Server, filter: &str, name: &str) -> u64 {
    let page = server.client().get("/metrics").body;
    let name = format!("cuckoo_filter_{name}{{filter=\"{filter}\"}} ");
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
    // There is one warning, although there is a step back four times a second.
    assert_eq!(server.said().matches("behind what it showed before").count(), 1, "{}", server.said());
    assert!(!server.said().contains("at once"), "{}", server.said());
    server.end();

    // The remedy that the warning names.
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

/// The store still knows what the filter has forgotten in error.
#[test]
fn a_clock_that_is_set_right_again_lets_no_revoked_token_pass() {
    const START: u64 = 1_800_000_000;
    let (data, clock) = (data(), Clock::at(START));
    let arguments = clock.arguments(&["--longest-lifetime", "1000", "--leeway", "0", "--ticks", "10"]);
    let server = Server::start(data.path(), &arguments);
    let client = server.client();
    assert_eq!(client.put(&format!("/revoked/before?exp={}", START + 900)).status, 201);

    clock.set(START + 1_000_000);
    wait_for("the jump", || metric_of(&server, "revoked", "clock_jumps_total") == 1);
    assert!(server.said().contains("1000000 s at once, so all revoked tokens have expired"), "{}", server.said());
    assert_eq!(client.protected("before", None), 200, "it has expired by this clock");
    // Long enough for the store to forget it, if it went by this clock.
    thread::sleep(Duration::from_millis(600));
    let stats = client.get("/stats").json();
    assert_eq!((&stats["revoked_live"], &stats["store_tokens"]), (&0.into(), &1.into()));

    clock.set(START + 10);
    wait_for("steps back", || metric_of(&server, "revoked", "clock_steps_back_total") > 0);
    wait_for("the warning", || server.said().contains("the store is asked about every token"));
    assert_eq!(client.put(&format!("/revoked/meanwhile?exp={}", START + 900)).status, 201);
    assert_eq!(client.put(&format!("/revoked/pardoned?exp={}", START + 900)).status, 201);
    assert_eq!(client.delete("/revoked/pardoned").status, 204);
    assert_all_revoked(&client, &["before".into(), "meanwhile".into()]);
    assert_eq!((client.protected("good", None), client.protected("pardoned", None)), (200, 200));
    // The answers are right, and none of them comes from a false positive of the filter.
    assert_eq!(client.get("/stats").json()["revoked"]["false_positives_recorded"], 0);
    server.end();

    // The snapshot has the wrong time.
    let server = Server::start(data.path(), &arguments);
    let client = server.client();
    assert!(server.said().contains("the clock was ahead when it was saved"), "{}", server.said());
    assert_all_revoked(&client, &["before".into(), "meanwhile".into()]);
    let questions = client.get("/stats").json()["store_questions"].as_u64().unwrap();
    assert_eq!(client.protected("good", None), 200);
    assert_eq!(client.get("/stats").json()["store_questions"], questions, "the filter is of use again");
    clock.set(START + 900);
    assert_eq!(client.protected("before", None), 200);
}
