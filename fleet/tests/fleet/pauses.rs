//! Nodes that sleep.

use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::nodes::{Fleet, STALE_AFTER};
use crate::storm::Storm;
use crate::support::{Chance, Client, LONGEST, has_engine, needs_engine, wait_for};

#[test]
fn a_node_that_sleeps_until_the_log_is_trimmed_past_it_joins_anew() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, _proxy) = Fleet::start("");
    Storm::rage(&fleet, &mut chance, |storm| {
        let position = fleet.health(2).unwrap()["position"].as_u64().unwrap();
        fleet.signal(2, Signal::STOP);
        storm.wait_for_more(20);
        // The log begins at the oldest of three snapshots.
        wait_for("three snapshots", || {
            let mut redis = redis::Client::open(fleet.url.clone()).unwrap().get_connection().unwrap();
            let first: redis::Value = redis::cmd("XRANGE")
                .arg("{revoked}:log")
                .arg("-")
                .arg("+")
                .arg("COUNT")
                .arg(1)
                .query(&mut redis)
                .unwrap();
            (first_position(&first)? > position + 1).then_some(())
        });
        fleet.signal(2, Signal::CONT);
        wait_for("the gap to be noticed", || {
            let health = fleet.health(2)?;
            health["history"].as_array()?.iter().any(|past| past["state"] == "gap").then_some(())
        });
        fleet.wait_until(2, "ready");
    });
}

fn first_position(range: &redis::Value) -> Option<u64> {
    let redis::Value::Array(entries) = range else { return None };
    let redis::Value::Array(entry) = entries.first()? else { return None };
    let redis::Value::BulkString(id) = entry.first()? else { return None };
    std::str::from_utf8(id).ok()?.split('-').next()?.parse().ok()
}

/// The first answer of a node that has slept while another node revoked the token. The question waits until the
/// node wakes up.
fn first_answer_after_sleep(options: &str) -> u16 {
    let (fleet, _proxy) = Fleet::start(options);
    fleet.signal(0, Signal::STOP);
    assert_eq!(fleet.put(1, "alice").status, 201);
    thread::sleep(STALE_AFTER * 2);
    let status = thread::scope(|scope| {
        let address = fleet.address(0);
        let asking = scope.spawn(move || Client::new(LONGEST).protected(&address, "alice").unwrap());
        thread::sleep(Duration::from_millis(200));
        fleet.signal(0, Signal::CONT);
        asking.join().unwrap()
    });
    fleet.wait_until_alike();
    assert_eq!(fleet.protected(0, "alice"), 401);
    status
}

#[test]
fn the_first_answer_of_a_node_that_has_slept_is_not_from_its_old_filter() {
    if has_engine() {
        // From the record, or the node can't tell.
        assert!(matches!(first_answer_after_sleep(""), 401 | 503));
    }
}
