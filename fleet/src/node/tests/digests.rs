//! Nodes that differ.

use super::super::life::Answer;
use super::super::state::State;
use super::super::step::Step;
use super::support::{Engine, Member, alike, engine, pass, wait_for};

/// Three nodes. The third one does not apply the first insert that it receives.
fn one_differs(engine: &Engine, left_out: &[Step]) -> [Member; 3] {
    let left_out = [&[Step::Change], left_out].concat();
    let members =
        [Member::ready("a", engine, &[]), Member::ready("b", engine, &[]), Member::ready("c", engine, &left_out)];
    members[0].revoke("alice", 1000);
    wait_for("c to have heard of it", || members[2].health().position >= members[0].health().position);
    members
}

#[test]
fn a_node_that_differs_says_so_leaves_and_comes_back_alike() {
    let Some(engine) = engine() else { return };
    let [a, b, c] = one_differs(&engine, &[]);
    wait_for("c to have compared its digest", || {
        pass(&engine, 1, &[&a, &b]);
        c.node().tallies.differences.get() > 0
    });
    wait_for("c to join anew", || c.joins() >= 2);
    let why = c.was(State::Joining).unwrap();
    alike(&engine, &[&a, &b, &c]);
    assert_eq!(c.answer("alice"), Answer::Perhaps);
    assert_eq!(c.node().tallies.differences.get(), 1, "{why}");
    assert_eq!([&a, &b].map(|member| member.node().tallies.differences.get()), [0, 0], "the majority stays");
    // No snapshot was written from the filter that differed.
    let d = Member::ready("d", &engine, &[]);
    assert_eq!(d.answer("alice"), Answer::Perhaps);
}

#[test]
fn control_a_node_that_does_not_compare_goes_on_and_lets_a_revoked_token_pass() {
    let Some(engine) = engine() else { return };
    let [a, b, c] = one_differs(&engine, &[Step::Compare]);
    pass(&engine, 3, &[&a, &b, &c]);
    assert_eq!((c.state(), c.joins()), (State::Ready, 1));
    assert_eq!(c.revoked_until("alice").unwrap(), None);
}

#[test]
fn of_two_nodes_that_differ_nobody_knows_who_is_wrong_so_they_join_anew_until_they_are_alike() {
    let Some(engine) = engine() else { return };
    let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, &[Step::Change]));
    a.revoke("alice", 1000);
    // The other node may be the one that leaves first.
    wait_for("the one that is wrong to join anew", || {
        engine.pass(std::time::Duration::from_secs(1));
        std::thread::sleep(std::time::Duration::from_millis(50));
        b.joins() >= 2
    });
    alike(&engine, &[&a, &b]);
    assert_eq!([&a, &b].map(|member| member.answer("alice")), [Answer::Perhaps; 2]);
}

/// A node that differs, and is the only one that writes snapshots. Returns whether one comes from its filter.
fn snapshot_of_a_difference(left_out: &[Step]) -> Option<bool> {
    let engine = engine()?;
    let settings = |name: &str| super::super::settings::Settings {
        snapshot_every: std::time::Duration::from_secs(1 << 30),
        ..super::super::settings::tests::quick(name)
    };
    let start = |name: &str, settings, left_out: &[Step]| {
        let _ = name;
        let member = Member::start_with(settings, &engine, engine.client(), left_out);
        member.wait_until(State::Ready);
        member
    };
    let a = start("a", settings("a"), &[]);
    let b = start("b", settings("b"), &[]);
    // If there is no snapshot, one is due at once, whatever the interval. So one is written before the difference.
    pass(&engine, 1, &[&a, &b]);
    wait_for("the first snapshot", || a.snapshots().len() == 1);
    let left_out = [&[Step::Change, Step::Rejoin], left_out].concat();
    // For this node a snapshot is due at each tick.
    let always = super::super::settings::Settings {
        snapshot_every: std::time::Duration::ZERO,
        ..super::super::settings::tests::quick("c")
    };
    let c = start("c", always, &left_out);
    a.revoke("alice", 1000);
    let difference = a.health().position.unwrap();
    wait_for("c to have heard of it", || c.health().position >= a.health().position);
    pass(&engine, 1, &[&a, &b]);
    wait_for("c to be found out", || c.node().life.load().is_none());
    Some(a.snapshots().iter().any(|position| *position > difference))
}

#[test]
fn a_node_that_differs_writes_no_snapshot() {
    assert_ne!(snapshot_of_a_difference(&[]), Some(true));
}

#[test]
fn control_a_node_that_does_not_mind_writes_one() {
    assert_ne!(snapshot_of_a_difference(&[Step::NoSnapshotOfDifference]), Some(false));
}
