//! The filter whose keys expire: exact lifetimes, ticks, rotation by count, the rate, and threads that do their worst.
//!
//! (What it asks of the allocator is in `allocation.rs`.)

mod support;

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, Encoding, InsertError, RotatingBuilder, RotatingCuckooFilter,
};

type Filter = RotatingCuckooFilter<u64>;

/// With so few false positives that none is met.
fn exact(generations: usize, capacity: usize) -> RotatingBuilder<u64> {
    Filter::builder().capacity(capacity).generations(generations).false_positive_rate(1e-6)
}

#[test]
fn a_key_lives_for_its_generation_and_the_next_ones_and_no_longer() {
    for generations in 2..=5 {
        for rotations_before in 0..3 * generations as u64 {
            let filter = exact(generations, 100).build().unwrap();
            (0..rotations_before).for_each(|_| _ = filter.rotate());
            for (key, by_insert) in [(1, true), (2, false)] {
                if by_insert {
                    filter.insert(&key).unwrap();
                } else {
                    assert_eq!(filter.insert_if_absent(&key), Ok(true));
                }
            }
            for nth in 1..=generations as u64 {
                assert!(filter.contains(&1) && filter.contains(&2), "gone {nth} rotations after, of {generations}");
                assert_eq!((filter.insert_if_absent(&1), filter.len()), (Ok(false), 2));
                assert_eq!(filter.rotate(), rotations_before + nth);
            }
            assert!(!filter.contains(&1) && !filter.contains(&2) && filter.is_empty(), "{generations} generations");
            assert_eq!(filter.insert_if_absent(&1), Ok(true));
        }
    }
}

#[test]
fn an_insert_lets_the_life_of_a_key_begin_anew_and_insert_if_absent_does_not() {
    let filter = exact(3, 100).build().unwrap();
    filter.insert(&1).unwrap();
    filter.insert(&2).unwrap();
    for _ in 0..10 {
        filter.rotate();
        filter.insert(&1).unwrap();
        filter.insert(&1).unwrap(); // in this generation it is already
        assert!(filter.len() <= 4, "one copy of each key in each generation");
        _ = filter.insert_if_absent(&2).unwrap();
        assert!(filter.contains(&1));
    }
    (0..2).for_each(|_| _ = filter.rotate());
    assert!(filter.contains(&1));
    filter.rotate();
    assert!(!filter.contains(&1));

    filter.clear();
    assert_eq!(filter.insert_if_absent(&7), Ok(true));
    for _ in 0..2 {
        filter.rotate();
        assert_eq!(filter.insert_if_absent(&7), Ok(false));
    }
    filter.rotate();
    assert!(!filter.contains(&7), "it had been found, not inserted");
}

#[test]
fn clear_empties_all_generations_and_leaves_the_time_as_it_is() {
    let filter = exact(4, 100).build().unwrap();
    filter.advance_to(10);
    for tick in 10..15 {
        filter.advance_to(tick);
        (0..20).for_each(|key| filter.insert(&(100 * tick + key)).unwrap());
    }
    assert_eq!((filter.len(), filter.generation()), (80, 4));
    filter.clear();
    assert!(filter.is_empty() && (0..10_000).all(|key| !filter.contains(&key)));
    assert_eq!(filter.generation(), 4);
    filter.advance_to(15);
    assert_eq!(filter.generation(), 5);
}

#[test]
fn the_first_tick_sets_the_origin() {
    for origin in [0, 1, 28_500_000, u64::MAX - 2] {
        let filter = exact(2, 100).build().unwrap();
        filter.insert(&1).unwrap();
        filter.advance_to(origin);
        filter.advance_to(origin);
        assert!(filter.contains(&1) && filter.generation() == 0, "{origin}");
        filter.advance_to(origin + 1);
        assert_eq!(filter.generation(), 1, "{origin}");
    }
    let filter = exact(2, 100).build().unwrap();
    filter.advance_to(u64::MAX - 1);
    filter.advance_to(u64::MAX);
    filter.advance_to(u64::MAX);
    assert_eq!(filter.generation(), 0, "the last tick counts as the one before");
}

