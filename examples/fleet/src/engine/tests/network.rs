//! Connections that fail, and an engine that is not ready.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::subject::*;
use crate::change::Outcome;
use crate::engine::Step;
use crate::engine::redis::{RedisEngine, Settings};
use crate::log::{EngineError, Follower, Head, Log, Place, Snapshots};
use crate::proxy::{Mode, Proxy};

/// An engine behind a proxy, a client that goes through it, and a fleet.
struct Behind {
    engine: Engine,
    proxy: Proxy,
    client: RedisEngine,
    head: Head,
}

impl Behind {
    fn start(timeout: Duration, left_out: &[Step]) -> Option<Self> {
        let engine = Engine::start()?;
        let proxy = Proxy::start(engine.server().address()).unwrap();
        let settings = Settings { timeout, url: proxy.url(), ..engine.settings() };
        let client = RedisEngine::edited(settings, left_out, false).unwrap();
        // Not through this client: on a busy machine its time limit may be too short.
        let head = engine.client().agree(&agreement()).unwrap();
        Some(Self { engine, proxy, client, head })
    }

    fn follow(&self) -> Box<dyn Follower> {
        let mut follower = self.client.follow(before(self.head.epoch)).unwrap();
        let deadline = Instant::now() + LONG;
        while !follower.next(Duration::from_millis(50)).is_ok_and(|messages| !messages.is_empty()) {
            assert!(Instant::now() < deadline, "the first message does not come");
        }
        follower
    }

    /// The result of each call that a node makes.
    fn calls(&self) -> Vec<Result<(), EngineError>> {
        let (client, place) = (&self.client, self.head.place());
        vec![
            client.agree(&agreement()).map(drop),
            client.head(place.epoch).map(drop),
            client.append(place, fresh(), &[revoke(1, self.head.tick + 50)]).map(drop),
            client.append_tick(place).map(drop),
            client.revoked_until(place, token(1)).map(drop),
            client.compare(place, "a", 1).map(drop),
            client.trim(Place { position: 0, ..place }),
            client.list(place.epoch).map(drop),
            client.lease("a", LONG).map(drop),
            client.give_back("a"),
            client.write(place, 1, "a", 1, &mut |writer| writer.write_all(&[1; 10])).map(drop),
            client
                .follow(before(place.epoch))
                .and_then(|mut follower| follower.next(Duration::from_millis(1)))
                .map(drop),
        ]
    }

    fn assert_unreachable(&self, why: &str) {
        for (call, result) in self.calls().into_iter().enumerate() {
            assert!(matches!(result, Err(EngineError::Unreachable(_))), "{why}, call {call}: {result:?}");
        }
    }

    fn assert_well(&self) {
        for (call, result) in self.calls().into_iter().enumerate() {
            assert!(result.is_ok(), "call {call}: {result:?}");
        }
    }
}

#[test]
fn an_engine_that_is_not_ready_is_unreachable_and_then_is_not() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    behind.assert_well();
    let mut follower = behind.follow();
    for answer in [
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "MISCONF Errors writing to the AOF file: No space left on device",
        "NOREPLICAS Not enough good replicas to write.",
    ] {
        behind.proxy.set(Mode::Answer(format!("-{answer}\r\n").into_bytes()));
        behind.assert_unreachable(answer);
        let unreachable = follower.next(Duration::from_millis(1));
        assert!(matches!(unreachable, Err(EngineError::Unreachable(_))), "{unreachable:?}");
        behind.proxy.set(Mode::Forward);
        behind.assert_well();
        follower.next(Duration::from_millis(1)).unwrap();
    }
}

/// Another error does not pass by itself. (The control of the test above: not every error is "unreachable".)
#[test]
fn an_engine_that_refuses_is_not_unreachable() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    for answer in
        ["OOM command not allowed when used memory > 'maxmemory'.", "NOPERM no permission", "ERR unknown command"]
    {
        behind.proxy.set(Mode::Answer(format!("-{answer}\r\n").into_bytes()));
        for (call, result) in behind.calls().into_iter().enumerate() {
            assert!(matches!(result, Err(EngineError::Refused(_))), "{answer}, call {call}: {result:?}");
        }
    }
}

