//! The answers to changes, and when they come.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Engine, Member, engine, wait_for};
use crate::change::Outcome;

/// Revokes a token while messages are on their way to the node. Returns whether the change is acknowledged before
/// they come, and what the node answers at that time.
fn acknowledged_before_it_is_applied(engine: &Engine, left_out: &[Step]) -> (bool, Answer) {
    let a = Member::ready("a", engine, left_out);
    a.client.hold_messages(true);
    thread::sleep(Duration::from_millis(20));
    let before = a.health().head;
    thread::scope(|scope| {
        let revoking = scope.spawn(|| a.revoke("alice", 100));
        wait_for("the log to have it", || a.health().head > before);
        thread::sleep(Duration::from_millis(100));
        let (is_acknowledged, answer) = (revoking.is_finished(), a.answer("alice"));
        a.client.hold_messages(false);
        assert_eq!(revoking.join().unwrap(), Outcome::Revoked { until: BEGIN + 100 });
        (is_acknowledged, answer)
    })
}

#[test]
fn a_revocation_is_acknowledged_when_this_node_refuses_the_token() {
    // Before that it may answer either way, because the change is not acknowledged yet.
    let Some(engine) = engine() else { return };
    let (is_acknowledged, _) = acknowledged_before_it_is_applied(&engine, &[]);
    assert!(!is_acknowledged);
    let a = Member::ready("a", &engine, &[]);
    for token in 0..300 {
        a.revoke(&format!("token-{token}"), 100);
        assert_eq!(a.answer(&format!("token-{token}")), Answer::Perhaps);
    }
}

#[test]
fn control_without_waiting_a_revocation_is_acknowledged_and_the_token_passes() {
    let Some(engine) = engine() else { return };
    assert_eq!(acknowledged_before_it_is_applied(&engine, &[Step::Wait]), (true, Answer::Absent));
}

#[test]
fn a_change_that_the_engine_does_not_acknowledge_is_refused_in_time_and_may_be_tried_again() {
    let Some(engine) = engine() else { return };
    let settings = Settings { patience: Duration::from_millis(300), ..quick("a") };
    let a = Member::start_with(settings, &engine, engine.client(), &[]);
    a.wait_until(State::Ready);
    a.client.fail(true);
    let why = a.try_revoke("alice", 100).unwrap_err().to_string();
    assert!(why.contains("may have been done") && why.contains("try again"), "{why}");
    a.client.fail(false);
    wait_for("the revocation to be done", || a.try_revoke("alice", 100).is_ok());
    assert_eq!(a.answer("alice"), Answer::Perhaps);
}

/// Restores a token, and the message goes astray, so the answer is 503. Then the token is revoked for longer, which
/// is acknowledged. Then the message arrives after all. Returns what the node answers then.
fn late_message(left_out: &[Step]) -> Option<Answer> {
    let engine = engine()?;
    let settings = Settings { patience: Duration::from_millis(300), ..quick("a") };
    let a = Member::start_with(settings, &engine, engine.client(), left_out);
    a.wait_until(State::Ready);
    a.revoke("alice", 100);
    a.client.delays_appends.store(true, Ordering::SeqCst);
    let why = a.try_restore("alice").unwrap_err().to_string();
    assert!(why.contains("is on its way"), "{why}");
    a.client.delays_appends.store(false, Ordering::SeqCst);
    assert_eq!(a.revoke("alice", 200), Outcome::Revoked { until: BEGIN + 200 });
    engine.pass(Duration::from_secs(1));
    let before = a.health().head;
    a.client.arrive();
    wait_for("what has come to be applied", || a.health().lag.messages == Some(0) && a.health().head > before);
    Some(a.answer("alice"))
}

#[test]
fn a_message_that_was_given_up_and_arrives_late_undoes_nothing() {
    assert_ne!(late_message(&[]), Some(Answer::Absent));
}

#[test]
fn control_a_message_that_may_come_at_any_time_undoes_an_acknowledged_revocation() {
    assert!(matches!(late_message(&[Step::Before]), None | Some(Answer::Absent)));
}

#[test]
fn a_change_whose_node_can_not_apply_it_is_not_acknowledged() {
    let Some(engine) = engine() else { return };
    let settings = Settings { patience: Duration::from_millis(300), ..quick("a") };
    let a = Member::start_with(settings, &engine, engine.client(), &[]);
    a.wait_until(State::Ready);
    a.client.hold_messages(true);
    thread::sleep(Duration::from_millis(20));
    let why = a.try_revoke("alice", 100).unwrap_err().to_string();
    assert!(why.contains("not acknowledged and applied"), "{why}");
    a.client.hold_messages(false);
    wait_for("it to be applied", || a.answer("alice") == Answer::Perhaps);
}

#[test]
fn proposals_of_many_threads_go_in_few_messages() {
    let Some(engine) = engine() else { return };
    let a = Member::ready("a", &engine, &[]);
    let before = a.health().position.unwrap();
    // They come while the engine is away, so they wait together.
    a.client.fail(true);
    thread::scope(|scope| {
        let a = &a;
        for token in 0..200 {
            scope.spawn(move || a.revoke(&format!("token-{token}"), 100));
        }
        thread::sleep(Duration::from_millis(200));
        a.client.fail(false);
    });
    let messages = a.health().position.unwrap() - before;
    assert!((2..=10).contains(&messages), "{messages} messages of at most 100 proposals");
    assert!((0..200).all(|token| a.answer(&format!("token-{token}")) == Answer::Perhaps));
}

#[test]
fn control_a_fleet_that_does_not_count_fills_the_filters() {
    let Some(engine) = engine() else { return };
    let client = engine.without(&[crate::engine::tests::Step::Count]);
    let settings = Settings { capacity: 3, patience: Duration::from_secs(2), ..quick("a") };
    let a = Member::start_with(settings, &engine, client, &[]);
    a.wait_until(State::Ready);
    for token in 0..5000 {
        if a.try_revoke(&token.to_string(), 100).is_err() {
            break;
        }
    }
    // The node knows that its filter is not what it should be, and does not trust it.
    wait_for("the filter to refuse an entry", || a.node().tallies.differences.get() > 0);
    assert!(a.was(State::Joining).unwrap().contains("refused"));
}
