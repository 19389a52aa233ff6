//! Numbers without a hole, gaps, other logs, and messages of other people.

use std::thread;

use super::*;

/// Founds a fleet with messages 2 to `through`.
fn fill(subject: &Subject, through: u64) -> Head {
    let head = subject.agree();
    for position in 2..=through {
        let appended = subject.send(head.place, &[revoke(position, tick() + 50), restore(position)]);
        assert_eq!(appended.place.position, position, "not dense");
    }
    head
}

/// The place at a position.
fn at(subject: &Subject, head: Head, position: u64) -> Place {
    Place { position, chain: subject.chain_of(position), ..head.place }
}

/// Asserts that a reader notices that messages are missing.
#[track_caller]
fn assert_gap(subject: &Subject, after: Place, first: u64) {
    let expected = Err(EngineError::Gap { position: after.position, first });
    assert_eq!(subject.read(after, SHORT), expected, "the gap is not noticed");
}

fn numbers_are_dense(subject: &Subject) {
    let head = subject.agree();
    let nodes: Vec<_> = (0..3).map(|_| subject.other()).collect();
    thread::scope(|scope| {
        for (node, first) in nodes.iter().zip([1000, 2000, 3000]) {
            scope.spawn(move || {
                for number in first..first + 50 {
                    let _ = node.append(head.place, fresh(), &[revoke(number, tick() + 50), restore(number)]);
                }
            });
        }
    });
    let Ok(end) = subject.word(head.place) else { panic!("not dense") };
    assert_eq!(end.place.position, 151, "not dense");
    let messages = subject.all(head.place.epoch);
    assert!(messages.iter().map(|message| message.place.position).eq(1..=151), "not dense");
    assert_eq!(messages[150].place, end.place);
}

#[test]
fn numbers_have_no_hole_whoever_appends() {
    holds(numbers_are_dense);
    fails_without(Step::Density, "not dense", numbers_are_dense);
}

#[test]
fn a_reader_gets_what_comes_while_it_waits() {
    holds(|subject| {
        let head = subject.agree();
        assert_eq!(subject.read(head.place, SHORT), Ok(vec![]));
        assert_eq!(subject.read(head.place, Duration::ZERO), Ok(vec![]));
        let messages = thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                loop {
                    match subject.read(head.place, LONG).unwrap() {
                        none if none.is_empty() => {}
                        messages => return messages,
                    }
                }
            });
            subject.other().send(head.place, &[revoke(1, tick() + 5)]);
            waiting.join().unwrap()
        });
        assert_eq!(changes(&messages), [insert(1, tick() + 5)]);
    });
}

/// A log that was trimmed on purpose, and then by its length.
fn trimming_is_a_gap(subject: &Subject) {
    let head = fill(subject, 10);
    let places = [3, 6, 9, 10].map(|position| at(subject, head, position));
    subject.trim(places[1]).unwrap();
    assert_eq!(subject.word(places[3]).unwrap().first, 6, "the oldest place can still be compared");
    let positions = |after| subject.read(after, SHORT).map(|some| some.iter().map(|m| m.place.position).collect());
    assert_eq!(positions(places[1]), Ok(vec![7, 8, 9, 10]));
    assert_gap(subject, places[0], 6);
    subject.engine.say::<()>("XTRIM {test}:log MAXLEN 1");
    assert_gap(subject, places[1], 10);
    assert_eq!(positions(places[2]), Ok(vec![10]));
    subject.engine.say::<()>("XTRIM {test}:log MAXLEN 0");
    // Nothing says so but the word.
    assert_eq!(positions(places[2]), Ok(vec![]));
    assert_eq!(subject.word(places[3]).unwrap().first, 11);
    assert_eq!(subject.word(places[2]), Err(EngineError::Gap { position: 9, first: 11 }));
    // The numbers and the hashes go on, so a reader that had everything goes on.
    let last = subject.send(places[3], &[revoke(1, tick() + 5)]);
    assert_eq!(positions(places[3]), Ok(vec![11]));
    assert_eq!(subject.word(last.place).unwrap().place, last.place);
}

#[test]
fn a_log_that_is_trimmed_past_a_reader_is_a_gap() {
    holds(trimming_is_a_gap);
    fails_without(Step::NextNumber, "the gap is not noticed", trimming_is_a_gap);
}

/// Each call of a node that knows a place of another log.
#[track_caller]
fn all_notice(subject: &Subject, known: Place) {
    let client = &subject.client;
    assert_another(subject.word(known));
    assert_another(subject.append(known, fresh(), &[revoke(1, tick() + 5)]));
    assert_another(subject.revoked_until(known, 1));
    assert_another(done(client.records(known, 0)));
    assert_another(subject.trim(known));
    assert_another(done(client.compare(known, "a", 1)));
    assert_another(done(client.put(known, "key", 0, vec![1])));
}