#[test]
fn an_engine_that_says_something_else_is_damaged() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    for answer in
        ["+OK\r\n", ":5\r\n", "*1\r\n:5\r\n", "*2\r\n$6\r\nanswer\r\n$3\r\nabc\r\n", "*1\r\n$7\r\nanother\r\n", "?\r\n"]
    {
        behind.proxy.set(Mode::Answer(answer.as_bytes().to_vec()));
        let place = behind.head.place();
        let append = behind.client.append(place, fresh(), &[revoke(1, behind.head.tick + 5)]).map(drop);
        let follow = behind.client.follow(before(place.epoch)).unwrap().next(Duration::from_millis(1)).map(drop);
        for result in [append, follow, behind.client.head(place.epoch).map(drop)] {
            // An answer that is cut off where it would say that there is no log means that there is none.
            let is_told = matches!(result, Err(EngineError::Damaged(_) | EngineError::AnotherLog { found: None, .. }));
            assert!(is_told, "{answer:?}: {result:?}");
        }
    }
    behind.proxy.set(Mode::Forward);
    behind.assert_well();
}

#[test]
fn an_engine_that_loads_its_log_is_waited_for() {
    let Some(engine) =
        Engine::start_with(&["--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"])
    else {
        return;
    };
    let client = engine.client();
    let head = client.agree(&agreement()).unwrap();
    for number in 0..200 {
        append_one(&client, head, number);
        client.append(head.place(), fresh(), &[restore(number)]).unwrap();
    }
    engine.server().kill();
    engine.server().restart_without_waiting().unwrap();
    // It listens before it has loaded its log. Until then it is unreachable, first for one reason and then for
    // another.
    let (mut said_loading, deadline) = (false, Instant::now() + LONG);
    let appended = loop {
        match client.append(head.place(), fresh(), &[revoke(1, head.tick + 50)]) {
            Err(EngineError::Unreachable(why)) => said_loading |= why.contains("LOADING") || why.contains("loading"),
            answer => break answer.unwrap(),
        }
        assert!(Instant::now() < deadline, "it is never ready");
    };
    assert!(said_loading, "it did not load");
    assert_eq!(appended.outcomes, [Outcome::Revoked { until: until(head.tick + 50) }]);
}

fn append_one(client: &RedisEngine, head: Head, number: u64) -> Outcome {
    client.append(head.place(), fresh(), &[revoke(number, head.tick + 50)]).unwrap().outcomes[0]
}

#[test]
fn a_real_replica_and_a_busy_engine_are_unreachable() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    let engine = &behind.engine;
    let append = || behind.client.append(behind.head.place(), fresh(), &[revoke(1, behind.head.tick + 50)]);
    let assert_unreachable = |word: &str| match append() {
        Err(EngineError::Unreachable(why)) => assert!(why.to_lowercase().contains(word), "{why}"),
        other => panic!("{word}: {other:?}"),
    };
    engine.command::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    assert_unreachable("read");
    engine.command::<()>(&[b"CONFIG", b"SET", b"replica-serve-stale-data", b"no"]);
    assert_unreachable("master");
    engine.command::<()>(&[b"REPLICAOF", b"NO", b"ONE"]);
    append().unwrap();
    engine.command::<()>(&[b"CONFIG", b"SET", b"busy-reply-threshold", b"1"]);
    thread::scope(|scope| {
        let mut busy = redis::Client::open(&*engine.url).unwrap().get_connection().unwrap();
        scope.spawn(move || redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut busy).unwrap_err());
        let deadline = Instant::now() + LONG;
        while append().is_ok() {
            assert!(Instant::now() < deadline, "it is never busy");
        }
        assert_unreachable("busy");
        engine.command::<()>(&[b"SCRIPT", b"KILL"]);
    });
    append().unwrap();
}

/// A connection on which no bytes arrive, and that neither side closes.
#[test]
fn a_connection_that_goes_dead_is_noticed_and_replaced() {
    let Some(behind) = Behind::start(Duration::from_millis(300), &[]) else { return };
    let mut follower = behind.follow();
    behind.proxy.set(Mode::Swallow);
    behind.assert_unreachable("swallowed");
    let dead = follower.next(Duration::from_millis(50));
    assert!(matches!(dead, Err(EngineError::Unreachable(_))), "{dead:?}");
    behind.proxy.set(Mode::Forward);
    // On a busy machine an answer may come too late now and then.
    let deadline = Instant::now() + LONG;
    let append = || behind.client.append(behind.head.place(), fresh(), &[revoke(2, behind.head.tick + 50)]);
    while append().is_err() {
        assert!(Instant::now() < deadline, "it does not come back");
    }
    let mut read = Vec::new();
    while changes(&read).is_empty() {
        assert!(Instant::now() < deadline, "the follower does not come back");
        read.extend(follower.next(Duration::from_millis(50)).unwrap_or_default());
    }
    assert_eq!(changes(&read), [insert(2, behind.head.tick + 50)]);
}

