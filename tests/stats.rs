//! A filter's counts match what has happened.

#[path = "support/kinds.rs"]
mod kinds;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, InsertError, Stats};
use support::{Filter, LAYOUTS, build, hashes, plausible};

/// A filter of one bucket, and so of one stripe and one shard.
fn one_bucket() -> Filter {
    let filter = build(2, Encoding::SemiSorted, 0.001);
    assert_eq!(filter.plan().slots, filter.plan().layout.slots_per_bucket);
    filter
}

/// The events that a filter has counted, in the order of the fields.
fn events(stats: &Stats) -> [u64; 8] {
    [
        stats.relocations,
        stats.longest_path,
        stats.inserts_failed,
        stats.removals_not_found,
        stats.lookup_retries,
        stats.lock_waits,
        stats.negatives_recorded,
        stats.false_positives_recorded,
    ]
}

#[test]
fn a_new_filter_has_counted_nothing_and_knows_its_size() {
    for (encoding, rate, ..) in LAYOUTS {
        let filter = build(1000, encoding, rate);
        let stats = filter.stats();
        assert_eq!((stats.len, stats.load_factor), (0, 0.0));
        assert_eq!(events(&stats), [0; 8]);
        assert_eq!(stats.observed_false_positive_rate(), None);
        assert_eq!((stats.capacity, stats.slots), (filter.capacity(), filter.plan().slots));
        assert_eq!(stats.memory_usage, filter.plan().memory_usage);
        assert_eq!(stats.false_positive_rate, 0.0);
        assert_eq!(stats.max_false_positive_rate, filter.plan().max_false_positive_rate);
    }
}

#[test]
fn relocations_paths_and_refusals_are_those_that_there_were() {
    for (encoding, rate, slots, _) in LAYOUTS {
        let filter = build(1500, encoding, rate);
        let (mut inserted, mut refused, mut relocations, mut longest) = (0, 0, 0, 0);
        for hash in hashes(0, filter.plan().slots + 50) {
            match filter.insert(&hash) {
                Ok(()) => inserted += 1,
                Err(_) => refused += 1,
            }
            // With one thread, each path is carried out as it was found. So all relocations of one insert are one
            // path.
            let stats = filter.stats();
            longest = longest.max(stats.relocations - relocations);
            relocations = stats.relocations;
            if inserted == filter.plan().slots / 2 {
                assert!(stats.longest_path <= 2, "{slots} slots: half full, a hole is near");
            }
        }
        let full = filter.stats();
        assert_eq!((full.len, full.len as f64 / full.slots as f64), (inserted, full.load_factor));
        assert_eq!(full.false_positive_rate, filter.stats().false_positive_rate);
        assert!(full.load_factor > 0.85, "{slots} slots: {full:?}");
        assert!(full.relocations as usize > filter.plan().slots / 20, "{slots} slots: {full:?}");
        assert_eq!(full.longest_path, longest, "{slots} slots");
        // The search is breadth-first among 2,048 buckets, so a path is about as long as the logarithm of that.
        assert!((2..=20).contains(&full.longest_path), "{slots} slots: {full:?}");
        assert_eq!(full.inserts_failed, refused, "{slots} slots");
        assert!(refused >= 50);

        for hash in hashes(0, 100) {
            // The first keys certainly went in.
            assert!(filter.remove(&hash));
        }
        let emptier = filter.stats();
        assert_eq!(emptier.len, inserted - 100);
        filter.clear();
        let empty = filter.stats();
        assert_eq!(empty.len, 0);
        assert_eq!((events(&full), events(&full)), (events(&emptier), events(&empty)), "counts of events stay");
        assert_eq!((full.lookup_retries, full.lock_waits), (0, 0), "there was one thread");
    }
}

#[test]
fn each_refused_operation_counts_once_whichever_it_is() {
    let filter = one_bucket();
    let refused = || filter.stats().inserts_failed;
    let keys: Vec<_> = hashes(0, filter.plan().slots + 3).collect();
    let (kept, others) = keys.split_at(filter.plan().slots);
    kept.iter().for_each(|key| filter.insert(key).unwrap());
    assert_eq!(refused(), 0);

    assert!(matches!(filter.insert(&others[0]), Err(InsertError::Full { .. })));
    assert_eq!(refused(), 1);
    assert!(filter.insert_if_absent(&others[1]).is_err());
    assert_eq!(refused(), 2);
    assert_eq!(filter.insert_if_absent(&kept[0]), Ok(false));
    assert_eq!(refused(), 2, "there was no need for room");
    filter.remove(&kept[0]);
    assert_eq!(filter.insert_batch(&keys[..3]).unwrap_err().index, 1);
    assert_eq!(refused(), 3, "the second was refused, the third not tried");

    filter.clear();
    (0..filter.plan().slots).for_each(|_| filter.insert(&keys[0]).unwrap());
    assert!(matches!(filter.insert(&keys[0]), Err(InsertError::TooManyCopies { .. })));
    assert_eq!(refused(), 4);
    let stats = filter.stats();
    assert_eq!((stats.relocations, stats.longest_path), (0, 0), "there was nowhere to go");
}

