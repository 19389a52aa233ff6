//! `try_clone`: a copy has what the filter had at one moment, and is a filter of its own.

mod support;

use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, ConcurrentCuckooMaplet, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, WhenFull,
};
use support::{LAYOUTS, MAPLET_LAYOUTS};

/// Keys up to which the small filters are filled. Several chunks of the copy in most layouts.
const KEYS: u64 = if cfg!(miri) { 50 } else { 6000 };

#[test]
fn a_copy_has_the_same_content_and_is_a_filter_of_its_own() {
    for (encoding, rate, ..) in LAYOUTS {
        let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(KEYS as usize).false_positive_rate(rate);
        let filter = builder.encoding(encoding).build().unwrap();
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        let copy = filter.try_clone().unwrap();
        assert_eq!(copy.digest().unwrap(), filter.digest().unwrap());
        assert_eq!((copy.len(), copy.memory_usage()), (filter.len(), filter.memory_usage()));
        assert!((0..KEYS).all(|key| copy.remove(&key)) && copy.is_empty());
        assert!((0..KEYS).all(|key| filter.contains(&key)));
    }
    for (value_bits, rate, ..) in MAPLET_LAYOUTS {
        let builder = ConcurrentCuckooMaplet::<u64>::builder().capacity(KEYS as usize).false_positive_rate(rate);
        let maplet = builder.value_bits(value_bits).build().unwrap();
        (0..KEYS).for_each(|key| maplet.insert(&key, (key % 2) as u16).unwrap());
        let copy = maplet.try_clone().unwrap();
        assert_eq!(copy.digest().unwrap(), maplet.digest().unwrap());
        maplet.clear();
        assert!((0..KEYS).all(|key| copy.remove(&key, (key % 2) as u16)) && copy.is_empty());
        assert_eq!(copy.value_bits(), value_bits);
    }
    for encoding in [Encoding::Plain, Encoding::SemiSorted] {
        let builder = GrowableCuckooFilter::<u64>::builder().capacity(10).encoding(encoding);
        let filter = builder.memory_limit(1 << 20).build().unwrap();
        // At each step, also amid growth.
        for key in 0..KEYS {
            filter.insert(&key).unwrap();
            if key % 500 == 0 {
                let copy = filter.try_clone().unwrap();
                assert_eq!(copy.len(), filter.len());
                assert!((0..=key).all(|key| copy.contains(&key)));
                assert_eq!(copy.max_capacity(), filter.max_capacity());
            }
        }
        let copy = filter.try_clone().unwrap();
        assert_eq!(copy.digest().unwrap(), filter.digest().unwrap());
        // It goes on growing, up to the limit.
        let refused = (KEYS..).find(|key| copy.insert(key).is_err()).unwrap();
        assert!(copy.memory_usage() <= 1 << 20);
        assert!((0..refused).all(|key| copy.contains(&key)));
        assert_eq!(filter.len() as u64, KEYS);
        copy.clear();
        copy.shrink_to_fit();
        assert!((0..KEYS).all(|key| filter.contains(&key)));
    }
}

/// The copy's clock goes on as the filter's would, whatever has been swept by then and whatever ended early.
#[test]
fn a_copy_of_entries_that_expire_keeps_their_ends() {
    for when_full in [WhenFull::Refuse, WhenFull::ForgetOldest] {
        for (end_bits, rate, ..) in MAPLET_LAYOUTS {
            let longest = (1 << end_bits) - 1;
            let builder = ExpiringCuckooFilter::<u64>::builder().capacity(KEYS as usize).false_positive_rate(rate);
            let filter = builder.lifetime_in_ticks(longest).when_full(when_full).build().unwrap();
            assert_eq!(filter.try_clone().unwrap().now(), None);
            let mut inserted = Vec::new();
            for tick in 1000..1000 + 3 * longest.min(8) {
                filter.advance_to(tick);
                for key in (0..KEYS / 12).map(|key| key * 1000 + tick) {
                    if when_full == WhenFull::Refuse && filter.len() == filter.capacity() {
                        break;
                    }
                    let end = tick + 1 + key % longest;
                    if filter.insert_until(&key, end).is_ok() {
                        inserted.push((key, end));
                    }
                }
                if !tick.is_multiple_of(3) {
                    continue;
                }
                let copy = filter.try_clone().unwrap();
                assert_eq!((copy.now(), copy.len(), copy.live_len()), (Some(tick), filter.len(), filter.live_len()));
                assert_eq!(copy.digest().unwrap(), filter.digest().unwrap());
                if when_full == WhenFull::Refuse {
                    let live = inserted.iter().rev().filter(|&&(_, end)| end > tick).take(100);
                    live.for_each(|(key, end)| assert!(copy.remove_until(key, *end), "{key} until {end} at {tick}"));
                }
            }
            let (copy, first) = (filter.try_clone().unwrap(), filter.now().unwrap() + 1);
            for tick in first..=first + longest.min(40) {
                assert_eq!(copy.advance_to(tick), filter.advance_to(tick));
                assert_eq!(copy.live_len(), filter.live_len());
                assert_eq!(copy.digest().unwrap(), filter.digest().unwrap(), "at {tick}");
                let key = 1 << 40 | tick;
                assert_eq!(copy.insert(&key).is_ok(), filter.insert(&key).is_ok(), "at {tick}");
            }
        }
    }
}

