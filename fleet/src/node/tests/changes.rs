//! The answers to changes, and when they come.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Engine, Member, alike, engine, wait_for};
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

/// Restores a token whose acknowledgement is lost twice. Returns the outcome, and how many messages of it are in
/// the log.
fn lost_acknowledgement(left_out: &[Step]) -> Option<(Outcome, u64)> {
    let engine = engine()?;
    let a = Member::ready("a", &engine, left_out);
    a.revoke("alice", 100);
    let before = a.health().position.unwrap();
    a.client.loses_answers.store(2, Ordering::SeqCst);
    let outcome = a.restore("alice");
    assert_eq!(a.answer("alice"), Answer::Absent);
    assert!(a.node().tallies.retries.get() >= 2);
    Some((outcome, a.health().position.unwrap() - before))
}

#[test]
fn a_retry_after_a_lost_acknowledgement_has_the_first_answer_and_no_second_effect() {
    assert!(matches!(lost_acknowledgement(&[]), None | Some((Outcome::Restored, 1))));
}

#[test]
fn control_under_another_identifier_a_retry_is_told_that_there_is_nothing_to_restore() {
    assert!(matches!(lost_acknowledgement(&[Step::SameIdentifier]), None | Some((Outcome::NotRevoked, 1))));
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
fn two_nodes_that_revoke_the_same_token_at_the_same_time_add_one_entry() {
    let Some(engine) = engine() else { return };
    let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, &[]));
    for token in 0..50 {
        let token = format!("token-{token}");
        let outcomes = thread::scope(|scope| {
            let threads = [&a, &b].map(|member| scope.spawn(|| member.revoke(&token, 100)));
            threads.map(|thread| thread.join().unwrap())
        });
        let until = BEGIN + 100;
        assert!(outcomes.contains(&Outcome::Revoked { until }), "{outcomes:?}");
        assert!(outcomes.contains(&Outcome::AlreadyRevoked { until }), "{outcomes:?}");
    }
    alike(&engine, &[&a, &b]);
    for member in [&a, &b] {
        assert_eq!(member.node().life.load().as_ref().unwrap().filter.live_len(), 50);
    }
    assert_eq!(a.restore("token-7"), Outcome::Restored);
    assert_eq!(b.restore("token-7"), Outcome::NotRevoked);
    assert_eq!(b.answer("token-7"), Answer::Absent);
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
fn a_revocation_is_made_longer_and_never_shorter() {
    let Some(engine) = engine() else { return };
    let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, &[]));
    a.revoke("alice", 3);
    assert_eq!(b.revoke("alice", 50), Outcome::Revoked { until: BEGIN + 50 });
    assert_eq!(a.revoke("alice", 7), Outcome::AlreadyRevoked { until: BEGIN + 50 });
    super::support::pass(&engine, 10, &[&a, &b]);
    for member in [&a, &b] {
        assert_eq!(member.answer("alice"), Answer::Perhaps);
        assert_eq!(member.revoked_until("alice").unwrap(), Some(BEGIN + 50));
    }
    alike(&engine, &[&a, &b]);
}

#[test]
fn a_full_fleet_says_so_and_takes_more_when_entries_have_expired() {
    let Some(engine) = engine() else { return };
    let members = ["a", "b"].map(|name| {
        let settings = Settings { capacity: 3, ..quick(name) };
        let member = Member::start_with(settings, &engine, engine.client(), &[]);
        member.wait_until(State::Ready);
        member
    });
    let [a, b] = &members;
    for token in ["1", "2", "3"] {
        assert_eq!(a.revoke(token, 2), Outcome::Revoked { until: BEGIN + 2 });
    }
    for member in [a, b] {
        assert_eq!(member.revoke("4", 2), Outcome::Full { live: 3, capacity: 3 });
        assert_eq!(member.answer("4"), Answer::Absent);
    }
    // A token that is revoked already can be made longer without room.
    assert_eq!(b.revoke("1", 100), Outcome::Revoked { until: BEGIN + 100 });
    super::support::pass(&engine, 7, &[a, b]);
    assert_eq!(b.revoke("4", 100), Outcome::Revoked { until: BEGIN + 100 });
    alike(&engine, &[a, b]);
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

#[test]
fn a_token_that_would_live_for_too_long_or_not_at_all_is_refused() {
    let Some(engine) = engine() else { return };
    let a = Member::ready("a", &engine, &[]);
    let latest = quick("a").longest();
    assert!(matches!(a.revoke("alice", 10_000), Outcome::TooLate { latest: told } if told == BEGIN as u32 + latest));
    assert_eq!(a.revoke("bob", 0), Outcome::Revoked { until: BEGIN }, "within the margin");
    super::support::pass(&engine, 6, &[&a]);
    assert_eq!(a.revoke("carol", 0), Outcome::Expired);
    assert_eq!(["alice", "bob", "carol"].map(|token| a.answer(token)), [Answer::Absent; 3]);
}