#[test]
fn a_jump_of_ticks_has_as_many_generations_expire() {
    for generations in 2..=5u64 {
        for jump in (0..generations + 4).chain([1000, u64::MAX / 2]) {
            let filter = exact(generations as usize, 100).build().unwrap();
            filter.advance_to(7);
            // A key in each generation, and each generation full of life.
            for key in 0..generations {
                filter.advance_to(7 + key);
                filter.insert(&key).unwrap();
            }
            let last = 7 + generations - 1;
            filter.advance_to(last + jump);
            for key in 0..generations {
                assert_eq!(filter.contains(&key), key >= jump, "{generations} generations, {jump} ticks, key {key}");
            }
            // The same ticks again, and a clock that goes back: nothing happens.
            let generation = filter.generation();
            for tick in [last + jump, last, 0] {
                filter.advance_to(tick);
            }
            assert_eq!(filter.generation(), generation);
            // And time goes on from there.
            filter.insert(&100).unwrap();
            filter.advance_to(last + jump + generations - 1);
            assert!(filter.contains(&100));
            filter.advance_to(last + jump + generations);
            assert!(!filter.contains(&100));
        }
    }
}

#[test]
fn of_all_threads_that_bring_a_tick_one_rotates_and_none_goes_on_before() {
    const TICKS: u64 = if cfg!(miri) { 20 } else { 1000 };
    // A thread that has fallen behind inserts all its keys into the last generation.
    let filter = exact(3, 4 * TICKS as usize).build().unwrap();
    filter.advance_to(0);
    thread::scope(|scope| {
        for id in 0..4 {
            let filter = &filter;
            scope.spawn(move || {
                for tick in 1..=TICKS {
                    filter.advance_to(tick);
                    assert!(filter.generation() >= tick, "the tick has not taken effect");
                    filter.insert(&(tick << 8 | id)).unwrap();
                }
            });
        }
    });
    assert_eq!(filter.generation(), TICKS);
    assert!((0..4).all(|id| filter.contains(&(TICKS << 8 | id))));
}