/// The control: without a time limit, a dead connection is not noticed.
#[test]
fn a_dead_connection_without_a_time_limit_hangs() {
    let Some(behind) = Behind::start(LONG * 60, &[]) else { return };
    behind.proxy.set(Mode::Swallow);
    thread::scope(|scope| {
        let (told, noticed) = mpsc::channel();
        let behind = &behind;
        scope.spawn(move || told.send(behind.client.head(behind.head.epoch).is_ok()));
        assert_eq!(noticed.recv_timeout(Duration::from_secs(1)), Err(mpsc::RecvTimeoutError::Timeout));
        behind.proxy.set(Mode::Cut);
        assert_eq!(noticed.recv_timeout(LONG), Ok(false));
    });
}

#[test]
fn a_connection_that_is_cut_is_replaced_at_once() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    behind.assert_well();
    behind.proxy.set(Mode::Cut);
    behind.assert_unreachable("cut");
    behind.proxy.set(Mode::Forward);
    behind.assert_well();
    // The engine has closed the connections that were kept. No call fails because of that.
    behind.engine.command::<()>(&[b"CLIENT", b"KILL", b"TYPE", b"NORMAL", b"SKIPME", b"yes"]);
    behind.assert_well();
}

#[test]
fn a_slow_connection_is_slow_and_nothing_else() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    behind.proxy.set(Mode::Delay(Duration::from_millis(20)));
    behind.assert_well();
}

/// The message has arrived, and its answer is lost. Sent again, it gets that answer.
fn lost_answers(left_out: &[Step]) -> Option<(Outcome, usize)> {
    let behind = Behind::start(Duration::from_millis(300), left_out)?;
    let (id, place) = (fresh(), behind.head.place());
    let proposals = [revoke(1, behind.head.tick + 50)];
    // Another client, with a longer time limit. It loads the script into the engine; otherwise the first answer
    // would be that the script is missing.
    let patient = RedisEngine::edited(behind.engine.settings(), left_out, false).unwrap();
    patient.append(place, fresh(), &[restore(1)]).unwrap();
    behind.proxy.set(Mode::SwallowAnswers);
    let lost = behind.client.append(place, id, &proposals);
    assert!(matches!(lost, Err(EngineError::Unreachable(_))), "{lost:?}");
    // It has arrived.
    let deadline = Instant::now() + LONG;
    while patient.revoked_until(place, token(1)).unwrap().is_none() {
        assert!(Instant::now() < deadline, "the message did not come");
    }
    let again = patient.append(place, id, &proposals).unwrap();
    let inserted = changes(&all(&behind.engine.client(), place.epoch));
    Some((again.outcomes[0], inserted.len()))
}

#[test]
fn a_lost_answer_is_got_by_sending_again() {
    let Some((outcome, inserted)) = lost_answers(&[]) else { return };
    assert!(matches!(outcome, Outcome::Revoked { .. }), "{outcome:?}");
    assert_eq!(inserted, 1);
    // The controls.
    let forgotten = lost_answers(&[Step::Identifier]).unwrap();
    assert!(matches!(forgotten, (Outcome::AlreadyRevoked { .. }, 1)), "{forgotten:?}");
    let twice = lost_answers(&[Step::Identifier, Step::Record]).unwrap();
    assert!(matches!(twice, (Outcome::Revoked { .. }, 2)), "{twice:?}");
}

/// The engine was away and is back with fewer messages, and has gone on from there. It is past the place of a
/// follower, and the message at that place is not the one that the follower read.
fn a_log_that_went_another_way(left_out: &[Step]) -> Option<Result<Vec<crate::log::Message>, EngineError>> {
    let engine = std::sync::Arc::new(Engine::start()?);
    let subject = RedisSubject::new(std::sync::Arc::clone(&engine), left_out, LONG);
    subject.set_time(start());
    let head = agree(&subject);
    let mut follower = subject.log().follow(before(head.epoch)).unwrap();
    for number in 1..=5 {
        append(&subject, head, &[revoke(number, head.tick + 50)]);
    }
    read(&mut *follower, 6);
    subject.lose_end(2);
    for number in 11..=15 {
        append(&subject, head, &[revoke(number % 10 + 50, head.tick + 50), restore(number % 10 + 50)]);
    }
    engine.command::<()>(&[b"CLIENT", b"KILL", b"TYPE", b"NORMAL", b"SKIPME", b"yes"]);
    let first = follower.next(Duration::from_millis(50));
    assert!(matches!(first, Err(EngineError::Unreachable(_))), "{first:?}");
    Some(follower.next(LONG))
}

#[test]
fn a_log_that_went_another_way_is_noticed_on_the_next_connection() {
    let Some(noticed) = a_log_that_went_another_way(&[]) else { return };
    assert_another(noticed);
    // The control.
    let unnoticed = a_log_that_went_another_way(&[Step::SameLast]).unwrap().unwrap();
    assert!(unnoticed.iter().map(|message| message.position).eq(7..=9), "{unnoticed:?}");
}
