//! Connections that fail, and an engine that is not ready.

use std::sync::mpsc;
use std::thread;

use super::*;
use crate::change::Outcome;
use crate::testing::proxy::{Mode, Proxy};

/// An engine behind a proxy, a client that goes through it, and a fleet.
struct Behind {
    engine: Arc<Engine>,
    proxy: Proxy,
    client: Subject,
    head: Head,
}

impl Behind {
    fn start(timeout: Duration, left_out: &[Step]) -> Option<Self> {
        let engine = Engine::start(&["--appendfsync", "no"])?;
        let proxy = Proxy::start(engine.server().address()).unwrap();
        let client = |settings| Subject {
            engine: Arc::clone(&engine),
            client: RedisEngine::edited(settings, left_out, false).unwrap(),
        };
        // Not through the proxy: on a busy machine its time limit may be too short.
        let head = client(engine.settings()).agree();
        let client = client(EngineSettings { timeout, url: proxy.url(), ..engine.settings() });
        Some(Self { proxy, client, head, engine })
    }

    /// A client that does not go through the proxy.
    fn beside(&self) -> Subject {
        let client = RedisEngine::edited(self.engine.settings(), &self.client.client.inner.left_out, false).unwrap();
        Subject { engine: Arc::clone(&self.engine), client }
    }