#[test]
fn a_full_generation_refuses_a_key_and_forgets_none() {
    let filter = exact(2, 500).build().unwrap();
    let inserted = (0..).take_while(|key| filter.insert(key).is_ok()).count() as u64;
    assert!(inserted >= 500 && inserted as usize <= filter.slots());
    let refused = [filter.insert(&inserted), filter.insert_if_absent(&inserted).map(|_| ())];
    for refused in refused {
        let Err(error @ InsertError::Full { len, capacity, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((len as u64, capacity), (inserted, filter.capacity()));
        assert!(error.to_string().contains("rotate"), "{error}");
    }
    assert_eq!((filter.generation(), filter.len() as u64), (0, inserted));
    assert!((0..inserted).all(|key| filter.contains(&key) && filter.insert(&key).is_ok()));
    filter.rotate();
    filter.insert(&inserted).unwrap();
    assert!((0..=inserted).all(|key| filter.contains(&key)));
}

#[test]
fn by_count_the_last_inserts_are_remembered_and_no_more_than_there_are_slots() {
    for generations in 2..=5u64 {
        let filter = exact(generations as usize, 300).rotate_when_full(true).build().unwrap();
        let remembered = (generations - 1) * filter.capacity() as u64;
        for key in 0..20 * 300 {
            filter.insert(&key).unwrap();
            assert!(filter.len() <= generations as usize * filter.slots());
            let oldest = (key + 1).saturating_sub(remembered);
            assert!(filter.contains(&oldest), "{generations} generations: {oldest} of {key} is forgotten");
            // Each in its turn is looked for as the oldest; now and then, all.
            if key % 1000 == 0 {
                assert!((oldest..=key).all(|key| filter.contains(&key)));
            }
        }
        assert!(filter.generation() * 300 <= 20 * 300, "a generation expired before it was full");
        assert!(!filter.contains(&0));
    }
}

#[test]
fn by_count_all_that_find_a_generation_full_rotate_once() {
    const EACH: u64 = if cfg!(miri) { 300 } else { 50_000 };
    let filter = exact(3, 200).rotate_when_full(true).build().unwrap();
    thread::scope(|scope| {
        for id in 0..4 {
            let filter = &filter;
            scope.spawn(move || (0..EACH).for_each(|key| filter.insert(&(id << 32 | key)).unwrap()));
        }
    });
    let (capacity, slots) = (filter.capacity() as u64, filter.slots() as u64);
    let generation = filter.generation();
    assert!(generation * capacity <= 4 * EACH, "{generation} rotations: some generation was not full");
    assert!((generation + 1) * slots >= 4 * EACH, "{generation} rotations: some generation took more than it can");
}

#[test]
fn the_rate_of_all_generations_together_is_at_most_what_was_asked_for() {
    const LOOKUPS: u64 = if cfg!(miri) { 1000 } else { 1_000_000 };
    let capacity = if cfg!(miri) { 100 } else { 10_000 };
    for (generations, rate) in [(2, 0.01), (3, 0.001), (5, 0.001), (4, 0.1)] {
        let filter = Filter::builder().capacity(capacity).generations(generations).false_positive_rate(rate);
        let filter = filter.build().unwrap();
        assert!(filter.max_false_positive_rate() <= rate);
        assert_eq!(filter.false_positive_rate(), 0.0);
        let mut keys = 0..;
        for generation in 0..generations {
            // To the brim.
            assert!(keys.find(|key| filter.insert(key).is_err()).is_some());
            if generation + 1 < generations {
                filter.rotate();
            }
        }
        let absent = keys.start + 1..keys.start + 1 + LOOKUPS;
        let found = absent.filter(|key| filter.contains(key)).count() as f64;
        let expected = filter.false_positive_rate();
        assert!(expected <= rate && expected > 0.9 * filter.max_false_positive_rate(), "{filter:?}");
        assert!(
            support::plausible(found, LOOKUPS as f64 * expected),
            "{generations} generations: {found} of {LOOKUPS} found, {expected} expected"
        );
    }
}

/// The table in the documentation of `RotatingCuckooFilter`.
#[test]
#[cfg_attr(miri, ignore = "builds large tables")]
fn the_documented_memory_is_that_of_the_filter() {
    const WINDOW: f64 = 2e6;
    for (generations, bits) in [(2, 50.3), (3, 33.5), (4, 27.9), (5, 25.1), (7, 22.3), (9, 21.0), (16, 19.0)] {
        let in_a_period = WINDOW / (generations - 1) as f64;
        let filter = Filter::builder().capacity(in_a_period.ceil() as usize).generations(generations).build().unwrap();
        // Stripes and counters, 17 KiB and more for each table, weigh less in large filters.
        let overhead = (generations + 2) as f64 * 25e3;
        let measured = (filter.memory_usage() as f64 - overhead) * 8.0 / WINDOW;
        let with_overhead = filter.memory_usage() as f64 * 8.0 / WINDOW;
        assert!(measured < bits + 0.1 && with_overhead > bits - 0.1, "{generations}: {measured} to {with_overhead}");
    }
}

#[test]
fn requests_that_cannot_be_met_are_errors_that_name_them() {
    for generations in [0, 1, 256, usize::MAX] {
        let error = Filter::builder().capacity(10).generations(generations).build().unwrap_err();
        assert_eq!(error.to_string().split(' ').next(), Some(&*generations.to_string()), "{error}");
        assert!(matches!(error, BuildError::InvalidGenerations { .. }) && error.to_string().contains("2 to 255"));
    }
    let most = Filter::builder().capacity(10).generations(255).build().unwrap();
    most.insert(&1).unwrap();
    (0..254).for_each(|_| _ = most.rotate());
    assert!(most.contains(&1));
    most.rotate();
    assert!(!most.contains(&1));

    assert_eq!(Filter::builder().build().unwrap_err(), BuildError::CapacityMissing);
    assert!(matches!(exact(2, 1).false_positive_rate(1.0).build(), Err(BuildError::InvalidRate { .. })));
    for generations in 2..=255 {
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            let builder = || exact(generations, 1).encoding(encoding);
            let Err(BuildError::RateTooLow { lowest, .. }) = builder().false_positive_rate(1e-12).build() else {
                panic!("no error")
            };
            // Who follows the advice, as it is written, gets a filter.
            let advised = format!("{lowest:e}").parse().unwrap();
            assert!(builder().false_positive_rate(advised).build().is_ok(), "{generations}, {lowest}");
            assert!(builder().false_positive_rate(advised.next_down()).build().is_err() || generations > 2);
        }
    }
    let Err(BuildError::CapacityTooLarge { largest, .. }) = exact(4, usize::MAX).build() else { panic!("no error") };
    assert!(matches!(exact(4, largest + 1).build(), Err(BuildError::CapacityTooLarge { .. })));
    let one = ConcurrentCuckooFilter::<u64>::builder().false_positive_rate(1e-6 / 4.0);
    let Err(BuildError::CapacityTooLarge { largest: of_one, .. }) = one.capacity(usize::MAX).build() else {
        panic!("no error")
    };
    assert!((4.99..5.01).contains(&(of_one as f64 / largest as f64)), "there are five tables: {of_one}, {largest}");
    if cfg!(all(target_pointer_width = "64", not(miri))) {
        let Err(BuildError::OutOfMemory { bytes, .. }) = exact(4, largest / 64).build() else { panic!("no error") };
        assert!(bytes as u64 > 1 << 56, "{bytes}");
    }
}

#[test]
fn a_generation_for_no_keys_holds_some() {
    let filter = Filter::builder().capacity(0).generations(2).rotate_when_full(true).build().unwrap();
    for key in 0..1000 {
        filter.insert(&key).unwrap();
        assert!(filter.contains(&key));
    }
}

#[test]
fn the_operations_by_hash_are_those_by_key() {
    let filter = exact(2, 100).hasher(ahash::RandomState::new()).build().unwrap();
    let hash = filter.hash_one(&7);
    assert_eq!(filter.insert_hash_if_absent(hash), Ok(true));
    assert!(filter.contains(&7) && filter.contains_hash(hash) && !filter.contains_hash(filter.hash_one(&8)));
    filter.rotate();
    filter.insert_hash(hash).unwrap();
    filter.rotate();
    assert!(filter.contains(&7));
    let text = format!("{filter:?}");
    assert!(text.contains("generation: 2") && text.contains("generations: 2") && !text.contains("asher"), "{text}");
    assert!(!format!("{:?}", exact(2, 100)).contains("asher"));
}

#[test]
fn a_filter_is_send_and_sync_whatever_its_keys_are() {
    fn check<F: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    check::<RotatingCuckooFilter<Rc<str>>>();
    check::<Arc<RotatingCuckooFilter<str>>>();
    check::<RotatingBuilder<Rc<str>>>();
}

/// A key and a generation, in one word.
fn pack(key: u64, generation: u64) -> u64 {
    key << 32 | generation
}

fn unpack(word: u64) -> (u64, u64) {
    (word >> 32, word & 0xffff_ffff)
}

/// Threads insert keys, each its own, while another rotates as fast as it can; all look for keys that must be there.
///
/// What must be there: an insert takes effect in a generation `b`, and its key is found while the current one is below
/// `b + g`. The test knows of two lower bounds for `b`. The one is the generation that the writer read before the insert.
/// The other: when the rotator has begun generation `n`, it looks for the key that each writer is about to insert. Where
/// it misses one that can't have expired yet, that insert takes effect in `n` or later. The writer looks at that bound
/// after its insert has returned; so a key that went into a table that was no longer current is missed.
fn young_keys_are_found(
    generations: usize,
    keys: u64,
    insert: impl Fn(&Filter, u64) -> Result<(), InsertError> + Sync,
) {
    const WRITERS: usize = 3;
    let keys = if cfg!(miri) { 200 } else { keys };
    let filter = exact(generations, 200).build().unwrap();
    let slots = || [const { AtomicU64::new(0) }; WRITERS];
    // Each of a writer's last key with: the generation before its insert; the last one where it was missed; and the
    // bound that holds now that the insert has returned.
    let [announced, missed, done] = [slots(), slots(), slots()];
    let key_of = |writer: usize, key: u64| (writer as u64) << 32 | key;
    let must_be_in = |writer: usize, key: u64, since: u64| {
        // In this order: what has expired by the second step may be missed in the first.
        let found = filter.contains(&key_of(writer, key));
        assert!(found || filter.generation() >= since + generations as u64, "a young key was lost, or missed");
    };
    let (bounded, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (filter, insert, must_be_in) = (&filter, &insert, &must_be_in);
                let (announced, missed, done) = (&announced[writer], &missed[writer], &done[writer]);
                let bounded = &bounded;
                scope.spawn(move || {
                    let mut last = [None; 16];
                    for key in 1..=keys {
                        let before = filter.generation();
                        announced.store(pack(key, before), Ordering::SeqCst);
                        if insert(filter, key_of(writer, key)).is_ok() {
                            let since = match unpack(missed.load(Ordering::SeqCst)) {
                                (missed_key, generation) if missed_key == key => generation,
                                _ => before,
                            };
                            bounded.fetch_add(usize::from(since > before), Ordering::Relaxed);
                            done.store(pack(key, since), Ordering::SeqCst);
                            last[(key % 16) as usize] = Some((key, since));
                        }
                        last.iter().flatten().for_each(|&(key, since)| must_be_in(writer, key, since));
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let generation = filter.rotate();
                for writer in 0..WRITERS {
                    let (key, before) = unpack(announced[writer].load(Ordering::SeqCst));
                    if generation < before + generations as u64 && !filter.contains(&key_of(writer, key)) {
                        missed[writer].store(pack(key, generation), Ordering::SeqCst);
                    }
                }
            }
        });
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for (writer, done) in done.iter().enumerate() {
                    let (key, since) = unpack(done.load(Ordering::SeqCst));
                    if key > 0 {
                        must_be_in(writer, key, since);
                    }
                }
            }
        });
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        ended.store(true, Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok), "a writer failed");
    });
    assert!(filter.generation() > 10 || cfg!(miri), "hardly a rotation: the test shows too little");
    println!("{generations}: {} rotations, {} inserts overtaken", filter.generation(), bounded.into_inner());
}

