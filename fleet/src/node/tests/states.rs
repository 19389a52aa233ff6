//! How a node moves from one state to another, and what it answers in each.

use std::time::Duration;

use super::super::life::{Answer, pause};
use super::super::settings::tests::quick;
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Engine, Member, alike, engine, pass, wait_for};
use crate::change::Outcome;
use crate::engine::tests::Step as EngineStep;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_node_founds_a_fleet_and_another_joins_by_the_log_alone() {
    let Some(engine) = engine() else { return };
    let a = Member::ready("a", &engine, &[]);
    assert_eq!(a.revoke("alice", 100), Outcome::Revoked { until: BEGIN + 100 });
    let b = Member::ready("b", &engine, &[]);
    assert_eq!((b.answer("alice"), b.answer("bob")), (Answer::Perhaps, Answer::Absent));
    assert!(b.was(State::Ready).unwrap().contains("all is applied"));
    alike(&engine, &[&a, &b]);
}

/// A node that has loaded its filter while a message is on its way to it.
fn behind(engine: &Engine, left_out: &[Step]) -> Member {
    let a = Member::ready("a", engine, &[]);
    let client = engine.client();
    client.hold_messages(true);
    a.revoke("alice", 100);
    let b = Member::start_with(quick("b"), engine, client, left_out);
    wait_for("b to have a filter and word", || b.joins() == 1 && b.health().head >= a.health().position);
    std::thread::sleep(Duration::from_millis(50));
    b
}

#[test]
fn a_node_is_not_ready_before_it_has_applied_what_the_log_had() {
    let Some(engine) = engine() else { return };
    let b = behind(&engine, &[]);
    assert_eq!((b.state(), b.answer("alice")), (State::Joining, Answer::Unsure));
    assert_eq!(b.revoked_until("alice").unwrap(), Some(BEGIN + 100), "by the record");
    assert_eq!(b.revoked_until("bob").unwrap(), None, "by the record");
    b.client.hold_messages(false);
    b.wait_until(State::Ready);
    assert_eq!((b.answer("alice"), b.answer("bob")), (Answer::Perhaps, Answer::Absent));
}

#[test]
fn control_a_node_that_does_not_catch_up_lets_a_revoked_token_pass() {
    let Some(engine) = engine() else { return };
    let b = behind(&engine, &[Step::CatchUp]);
    b.wait_until(State::Ready);
    assert_eq!(b.revoked_until("alice").unwrap(), None);
}

#[test]
fn control_without_the_record_a_joining_node_lets_a_revoked_token_pass() {
    let Some(engine) = engine() else { return };
    let b = behind(&engine, &[Step::Record]);
    assert_eq!(b.state(), State::Joining);
    assert_eq!(b.revoked_until("alice").unwrap(), None);
}

/// Two nodes. One of them has no engine from now on, and an hour passes for it. Then a token is revoked on the
/// other one.
fn cut_off(engine: &Engine, left_out: &[Step]) -> (Member, Member) {
    let (a, b) = (Member::ready("a", engine, &[]), Member::ready("b", engine, left_out));
    b.client.fail(true);
    let hour = engine.time() + 3600;
    engine.pass(HOUR);
    // The log's clock goes on without b.
    wait_for("the tick", || a.node().life.load().as_ref().is_some_and(|life| life.filter.now() == Some(hour)));
    a.revoke("alice", 3700);
    (a, b)
}

#[test]
fn a_node_that_is_cut_off_is_stale_and_says_that_it_can_not_tell() {
    let Some(engine) = engine() else { return };
    let (a, b) = cut_off(&engine, &[]);
    b.wait_until(State::Stale);
    assert_eq!(b.answer("alice"), Answer::Unsure);
    let why = b.revoked_until("alice").unwrap_err().to_string();
    assert!(why.contains("can't tell") && why.contains("ask another node"), "{why}");
    assert!(b.revoked_until("bob").is_err());
    // A token that was revoked before the node was cut off may have been restored since.
    b.client.fail(false);
    b.wait_until(State::Ready);
    assert_eq!(b.revoked_until("alice").unwrap(), Some(BEGIN + 3700));
    assert_eq!(b.joins(), 1, "it goes on with the filter that it has");
    alike(&engine, &[&a, &b]);
}

#[test]
fn a_stale_node_asks_the_record() {
    let Some(engine) = engine() else { return };
    let (_a, b) = cut_off(&engine, &[]);
    b.client.hold_messages(true);
    b.client.fail(false);
    // It reaches the engine, and can't keep up: the token is not in its filter.
    wait_for("b to be stale with an engine", || b.state() == State::Stale && b.revoked_until("alice").is_ok());
    assert_eq!(b.answer("alice"), Answer::Unsure);
    assert_eq!(b.revoked_until("alice").unwrap(), Some(BEGIN + 3700));
    assert_eq!(b.revoked_until("bob").unwrap(), None);
}

