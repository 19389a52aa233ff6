//! Faults that random ones do not find.

use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Engine, Member, alike, done, engine, wait_for};
use crate::change::Outcome;
use crate::log::Log;

const HOURS: i64 = 3 * 3600;

/// What a node answers about tokens that were acknowledged before the engine's clock jumped ahead for a moment, on a
/// fleet that was told to check clocks or not. The jump lasts until the nodes have asked the engine a few times.
fn jump(engine: &Engine, left_out: &[Step]) -> (Member, Member) {
    let (a, b) = (Member::ready("a", engine, left_out), Member::ready("b", engine, left_out));
    a.revoke("alice", 1000);
    wait_for("b to apply it", || b.answer("alice") == Answer::Perhaps);
    let position = b.health().position;
    engine.jump(HOURS);
    wait_for("a and b to have heard of it", || {
        b.health().position > position || [&a, &b].iter().all(|m| m.node().tallies.contradictions.get() > 0)
    });
    (a, b)
}

#[test]
fn while_the_clock_is_wrong_the_nodes_say_so_and_afterwards_nothing_is_forgotten() {
    let Some(engine) = engine() else { return };
    let (a, b) = jump(&engine, &[]);
    for member in [&a, &b] {
        member.wait_until(State::Stale);
        let why = member.revoked_until("alice").unwrap_err().to_string();
        assert!(why.contains("clocks contradict") && member.health().why.contains("10800 s ahead"), "{why}");
        assert!(member.revoked_until("bob").is_err());
        let why = member.try_revoke("carol", 1000).unwrap_err().to_string();
        assert!(why.contains("the engine's clock shows"), "{why}");
    }
    // A node that is started meanwhile says so, too.
    let c = Member::start("c", &engine, &[]);
    wait_for("c to say so", || c.health().why.contains("clocks contradict"));
    engine.jump(0);
    for member in [&a, &b, &c] {
        member.wait_until(State::Ready);
        assert_eq!(member.revoked_until("alice").unwrap(), Some(BEGIN + 1000));
        assert_eq!(member.answer("alice"), Answer::Perhaps);
    }
    assert_eq!(a.revoke("carol", 1000), Outcome::Revoked { until: BEGIN + 1000 });
    assert!(a.node().tallies.contradictions.get() > 0);
    // A clock that is behind contradicts, too.
    engine.jump(-HOURS);
    wait_for("a to say so", || a.health().why.contains("10800 s behind"));
    engine.jump(0);
    alike(&engine, &[&a, &b, &c]);
}

#[test]
fn control_a_fleet_that_believes_the_engine_forgets_what_it_acknowledged() {
    let Some(engine) = engine() else { return };
    let (a, b) = jump(&engine, &[Step::Clocks]);
    engine.jump(0);
    for member in [&a, &b] {
        wait_for("it to forget", || member.answer("alice") == Answer::Absent);
    }
    // And nobody can revoke, until the real time has come to where the clock was.
    assert!(a.try_revoke("carol", 1000).is_err());
}

#[test]
fn a_tick_in_the_log_that_a_node_does_not_believe_is_not_applied() {
    let Some(engine) = engine() else { return };
    let a = Member::ready("a", &engine, &[]);
    a.revoke("alice", 1000);
    // Another node writes it, which has believed the engine.
    let known = a.node().known_place().unwrap();
    engine.jump(HOURS);
    done(a.client.engine.word(known, u64::MAX >> 11)).unwrap();
    engine.jump(0);
    wait_for("a to say so", || a.health().why.contains("the log is at a time of"));
    assert!(a.revoked_until("alice").is_err() && a.revoked_until("bob").is_err());
    // One that joins does not apply it either.
    let b = Member::start("b", &engine, &[]);
    wait_for("b to say so", || b.health().why.contains("the log is at a time of"));
    // When the time has come, it is a tick like others.
    engine.pass(Duration::from_secs(HOURS as u64));
    for member in [&a, &b] {
        member.wait_until(State::Ready);
    }
    alike(&engine, &[&a, &b]);
}

