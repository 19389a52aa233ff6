//! The adapters, by the cases of each project's own tests, and by what its own cannot do.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::SmallRng};
use replay::LastKeys;
use replay::adopters::{Dedupe, Deduper, Fields, ObjectMap, Value};

/// Few of the keys of a test look alike at this rate. (Which ones is another matter in each run.)
const RATE: f64 = 3e-8;

/// So many different keys of 16 bytes, the same in each run.
fn keys(number: usize) -> Vec<[u8; 16]> {
    let mut random = SmallRng::seed_from_u64(1);
    (0..number).map(|_| random.random()).collect()
}

/// In hoprnet's own test, the tag after the last that has room clears the filter.
#[test]
fn hoprnet_a_filter_that_is_full_forgets_none_of_the_last_tags() {
    const CAPACITY: usize = 1000;
    let filter = LastKeys::new(CAPACITY, RATE).unwrap();
    let mut new = Vec::new();
    for tag in keys(10 * CAPACITY) {
        if !filter.check_and_set(&tag) {
            new.push(tag);
        }
        let last = &new[new.len().saturating_sub(CAPACITY)..];
        // Each tag is looked for when it is the newest, the oldest, and in the middle.
        for tag in [&last[0], &last[last.len() / 2], &last[last.len() - 1]] {
            assert!(filter.check(tag), "{}", new.len());
        }
    }
    assert!(new.len() > 10 * CAPACITY - 3, "{}", new.len());
    assert!(new[new.len() - CAPACITY..].iter().all(|tag| filter.check_and_set(tag)), "replays");
    assert_eq!(filter.new_keys(), new.len() as u64);
    let known = new.iter().filter(|tag| filter.check(tag)).count();
    assert!((CAPACITY..CAPACITY + CAPACITY / 7).contains(&known), "{known}: the oldest leave");
}

const CYCLE: u64 = 300;

/// Answers for a round of packets.
fn dedup(deduper: &Deduper, packets: &[[u8; 16]]) -> Vec<bool> {
    let mut seen = Vec::new();
    deduper.dedup_all(&packets.iter().map(|packet| &packet[..]).collect::<Vec<_>>(), &mut seen);
    seen
}

#[test]
fn agave_of_equal_packets_one_stays_until_the_cycle_is_over() {
    let deduper = Deduper::new(10_000, RATE, Duration::from_secs(CYCLE)).unwrap();
    let seen = dedup(&deduper, &[[7; 16]; 1024]);
    assert!(!seen[0] && seen[1..].iter().all(|seen| *seen));
    let packets = keys(1024);
    assert!(dedup(&deduper, &packets).iter().filter(|seen| **seen).count() < 2);
    assert!(!deduper.reset_at(CYCLE), "none had to go before its time");
    assert!(packets.iter().all(|packet| deduper.dedup(packet)), "the cycle is just over");
    deduper.reset_at(CYCLE + 30);
    assert_eq!(deduper.seen().filter().live_len(), 0);
}

/// agave's own, when it is saturated, forgets all of them.
#[test]
fn agave_a_saturated_deduper_says_so_and_forgets_the_oldest_only() {
    const ROOM: usize = 14_000;
    let deduper = Deduper::new(ROOM, RATE, Duration::from_secs(CYCLE)).unwrap();
    let (packets, mut second, mut saturated) = (keys(3 * ROOM), 0, false);
    for packets in packets.chunks(ROOM / 14) {
        assert!(dedup(&deduper, packets).iter().filter(|seen| **seen).count() < 2, "second {second}");
        second += 7; // three times as many packets as there is room for, so that none would expire
        saturated |= deduper.reset_at(second);
    }
    assert!(saturated);
    let last = &packets[3 * ROOM - ROOM * 3 / 4..];
    assert!(last.iter().all(|packet| deduper.dedup(packet)), "three quarters of the room");
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn event(fields: &[(&str, Value)]) -> ObjectMap {
    let message = ("message".to_owned(), "hello".into());
    std::iter::once(message).chain(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone()))).collect()
}

/// Each case is tried with the fields that are matched, and with those that are ignored.
#[test]
fn vector_events_are_equal_if_their_fields_are() {
    let fields = |fields: [(&str, Value); 2]| event(&fields);
    let field = |value: Value| event(&[("a", value)]);
    let within = |value: Value| field(Value::Object(ObjectMap::from([("key".to_owned(), value)])));
    let cases = [
        (fields([("a", "1".into()), ("other", "1".into())]), fields([("a", "1".into()), ("other", "2".into())]), true),
        (field("1".into()), field("2".into()), false),
        (event(&[("a", "1".into())]), event(&[("b", "1".into())]), false),
        (fields([("a", "1".into()), ("b", "2".into())]), fields([("b", "2".into()), ("a", "1".into())]), true),
        (field("123".into()), field(Value::Integer(123)), false),
        (within("123".into()), within(Value::Integer(123)), false),
        (field(Value::Null), event(&[]), false),
    ];
    for (first, second, equal) in cases {
        for fields in [Fields::Match(names(&["a", "b"])), Fields::Ignore(names(&["message", "other"]))] {
            let dedupe = Dedupe::last(5, fields, RATE).unwrap();
            assert!(!dedupe.is_duplicate(&first) && dedupe.is_duplicate(&first));
            assert_eq!(dedupe.is_duplicate(&second), equal, "{first:?} {second:?}");
        }
    }
}

#[test]
fn vector_the_oldest_event_leaves_and_one_that_comes_again_is_remembered_anew() {
    let numbered = |number: usize| event(&[("matched", Value::Integer(number as i64))]);
    let dedupe = |events| Dedupe::last(events, Fields::Match(names(&["matched"])), RATE).unwrap();
    let one = dedupe(1);
    assert!([1, 2, 1].iter().all(|number| !one.is_duplicate(&numbered(*number))));

    let (dedupe, mut new) = (dedupe(1000), 0);
    for number in 0..10_000 {
        new += usize::from(!dedupe.is_duplicate(&numbered(number)));
        assert!(number % 900 != 0 || number == 0 || dedupe.is_duplicate(&numbered(0)), "seen 900 events before");
    }
    assert!(new > 9990, "{new}");
    assert!((9000..10_000).all(|number| dedupe.is_duplicate(&numbered(number))));
}
