//! `GrowableCuckooFilter`: growth during lookups, rates, removals across tables, memory.

mod support;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, FilterKind, GrowableBuilder, GrowableCuckooFilter, InsertError, ReserveError,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::{Identity, Raw, plausible, scattered};

/// Keys whose hashes the tests choose.
fn builder(capacity: usize, rate: f64) -> GrowableBuilder<Raw, BuildHasherDefault<Identity>> {
    GrowableCuckooFilter::builder().capacity(capacity).false_positive_rate(rate).hasher(BuildHasherDefault::default())
}

fn key(number: u64) -> Raw {
    scattered(number)
}

/// Numbers of keys that are never inserted.
const ABSENT: u64 = 1 << 40;

#[test]
fn readers_miss_nothing_while_the_filter_grows() {
    const KEYS: u64 = if cfg!(miri) { 300 } else { 200_000 };
    let filter = Arc::new(builder(100, 0.001).build().unwrap());
    // Two writers insert the even and the odd keys, up to these numbers.
    let inserted = Arc::new([AtomicU64::new(0), AtomicU64::new(1)]);
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..2)
        .map(|writer| {
            let (filter, inserted) = (Arc::clone(&filter), Arc::clone(&inserted));
            thread::spawn(move || {
                for number in (writer as u64..KEYS).step_by(2) {
                    filter.insert(&key(number)).unwrap();
                    inserted[writer].store(number + 2, Ordering::Release);
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..4)
        .map(|reader| {
            let (filter, inserted, stop) = (Arc::clone(&filter), Arc::clone(&inserted), Arc::clone(&stop));
            thread::spawn(move || {
                let mut random = SmallRng::seed_from_u64(reader);
                let mut lookups = 0u64;
                while !stop.load(Ordering::Relaxed) || lookups == 0 {
                    for (parity, inserted) in inserted.iter().enumerate() {
                        let end = inserted.load(Ordering::Acquire) / 2;
                        if end > 0 {
                            // The latest key, and any other.
                            for nth in [end - 1, random.random_range(0..end)] {
                                assert!(filter.contains(&key(2 * nth + parity as u64)), "a present key was missed");
                                lookups += 1;
                            }
                        }
                    }
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    stop.store(true, Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!((0..KEYS).all(|number| filter.contains(&key(number))));
    assert_eq!(filter.len(), KEYS as usize);
    assert!(filter.capacity() >= filter.len() * 95 / 100, "{filter:?}");
    assert!(cfg!(miri) || filter.tables() > 8, "{filter:?}");
    assert!((0..KEYS).all(|number| filter.remove(&key(number))), "a present key was not removed");
    assert!(filter.is_empty());
}

#[test]
#[cfg_attr(miri, ignore = "statistics need many keys")]
fn the_rate_holds_however_often_the_filter_has_grown() {
    for rate in [0.2, 0.03, 0.001] {
        let filter = builder(1000, rate).build().unwrap();
        for keys in [900u64, 300_000] {
            (filter.len() as u64..keys).for_each(|number| filter.insert(&key(number)).unwrap());
            const LOOKUPS: u64 = 1_000_000;
            let found = (ABSENT..ABSENT + LOOKUPS).filter(|&number| filter.contains(&key(number))).count() as f64;
            let expected = filter.false_positive_rate() * LOOKUPS as f64;
            assert!(plausible(found, expected), "{found} for {expected}: {filter:?}");
            assert!(found <= rate * LOOKUPS as f64, "{found} for a rate of {rate}: {filter:?}");
            assert!(filter.false_positive_rate() <= filter.max_false_positive_rate());
            assert!(filter.max_false_positive_rate() <= rate, "{filter:?}");
        }
        assert!(filter.tables() > 6);
    }
}

/// Random inserts and removals, compared with a map that knows what is in. The rate is so high that many keys are
/// of one class in one table and of two in another.
///
/// If the classes of the tables did not nest, or if removals began with the oldest table, present keys would be
/// missed.
#[test]
fn what_is_removed_is_never_another_key() {
    const STEPS: u64 = if cfg!(miri) { 500 } else { 60_000 };
    for (seed, rate) in [(1, 0.3), (2, 0.1), (3, 0.03)] {
        let mut random = SmallRng::seed_from_u64(seed);
        let filter = builder(100, rate).build().unwrap();
        let mut present: Vec<u64> = Vec::new();
        let mut copies: HashMap<u64, usize> = HashMap::new();
        for step in 0..STEPS {
            // The filter fills, empties to a tenth, and fills again.
            let filling = (step * 5 / STEPS).is_multiple_of(2);
            if random.random_range(0..10) < if filling { 8 } else { 1 } || present.is_empty() {
                let number = random.random_range(0..STEPS);
                // There are rarely more keys that look alike than a table has room for.
                match filter.insert(&key(number)) {
                    Ok(()) => {
                        present.push(number);
                        *copies.entry(number).or_default() += 1;
                    }
                    Err(error) => assert!(matches!(error, InsertError::TooManyCopies { .. }), "{error}"),
                }
            } else {
                let number = present.swap_remove(random.random_range(0..present.len()));
                assert!(filter.remove(&key(number)), "a present key was not removed");
                *copies.get_mut(&number).unwrap() -= 1;
            }
            if step % 1000 == 0 {
                assert!(present.iter().all(|&number| filter.contains(&key(number))), "a present key was missed");
            }
        }
        assert_eq!(filter.len(), present.len());
        assert!(copies.iter().all(|(&number, &copies)| filter.count(&key(number)) >= copies), "miscounted");
        for number in present {
            assert!(filter.remove(&key(number)), "a present key was not removed");
        }
        assert!(filter.is_empty());
        assert!((0..STEPS).all(|number| !filter.contains(&key(number))));
    }
}

#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_filter_whose_keys_come_and_go_does_not_grow() {
    // Some filters have room in the newest table, some only in the oldest.
    for keys in [250u64, 2_500, 6_000] {
        let filter = builder(1000, 0.001).build().unwrap();
        (0..keys).for_each(|number| filter.insert(&key(number)).unwrap());
        let tables = filter.tables();
        for round in 0..100 {
            for number in round * keys..(round + 1) * keys {
                assert!(filter.remove(&key(number)));
                filter.insert(&key(number + keys)).unwrap();
            }
            // Empties the filter and fills it again, from the other end.
            if round % 10 == 9 {
                let present = (round + 1) * keys..(round + 2) * keys;
                present.clone().rev().for_each(|number| assert!(filter.remove(&key(number))));
                present.for_each(|number| filter.insert(&key(number)).unwrap());
            }
        }
        assert_eq!(filter.len(), keys as usize);
        assert_eq!(filter.tables(), tables, "{filter:?}");
    }
}

#[test]
fn of_all_that_race_to_add_a_key_one_does_during_growth_too() {
    const KEYS: u64 = if cfg!(miri) { 200 } else { 20_000 };
    // The rate is so low that hardly any key is mistaken for another.
    let filter = Arc::new(builder(10, 1e-7).build().unwrap());
    let added = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (filter, added) = (Arc::clone(&filter), Arc::clone(&added));
            thread::spawn(move || {
                let new = (0..KEYS).filter(|&number| filter.insert_if_absent(&key(number)).unwrap()).count();
                added.fetch_add(new, Ordering::Relaxed);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(added.load(Ordering::Relaxed), KEYS as usize);
    assert_eq!(filter.len(), KEYS as usize);
    assert!((0..KEYS).all(|number| filter.count(&key(number)) == 1));
}

#[test]
fn the_memory_limit_is_kept_and_named() {
    // The memory of the filter with two tables, and with three.
    let free = builder(1000, 0.001).build().unwrap();
    let mut sizes = Vec::new();
    for number in 0.. {
        free.insert(&key(number)).unwrap();
        if free.tables() > sizes.len() {
            sizes.push(free.memory_usage());
        }
        if sizes.len() == 3 {
            break;
        }
    }
    for (limit, tables) in [(sizes[1], 2), (sizes[2] - 1, 2), (sizes[2], 3)] {
        let filter = builder(1000, 0.001).memory_limit(limit).build().unwrap();
        let (held, error) = (0..).find_map(|number| Some((number, filter.insert(&key(number)).err()?))).unwrap();
        assert_eq!(filter.tables(), tables);
        assert!(filter.memory_usage() <= limit);
        let InsertError::MemoryLimit { len, needed, limit: named, .. } = error else { panic!("{error:?}") };
        assert_eq!((len as u64, named), (held, limit));
        assert!(needed > limit && error.to_string().contains(&format!("{needed} bytes")), "{error}");
        if tables == 2 {
            assert_eq!(needed, sizes[2]);
        }
        assert!(filter.len() > filter.capacity(), "before that it is filled beyond its capacity: {filter:?}");
        // Nothing is lost, and after a removal another key goes in.
        assert!((0..held).all(|number| filter.contains(&key(number))));
        let added = filter.insert_if_absent(&key(held));
        assert!(matches!(added, Ok(false) | Err(InsertError::MemoryLimit { .. })), "{added:?}");
        assert!((0..held / 2).all(|number| filter.remove(&key(number))));
        (held..held + held / 3).for_each(|number| filter.insert(&key(number)).unwrap());
        assert_eq!(filter.tables(), tables);
    }
    let error = builder(1000, 0.001).memory_limit(sizes[0] - 1).build().unwrap_err();
    assert!(
        matches!(error, BuildError::MemoryLimit { needed, limit, .. } if (needed, limit) == (sizes[0], sizes[0] - 1)),
        "{error:?}"
    );
    assert!(error.to_string().contains(&format!("{} bytes", sizes[0])), "{error}");
    assert!(builder(1000, 0.001).memory_limit(sizes[0]).build().is_ok());
}

/// The memory of filters of 10,000 to `keys` keys, just before and just after they grow. Each entry has the ratio
/// to one table for as many keys, and the bits a key.
fn memory_around_growth(rate: f64, keys: usize) -> [Vec<[f64; 2]>; 2] {
    let mut around = [Vec::new(), Vec::new()];
    for first in [100, 1000, 10_000, 100_000] {
        let filter = builder(first, rate).build().unwrap();
        let (mut tables, mut before) = (1, filter.memory_usage());
        for number in 0..keys as u64 {
            filter.insert(&key(number)).unwrap();
            if filter.tables() > tables {
                let (len, after) = (filter.len(), filter.memory_usage());
                let one = ConcurrentCuckooFilter::<u64>::builder().capacity(len).false_positive_rate(rate);
                let one = one.build().unwrap().memory_usage() as f64;
                for (around, memory) in around.iter_mut().zip([before, after]).filter(|_| len >= 10_000) {
                    around.push([memory as f64 / one, memory as f64 * 8.0 / len as f64]);
                }
                (tables, before) = (filter.tables(), after);
            }
        }
    }
    around
}

/// The figures in the documentation of `GrowableCuckooFilter`.
#[test]
#[cfg_attr(target_arch = "s390x", ignore = "the figures are for cache lines of at most 128 bytes")]
#[cfg_attr(miri, ignore = "needs many keys")]
fn the_documented_memory_is_that_of_the_filter() {
    for rate in [0.3, 0.03, 0.01, 0.004, 0.001, 1e-4, 1e-5, 4e-6, 2e-6, 1e-6] {
        let around = memory_around_growth(rate, if rate == 0.001 { 1_600_000 } else { 150_000 });
        let of = |around: &[[f64; 2]], unit: usize| {
            let sorted = || around.iter().map(|figures| figures[unit]);
            (sorted().fold(f64::INFINITY, f64::min), sorted().fold(0.0, f64::max))
        };
        let [before, after] = around.each_ref().map(|around| of(around, 0));
        let [bits_before, bits_after] = around.each_ref().map(|around| of(around, 1));
        println!("{rate:8}: {before:.2?} tables, {bits_before:.1?} bits before; {after:.2?}, {bits_after:.1?} after");
        let within = |(least, most): (f64, f64), from: f64, to: f64| least > from && most < to;
        // On other architectures, locks and counters have more or less padding.
        if rate == 0.001 && cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert!(within(before, 1.05, 1.95) && within(after, 2.55, 3.75), "of one table: {before:?}, {after:?}");
            assert!(
                within(bits_before, 15.5, 29.5) && within(bits_after, 34.5, 56.5),
                "{bits_before:?}, {bits_after:?}"
            );
            assert!(before.1 > 1.8 && after.1 > 3.6, "less than is documented: {before:?}, {after:?}");
        } else {
            let most = if rate == 2e-6 { 5.45 } else { 4.35 };
            assert!(before.0 > 1.0 && after.1 < most, "{rate}: {before:?}, {after:?}");
        }
    }
}

/// The figures in the documentation of `memory_usage`.
#[test]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    ignore = "the figures are for cache lines of 128 bytes"
)]
#[cfg_attr(miri, ignore = "builds large tables")]
fn the_documented_memory_is_that_of_a_filter_that_has_not_grown() {
    for (keys, bits) in [(100, 94.0), (1000, 23.0), (10_000, 19.0), (1_000_000, 13.5)] {
        let measured = builder(keys, 0.001).build().unwrap().memory_usage() as f64 * 8.0 / keys as f64;
        assert!((measured - bits).abs() < 0.6, "{keys} keys: {measured}");
    }
}

#[test]
fn copies_of_one_key_do_not_make_the_filter_grow() {
    let filter = builder(100, 0.001).build().unwrap();
    let copies = (0..).find(|_| filter.insert(&key(1)).is_err()).unwrap();
    assert_eq!(copies, 10, "both buckets, of five slots");
    assert_eq!((filter.tables(), filter.count(&key(1))), (1, copies));
    // The same when the table holds the keys that it is meant for, and more.
    for number in 2.. {
        filter.insert(&key(number)).unwrap();
        if filter.tables() == 2 {
            break;
        }
    }
    let more = (0..).find(|_| filter.insert(&key(1)).is_err()).unwrap();
    let error = filter.insert(&key(1)).unwrap_err();
    assert_eq!(filter.count(&key(1)), copies + more);
    assert!(matches!(error, InsertError::TooManyCopies { copies: told, .. } if told == copies + more), "{error}");
    assert_eq!(filter.tables(), 2);
    assert!((0..copies + more).all(|_| filter.remove(&key(1))));
    assert_eq!(filter.count(&key(1)), 0);
}

#[test]
fn clear_empties_all_tables_and_keeps_them() {
    let filter = builder(100, 0.001).build().unwrap();
    (0..5000).for_each(|number| filter.insert(&key(number)).unwrap());
    let (tables, memory) = (filter.tables(), filter.memory_usage());
    filter.clear();
    assert!(filter.is_empty() && (0..5000).all(|number| !filter.contains(&key(number))));
    (5000..10_000).for_each(|number| filter.insert(&key(number)).unwrap());
    assert_eq!((filter.tables(), filter.memory_usage()), (tables, memory));
}

#[test]
fn bad_parameters_are_errors_that_name_them() {
    let missing = GrowableCuckooFilter::<u64>::builder().build().unwrap_err();
    assert!(matches!(missing, BuildError::CapacityMissing { filter: FilterKind::Growable, .. }), "{missing:?}");
    assert!(missing.to_string().contains("GrowableBuilder::capacity"), "{missing}");
    for rate in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(builder(1, rate).build(), Err(BuildError::InvalidRate { .. })), "{rate}");
    }
    let error = builder(1, 1e-9).build().unwrap_err();
    let BuildError::RateTooLow { rate, lowest, .. } = error else { panic!("{error:?}") };
    assert!(rate == 1e-9 && lowest > 4e-8 && lowest < 4.6e-8, "{error}");
    let filter = builder(1, lowest).build().expect("the lowest rate can be asked for");
    (0..3000).for_each(|number| filter.insert(&key(number)).unwrap());
    assert!(filter.max_false_positive_rate() <= lowest);
    assert!(matches!(builder(usize::MAX, 0.01).build(), Err(BuildError::CapacityTooLarge { .. })));
}

#[test]
fn room_that_was_reserved_is_there_and_no_insert_has_to_grow() {
    for additional in [0, 1, 90, 1000, 50_000] {
        let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
        (0..50).for_each(|key| filter.insert(&key).unwrap());
        filter.reserve(additional).unwrap();
        assert!(filter.capacity() >= 50 + additional);
        let (tables, memory) = (filter.tables(), filter.memory_usage());
        filter.reserve(additional).unwrap();
        filter.reserve(filter.capacity() - 50).unwrap();
        assert_eq!((filter.tables(), filter.memory_usage()), (tables, memory), "there is room already");
        (50..50 + additional as u64).for_each(|key| filter.insert(&key).unwrap());
        assert_eq!((filter.tables(), filter.len()), (tables, 50 + additional), "no insert has grown it");
        assert!((0..50 + additional as u64).all(|key| filter.contains(&key)));
        assert!(filter.max_false_positive_rate() <= 0.001);
    }
}

#[test]
fn room_that_cannot_be_reserved_is_an_error_and_no_change() {
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).memory_limit(20_000).build().unwrap();
    let before = (filter.tables(), filter.memory_usage(), filter.capacity());
    let error = filter.reserve(100_000).unwrap_err();
    let ReserveError::MemoryLimit { needed, limit, .. } = error else { panic!("{error:?}") };
    assert!(needed > 100_000 && limit == 20_000);
    assert!(error.to_string().contains(&needed.to_string()) && error.to_string().contains("20000"), "{error}");
    assert_eq!((filter.tables(), filter.memory_usage(), filter.capacity()), before);
    // A caller who follows the advice and raises the limit has enough room.
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).memory_limit(needed).build().unwrap();
    filter.reserve(100_000).unwrap();
    assert_eq!(filter.memory_usage(), needed);

    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    let before = (filter.tables(), filter.memory_usage(), filter.capacity());
    let error = filter.reserve(usize::MAX).unwrap_err();
    assert!(matches!(error, ReserveError::CapacityTooLarge { additional: usize::MAX, .. }), "{error:?}");
    if cfg!(all(target_pointer_width = "64", not(miri))) {
        let error = filter.reserve(1 << 52).unwrap_err();
        assert!(matches!(error, ReserveError::OutOfMemory { .. }), "{error:?}");
    }
    assert_eq!((filter.tables(), filter.memory_usage(), filter.capacity()), before);
}

/// One thread reserves room ahead of the inserts of others. None of those ever makes the filter grow.
#[test]
fn room_can_be_reserved_while_others_insert() {
    const EACH: u64 = if cfg!(miri) { 200 } else { 50_000 };
    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    thread::scope(|scope| {
        let inserters: Vec<_> = (0..2)
            .map(|id: u64| {
                let filter = &filter;
                scope.spawn(move || {
                    for key in 0..EACH {
                        filter.insert(&(id << 32 | key)).unwrap();
                        assert!(filter.contains(&(id << 32 | key)));
                    }
                })
            })
            .collect();
        while !inserters.iter().all(|inserter| inserter.is_finished()) {
            filter.reserve(1000).unwrap();
            assert!(filter.capacity() >= 1000);
            thread::yield_now();
        }
    });
    assert_eq!(filter.len() as u64, 2 * EACH);
    assert!((0..2).all(|id: u64| (0..EACH).all(|key| filter.contains(&(id << 32 | key)))));
}
