//! The adapters, by the cases of each project's own tests, and by what its own cannot do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::SmallRng};
use replay::adopters::{
    Dedupe, Deduper, DuplicateCache, Fields, ObjectMap, Received, ReplayProtector, TagFilter, Value,
};

/// Few of the keys of a test look alike at this rate. (Which ones is another matter in each run.)
const RATE: f64 = 3e-8;

/// So many different keys of 16 bytes, the same in each run.
fn keys(number: usize) -> Vec<[u8; 16]> {
    let mut random = SmallRng::seed_from_u64(1);
    (0..number).map(|_| random.random()).collect()
}

/// A clock in milliseconds that a test sets.
fn clock() -> (Arc<AtomicU64>, impl Fn() -> Duration + Send + Sync + Clone + 'static) {
    let time = Arc::new(AtomicU64::new(0));
    let shared = Arc::clone(&time);
    (time, move || Duration::from_millis(shared.load(Ordering::Relaxed)))
}

fn set(time: &AtomicU64, millis: u64) {
    time.store(millis, Ordering::Relaxed);
}

/// The first of hoprnet's two tests: a tag counts once, and is there from then on.
#[test]
fn hoprnet_a_tag_counts_once() {
    let filter = TagFilter::with_capacity(1000, RATE).unwrap();
    let (zeros, ones) = ([0; 16], [1; 16]);
    let answers = [zeros, zeros, ones, zeros].map(|tag| (filter.check_and_set(&tag), filter.count()));
    assert_eq!(answers, [(false, 1), (true, 1), (false, 2), (true, 2)]);
    filter.set(&[2; 16]);
    assert!(filter.check(&[2; 16]) && !filter.check(&[3; 16]));
}

/// The second: at the capacity, one more tag comes. hoprnet's own then forgets all others, and this one none of the last.
#[test]
fn hoprnet_a_filter_that_is_full_forgets_none_of_the_last_tags() {
    const CAPACITY: usize = 1000;
    let filter = TagFilter::with_capacity(CAPACITY, RATE).unwrap();
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
    let known = new.iter().filter(|tag| filter.check(tag)).count();
    assert!((CAPACITY..CAPACITY + CAPACITY / 6).contains(&known), "{known}: the oldest leave");
}

/// shadowsocks-rust has no test of its own here. What its source says: a nonce is rejected the second time, an empty one never,
/// and those of 2022 are remembered for a time.
#[test]
fn shadowsocks_a_nonce_is_rejected_the_second_time() {
    let (time, clock) = clock();
    let protector = ReplayProtector::new(10_000, Duration::from_secs(60), 1000).unwrap().with_clock(clock);
    for is_aead_2022 in [false, true] {
        let check = |nonce: &[u8]| protector.check_nonce_and_set(is_aead_2022, nonce);
        assert_eq!([check(b""), check(b""), check(b"salt-1"), check(b"salt-1")], [false, false, false, true]);
        assert!(!check(b"salt-2"), "each kind has its own");
    }
    set(&time, 59_000);
    assert!(protector.check_nonce_and_set(true, b"salt-1"));
    set(&time, 200_000);
    assert!(!protector.check_nonce_and_set(true, b"salt-1") && protector.check_nonce_and_set(false, b"salt-1"));
    // Its `generate_nonce` asks again and again until a nonce is new: a full set must not say that all were used.
    let new = keys(50_000).iter().filter(|nonce| !protector.check_nonce_and_set(false, &nonce[..])).count();
    assert!(new > 49_900, "{new}");
    let new = keys(50_000).iter().filter(|nonce| !protector.check_nonce_and_set(true, &nonce[..])).count();
    assert!(new > 49_900, "{new}");
}

#[test]
fn floodsub_a_message_is_dispatched_once_and_remembered_while_it_comes_again() {
    let received = Received::<(u32, Vec<u8>)>::new(1000, RATE).unwrap();
    assert_eq!(received.insert(&(1, vec![0])), None);
    assert_eq!(received.insert(&(1, vec![0])), Some(()));
    assert_eq!(received.insert(&(2, vec![0])), None, "another source");
    for number in 0..20_000_u32 {
        received.insert(&(3, number.to_le_bytes().to_vec()));
        if number % 800 == 0 {
            assert_eq!(received.insert(&(1, vec![0])), Some(()), "a duplicate is renewed, as in an LRU cache");
        }
    }
    assert_eq!(received.insert(&(2, vec![0])), None, "20,000 messages came after it");
}

