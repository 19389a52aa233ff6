//! Identifiers, outcomes, and the record.

use std::thread;

use super::*;
use crate::change::Outcome;

/// A message that is sent again gets the first answer, from whichever client, and is in the log once.
fn identifiers_count_once(subject: &Subject) {
    let (head, end) = (subject.agree(), tick() + 5);
    let other = subject.other();
    let (revoked, restored) = (fresh(), fresh());
    let first = subject.append(head.place, revoked, &[revoke(1, end)]).unwrap();
    assert_eq!(first.outcomes, [Outcome::Revoked { until: until(end) }]);
    let back = subject.append(head.place, restored, &[restore(1)]).unwrap();
    for _ in 0..2 {
        let again = other.append(head.place, revoked, &[revoke(1, end)]).unwrap();
        assert_eq!(again, first, "another answer");
        let again = other.append(head.place, restored, &[restore(1)]).unwrap();
        assert_eq!(again, back, "another answer");
    }
    let change = Change::Remove { hash: hash(1), end };
    assert_eq!(changes(&subject.all(head.place.epoch)), [insert(1, end), change]);
}

#[test]
fn the_same_identifier_counts_once() {
    holds(identifiers_count_once);
    fails_without(Step::Identifier, "another answer", identifiers_count_once);
}

#[test]
fn an_identifier_of_another_message_is_refused() {
    holds(|subject| {
        let (head, id, end) = (subject.agree(), fresh(), tick() + 5);
        subject.append(head.place, id, &[revoke(1, end)]).unwrap();
        let refused = subject.append(head.place, id, &[revoke(1, end), revoke(2, end)]);
        assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
    });
}

/// A message that comes too late is not taken, unless it was taken in time.
fn late_messages_are_refused(subject: &Subject) {
    let (head, end, id) = (subject.agree(), tick() + 50, fresh());
    let send = |id, number, before| done(subject.client.append(head.place, id, &[revoke(number, end)], before, NEVER));
    let in_time = send(id, 1, start() + 1000).unwrap();
    subject.set_time(start() + 1000);
    let late = send(fresh(), 2, start() + 1000);
    assert!(matches!(late, Err(EngineError::TooLate { .. })), "taken too late: {late:?}");
    assert_eq!(send(id, 1, start() + 1000).unwrap(), in_time);
    send(fresh(), 3, start() + 1001).unwrap();
    assert_eq!(changes(&subject.all(head.place.epoch)), [insert(1, end), insert(3, end)]);
}

#[test]
fn a_message_that_comes_too_late_is_refused() {
    holds(late_messages_are_refused);
    fails_without(Step::Before, "taken too late", late_messages_are_refused);
}

/// The outcome of a proposal depends on what was revoked before, and the log has only changes that filters can
/// make.
fn record_decides(subject: &Subject) {
    let (head, now) = (subject.agree(), tick());
    let mut position = head.place.position;
    let mut step = |proposal, outcome, appends: bool| {
        position += u64::from(appends);
        let appended = subject.send(head.place, &[proposal]);
        assert_eq!(appended.outcomes, [outcome], "{proposal:?}");
        assert_eq!(appended.place.position, position, "{proposal:?}");
    };
    step(restore(1), Outcome::NotRevoked, false);
    step(revoke(1, now + 5), Outcome::Revoked { until: until(now + 5) }, true);
    step(revoke(1, now + 5), Outcome::AlreadyRevoked { until: until(now + 5) }, false);
    step(revoke(1, now + 3), Outcome::AlreadyRevoked { until: until(now + 5) }, false);
    step(revoke(1, now), Outcome::AlreadyRevoked { until: until(now + 5) }, false);
    step(revoke(1, now + 9), Outcome::Revoked { until: until(now + 9) }, true);
    step(restore(1), Outcome::Restored, true);
    step(restore(1), Outcome::NotRevoked, false);
    step(revoke(1, now), Outcome::Expired, false);
    step(revoke(1, now + LONGEST + 1), Outcome::TooLate { latest: now + LONGEST }, false);
    step(revoke(1, now + LONGEST), Outcome::Revoked { until: until(now + LONGEST) }, true);
    assert_eq!(
        changes(&subject.all(head.place.epoch)),
        [
            insert(1, now + 5),
            Change::Extend { hash: hash(1), from: now + 5, to: now + 9 },
            Change::Remove { hash: hash(1), end: now + 9 },
            insert(1, now + LONGEST),
        ]
    );
}

#[test]
fn every_outcome_follows_from_the_record() {
    holds(record_decides);
    fails_without(Step::Record, "Revoke", record_decides);
}

#[test]
fn a_later_time_in_the_same_tick_changes_the_record_alone() {
    holds(|subject| {
        let (head, end) = (subject.agree(), tick() + 5);
        let revoke = |until| Proposal::Revoke { token: token(1), hash: hash(1), until, end };
        subject.send(head.place, &[revoke(until(end) - 7)]);
        let before = subject.word(head.place).unwrap();
        let later = subject.send(head.place, &[revoke(until(end) - 2)]);
        assert_eq!(later.outcomes, [Outcome::Revoked { until: until(end) - 2 }]);
        assert_eq!(later.place, before.place);
        assert_eq!(subject.revoked_until(head.place, 1).unwrap(), Some(until(end) - 2));
    });
}

