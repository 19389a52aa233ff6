//! Faults that random ones do not find.

use std::time::Duration;

use super::super::life::Answer;
use super::super::settings::{Settings, tests::quick};
use super::super::state::State;
use super::super::step::Step;
use super::support::{BEGIN, Engine, Member, alike, done, engine, pass, wait_for};
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

/// The engine goes back to a copy of itself, and then on to the same number, or further.
fn go_back(engine: &Engine, members: &[&Member], further: u64) {
    let a = members[0];
    let fields: Vec<String> = ["head", "chain", "live"].map(|f| engine.say(&format!("HGET {{test}}:fleet {f}"))).into();
    let before = a.node().known_place().unwrap();
    a.revoke("alice", 1000);
    wait_for("all to have it", || members.iter().all(|member| member.answer("alice") == Answer::Perhaps));
    members.iter().for_each(|member| member.client.is_deaf(true));
    std::thread::sleep(Duration::from_millis(50));
    // The record of the token, its message, and what the fleet knows of it are gone.
    let tokens: Vec<Vec<u8>> = engine.say("KEYS {test}:token:*");
    let restored = format!("HSET {{test}}:fleet head {} chain {} live {}", fields[0], fields[1], fields[2]);
    let last = before.position + 1;
    let script = format!(
        "redis.call('DEL', ARGV[1]) redis.call('XDEL', '{{test}}:log', '{last}-0') \
         redis.call('XSETID', '{{test}}:log', '{}-0') redis.call(unpack(cjson.decode(ARGV[2])))",
        before.position
    );
    let words = serde_json::to_vec(&restored.split(' ').collect::<Vec<_>>()).unwrap();
    engine.server.command::<()>(&[b"EVAL", script.as_bytes(), b"0", &tokens[0], &words]);
    // Somebody who knows only the place before goes on from there.
    for token in 0..further {
        let token = crate::change::TokenId([token as u8; 16]);
        let until = BEGIN + 500;
        let proposal = crate::change::Proposal::Revoke { token, hash: 7, until, end: until as u32 };
        let id = crate::log::MessageId(token.0);
        done(a.client.engine.append(before, id, &[proposal], u64::MAX >> 11, u64::MAX >> 11)).unwrap();
    }
    members.iter().for_each(|member| member.client.is_deaf(false));
}

#[test]
fn a_log_that_has_gone_back_is_noticed_at_any_number_and_waits_for_an_operator() {
    for further in [0, 1, 3] {
        let Some(engine) = engine() else { return };
        let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, &[]));
        go_back(&engine, &[&a, &b], further);
        for member in [&a, &b] {
            member.wait_until(State::Gap);
            wait_for("it to wait for an operator", || member.health().why.contains("fleet accept"));
            // It does not let the token pass that it had acknowledged, nor any other.
            let why = member.revoked_until("alice").unwrap_err().to_string();
            assert!(why.contains("fleet accept"), "{why}");
        }
        let c = Member::start("c", &engine, &[]);
        wait_for("c to wait, too", || c.state() == State::Gap);
        let accepted = done(a.client.engine.accept()).unwrap().unwrap();
        assert!(accepted.contains("knew position"), "{accepted}");
        for member in [&a, &b, &c] {
            member.wait_until(State::Ready);
            // What the engine forgets, the fleet forgets. The README says so.
            assert_eq!(member.revoked_until("alice").unwrap(), None);
        }
        alike(&engine, &[&a, &b, &c]);
    }
}

#[test]
fn control_without_the_hash_a_node_does_not_notice_and_stays_ready() {
    let Some(engine) = engine() else { return };
    let client = engine.without(&[crate::engine::tests::Step::Chain]);
    let a = Member::start_with(quick("a"), &engine, client, &[Step::Chain, Step::Compare]);
    a.wait_until(State::Ready);
    go_back(&engine, &[&a], 1);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((a.state(), a.joins()), (State::Ready, 1));
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
fn messages_of_others_in_the_log_stop_nobody_and_are_told() {
    let Some(engine) = engine() else { return };
    let (a, b) = (Member::ready("a", &engine, &[]), Member::ready("b", &engine, &[]));
    engine.say::<String>("XADD {test}:log * hello world");
    a.revoke("alice", 1000);
    wait_for("b to apply it", || b.answer("alice") == Answer::Perhaps);
    engine.say::<String>("XADD {test}:log * hello world");
    for member in [&a, &b] {
        wait_for("it to be told", || member.health().foreign == 2);
        assert_eq!((member.state(), member.joins()), (State::Ready, 1));
    }
    pass(&engine, 1, &[&a, &b]);
    alike(&engine, &[&a, &b]);
}
