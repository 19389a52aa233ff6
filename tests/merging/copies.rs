//! A copy of a filter in use: `empty_like`, and `absorb` into it. It has what the filter had at one moment, and is a
//! filter of its own.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Encoding, GrowableCuckooFilter, Tick};

use crate::kinds::{Growable, Hasher, Table, in_each_layout};
use crate::support::{Raw, build, hashes, scattered};
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

/// A filter that grows may have more buckets than its keys need, and more copies of a key than a smaller one may have. Or
/// it is filled beyond its capacity, since it may not grow.
#[test]
fn a_copy_has_room_for_all_that_the_filter_has_room_for() {
    let checked = |filter: &Growable| {
        assert_eq!(copy_of!(filter).digest(), filter.digest(), "{filter:?}");
        let union = filter.another();
        let added = union.unite(filter).unwrap();
        assert_eq!((union.len() as u64, union.unite(filter)), (added, Ok(0)), "{filter:?}");
    };
    let builder = |capacity| Growable::builder_with_hasher(Hasher::default()).capacity(capacity);
    let three_times = |filter: &Growable, keys| {
        hashes(0, keys).for_each(|key| (0..3).for_each(|_| filter.insert(&key).unwrap()));
    };
    let reserved = builder(100).build().unwrap();
    reserved.reserve(1_000_000).unwrap();
    three_times(&reserved, 1000);
    checked(&reserved);

    let emptied = builder(100).build().unwrap();
    let more = || hashes(1_000_000, 200_000);
    more().for_each(|key| emptied.insert(&key).unwrap());
    three_times(&emptied, 500);
    more().for_each(|key| assert!(emptied.remove(&key)));
    checked(&emptied);

    let full = builder(5000).max_capacity(5000).build().unwrap();
    let inserted = (0..).take_while(|&nth| full.insert(&scattered(nth)).is_ok()).count();
    assert_eq!(inserted, full.max_capacity(), "{full:?}");
    checked(&full);

    // What has keys of its own is no copy. It becomes as large as the other one if a key needs that.
    let own = reserved.another();
    own.insert(&scattered(1 << 40)).unwrap();
    assert_eq!((own.absorb(&reserved), own.len()), (Ok(3000), 3001));
    assert_eq!(own.plan().layout, reserved.plan().layout);
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

#[test]
fn an_empty_one_is_like_the_whole() {
    let whole = build(12_345, Encoding::Plain, 0.01);
    whole.insert(&Raw(1)).unwrap();
    let empty = whole.empty_like().unwrap();
    assert_eq!((empty.len(), empty.plan()), (0, whole.plan()));

    let whole = expiring(100, 14);
    assert_eq!(whole.empty_like().unwrap().now(), None);
    whole.advance_to(Tick::new(1 << 50));
    let empty = whole.empty_like().unwrap();
    assert_eq!((empty.now(), empty.plan()), (Some(Tick::new(1 << 50)), whole.plan()));
}