#[test]
fn after_everything_is_lost_the_fleet_waits_unless_it_is_told_not_to() {
    for accepts_loss in [false, true] {
        let Some(engine) = engine() else { return };
        let [a, b] = ["a", "b"].map(|name| {
            let settings = Settings { accepts_loss, ..quick(name) };
            let member = Member::start_with(settings, &engine, engine.client(), &[]);
            member.wait_until(State::Ready);
            member
        });
        a.revoke("alice", 100);
        let log = a.health().log;
        engine.server.flush();
        if !accepts_loss {
            for member in [&a, &b] {
                wait_for("it to wait for an operator", || member.health().why.contains("fleet accept"));
                assert!(member.revoked_until("bob").is_err());
            }
            done(a.client.engine.accept()).unwrap();
        }
        for member in [&a, &b] {
            wait_for("it to join the new log", || member.health().log.is_some_and(|now| Some(now) != log));
            member.wait_until(State::Ready);
            assert!(member.was(State::Gap).is_some_and(|why| why.contains("log")));
        }
        assert_eq!(a.revoke("alice", 100), Outcome::Revoked { until: BEGIN + 100 });
        alike(&engine, &[&a, &b]);
    }
}

#[test]
fn a_loss_while_no_node_was_running_is_noticed_by_the_place_in_a_file() {
    let Some(engine) = engine() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("place.json");
    let start = || {
        let settings = Settings { place_file: Some(file.clone()), ..quick("a") };
        Member::start_with(settings, &engine, engine.client(), &[])
    };
    let a = start();
    a.wait_until(State::Ready);
    a.revoke("alice", 1000);
    let kept = format!("\"position\":{}", a.health().position.unwrap());
    wait_for("the place to be kept", || std::fs::read_to_string(&file).is_ok_and(|text| text.contains(&kept)));
    drop(a);
    let a = start();
    a.wait_until(State::Ready);
    drop(a);
    engine.server.flush();
    let a = start();
    wait_for("it to wait for an operator", || a.health().why.contains("fleet accept"));
}

#[test]
fn two_nodes_of_one_name_are_two_and_a_difference_between_them_is_seen() {
    let Some(engine) = engine() else { return };
    // The second one does not apply the first insert that it receives.
    let (a, b) = (Member::ready("same", &engine, &[]), Member::ready("same", &engine, &[Step::Change]));
    assert_ne!(a.health().instance, b.health().instance);
    a.revoke("alice", 1000);
    wait_for("the difference to be seen", || {
        engine.pass(Duration::from_secs(1));
        std::thread::sleep(Duration::from_millis(50));
        b.joins() >= 2
    });
    alike(&engine, &[&a, &b]);
    assert_eq!([&a, &b].map(|member| member.answer("alice")), [Answer::Perhaps; 2]);
}

#[test]
fn after_a_part_of_a_change_has_come_back_the_nodes_wait_and_then_rebuild_their_filters() {
    let Some(engine) = engine() else { return };
    let members = ["a", "b"].map(|name| Member::ready(name, &engine, &[]));
    let [a, b] = &members;
    a.revoke("alice", 1000);
    // The first write of a change. The engine's own tests cut its file.
    engine.say::<u64>("HINCRBY {test}:fleet begun 1");
    for member in &members {
        wait_for("it to wait for an operator", || member.health().why.contains("killed in a write"));
        assert!(member.revoked_until("alice").is_err() && member.try_revoke("bob", 1000).is_err());
    }
    assert!(done(a.client.engine.accept()).unwrap().is_some());
    for member in &members {
        member.wait_until(State::Ready);
        assert_eq!((member.node().tallies.rebuilt.get(), member.answer("alice")), (1, Answer::Perhaps));
    }
    assert_eq!(b.revoke("bob", 1000), Outcome::Revoked { until: BEGIN + 1000 });
    alike(&engine, &[a, b]);
}