/// Two nodes. The second one sleeps while the log is trimmed past it. Then it wakes up.
fn trimmed(engine: &Engine, steps: &[EngineStep], left_out: &[Step]) -> (Member, Member) {
    let a = Member::ready("a", engine, &[]);
    let b = Member::start_with(quick("b"), engine, engine.without(steps), left_out);
    b.wait_until(State::Ready);
    b.client.hold_messages(true);
    std::thread::sleep(Duration::from_millis(20));
    let slept = b.health().position;
    a.revoke("alice", 1000);
    // Two snapshots with the token are written, and the log is trimmed below them.
    wait_for("the log to be trimmed", || {
        pass(engine, 1, &[&a]);
        Some(a.first()) > slept.map(|position| position + 2)
    });
    a.revoke("bob", 1000);
    b.client.hold_messages(false);
    (a, b)
}

#[test]
fn a_node_that_was_overtaken_by_trimming_says_so_and_joins_anew() {
    let Some(engine) = engine() else { return };
    let (a, b) = trimmed(&engine, &[], &[]);
    // More than once if the log was trimmed again meanwhile.
    wait_for("b to join anew", || b.joins() >= 2);
    b.wait_until(State::Ready);
    let why = b.was(State::Gap).expect("it was in the state gap");
    assert!(why.contains("the log begins at"), "{why}");
    assert_eq!((b.answer("alice"), b.answer("bob")), (Answer::Perhaps, Answer::Perhaps));
    alike(&engine, &[&a, &b]);
}

#[test]
fn control_a_node_that_does_not_look_at_the_numbers_lets_a_revoked_token_pass() {
    let Some(engine) = engine() else { return };
    // (Without the hash, too. It would notice.)
    let (a, b) = trimmed(&engine, &[EngineStep::NextNumber], &[Step::Compare, Step::Chain, Step::SilentGap]);
    wait_for("b to catch up", || b.health().position >= a.health().position);
    assert_eq!((b.state(), b.joins()), (State::Ready, 1));
    assert_eq!(b.answer("alice"), Answer::Absent);
}

#[test]
fn control_a_node_that_does_not_join_anew_is_never_ready_again() {
    let Some(engine) = engine() else { return };
    let (_a, b) = trimmed(&engine, &[], &[Step::Rejoin]);
    b.wait_until(State::Gap);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(b.state(), State::Gap);
    assert_eq!(b.revoked_until("alice").unwrap(), Some(BEGIN + 1000), "by the record");
}

/// The answer of a lookup that holds the filter while the node joins again and a token is revoked.
fn lookup_across_a_rejoin(left_out: &[Step]) -> Option<Answer> {
    let engine = engine()?;
    let a = std::sync::Arc::new(Member::ready("a", &engine, left_out));
    let inner = std::sync::Arc::clone(&a);
    pause::next(pause::Point::Before, move || {
        let life = inner.node().life.load_full().unwrap();
        life.lose(super::super::life::Loss::Differs("a test says so".into()));
        drop(life);
        wait_for("the node to join anew", || inner.joins() == 2);
        inner.wait_until(State::Ready);
        assert_eq!(inner.revoke("alice", 100), Outcome::Revoked { until: BEGIN + 100 });
    });
    Some(a.answer("alice"))
}

#[test]
fn a_lookup_that_still_has_the_old_filter_does_not_trust_it_when_the_node_is_ready_again() {
    assert!(matches!(lookup_across_a_rejoin(&[]), None | Some(Answer::Unsure)));
}

#[test]
fn control_with_a_lease_that_does_not_end_with_its_filter_it_lets_an_acknowledged_token_pass() {
    assert!(matches!(lookup_across_a_rejoin(&[Step::OwnLease]), None | Some(Answer::Absent)));
}

/// Whether both nodes still find a token after its end, by the ticks of the log.
fn found_after_its_end(left_out: &[Step]) -> Option<[Answer; 2]> {
    let engine = engine()?;
    let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, left_out));
    a.revoke("alice", 3);
    wait_for("b to apply it", || b.answer("alice") == Answer::Perhaps);
    let pass = |seconds| {
        for _ in 0..seconds {
            let position = a.health().position;
            pass(&engine, 1, &[&a]);
            wait_for("b to hear of the tick", || {
                b.health().position >= a.health().position && a.health().position > position
            });
        }
    };
    // It is kept for the margin of the clocks, and for the rest of a tick.
    pass(2 + 5);
    assert_eq!([a.answer("alice"), b.answer("alice")], [Answer::Perhaps; 2], "it is revoked for one more second");
    pass(1);
    Some([a.answer("alice"), b.answer("alice")])
}

#[test]
fn an_entry_expires_on_all_nodes_by_the_ticks_of_the_log() {
    assert!(matches!(found_after_its_end(&[]), None | Some([Answer::Absent, Answer::Absent])));
}

#[test]
fn control_a_node_that_does_not_apply_ticks_keeps_it() {
    // (With the comparison, it would differ and leave.)
    let found = found_after_its_end(&[Step::Ticks, Step::Compare]);
    assert!(matches!(found, None | Some([Answer::Absent, Answer::Perhaps])), "{found:?}");
}
