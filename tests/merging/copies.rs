//! A copy of a filter in use: `empty_like`, and `absorb` into it. It has what the filter had at one moment, and is a
//! filter of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Tick, WhenFull};

use crate::kinds::{Growable, Hasher, Table, in_each_layout};
use crate::support::{MAPLET_LAYOUTS, Raw, build, hashes, scattered};
use crate::{expiring, kinds, support};

macro_rules! copy_of {
    ($filter:expr) => {{
        let copy = $filter.another();
        copy.absorb(&$filter).unwrap();
        copy
    }};
}

fn is_copied<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let filter = new(6000);
    let entries: Vec<_> = (0..6000).map(|nth| (scattered(nth), number(nth))).collect();
    for (nth, entry) in entries.iter().enumerate() {
        assert_eq!(filter.insert(entry), Ok(true));
        // Also while it grows.
        if nth % 1500 == 0 {
            assert_eq!(copy_of!(filter).digest(), filter.digest());
        }
    }
    let copy = copy_of!(filter);
    assert_eq!((copy.len(), copy.digest()), (6000, filter.digest()));
    assert!(entries.iter().all(|entry| copy.remove(entry)) && copy.len() == 0);
    assert!(entries.iter().all(|(key, _)| filter.contains(key)) && filter.len() == 6000);
}

#[test]
fn a_copy_has_the_same_content_and_is_a_filter_of_its_own() {
    in_each_layout!(is_copied);
}

#[test]
fn a_copy_of_a_filter_that_grows_grows_up_to_its_limit() {
    let builder = Growable::builder_with_hasher(Hasher::default()).capacity(10).memory_limit(1 << 17);
    let filter = builder.build().unwrap();
    hashes(0, 6000).for_each(|key| filter.insert(&key).unwrap());
    let copy = copy_of!(filter);
    let refused = (6000..).find(|&nth| copy.insert(&scattered(nth)).is_err()).unwrap();
    assert!(refused > 10_000 && copy.stats().memory_usage <= 1 << 17, "{copy:?}");
    assert_eq!(filter.len(), 6000);
}

/// Each entry is found in the copy as long as in the filter, also where the filter has ended ticks early.
#[test]
fn a_copy_of_entries_that_expire_keeps_their_ends() {
    const KEYS: usize = 2000;
    for when_full in [WhenFull::Refuse, WhenFull::EvictOldest] {
        for (expiry_bits, rate, ..) in MAPLET_LAYOUTS {
            let longest = (1 << expiry_bits) - 1;
            let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(KEYS).false_positive_rate(rate);
            let builder = builder.lifetime_in_ticks(longest).when_full(when_full);
            let filter = builder.hasher(Hasher::default()).build().unwrap();
            for (nth, tick) in (1000..1000 + 3 * longest.min(8)).enumerate() {
                filter.advance_to(Tick::new(tick));
                for key in hashes(nth * KEYS, KEYS / 12) {
                    if filter.live_len() < filter.capacity() || when_full == WhenFull::EvictOldest {
                        let _ = filter.insert_until(&key, Tick::new(tick + 1 + key.0 % longest));
                    }
                }
                if filter.live_len() > filter.capacity() {
                    continue; // more than a copy takes
                }
                let copy = copy_of!(filter);
                assert_eq!((copy.now(), copy.live_len()), (Some(Tick::new(tick)), filter.live_len()));
                assert_eq!(copy.digest(), filter.digest());
            }
            while filter.live_len() > filter.capacity() {
                filter.advance_to(Tick::new(filter.now().unwrap().get() + 1));
            }
            let copy = copy_of!(filter);
            for _ in 0..longest.min(40) {
                let tick = Tick::new(filter.now().unwrap().get() + 1);
                assert_eq!(copy.advance_to(tick), filter.advance_to(tick));
                assert_eq!(copy.live_len(), filter.live_len());
                assert_eq!(copy.digest(), filter.digest(), "at {tick}");
            }
        }
    }
}

/// What has expired and was not swept yet is not copied.
#[test]
fn a_copy_has_nothing_that_has_expired() {
    let filter = expiring(100_000, 14);
    filter.advance_to(Tick::new(0));
    hashes(0, 90_000).for_each(|key| assert_eq!(filter.insert_until(&key, Tick::new(1)), Ok(true)));
    filter.advance_to(Tick::new(1));
    assert!(
        filter.stats().expiry.unwrap().oldest_unswept.is_some() && !filter.is_empty(),
        "a call sweeps a part of the table"
    );
    assert!(copy_of!(filter).is_empty());
}

/// Other threads insert keys in order, and insert and remove others. The copy has each stable key, each key that was in
/// before, and no key that came after; and of what one thread inserts in order, a beginning.
macro_rules! copies_in_use {
    ($filter:expr) => {{
        let filter = $filter;
        let stable: Vec<_> = hashes(0, 2000).collect();
        stable.iter().for_each(|key| filter.insert(key).unwrap());
        let coming: Vec<_> = hashes(10_000, 8000).collect();
        let (done, begun, ended) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for (nth, key) in (1..).zip(&coming) {
                    begun.store(nth, Ordering::SeqCst);
                    filter.insert(key).unwrap();
                    ended.store(nth, Ordering::SeqCst);
                }
                done.store(true, Ordering::SeqCst);
            });
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    stable[1000..].iter().for_each(|key| {
                        filter.insert(key).unwrap();
                        assert!(filter.remove(key));
                    });
                }
            });
            while !done.load(Ordering::SeqCst) {
                let before = ended.load(Ordering::SeqCst) as usize;
                let copy = copy_of!(filter);
                let after = begun.load(Ordering::SeqCst) as usize;
                assert!(stable.iter().all(|key| copy.contains(key)));
                assert!(coming[..before].iter().all(|key| copy.contains(key)));
                let came = coming[..after].iter().take_while(|key| copy.remove(key)).count();
                assert!(came >= before);
                // What is left: the stable keys, and a copy that the other thread may have had in.
                assert!((2000..=2001).contains(&copy.len()), "{}", copy.len());
            }
        });
    }};
}

/// So low a rate that of the keys here no two look alike: which ones do is fixed, since the hasher has no key.
#[test]
fn a_copy_is_of_one_moment_whatever_others_do() {
    for _ in 0..20 {
        copies_in_use!(build(10_100, Encoding::Plain, 1e-9));
        let builder = GrowableCuckooFilter::<Raw>::builder().capacity(100).false_positive_rate(1e-6);
        copies_in_use!(builder.hasher(Hasher::default()).build().unwrap());
    }
}