#[test]
fn one_message_can_have_a_token_several_times() {
    holds(|subject| {
        let (head, end) = (subject.agree(), tick() + 5);
        let appended =
            subject.send(head.place, &[revoke(1, end), revoke(1, end), revoke(1, end + 1), restore(1), restore(1)]);
        assert_eq!(
            appended.outcomes,
            [
                Outcome::Revoked { until: until(end) },
                Outcome::AlreadyRevoked { until: until(end) },
                Outcome::Revoked { until: until(end + 1) },
                Outcome::Restored,
                Outcome::NotRevoked,
            ]
        );
        let messages = subject.all(head.place.epoch);
        let extended = Change::Extend { hash: hash(1), from: end, to: end + 1 };
        let removed = Change::Remove { hash: hash(1), end: end + 1 };
        assert_eq!(messages.last().unwrap().changes, [insert(1, end), extended, removed]);
        assert_eq!(subject.revoked_until(head.place, 1).unwrap(), None);
    });
}

/// No filter has an expired entry any more. So it is inserted again, not extended, and not removed.
fn expired_entries_are_gone(subject: &Subject) {
    let (head, now) = (subject.agree(), tick());
    subject.send(head.place, &[revoke(1, now + 2), revoke(2, now + 2)]);
    subject.set_time(start() + 2 * RESOLUTION * 1000);
    let appended = subject.send(head.place, &[revoke(1, now + 5), restore(2)]);
    assert_eq!(
        appended.outcomes,
        [Outcome::Revoked { until: until(now + 5) }, Outcome::NotRevoked],
        "it outlives itself"
    );
    let all = subject.all(head.place.epoch);
    assert_eq!(changes(&all), [insert(1, now + 2), insert(2, now + 2), insert(1, now + 5)]);
}

#[test]
fn an_expired_entry_is_inserted_anew() {
    holds(expired_entries_are_gone);
    fails_without(Step::Outlived, "it outlives itself", expired_entries_are_gone);
}

/// No more entries live than were agreed on. An expired or restored one makes room.
fn entries_are_counted(subject: &Subject) {
    let (head, now) = (subject.agree(), tick());
    let most: Vec<_> = (0..CAPACITY).map(|number| revoke(number, now + 2 + (number % 2) as u32)).collect();
    subject.send(head.place, &most);
    let one_more = |number| subject.send(head.place, &[revoke(number, now + 9)]).outcomes[0];
    let full = Outcome::Full { live: CAPACITY, capacity: CAPACITY };
    assert_eq!(one_more(100), full, "too many");
    // An entry that is there can be extended.
    assert_eq!(one_more(0), Outcome::Revoked { until: until(now + 9) });
    subject.send(head.place, &[restore(1)]);
    assert_eq!(one_more(101), Outcome::Revoked { until: until(now + 9) });
    assert_eq!(one_more(102), full, "too many");
    // Four entries end now: one of the five was extended.
    subject.set_time(start() + 2 * RESOLUTION * 1000);
    for number in 200..204 {
        assert_eq!(one_more(number), Outcome::Revoked { until: until(now + 9) }, "too few");
    }
    assert_eq!(one_more(204), full, "too many");
    // Also after a jump, over several ends at once.
    subject.set_time(start() + 50 * RESOLUTION * 1000);
    let most: Vec<_> = (300..300 + CAPACITY).map(|number| revoke(number, now + 60)).collect();
    let revoked = Outcome::Revoked { until: until(now + 60) };
    assert_eq!(subject.send(head.place, &most).outcomes, vec![revoked; CAPACITY as usize], "too few");
    assert_eq!(subject.send(head.place, &[revoke(400, now + 60)]).outcomes, [full], "too many");
}

#[test]
fn no_more_entries_live_than_were_agreed_on() {
    holds(entries_are_counted);
    fails_without(Step::Count, "too many", entries_are_counted);
    fails_without(Step::Expiry, "too few", entries_are_counted);
}

/// Many nodes revoke the same tokens at the same time. Each token is inserted once, and all nodes agree on the
/// outcome.
fn appends_are_one_step(subject: &Subject) {
    let (head, end) = (subject.agree(), tick() + 5);
    let nodes: Vec<_> = (0..4).map(|_| subject.other()).collect();
    let outcomes: Vec<_> = thread::scope(|scope| {
        let revoke_both =
            |node: &Subject| [1, 2].map(|number| node.send(head.place, &[revoke(number, end)]).outcomes[0]);
        let threads: Vec<_> = nodes.iter().map(|node| scope.spawn(move || revoke_both(node))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let first = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Revoked { .. })).count();
    assert_eq!(first, 2, "revoked twice");
    let mut inserted = changes(&subject.all(head.place.epoch));
    inserted.sort_by_key(|change| *change != insert(1, end));
    assert_eq!(inserted, [insert(1, end), insert(2, end)]);
}

#[test]
fn nodes_that_revoke_the_same_tokens_at_once_insert_each_once() {
    holds(appends_are_one_step);
    fails_without(Step::Record, "revoked twice", appends_are_one_step);
}
