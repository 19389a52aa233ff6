//! Which snapshot a node joins from.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Client, Member, alike, engine, pass, wait_for};
use crate::engine::memory::MemoryEngine;

/// A node that has written some snapshots, each with another token in it, and has one more token in the log. The
/// log is trimmed.
fn with_snapshots(engine: &MemoryEngine, time: &mut u64, number: usize) -> Member {
    let a = Member::ready("a", engine, &[]);
    for token in 0..number {
        a.revoke(&token.to_string(), 1000);
        let before = a.snapshots().first().copied();
        wait_for("a snapshot with the token", || {
            pass(engine, time, 1, &[&a]);
            std::thread::sleep(Duration::from_millis(2));
            a.snapshots().first().copied() > before
        });
    }
    a.revoke("last", 1000);
    a
}

fn has_all(member: &Member, tokens: usize) -> bool {
    (0..tokens).all(|token| member.answer(&token.to_string()) == Answer::Perhaps)
        && member.answer("last") == Answer::Perhaps
        && member.answer("another") == Answer::Absent
}

#[test]
fn a_node_joins_from_the_newest_snapshot_and_the_log_that_follows_it() {
    let (engine, mut time) = (engine(), BEGIN);
    let a = with_snapshots(&engine, &mut time, 5);
    let snapshots = a.snapshots();
    assert_eq!(snapshots.len(), 3, "the last few are kept");
    let b = Member::ready("b", &engine, &[]);
    let why = b.health().history.iter().map(|past| past.why.clone()).collect::<Vec<_>>().join("; ");
    assert!(b.health().snapshot.is_some_and(|snapshot| snapshot.position >= snapshots[0]), "{why}");
    assert!(has_all(&b, 5));
    assert_eq!(b.node().tallies.passed_over.get(), 0);
    alike(&engine, &mut time, &[&a, &b]);
}

#[test]
fn the_log_is_trimmed_below_the_oldest_snapshot_that_is_kept() {
    let (engine, mut time) = (engine(), BEGIN);
    let a = with_snapshots(&engine, &mut time, 5);
    let epoch = a.node().known().unwrap().place.epoch;
    wait_for("the log to be trimmed", || {
        let head = crate::log::Log::head(&engine, epoch).unwrap();
        a.snapshots().last().is_some_and(|oldest| head.first == oldest + 1)
    });
}

#[derive(Clone, Copy)]
enum Fault {
    Content,
    Digest,
    /// The memory limit is too small for every snapshot.
    Memory,
}

/// A node that joins when the newest snapshot is not good.
fn joins_beside_a_bad_one(fault: Fault, left_out: &[Step]) -> (MemoryEngine, u64, Member, Member) {
    let (engine, mut time) = (engine(), BEGIN);
    let a = with_snapshots(&engine, &mut time, 4);
    let client = Client::new(engine.client());
    let newest = a.snapshots()[0];
    let mut settings = quick("b");
    match fault {
        Fault::Content => client.damaged.store(newest, Ordering::SeqCst),
        Fault::Digest => client.wrong_digest.store(newest, Ordering::SeqCst),
        Fault::Memory => settings = Settings { memory_limit: 100, ..settings },
    }
    let b = Member::start_with(settings, client, left_out);
    (engine, time, a, b)
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    for fault in [Fault::Content, Fault::Digest] {
        let (engine, mut time, a, b) = joins_beside_a_bad_one(fault, &[]);
        b.wait_until(State::Ready);
        assert_eq!(b.node().tallies.passed_over.get(), 1);
        assert!(has_all(&b, 4));
        alike(&engine, &mut time, &[&a, &b]);
    }
}

#[test]
fn control_a_node_that_does_not_pass_over_it_does_not_join() {
    let (_engine, _time, _a, b) = joins_beside_a_bad_one(Fault::Content, &[Step::PassOver]);
    wait_for("b to have tried several times", || b.node().tallies.passed_over.get() > 3);
    assert_eq!((b.state(), b.joins()), (State::Joining, 0));
}

#[test]
fn control_a_node_that_does_not_compare_the_digest_joins_from_it() {
    let (_engine, _time, _a, b) = joins_beside_a_bad_one(Fault::Digest, &[Step::SnapshotDigest]);
    b.wait_until(State::Ready);
    assert_eq!(b.node().tallies.passed_over.get(), 0);
}

#[test]
fn a_node_that_can_not_join_says_why_and_answers_from_the_record() {
    let (_engine, _time, _a, b) = joins_beside_a_bad_one(Fault::Memory, &[]);
    wait_for("b to have tried all of them", || b.node().tallies.passed_over.get() >= 3);
    wait_for("b to say so", || b.health().why.contains("none of 3 snapshots is good"));
    assert_eq!(b.revoked_until("last").unwrap(), Some(BEGIN + 1000));
    assert_eq!(b.revoked_until("another").unwrap(), None);
}

#[test]
fn of_several_nodes_one_writes_a_snapshot() {
    let (engine, mut time) = (engine(), BEGIN);
    let members = ["a", "b", "c"].map(|name| Member::ready(name, &engine, &[]));
    let nodes: Vec<_> = members.iter().collect();
    pass(&engine, &mut time, 35, &nodes);
    wait_for("the last one to be written", || {
        let written: u64 = nodes.iter().map(|member| member.node().tallies.written.get()).sum();
        (3..=5).contains(&written)
    });
    let positions = members[0].snapshots();
    assert!(positions.is_sorted_by(|one, next| one > next), "{positions:?}");
}
