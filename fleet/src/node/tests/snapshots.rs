//! Which snapshot a node joins from.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{Engine, Member, alike, engine, pass, wait_for};

/// A node that has written some snapshots, each with another token in it, and has one more token in the log. The
/// log is trimmed.
fn with_snapshots(engine: &Engine, number: usize) -> Member {
    let a = Member::ready("a", engine, &[]);
    for token in 0..number {
        a.revoke(&token.to_string(), 1000);
        let before = a.snapshots().first().copied();
        wait_for("a snapshot with the token", || {
            pass(engine, 1, &[&a]);
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
    let Some(engine) = engine() else { return };
    let a = with_snapshots(&engine, 5);
    wait_for("the last few to be kept", || a.snapshots().len() == 3);
    let snapshots = a.snapshots();
    let b = Member::ready("b", &engine, &[]);
    let why = b.health().history.iter().map(|past| past.why.clone()).collect::<Vec<_>>().join("; ");
    assert!(b.health().snapshot.is_some_and(|snapshot| snapshot.position >= snapshots[0]), "{why}");
    assert!(has_all(&b, 5));
    assert_eq!(b.node().tallies.passed_over.get(), 0);
    alike(&engine, &[&a, &b]);
}

#[test]
fn the_log_is_trimmed_below_the_oldest_snapshot_that_is_kept() {
    let Some(engine) = engine() else { return };
    let a = with_snapshots(&engine, 5);
    wait_for("the log to be trimmed", || a.snapshots().last().is_some_and(|oldest| a.first() == *oldest));
}

#[derive(Clone, Copy)]
enum Fault {
    Content,
    Digest,
}

/// A node that joins when the newest snapshot is not good.
fn joins_beside_a_bad_one(engine: &Engine, fault: Fault, left_out: &[Step]) -> (Member, Member) {
    let a = with_snapshots(engine, 4);
    let client = engine.client();
    let newest = a.snapshots()[0];
    match fault {
        Fault::Content => client.damaged.store(newest, Ordering::SeqCst),
        Fault::Digest => client.wrong_digest.store(newest, Ordering::SeqCst),
    }
    let b = Member::start_with(quick("b"), engine, client, left_out);
    (a, b)
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    for fault in [Fault::Content, Fault::Digest] {
        let Some(engine) = engine() else { return };
        let (a, b) = joins_beside_a_bad_one(&engine, fault, &[]);
        b.wait_until(State::Ready);
        assert_eq!((b.node().tallies.passed_over.get(), b.node().tallies.rebuilt.get()), (1, 0));
        assert!(has_all(&b, 4));
        alike(&engine, &[&a, &b]);
    }
}

#[test]
fn control_a_node_that_does_not_pass_over_it_does_not_join_from_a_snapshot() {
    let Some(engine) = engine() else { return };
    let (_a, b) = joins_beside_a_bad_one(&engine, Fault::Content, &[Step::PassOver]);
    wait_for("b to join", || b.joins() == 1);
    assert_eq!(b.node().tallies.rebuilt.get(), 1);
}

#[test]
fn control_a_node_that_does_not_compare_the_digest_joins_from_it() {
    let Some(engine) = engine() else { return };
    let (_a, b) = joins_beside_a_bad_one(&engine, Fault::Digest, &[Step::SnapshotDigest]);
    b.wait_until(State::Ready);
    assert_eq!(b.node().tallies.passed_over.get(), 0);
}

#[test]
fn without_a_good_snapshot_a_node_rebuilds_its_filter_from_the_record_while_it_changes() {
    let Some(engine) = engine() else { return };
    let a = Arc::new(with_snapshots(&engine, 4));
    let client = engine.client();
    let (changing, other) = (Arc::clone(&a), engine.clone());
    *client.amid_records.lock().unwrap() = Some(Box::new(move || {
        let changes = move || {
            changing.restore("0");
            changing.revoke("1", 2000);
            changing.revoke("short", 1);
            pass(&other, 10, &[&changing]);
            changing.revoke("new", 1000);
            changing.restore("2");
            changing.revoke("2", 500);
        };
        std::thread::spawn(changes).join().unwrap();
    }));
    // No snapshot fits.
    let settings = Settings { memory_limit: 100, ..quick("b") };
    let b = Member::start_with(settings, &engine, client, &[]);
    b.wait_until(State::Ready);
    assert_eq!((b.node().tallies.passed_over.get(), b.node().tallies.rebuilt.get()), (3, 1));
    let revoked = |token: &&str| b.revoked_until(token).unwrap().is_some();
    let expected = ["1", "2", "3", "last", "new"];
    assert!(expected.iter().all(revoked) && !["0", "short", "another"].iter().any(revoked));
    assert_eq!(b.answer("0"), Answer::Absent, "by the filter alone");
    assert_eq!(b.node().life.load().as_ref().unwrap().filter.live_len(), 5);
    alike(&engine, &[&a, &b]);
}

#[test]
fn a_node_whose_record_has_lost_a_token_does_not_join_and_says_why() {
    let Some(engine) = engine() else { return };
    let a = with_snapshots(&engine, 2);
    let key: Vec<Vec<u8>> = engine.say("KEYS {test}:token:*");
    engine.server.command::<()>(&[b"DEL", &key[0]]);
    engine.say::<()>("DEL {test}:snapshots");
    engine.say::<()>("XTRIM {test}:log MAXLEN 1");
    let b = Member::start("b", &engine, &[]);
    wait_for("b to say so", || b.health().why.contains("the record has 2 live tokens, and the log 3"));
    assert_eq!((b.state(), a.state()), (State::Joining, State::Ready));
}

#[test]
fn of_several_nodes_one_writes_a_snapshot() {
    let Some(engine) = engine() else { return };
    let members = ["a", "b", "c"].map(|name| Member::ready(name, &engine, &[]));
    let nodes: Vec<_> = members.iter().collect();
    pass(&engine, 35, &nodes);
    wait_for("the last one to be written", || {
        let written: u64 = nodes.iter().map(|member| member.node().tallies.written.get()).sum();
        (3..=5).contains(&written)
    });
    let positions = members[0].snapshots();
    assert!(positions.is_sorted_by(|one, next| one > next), "{positions:?}");
}
