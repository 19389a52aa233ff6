//! Threads insert and look while others rotate as fast as possible.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::InsertError;

use crate::filters::{Filter, exact};

#[test]
fn of_all_that_bring_a_tick_one_rotates_and_none_goes_on_before() {
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

/// A key and a generation, in one word.
fn pack(key: u64, generation: u64) -> u64 {
    key << 32 | generation
}

fn unpack(word: u64) -> (u64, u64) {
    (word >> 32, word & 0xffff_ffff)
}

/// Each thread inserts keys of its own, while another rotates as fast as possible. All threads look for keys that
/// must be there.
///
/// An insert takes effect in a generation `b`, and its key must be found while the current generation is below
/// `b + g`. The test knows two lower bounds for `b`. One is the generation that the writer read before the insert.
/// The other comes from the rotator. When it has begun generation `n`, it looks for the key that each writer is
/// about to insert. If it misses a key that cannot have expired yet, that insert takes effect in `n` or later. The
/// writer reads this bound after its insert has returned. So the test notices a key that went into a table that was
/// no longer current.
fn young_keys_are_found(
    generations: usize,
    keys: u64,
    insert: impl Fn(&Filter, u64) -> Result<(), InsertError> + Sync,
) {
    const WRITERS: usize = 3;
    let keys = if cfg!(miri) { 200 } else { keys };
    let filter = exact(generations, 200).build().unwrap();
    let slots = || [const { AtomicU64::new(0) }; WRITERS];
    // For each writer's last key: the generation before its insert; the last generation in which it was missed; and
    // the bound that holds after the insert has returned.
    let [announced, missed, done] = [slots(), slots(), slots()];
    let key_of = |writer: usize, key: u64| (writer as u64) << 32 | key;
    let must_be_in = |writer: usize, key: u64, since: u64| {
        // In this order, because a key that has expired by the second step may be missed in the first.
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

/// Keys that are refreshed again and again are in throughout. Each rotation waits until all of them have been
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