/// What has died and was not swept yet stays dead, also when its place on the ring comes round again.
#[test]
fn a_copy_keeps_the_dead_dead() {
    let filter = ExpiringCuckooFilter::<u64>::builder().capacity(100_000).lifetime_in_ticks(14).build().unwrap();
    filter.advance_to(0);
    (0..90_000).for_each(|key| assert_eq!(filter.insert_until(&key, 1), Ok(true)));
    filter.advance_to(1);
    assert!(filter.stats().oldest_unswept.is_some(), "a call sweeps a part of the table");
    let copy = filter.try_clone().unwrap();
    assert_eq!((copy.len(), copy.stats().oldest_unswept), (filter.len(), filter.stats().oldest_unswept));
    for tick in 2..40 {
        assert_eq!((copy.live_len(), copy.now()), (0, Some(tick - 1)));
        copy.advance_to(tick);
    }
    assert!(copy.is_empty());
}

/// Other threads insert keys in order, and remove and insert others. The copy has each stable key, each key that was in
/// before, and no key that came after; and of what one thread inserts in order, a beginning.
macro_rules! copies_in_use {
    ($filter:expr) => {{
        let filter = $filter;
        let stable = 0..2000_u64;
        stable.clone().for_each(|key| filter.insert(&key).unwrap());
        let (done, begun, ended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        const FIRST: u64 = 1 << 32;
        thread::scope(|scope| {
            scope.spawn(|| {
                for key in 0..if cfg!(miri) { 20 } else { 8000 } {
                    begun.store(key + 1, Ordering::SeqCst);
                    filter.insert(&(FIRST + key)).unwrap();
                    ended.store(key + 1, Ordering::SeqCst);
                }
                done.store(true, Ordering::SeqCst);
            });
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    (1000..2000).for_each(|key| {
                        filter.insert(&key).unwrap();
                        assert!(filter.remove(&key));
                    });
                }
            });
            while !done.load(Ordering::SeqCst) {
                let before = ended.load(Ordering::SeqCst);
                let copy = filter.try_clone().unwrap();
                let after = begun.load(Ordering::SeqCst);
                assert!(stable.clone().all(|key| copy.contains(&key)));
                assert!((0..before).all(|key| copy.contains(&(FIRST + key))));
                let came = (0..after).take_while(|key| copy.remove(&(FIRST + key))).count();
                assert!(came as u64 >= before);
                // What is left: the stable keys, and a copy that the other thread may have had in.
                assert!((2000..=2001).contains(&copy.len()), "{}", copy.len());
            }
        });
    }};
}

const ROUNDS: usize = if cfg!(miri) { 1 } else { 20 };

#[test]
fn a_copy_is_of_one_moment_whatever_others_do() {
    let builder = ConcurrentCuckooFilter::<u64, _>::builder_with_hasher(RandomState::new()).capacity(10_100);
    let builder = builder.false_positive_rate(1e-9);
    (0..ROUNDS).for_each(|_| copies_in_use!(builder.clone().build().unwrap()));
    let builder = GrowableCuckooFilter::<u64, _>::builder_with_hasher(RandomState::new()).capacity(100);
    let builder = builder.false_positive_rate(1e-6);
    (0..ROUNDS).for_each(|_| copies_in_use!(builder.clone().build().unwrap()));
}