#[test]
fn rotation_as_fast_as_it_goes_loses_no_young_key() {
    young_keys_are_found(2, 100_000, |filter, key| filter.insert(&key));
    young_keys_are_found(3, 30_000, |filter, key| filter.insert(&key));
}

#[test]
fn rotation_as_fast_as_it_goes_loses_no_key_that_was_new() {
    young_keys_are_found(2, 30_000, |filter, key| filter.insert_if_absent(&key).map(|_| ()));
}

/// Keys that are refreshed over and over are in throughout, whatever rotates: each rotation waits for all to be
/// refreshed.
#[test]
fn a_key_that_is_refreshed_in_each_period_is_never_missed() {
    const ROTATIONS: u64 = if cfg!(miri) { 10 } else { 10_000 };
    let filter = exact(2, 100).build().unwrap();
    (0..8).for_each(|key| filter.insert(&key).unwrap());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|id| {
                let (filter, ended) = (&filter, &ended);
                scope.spawn(move || {
                    while !ended.load(Ordering::Relaxed) {
                        for key in 0..8 {
                            if (key + id) % 3 > 0 {
                                assert!(filter.contains(&key), "a present key was missed");
                            } else {
                                assert_eq!(filter.insert_if_absent(&key), Ok(false), "a present key was added");
                            }
                        }
                    }
                })
            })
            .collect();
        for _ in 0..ROTATIONS {
            (0..8).for_each(|key| filter.insert(&key).unwrap());
            filter.rotate();
        }
        ended.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().is_ok()), "a reader failed");
    });
}

#[test]
fn of_all_that_race_to_add_a_key_across_a_rotation_one_does() {
    const ROUNDS: u64 = if cfg!(miri) { 5 } else { 5000 };
    let filter = exact(2, 100).build().unwrap();
    let added: Vec<_> = (0..ROUNDS).map(|_| AtomicUsize::new(0)).collect();
    let start = Barrier::new(3);
    thread::scope(|scope| {
        for id in 0..3 {
            let (filter, added, start) = (&filter, &added, &start);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    start.wait();
                    if id == 0 {
                        filter.rotate();
                    }
                    let new = filter.insert_if_absent(&round).unwrap();
                    added[round as usize].fetch_add(usize::from(new), Ordering::Relaxed);
                }
            });
        }
    });
    assert!(added.into_iter().all(|added| added.into_inner() == 1), "exactly one adds it");
    assert_eq!(filter.generation(), ROUNDS);
}