#[test]
fn the_observed_rate_is_what_was_recorded_and_near_the_expected() {
    for (encoding, rate) in [(Encoding::Plain, 0.07), (Encoding::Plain, 0.012), (Encoding::SemiSorted, 0.003)] {
        let filter = build(10_000, encoding, rate);
        hashes(0, 10_000).for_each(|key| filter.insert(&key).unwrap());
        const ABSENT: usize = 200_000;
        let (mut negatives, mut false_positives) = (0, 0);
        for (nth, key) in hashes(1_000_000, ABSENT).enumerate() {
            if filter.contains(&key) {
                filter.record_false_positives(1);
                false_positives += 1;
            } else {
                negatives += 1;
            }
            if nth % 1000 == 999 {
                filter.record_negatives(negatives);
                negatives = 0;
            }
        }
        let stats = filter.stats();
        assert_eq!(stats.false_positives_recorded, false_positives);
        assert_eq!(stats.negatives_recorded, ABSENT as u64 - false_positives);
        let observed = stats.observed_false_positive_rate().expect("something was recorded");
        assert_eq!(observed, false_positives as f64 / ABSENT as f64);
        assert!(plausible(observed * ABSENT as f64, stats.false_positive_rate * ABSENT as f64), "{stats:?}");
    }
}

#[test]
fn what_threads_record_adds_up() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(100_000);
    thread::scope(|scope| {
        for id in 0..8 {
            let filter = &filter;
            scope.spawn(move || {
                for count in 0..1000 {
                    filter.record_negatives(count);
                    filter.record_false_positives(id);
                }
            });
        }
    });
    let stats = filter.stats();
    assert_eq!((stats.negatives_recorded, stats.false_positives_recorded), (8 * 499_500, 28_000));
    assert_eq!(stats.observed_false_positive_rate(), Some(28_000.0 / 4_024_000.0));
    filter.record_negatives(u64::MAX);
    assert_eq!(filter.stats().negatives_recorded, 8 * 499_500 - 1, "modulo 2^64, and no panic");
}

/// Runs `work` on one thread each, until `seen` accepts the filter's counts. The number of calls is bounded.
fn until(filter: &Filter, work: &[&(dyn Fn() + Sync)], seen: impl Fn(&Stats) -> bool) {
    const ROUNDS: usize = 200_000;
    let done = AtomicBool::new(false);
    let happened = thread::scope(|scope| {
        for work in &work[1..] {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let happened = (0..ROUNDS).any(|_| {
            (0..1000).for_each(|_| work[0]());
            seen(&filter.stats())
        });
        done.store(true, Ordering::Relaxed);
        happened
    });
    assert!(happened, "never: {:?}", filter.stats());
}

/// Inserts and removes a key.
fn come_and_go(filter: &Filter, key: usize) {
    let key = hashes(key, 1).next().expect("one");
    filter.insert(&key).unwrap();
    assert!(filter.remove(&key));
}

#[test]
#[cfg_attr(miri, ignore = "needs real threads at full speed")]
fn locks_that_are_waited_for_are_counted() {
    let filter = one_bucket();
    until(&filter, &[&|| come_and_go(&filter, 0), &|| come_and_go(&filter, 1)], |stats| stats.lock_waits > 0);
    let stats = filter.stats();
    assert_eq!((stats.lookup_retries, stats.len), (0, 0), "there was no lookup");
}

#[test]
fn a_filter_counts_on_however_it_grows() {
    const KEYS: u64 = 20_000;
    let growable = GrowableCuckooFilter::<u64>::with_capacity(100);
    (0..KEYS).for_each(|key| growable.insert(&key).expect("it grows"));
    growable.record_negatives(9);
    growable.record_false_positives(1);
    let stats = growable.stats();
    assert_eq!((stats.len, stats.capacity), (KEYS as usize, growable.capacity()));
    assert_eq!((stats.slots, stats.load_factor), (growable.plan().slots, KEYS as f64 / stats.slots as f64));
    assert_eq!(stats.memory_usage, growable.plan().memory_usage);
    assert_eq!(stats.inserts_failed, 0, "it grows instead");
    assert!(stats.relocations > 0 && stats.longest_path > 0);
    assert_eq!(stats.observed_false_positive_rate(), Some(0.1));
    let refused = (0..).take_while(|_| growable.insert(&0).is_ok()).count();
    assert_eq!(growable.stats().len, KEYS as usize + refused);
    assert_eq!(growable.stats().inserts_failed, 1, "copies of a key are refused at some time");
    // Copies of one key fill its buckets. Other keys that have the same buckets are refused too, or let the filter grow.
    let small = GrowableCuckooFilter::<u64>::with_capacity(10);
    let refused = (0..20).map(|key| (0..100).filter(|_| small.insert(&key).is_err()).count()).sum::<usize>();
    assert!(refused > 0);
    assert_eq!(small.stats().inserts_failed, refused as u64);
}

#[cfg(feature = "serde")]
#[test]
fn stats_are_serialized_by_the_names_of_their_fields() {
    let filter = build(1000, Encoding::SemiSorted, 0.001);
    hashes(0, 500).for_each(|key| filter.insert(&key).unwrap());
    filter.record_negatives(7);
    let stats = filter.stats();
    let expected = serde_json::json!({
        "len": 500,
        "capacity": stats.capacity,
        "slots": stats.slots,
        "load_factor": stats.load_factor,
        "memory_usage": stats.memory_usage,
        "false_positive_rate": stats.false_positive_rate,
        "max_false_positive_rate": stats.max_false_positive_rate,
        "relocations": stats.relocations,
        "longest_path": stats.longest_path,
        "inserts_failed": 0,
        "removals_not_found": 0,
        "lookup_retries": 0,
        "lock_waits": 0,
        "negatives_recorded": 7,
        "false_positives_recorded": 0,
        "expiry": null,
        "recent": null,
        "limiter": null,
    });
    assert_eq!(serde_json::to_value(&stats).unwrap(), expected);
}

#[path = "stats/clocks.rs"]
mod clocks;

#[path = "stats/figures.rs"]
mod figures;

#[path = "stats/removals.rs"]
mod removals;
