//! Connections that go dead, answers that get lost, an engine that is loading. The first node is behind the proxy.

use std::thread;
use std::time::Duration;

use fleet::testing::proxy::Mode;

use crate::nodes::{Fleet, STALE_AFTER};
use crate::storm::Storm;
use crate::support::{Chance, has_engine, needs_engine, wait_for};

#[test]
fn a_connection_that_goes_dead_without_closing_makes_a_node_stale() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, proxy) = Fleet::start("");
    Storm::rage(&fleet, &mut chance, |storm| {
        proxy.set(Mode::Swallow);
        wait_for("the node to be stale and say why", || {
            let health = fleet.health(0)?;
            (health["state"] == "stale" && health["why"].as_str()?.contains("no answer within")).then_some(())
        });
        storm.wait_for_more(20);
        // It can't tell whether the token is revoked.
        assert_eq!(fleet.protected(0, "anybody"), 503);
        assert_eq!(fleet.put(0, "somebody").status, 503);
        proxy.set(Mode::Forward);
        fleet.wait_until(0, "ready");
    });
}

#[test]
fn answers_that_get_lost_have_messages_delivered_and_changes_sent_again() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, proxy) = Fleet::start("");
    let mut when = chance.branch();
    Storm::rage(&fleet, &mut chance, |storm| {
        for _ in 0..4 {
            proxy.set(Mode::SwallowAnswers);
            thread::sleep(Duration::from_millis(100 + when.next() % 300));
            proxy.set(Mode::Forward);
            storm.wait_for_more(20);
        }
    });
}

/// The answer of a node that restores a token when the engine does so and its answer is lost.
fn restored_without_an_answer(options: &str) -> u16 {
    let (fleet, proxy) = Fleet::start(options);
    assert_eq!(fleet.put(0, "alice").status, 201);
    proxy.set(Mode::SwallowAnswers);
    let status = thread::scope(|scope| {
        let deleting = scope.spawn(|| fleet.delete(0, "alice").status);
        // The change reaches the other nodes. The answer to the first node may still be on its way then.
        wait_for("the token to pass", || (fleet.protected(1, "alice") == 200).then_some(()));
        wait_for("the answer to be lost", || (proxy.unanswered() == 0).then_some(()));
        proxy.set(Mode::Forward);
        deleting.join().unwrap()
    });
    fleet.wait_until_alike();
    assert_eq!([0, 1, 2].map(|node| fleet.protected(node, "alice")), [200; 3]);
    status
}

#[test]
fn a_change_whose_acknowledgement_is_lost_is_done_once_and_acknowledged() {
    if has_engine() {
        assert_eq!(restored_without_an_answer(""), 204);
    }
}

#[test]
fn control_under_another_identifier_it_is_told_that_there_was_nothing_to_do() {
    if has_engine() {
        assert_eq!(restored_without_an_answer("--leave-out same-identifier"), 404);
    }
}

#[test]
fn control_the_probers_see_a_token_pass_on_a_node_without_a_lease() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, proxy) = Fleet::start("--leave-out lease");
    let violations = Storm::violations(&fleet, &mut chance, |storm| {
        proxy.set(Mode::Swallow);
        storm.wait_for_violation();
        proxy.set(Mode::Forward);
    });
    assert!(violations.iter().all(|violation| violation.contains("has passed on node 0")), "{violations:?}");
}

/// The answer of a node that is cut off, about a token that another node has revoked long enough ago.
fn cut_off(options: &str) -> u16 {
    let (fleet, proxy) = Fleet::start(options);
    proxy.set(Mode::Cut);
    assert_eq!(fleet.put(1, "alice").status, 201);
    thread::sleep(STALE_AFTER);
    let status = fleet.protected(0, "alice");
    proxy.set(Mode::Forward);
    fleet.wait_until_alike();
    assert_eq!(fleet.protected(0, "alice"), 401);
    status
}

#[test]
fn a_node_that_is_cut_off_does_not_let_pass_what_others_have_revoked() {
    if has_engine() {
        assert_eq!(cut_off(""), 503);
    }
}

#[test]
fn control_without_a_lease_it_does() {
    if has_engine() {
        assert_eq!(cut_off("--leave-out lease"), 200);
    }
}