/// The engine has lost everything, and a new log has come as far as the old one and further.
fn a_new_log_is_noticed(subject: &Subject) {
    let known = at(subject, fill(subject, 10), 10);
    let first = at(subject, Head { place: known, ..subject.word(known).unwrap() }, 1);
    subject.engine.flush();
    all_notice(subject, known);
    assert_eq!(subject.read(known, SHORT), Ok(vec![]), "there is nothing to read, and no log begins by itself");
    fill(subject, 20);
    all_notice(subject, known);
    assert_another(subject.read(first, SHORT));
    assert_another(subject.read(known, SHORT));
}

#[test]
fn a_log_that_begins_anew_is_another_one() {
    holds(a_new_log_is_noticed);
    fails_without(Step::Epoch, "another log is not noticed", a_new_log_is_noticed);
}

/// The engine has lost its last messages.
fn a_lost_end_is_noticed(subject: &Subject) {
    let known = at(subject, fill(subject, 10), 10);
    let left = subject.lose_end(2);
    all_notice(subject, known);
    assert_eq!(subject.send(left, &[revoke(1, tick() + 5)]).place.position, 9);
}

#[test]
fn a_log_that_ends_before_what_is_known_is_another_one() {
    holds(a_lost_end_is_noticed);
    fails_without(Step::Known, "another log is not noticed", a_lost_end_is_noticed);
}

/// The engine has lost its last messages, and has gone on from there, to the same number and further.
fn another_way_is_noticed(subject: &Subject) {
    let known = at(subject, fill(subject, 10), 10);
    let left = subject.lose_end(2);
    for further in [2, 5] {
        for number in 0..further {
            subject.send(left, &[revoke(number, tick() + 50), restore(number)]);
        }
        all_notice(subject, known);
    }
    assert_another(subject.read(known, SHORT));
    // One that had only what is still there goes on.
    assert!(subject.read(left, SHORT).unwrap().iter().map(|message| message.place.position).eq(9..=15));
}

#[test]
fn a_log_that_has_gone_another_way_is_noticed_at_the_same_number_and_beyond() {
    holds(another_way_is_noticed);
    fails_without(Step::Chain, "another log is not noticed", another_way_is_noticed);
}

/// Messages that no node has written, at the end and in between: with the time as their number, with the next number,
/// between two numbers, of another form, and one that was removed again.
fn foreign_messages_are_stepped_over(subject: &Subject) {
    let head = subject.agree();
    let epoch = head.place.epoch.0.to_le_bytes();
    let mut known = head.place;
    let entries: [&[&[u8]]; 5] = [
        &[b"*", b"hello", b"world"],
        &[b"NEXT-0", &epoch, b"0123456789abcdef12345678X"],
        &[b"LAST-7", b"x", b"y"],
        &[b"NEXT-0", b"a", b"b", b"c", b"d"],
        &[b"9999-5", &epoch, b""],
    ];
    for (number, entry) in entries.iter().enumerate() {
        let id = String::from_utf8(entry[0].to_vec()).unwrap();
        let id = id.replace("NEXT", &(known.position + 1).to_string()).replace("LAST", &known.position.to_string());
        let command = [&[b"XADD".as_slice(), b"{test}:log", id.as_bytes()], &entry[1..]].concat();
        subject.engine.command::<()>(&command);
        // Every other time a word comes before the next message.
        if number % 2 == 0 {
            assert_eq!(subject.word(known).unwrap().place, known);
        }
        let appended = subject.append(known, fresh(), &[revoke(number as u64, tick() + 50)]);
        assert!(appended.is_ok(), "nobody can revoke: {appended:?}");
        assert_eq!(changes(&subject.read(known, SHORT).unwrap()), [insert(number as u64, tick() + 50)]);
        known = appended.unwrap().place;
    }
    assert_eq!(subject.word(known).unwrap().foreign, 4, "the one in between is in nobody's way");
    let id: String = subject.engine.command(&[b"XADD", b"{test}:log", b"*", b"a", b"b"]);
    subject.engine.say::<()>(&format!("XDEL {{test}}:log {id}"));
    let last = subject.send(known, &[revoke(8, tick() + 50)]).place;
    assert_eq!((last.position, subject.all(head.place.epoch).len()), (7, 7));
}

#[test]
fn a_foreign_message_is_stepped_over_removed_and_counted() {
    holds(foreign_messages_are_stepped_over);
    fails_without(Step::Clear, "nobody can revoke", foreign_messages_are_stepped_over);
}

#[test]
fn a_log_of_another_kind_is_refused() {
    holds(|subject| {
        let head = subject.agree();
        subject.engine.say::<()>("DEL {test}:log");
        subject.engine.say::<()>("SET {test}:log mine");
        let refused = subject.append(head.place, fresh(), &[revoke(1, head.tick + 50)]);
        assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
    });
}