    /// The result of each call that a node makes.
    fn calls(&self) -> Vec<Result<(), EngineError>> {
        let (subject, client, place) = (&self.client, &self.client.client, self.head.place);
        vec![
            subject.agree_with(&agreement(), None, false).map(drop),
            subject.word(place).map(drop),
            subject.append(place, fresh(), &[revoke(1, self.head.tick + 50)]).map(drop),
            subject.revoked_until(place, 1).map(drop),
            done(client.records(place, 0)).map(drop),
            done(client.compare(place, "a", 1)).map(drop),
            subject.trim(before(place.epoch)),
            done(client.list(place.epoch)).map(drop),
            done(client.put(place, "key", 0, vec![1])),
            done(client.chunk("key", 0)).map(drop),
            done(client.forget("key")),
            done(client.lease("a", LONG)).map(drop),
            done(client.give_back("a")),
            subject.read(before(place.epoch), Duration::ZERO).map(drop),
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
        behind.proxy.set(Mode::Forward);
        behind.assert_well();
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
        let place = behind.head.place;
        let append = behind.client.append(place, fresh(), &[revoke(1, behind.head.tick + 5)]).map(drop);
        let read = behind.client.read(before(place.epoch), Duration::ZERO).map(drop);
        for result in [append, read, behind.client.word(place).map(drop)] {
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
    let Some(engine) = Engine::start(&["--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024"])
    else {
        return;
    };
    let client =
        Subject { client: RedisEngine::edited(engine.settings(), &[], false).unwrap(), engine: Arc::clone(&engine) };
    let head = client.agree();
    for number in 0..200 {
        client.send(head.place, &[revoke(number, head.tick + 50), restore(number)]);
    }
    engine.server().kill();
    engine.server().restart_without_waiting().unwrap();
    // It listens before it has loaded its log. Until then it is unreachable, first for one reason and then for
    // another.
    let (mut said_loading, deadline) = (false, Instant::now() + LONG);
    let appended = loop {
        match client.append(head.place, fresh(), &[revoke(1, head.tick + 50)]) {
            Err(EngineError::Unreachable(why)) => said_loading |= why.contains("LOADING") || why.contains("loading"),
            answer => break answer.unwrap(),
        }
        assert!(Instant::now() < deadline, "it is never ready");
    };
    assert!(said_loading, "it did not load");
    assert_eq!(appended.outcomes, [Outcome::Revoked { until: until(head.tick + 50) }]);
}

#[test]
fn a_busy_engine_is_unreachable() {
    let Some(behind) = Behind::start(LONG, &[]) else { return };
    let engine = &behind.engine;
    let append = || behind.client.append(behind.head.place, fresh(), &[revoke(1, behind.head.tick + 50)]);
    let assert_unreachable = |word: &str| match append() {
        Err(EngineError::Unreachable(why)) => assert!(why.to_lowercase().contains(word), "{why}"),
        other => panic!("{word}: {other:?}"),
    };
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
    behind.proxy.set(Mode::Swallow);
    behind.assert_unreachable("swallowed");
    behind.proxy.set(Mode::Forward);
    // On a busy machine an answer may come too late now and then.
    wait_for("all calls to succeed", || behind.calls().iter().all(Result::is_ok));
}

/// The control: without a time limit, a dead connection is not noticed.
#[test]
fn a_dead_connection_without_a_time_limit_hangs() {
    let Some(behind) = Behind::start(LONG * 60, &[]) else { return };
    behind.proxy.set(Mode::Swallow);
    thread::scope(|scope| {
        let (told, noticed) = mpsc::channel();
        let behind = &behind;
        scope.spawn(move || told.send(behind.client.word(behind.head.place).is_ok()));
        assert_eq!(noticed.recv_timeout(Duration::from_secs(1)), Err(mpsc::RecvTimeoutError::Timeout));
        behind.proxy.set(Mode::Cut);
        assert_eq!(noticed.recv_timeout(LONG), Ok(false));
    });
}

#[test]
fn a_connection_that_is_cut_is_replaced_at_once() {
    // While connections are cut, a question may have to wait this long: see `Link::ask`.
    let Some(behind) = Behind::start(Duration::from_secs(10), &[]) else { return };
    behind.assert_well();
    behind.proxy.set(Mode::Cut);
    behind.assert_unreachable("cut");
    behind.proxy.set(Mode::Forward);
    behind.assert_well();
    // The engine has closed the connections that were kept. No call fails because of that.
    behind.engine.command::<()>(&[b"CLIENT", b"KILL", b"TYPE", b"NORMAL", b"SKIPME", b"yes"]);
    // Not in the very moment in which the client notices it, for the same reason.
    thread::sleep(Duration::from_millis(200));
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
    let (id, place) = (fresh(), behind.head.place);
    let proposals = [revoke(1, behind.head.tick + 50)];
    // It also loads the script into the engine; otherwise the first answer would be that the script is missing.
    let patient = behind.beside();
    patient.send(place, &[restore(1)]);
    behind.proxy.set(Mode::SwallowAnswers);
    let lost = behind.client.append(place, id, &proposals);
    assert!(matches!(lost, Err(EngineError::Unreachable(_))), "{lost:?}");
    // It has arrived.
    let deadline = Instant::now() + LONG;
    while patient.revoked_until(place, 1).unwrap().is_none() {
        assert!(Instant::now() < deadline, "the message did not come");
    }
    let again = patient.append(place, id, &proposals).unwrap();
    let inserted = changes(&behind.beside().all(place.epoch));
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

#[test]
fn a_missing_or_wrong_password_is_told_in_words() {
    let Some(engine) = Engine::start(&["--requirepass", "sesame", "--protected-mode", "no"]) else { return };
    let told = |login: &str| {
        let url = engine.url.replace("redis://", &format!("redis://{login}"));
        let client = RedisEngine::new(EngineSettings { url, ..engine.settings() }).unwrap();
        let subject = Subject { engine: Arc::clone(&engine), client };
        [subject.agree_with(&agreement(), None, false).map(drop), subject.read(before(Epoch(1)), SHORT).map(drop)]
    };
    let [agreed, read] = told(":sesame@");
    assert!(agreed.is_ok() && matches!(read, Err(EngineError::AnotherLog { .. })), "{agreed:?} {read:?}");
    for (login, words) in [("", "wants a password"), (":open@", "password is wrong"), ("me:sesame@", "user or the")] {
        for told in told(login) {
            let Err(EngineError::Refused(why)) = &told else { panic!("{login}: {told:?}") };
            assert!(why.contains(words) && why.contains("FLEET_ENGINE_URL") && !why.contains("sesame"), "{why}");
        }
    }
}