/// The two tests of gossipsub, by a clock instead of a pause.
#[test]
fn gossipsub_keys_are_there_until_they_expire() {
    let (time, clock) = clock();
    let cache = DuplicateCache::new(Duration::from_millis(130), 100, RATE).unwrap().with_clock(clock);
    assert!(cache.insert(&"t") && cache.insert(&"e"));
    assert!(!cache.insert(&"t") && !cache.insert(&"e") && cache.contains(&"t"));
    set(&time, 129);
    assert!(!cache.insert(&"t"), "it is not renewed");
    // A thirteenth later, which its own test does not wait for.
    set(&time, 140);
    assert!(cache.insert(&"s") && !cache.contains(&"e") && cache.insert(&"t"));
}

const CYCLE: u64 = 300_000;

/// Answers for a round of packets.
fn dedup(deduper: &Deduper, packets: &[[u8; 16]]) -> Vec<bool> {
    let mut seen = Vec::new();
    deduper.dedup_all(&packets.iter().map(|packet| &packet[..]).collect::<Vec<_>>(), &mut seen);
    seen
}

#[test]
fn agave_of_equal_packets_one_stays_until_the_cycle_is_over() {
    let (time, clock) = clock();
    let deduper = Deduper::new(10_000, RATE, Duration::from_millis(CYCLE)).unwrap().with_clock(clock);
    let seen = dedup(&deduper, &[[7; 16]; 1024]);
    assert!(!seen[0] && seen[1..].iter().all(|seen| *seen));
    let packets = keys(1024);
    assert!(dedup(&deduper, &packets).iter().filter(|seen| **seen).count() < 2);
    set(&time, CYCLE);
    assert!(!deduper.maybe_reset(), "none had to go before its time");
    assert!(packets.iter().all(|packet| deduper.dedup(packet)), "the cycle is just over");
    set(&time, CYCLE + CYCLE / 13 + 1);
    assert_eq!(deduper.seen().recent_len(), 0);
}

/// agave's own, when it is saturated, forgets all of them.
#[test]
fn agave_a_saturated_deduper_says_so_and_forgets_the_oldest_only() {
    const ROOM: usize = 14_000;
    let (time, clock) = clock();
    let deduper = Deduper::new(ROOM, RATE, Duration::from_millis(CYCLE)).unwrap().with_clock(clock);
    let (packets, mut saturated) = (keys(3 * ROOM), false);
    for (nth, packets) in packets.chunks(ROOM / 14).enumerate() {
        // Three times as many packets as there is room for, so that none would expire.
        set(&time, 7000 * nth as u64);
        assert!(dedup(&deduper, packets).iter().filter(|seen| **seen).count() < 2, "round {nth}");
        saturated |= deduper.maybe_reset();
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
            assert_eq!(dedupe.transform_one(first.clone()), Some(first.clone()));
            assert_eq!(dedupe.transform_one(first.clone()), None);
            assert_eq!(dedupe.transform_one(second.clone()), (!equal).then_some(second.clone()));
        }
    }
}

fn numbered(number: usize) -> ObjectMap {
    event(&[("matched", Value::Integer(number as i64))])
}

#[test]
fn vector_the_oldest_event_leaves_and_one_that_comes_again_is_remembered_anew() {
    let dedupe = |events| Dedupe::last(events, Fields::Match(names(&["matched"])), RATE).unwrap();
    let one = dedupe(1);
    assert!([1, 2, 1].iter().all(|number| !one.is_duplicate(&numbered(*number))));

    let (dedupe, mut new) = (dedupe(1000), 0);
    for number in 0..10_000 {
        new += usize::from(!dedupe.is_duplicate(&numbered(number)));
        assert!(number % 900 != 0 || number == 0 || dedupe.is_duplicate(&numbered(0)), "seen 900 events before");
    }
    assert!(new > 9990, "{new}");
    assert!((9100..10_000).all(|number| dedupe.is_duplicate(&numbered(number))));
}

/// Of the timed variant: an event is dropped until its age is the maximum, counted from when it came first or last.
#[test]
fn vector_an_event_that_is_old_enough_is_new_again() {
    for refresh_on_drop in [false, true] {
        let (time, clock) = clock();
        let fields = Fields::Match(names(&["matched"]));
        let dedupe = Dedupe::within(Duration::from_secs(13), 1000, refresh_on_drop, fields, RATE).unwrap();
        let dedupe = dedupe.with_clock(clock);
        assert!(!dedupe.is_duplicate(&numbered(1)) && dedupe.is_duplicate(&numbered(1)));
        set(&time, 12_999);
        assert!(dedupe.is_duplicate(&numbered(1)) && !dedupe.remembers(&numbered(2)));
        set(&time, 14_000);
        assert_eq!(dedupe.is_duplicate(&numbered(1)), refresh_on_drop);
    }
}
