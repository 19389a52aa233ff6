//! Ticks, clocks that jump, and what is forgotten.

use super::*;

/// The milliseconds in a tick.
const TICK: u64 = RESOLUTION * 1000;

fn ticks_never_go_back(subject: &Subject) {
    let (head, now) = (subject.agree(), tick());
    assert_eq!((head.tick, head.place.position), (now, 1), "a log begins with a tick");
    let tick_at = |time| {
        subject.set_time(time);
        let head = subject.word(head.place).unwrap();
        assert_eq!(head.now, time);
        (head.place.position, head.tick)
    };
    assert_eq!(tick_at(start() + TICK - 1), (1, now));
    assert_eq!(tick_at(start() + TICK), (2, now + 1));
    assert_eq!(tick_at(start() + TICK), (2, now + 1));
    assert_eq!(tick_at(start() - 5 * TICK), (2, now + 1), "back");
    assert_eq!(tick_at(start() + 4 * TICK), (3, now + 4));
    let expected = [now, now + 1, now + 4].map(|now| vec![Change::Tick { now }]);
    let messages = subject.all(head.place.epoch);
    assert!(messages.iter().map(|message| &message.changes).eq(&expected), "{messages:?}");
    let times: Vec<_> = messages.iter().map(|message| message.at).collect();
    assert_eq!(times, [start(), start() + TICK, start() + 4 * TICK]);
}

#[test]
fn ticks_are_those_of_the_engine_and_never_go_back() {
    holds(ticks_never_go_back);
    fails_without(Step::Forward, "back", ticks_never_go_back);
}

#[test]
fn the_tick_goes_before_a_message() {
    holds(|subject| {
        let (head, now) = (subject.agree(), tick());
        subject.set_time(start() + 3 * TICK);
        let appended = subject.send(head.place, &[revoke(1, now + 5)]);
        let messages: Vec<_> = subject.all(head.place.epoch).into_iter().map(|message| message.changes).collect();
        assert_eq!(
            messages,
            [vec![Change::Tick { now }], vec![Change::Tick { now: now + 3 }], vec![insert(1, now + 5)]]
        );
        assert_eq!(appended.place.position, 3);
    });
}

#[test]
fn many_nodes_that_tick_at_once_append_one_tick() {
    holds(|subject| {
        let (head, now) = (subject.agree(), tick());
        subject.set_time(start() + TICK);
        let nodes: Vec<_> = (0..4).map(|_| subject.other()).collect();
        std::thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| node.word(head.place).unwrap());
            }
        });
        let head = subject.word(head.place).unwrap();
        assert_eq!((head.place.position, head.tick), (2, now + 1));
    });
}

/// A clock that is later than the caller allows. Nothing is appended, and nothing is judged by it.
fn a_jump_is_refused(subject: &Subject) {
    let (head, end, latest) = (subject.agree(), tick() + 50, start() + 5000);
    let id = fresh();
    let first = subject.append(head.place, id, &[revoke(1, end)]).unwrap();
    for jump in [5001, 3 * 3_600_000, 86_400_000 * 30] {
        subject.set_time(start() + jump);
        let joining = Joining { agreement: &agreement(), memory: None, accepts_loss: false, latest, node: "b" };
        let calls = [
            done(subject.client.word(head.place, latest)).map(drop),
            done(subject.client.append(head.place, fresh(), &[revoke(2, end)], NEVER, latest)).map(drop),
            done(subject.client.agree(&joining)).map(drop),
        ];
        for call in calls {
            let now = start() + jump;
            assert_eq!(call, Err(EngineError::Clock { now, latest }), "a jump is believed");
        }
        // The first answer to a message that was taken before is still true.
        assert_eq!(done(subject.client.append(head.place, id, &[revoke(1, end)], NEVER, latest)), Ok(first.clone()));
        assert_eq!(subject.revoked_until(head.place, 1), Ok(Some(until(end))));
    }
    subject.set_time(latest);
    assert_eq!(done(subject.client.word(first.place, latest)).unwrap().place, first.place);
    assert_eq!(changes(&subject.all(head.place.epoch)), [insert(1, end)]);
}

#[test]
fn a_clock_that_is_ahead_decides_nothing() {
    holds(a_jump_is_refused);
    fails_without(Step::Early, "a jump is believed", a_jump_is_refused);
}

/// The keys of records and identifiers have no end of their own. A word forgets them when their time is over by the
/// clocks of both sides.
#[test]
fn what_is_not_needed_any_more_is_forgotten_by_a_word_and_by_nothing_else() {
    holds(|subject| {
        let (head, end) = (subject.agree(), tick() + 20);
        let id = fresh();
        subject.append(head.place, id, &[revoke(1, end), revoke(2, end)]).unwrap();
        let later = subject.send(head.place, &[revoke(2, end + 60)]);
        let kept = |kind: &str| subject.engine.say::<Vec<Vec<u8>>>(&format!("KEYS {{test}}:{kind}:*"));
        for key in [kept("token"), kept("id")].concat() {
            assert_eq!(subject.engine.command::<i64>(&[b"TTL", &key]), -1, "{key:?} goes away by itself");
        }
        let counts_at = |seconds: u64| {
            subject.set_time(start() + seconds * 1000);
            (0..6).for_each(|_| _ = subject.word(later.place).unwrap());
            (kept("token").len(), kept("id").len())
        };
        // Identifiers are remembered for ten minutes, and records for an hour longer than their entry.
        assert_eq!(counts_at(599), (2, 2));
        assert_eq!(counts_at(660), (2, 0));
        assert_eq!(counts_at(200 + 3599), (2, 0));
        assert_eq!(counts_at(200 + 3660), (1, 0), "the other one was revoked for longer");
        assert_eq!(counts_at(800 + 3660), (0, 0));
        assert_eq!(kept("over"), [[0; 0]; 0]);
        // The message is a new one by now. The token has expired, so nothing counts twice.
        let again = subject.append(later.place, id, &[revoke(1, end), revoke(2, end)]).unwrap();
        assert_eq!(again.outcomes, [crate::change::Outcome::Expired; 2]);
    });
}
