//! The engine is killed in a storm of appends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::change::Outcome;

const NODES: u64 = 4;

fn large() -> Agreement {
    Agreement { capacity: 1 << 30, longest: 1 << 20, ..agreement() }
}

/// Sends until there is an answer, with the same identifier.
fn send(engine: &Subject, known: Place, proposals: &[Proposal]) -> Result<Appended, EngineError> {
    let (id, deadline): (MessageId, _) = (fresh(), Instant::now() + LONG);
    loop {
        match engine.append(known, id, proposals) {
            Err(EngineError::Unreachable(_)) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    }
}

/// The answers to one node: the position of each of its messages.
type Answers = Vec<(u64, Outcome, u64)>;

/// A node revokes tokens of its own, one after the other, and restores every other one, until `over` is set.
fn storm(
    engine: &Subject,
    head: Head,
    node: u64,
    over: &AtomicBool,
    count: &AtomicU64,
) -> Result<Answers, EngineError> {
    let mut answers = Vec::new();
    for number in (node << 32).. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        for proposal in [revoke(number, head.tick + 1000), restore(number)].into_iter().take(1 + number as usize % 2) {
            let appended = send(engine, head.place, &[proposal])?;
            answers.push((number, appended.outcomes[0], appended.place.position));
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(answers)
}

/// Kills the engine this many times while nodes append. Returns the answers to the nodes.
fn killed_in_a_storm(engine: &Arc<Engine>, kills: u64) -> Result<(Head, Vec<Answers>), EngineError> {
    let settings = EngineSettings { timeout: Duration::from_secs(5), ..engine.settings() };
    let client = Subject { engine: Arc::clone(engine), client: RedisEngine::edited(settings, &[], false).unwrap() };
    let head = client.agree_with(&large(), None, false)?;
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let answers: Result<Vec<_>, _> = thread::scope(|scope| {
        let nodes: Vec<_> = (0..NODES)
            .map(|node| {
                scope.spawn({
                    let (client, over, count) = (&client, &over, &count);
                    move || storm(client, head, node, over, count)
                })
            })
            .collect();
        for kill in 1..=kills {
            // In the middle of the storm: nodes have been answered since the last kill.
            let (until, deadline) = (count.load(Ordering::Relaxed) + 200 + 37 * kill, Instant::now() + LONG);
            while count.load(Ordering::Relaxed) < until
                && Instant::now() < deadline
                && !nodes.iter().any(|node| node.is_finished())
            {
                thread::yield_now();
            }
            let mut server = engine.server();
            server.kill();
            server.restart().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    });
    Ok((head, answers?))
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_counts_twice_when_the_engine_is_killed() {
    let Some(engine) = Engine::start(&[]) else { return };
    let (head, answers) = killed_in_a_storm(&engine, 8).unwrap();
    let client = unedited(&engine);
    let messages = client.all(head.place.epoch);
    assert!(messages.iter().map(|message| message.place.position).eq(1..=messages.len() as u64), "not dense");
    // Each change is in the log once, at the position in the answer to its sender.
    let mut places: HashMap<Change, Vec<u64>> = HashMap::new();
    for message in &messages {
        for change in &message.changes {
            places.entry(*change).or_default().push(message.place.position);
        }
    }
    let end = head.tick + 1000;
    let mut answered = 0;
    for (number, outcome, position) in answers.into_iter().flatten() {
        let change = match outcome {
            Outcome::Revoked { .. } => insert(number, end),
            Outcome::Restored => Change::Remove { hash: hash(number), end },
            other => panic!("the answer to the first message is not that of its repetition: {other:?}"),
        };
        assert_eq!(places.remove(&change), Some(vec![position]), "{change:?}");
        let is_revoked = client.revoked_until(head.place, number).unwrap().is_some();
        assert_eq!(is_revoked, number % 2 == 0, "token {number}");
        answered += 1;
    }
    assert!(answered > 8 * 200, "{answered}");
    // There are no changes without an answer: all nodes retried until they were answered.
    places.retain(|change, _| !matches!(change, Change::Tick { .. }));
    assert_eq!(places, HashMap::new());
}

/// The control: an engine that keeps nothing on disk loses what it acknowledged, and nodes notice.
#[test]
fn an_engine_without_a_file_loses_what_it_acknowledged() {
    let Some(engine) = Engine::start(&["--appendonly", "no"]) else { return };
    assert_another(killed_in_a_storm(&engine, 1));
}

/// The server is killed in the write of a change, after this part of it, and loads its file with `aof-load-truncated
/// yes`. Another change is acknowledged. When the server loads its file once more, the part of the first change comes
/// before the second one: the log has a message that nobody acknowledged, in place of the one that was.
///
/// Returns what the place of the acknowledged change is worth then.
fn half_a_change(last: &[u8], left_out: &[Step]) -> Option<Result<(), String>> {
    let engine = Engine::start(&["--aof-load-truncated", "yes"])?;
    let client = RedisEngine::edited(engine.settings(), left_out, false).unwrap();
    let subject = Subject { engine: Arc::clone(&engine), client };
    let head = subject.agree_with(&large(), None, false).unwrap();
    let (end, file) = (head.tick + 1000, engine.server().log_file());
    subject.send(head.place, &[revoke(1, end), revoke(2, end), revoke(5, end)]);
    subject.send(head.place, &[revoke(3, end), restore(1)]);
    engine.server().kill();
    let bytes = std::fs::read(&file).unwrap();
    // Some bytes into the last such command.
    let cut = bytes.windows(last.len()).rposition(|some| some == last).unwrap() + last.len() / 2;
    std::fs::write(&file, &bytes[..cut]).unwrap();
    engine.server().restart().unwrap();
    // The first token is still revoked, so this changes nothing. But it is acknowledged.
    let same = subject.send(head.place, &[revoke(1, end)]).outcomes;
    assert!(matches!(same[..], [Outcome::AlreadyRevoked { .. }]), "{same:?}");
    let known = subject.send(head.place, &[revoke(4, end), restore(5)]).place;
    engine.server().kill();
    engine.server().restart().unwrap();
    let is_as_acknowledged = |head: Head| {
        let is_revoked = |number| subject.revoked_until(head.place, number).unwrap().is_some();
        let untils = [2, 4, 5].map(is_revoked);
        if untils == [true, true, false] { Ok(()) } else { Err(format!("{untils:?}")) }
    };
    let waits = match subject.word(known) {
        Ok(head) => {
            let messages = changes(&subject.read(before(head.place.epoch), SHORT).map_err(|_| ()).unwrap_or_default());
            return Some(if messages.contains(&insert(4, end)) {
                is_as_acknowledged(head)
            } else {
                Err("lost".into())
            });
        }
        waits => waits,
    };
    assert!(matches!(&waits, Err(EngineError::Waits(why)) if why.contains("killed in a write")), "{waits:?}");
    assert!(matches!(subject.agree_with(&large(), None, false), Err(EngineError::Waits(_))));
    assert!(matches!(subject.append(known, fresh(), &[]), Err(EngineError::Waits(_))));
    // Once it is accepted, nobody goes on from the old log, and the record counts.
    match last {
        // A node may be told to go on without an operator.
        b"XADD" => _ = subject.agree_with(&large(), None, true).unwrap(),
        _ => assert!(done(subject.client.accept()).unwrap().is_some()),
    }
    assert!(matches!(subject.word(known), Err(EngineError::Gap { .. })));
    let memory = Some(Memory { place: known, at: head.now });
    let head = subject.agree_with(&large(), memory, false).unwrap();
    let gap = subject.read(known, SHORT);
    assert!(matches!(gap, Err(EngineError::Gap { .. })), "{gap:?}");
    let records = done(subject.client.records(head.place, 0)).unwrap().1;
    assert_eq!(records.len() as u64, head.live);
    let sent = subject.send(head.place, &[revoke(6, end)]).place;
    // One message, and before it a tick, if one was due.
    let messages = subject.read(head.place, SHORT).unwrap();
    assert_eq!((changes(&messages), messages.last().unwrap().place), (vec![insert(6, end)], sent));
    assert_eq!(subject.word(head.place).unwrap().live, head.live + 1);
    Some(is_as_acknowledged(head))
}

#[test]
fn a_part_of_a_change_that_comes_back_is_noticed() {
    // In the first command, in one between, and in the last one.
    for last in ["XADD", "DEL\r\n", "RPUSH", "EXEC"] {
        assert!(matches!(half_a_change(last.as_bytes(), &[]), None | Some(Ok(()))), "{last}");
    }
    let control = half_a_change(b"RPUSH", &[Step::Begun]);
    assert!(matches!(control, None | Some(Err(_))), "{control:?}");
}

/// A client that uses the real clock.
fn unedited(engine: &Arc<Engine>) -> Subject {
    Subject { engine: Arc::clone(engine), client: RedisEngine::edited(engine.settings(), &[], false).unwrap() }
}

#[test]
fn a_reader_goes_on_where_it_was_when_the_engine_is_back() {
    let Some(engine) = Engine::start(&[]) else { return };
    let client = unedited(&engine);
    let head = client.agree_with(&large(), None, false).unwrap();
    let mut place = head.place;
    for number in 0..5 {
        engine.server().kill();
        let unreachable = client.read(place, SHORT);
        assert!(matches!(unreachable, Err(EngineError::Unreachable(_))), "{unreachable:?}");
        engine.server().restart().unwrap();
        let end = send(&client, head.place, &[revoke(number, head.tick + 1000)]).unwrap().place;
        // One message each time (and a tick, if one was due): nothing twice, and nothing left out.
        let messages = client.read(place, SHORT).unwrap();
        assert_eq!(changes(&messages), [insert(number, head.tick + 1000)]);
        place = messages.last().unwrap().place;
        assert_eq!(place, end);
    }
}
