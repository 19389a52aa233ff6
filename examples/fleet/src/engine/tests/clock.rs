//! Ticks.

use super::subject::*;
use crate::change::Change;
use crate::engine::Step;

/// The milliseconds in a tick.
const TICK: u64 = RESOLUTION * 1000;

fn ticks_never_go_back(subject: &dyn Subject) {
    let (head, now) = (agree(subject), tick());
    assert_eq!((head.tick, head.position), (now, 1), "a log begins with a tick");
    let tick_at = |time| {
        subject.set_time(time);
        let head = subject.log().append_tick(head.place()).unwrap();
        assert_eq!(head.now, time);
        (head.position, head.tick)
    };
    assert_eq!(tick_at(start() + TICK - 1), (1, now));
    assert_eq!(tick_at(start() + TICK), (2, now + 1));
    assert_eq!(tick_at(start() + TICK), (2, now + 1));
    assert_eq!(tick_at(start() - 5 * TICK), (2, now + 1), "back");
    assert_eq!(tick_at(start() + 4 * TICK), (3, now + 4));
    let expected = [now, now + 1, now + 4].map(|now| vec![Change::Tick { now }]);
    let messages = all(subject.log(), head.epoch);
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
        let (head, now) = (agree(subject), tick());
        subject.set_time(start() + 3 * TICK);
        let appended = append(subject, head, &[revoke(1, now + 5)]);
        let messages: Vec<_> = all(subject.log(), head.epoch).into_iter().map(|message| message.changes).collect();
        assert_eq!(
            messages,
            [vec![Change::Tick { now }], vec![Change::Tick { now: now + 3 }], vec![insert(1, now + 5)]]
        );
        assert_eq!(appended.position, 3);
    });
}

#[test]
fn many_nodes_that_tick_at_once_append_one_tick() {
    holds(|subject| {
        let (head, now) = (agree(subject), tick());
        subject.set_time(start() + TICK);
        let nodes: Vec<_> = (0..4).map(|_| subject.client()).collect();
        std::thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| node.log().append_tick(head.place()).unwrap());
            }
        });
        let head = subject.log().head(head.epoch).unwrap();
        assert_eq!((head.position, head.tick), (2, now + 1));
    });
}
