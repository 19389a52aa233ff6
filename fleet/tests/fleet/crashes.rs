//! Nodes and the engine are killed.

use std::thread;
use std::time::Duration;

use crate::nodes::Fleet;
use crate::storm::Storm;
use crate::support::{Chance, needs_engine};

#[test]
fn nodes_that_are_killed_in_a_storm_come_back_alike() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, _proxy) = Fleet::start("");
    let mut when = chance.branch();
    Storm::rage(&fleet, &mut chance, |_| {
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(when.next() % 300));
            fleet.replace(when.below(3));
        }
    });
}

#[test]
fn an_engine_that_is_killed_and_comes_back_has_all_that_was_acknowledged() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, _proxy) = Fleet::start("");
    let mut when = chance.branch();
    Storm::rage(&fleet, &mut chance, |storm| {
        for _ in 0..3 {
            thread::sleep(Duration::from_millis(when.next() % 300));
            let mut engine = fleet.engine.lock().unwrap();
            engine.kill();
            // Some leases end meanwhile.
            thread::sleep(Duration::from_millis(when.next() % 1500));
            engine.restart().unwrap();
            drop(engine);
            storm.wait_for_more(20);
        }
    });
}
