//! Threads that do their worst to each other. Each way in which concurrent cuckoo filters have been seen to fail is a
//! test here.
//!
//! `CCF_STRESS=100 cargo test --release --test concurrent` runs a hundred times as long.

mod support;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Encoding, InsertError};
use support::{Random, Raw, build, hashes};

const THREADS: u64 = 4;

/// How often a loop runs whose usual length is `times`.
fn scaled(times: u64) -> u64 {
    let factor = std::env::var("CCF_STRESS").map_or(1, |factor| factor.parse().expect("CCF_STRESS is a number"));
    if cfg!(miri) { times / 5000 + 5 } else { times * factor }
}

/// Runs `write` on some threads and, until these have ended, `read` on two more.
fn writers_and_readers(writers: u64, write: impl Fn(u64) + Sync, read: impl Fn(&mut Random) + Sync) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|id| {
                let write = &write;
                scope.spawn(move || write(id))
            })
            .collect();
        for id in 0..2 {
            let (done, read) = (&done, &read);
            scope.spawn(move || {
                let mut random = Random(id);
                while !done.load(Ordering::Relaxed) {
                    read(&mut random);
                }
            });
        }
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer failed");
    });
}

/// Threads insert and remove keys of their own in a table that is nearly full, or quite; others look up permanent keys.
///
/// Seen elsewhere: keys whose insert returned `Ok` are never found again; a length that drifts; a `remove` that misses
/// a present key during a relocation.
fn churn(slots_to_fill: f64, encoding: Encoding, rate: f64, capacity: u64) {
    let filter = build(capacity, encoding, rate);
    let keys = (filter.slots() as f64 * slots_to_fill) as u64;
    // The churn's keys are in half of the time.
    let (permanent, churned) = (keys * 8 / 10, keys * 4 / 10 / THREADS);
    let hash = |key: u64| Raw(Random(key).next());
    (0..permanent).for_each(|key| filter.insert(&hash(key)).unwrap());

    let (present, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let write = |id: u64| {
        let own = |key: u64| hash((id + 1) << 32 | key);
        let mut random = Random(!id);
        let mut inside = vec![false; churned as usize];
        for _ in 0..scaled(100_000) {
            let key = random.below(churned);
            let inside = &mut inside[key as usize];
            if *inside {
                assert!(filter.contains(&own(key)), "a present key was missed");
                assert!(filter.remove(&own(key)), "a present key was not removed");
                *inside = false;
            } else {
                match filter.insert(&own(key)) {
                    Ok(()) => *inside = true,
                    Err(_) => _ = refused.fetch_add(1, Ordering::Relaxed),
                }
            }
        }
        for key in (0..churned).filter(|&key| inside[key as usize]) {
            assert!(filter.contains(&own(key)), "a key was lost");
            present.fetch_add(1, Ordering::Relaxed);
        }
    };
    let read = |random: &mut Random| {
        assert!(filter.contains(&hash(random.below(permanent))), "a permanent key was missed");
        assert!(filter.len() <= filter.slots() + THREADS as usize, "the length is absurd");
    };
    writers_and_readers(THREADS, write, read);

    assert_eq!(filter.len(), permanent as usize + present.into_inner(), "the length is wrong");
    for key in 0..permanent {
        assert!(filter.count(&hash(key)) >= 1, "a permanent key was lost");
        assert!(filter.remove(&hash(key)), "a permanent key was lost");
    }
    if slots_to_fill > 1.0 && !cfg!(miri) {
        assert!(refused.into_inner() > 0, "the table was never full: the test shows too little");
    }
}

#[test]
fn churn_near_capacity_loses_nothing() {
    churn(0.96, Encoding::SemiSorted, 0.001, 3000);
    churn(0.96, Encoding::Plain, 0.01, 3000);
}

#[test]
fn churn_in_a_full_table_loses_nothing() {
    churn(1.02, Encoding::SemiSorted, 0.001, 3000);
    churn(1.02, Encoding::SemiSorted, 0.003, 300);
    churn(1.02, Encoding::Plain, 0.07, 300);
    churn(1.02, Encoding::Plain, 1e-9, 1000);
}

#[test]
fn churn_where_buckets_share_stripes_loses_nothing() {
    churn(0.99, Encoding::SemiSorted, 0.001, if cfg!(miri) { 300 } else { 200_000 });
}

/// The same by batches: each writer's keys go in and out by the batch, of sizes that end anywhere in what is looked at
/// at a time.
fn churn_by_batches(slots_to_fill: f64, encoding: Encoding, rate: f64, capacity: u64) {
    let filter = build(capacity, encoding, rate);
    let keys = (filter.slots() as f64 * slots_to_fill) as usize;
    // The churn's keys are in half of the time.
    let (permanent, churned) = (keys * 8 / 10, keys * 4 / 10 / THREADS as usize);
    let permanent: Vec<Raw> = hashes(0, permanent).collect();
    filter.insert_batch(&permanent).unwrap();

    let (present, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let write = |id: u64| {
        let mut random = Random(!id);
        // Those that are in come last; they go round.
        let mut own: VecDeque<Raw> = hashes((id as usize + 1) << 32, churned).collect();
        let mut inside = 0;
        let mut answers = Vec::new();
        for _ in 0..scaled(2000) {
            answers.clear();
            let some = random.below(200) as usize;
            if random.below(2) > 0 {
                let outside = own.len() - inside;
                let batch = own.range(..some.min(outside));
                let inserted = filter.insert_batch(batch).unwrap_or_else(|error| {
                    refused.fetch_add(1, Ordering::Relaxed);
                    error.inserted
                });
                own.rotate_left(inserted);
                inside += inserted;
            } else {
                let first = own.len() - inside;
                let batch = || own.range(first..first + some.min(inside));
                filter.contains_batch(batch(), &mut answers);
                assert!(answers.iter().all(|&found| found), "a present key was missed");
                answers.clear();
                filter.remove_batch(batch(), &mut answers);
                assert!(answers.iter().all(|&removed| removed), "a present key was not removed");
                inside -= answers.len();
            }
        }
        answers.clear();
        filter.contains_batch(own.range(own.len() - inside..), &mut answers);
        assert!(answers.iter().all(|&found| found), "a key was lost");
        present.fetch_add(inside, Ordering::Relaxed);
    };
    let read = |random: &mut Random| {
        let first = random.below(permanent.len() as u64) as usize;
        let some = random.below(200) as usize;
        let mut found = Vec::new();
        filter.contains_batch(permanent[first..].iter().take(some), &mut found);
        assert!(found.iter().all(|&found| found), "a permanent key was missed");
    };
    writers_and_readers(THREADS, write, read);

    let present = present.into_inner();
    assert_eq!(filter.len(), permanent.len() + present, "the length is wrong");
    let mut removed = Vec::new();
    filter.remove_batch(&permanent, &mut removed);
    assert!(removed.iter().all(|&removed| removed), "a permanent key was lost");
    assert_eq!(filter.len(), present, "the length is wrong");
    if slots_to_fill > 1.0 && !cfg!(miri) {
        assert!(refused.into_inner() > 0, "the table was never full: the test shows too little");
    }
}

#[test]
fn churn_by_batches_loses_nothing() {
    churn_by_batches(0.96, Encoding::SemiSorted, 0.001, 3000);
    churn_by_batches(0.96, Encoding::Plain, 0.01, 3000);
    churn_by_batches(1.02, Encoding::SemiSorted, 0.003, 300);
    churn_by_batches(1.02, Encoding::Plain, 0.07, 3000);
}

/// Keys of the same fingerprint and pair as a permanent key come and go, and so carry its only copy from bucket to
/// bucket.
///
/// Seen elsewhere: the permanent key is missed, since no version changes.
#[test]
fn twins_that_come_and_go_hide_no_permanent_key() {
    for (encoding, rate) in [(Encoding::Plain, 0.07), (Encoding::SemiSorted, 0.001)] {
        for capacity in [16, 300, 8000] {
            let filter = build(capacity, encoding, rate);
            let permanent = filter.slots() as u64 * 8 / 10;
            let hash = |key: u64| Raw(Random(key).next());
            (0..permanent).for_each(|key| filter.insert(&hash(key)).unwrap());
            let write = |id: u64| {
                let mut random = Random(!id);
                for _ in 0..scaled(60_000) {
                    // Up to three twins of some permanent keys, one after another or interleaved.
                    let twins = [0; 3].map(|_| hash(random.below(permanent)));
                    let added = twins.map(|twin| filter.insert(&twin).is_ok());
                    for (twin, added) in twins.iter().zip(added) {
                        assert!(!added || filter.remove(twin), "a present key was not removed");
                    }
                }
            };
            let read = |random: &mut Random| {
                assert!(filter.contains(&hash(random.below(permanent))), "a permanent key was missed");
                let mut found = Vec::new();
                let some = [0; 40].map(|_| hash(random.below(permanent)));
                filter.contains_batch(&some, &mut found);
                assert!(found.iter().all(|&found| found), "a permanent key was missed by a batch");
            };
            writers_and_readers(2, write, read);
            assert_eq!(filter.len(), permanent as usize);
            assert!((0..permanent).all(|key| filter.remove(&hash(key))), "a permanent key was lost");
            assert_eq!(filter.len(), 0);
        }
    }
}

/// Many threads add the same keys.
///
/// Seen elsewhere: two are told that they added one key.
#[test]
fn of_all_that_race_to_add_a_key_one_does() {
    for round in 0..scaled(10) {
        let filter = build(20_000, Encoding::SemiSorted, 0.001);
        let keys = if cfg!(miri) { 50 } else { filter.capacity() as u64 };
        let winners: Vec<_> = (0..keys).map(|_| AtomicU8::new(0)).collect();
        let hash = |key: u64| Raw(Random(round << 32 | key).next());
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for key in 0..keys {
                        if filter.insert_if_absent(&hash(key)).unwrap() {
                            winners[key as usize].fetch_add(1, Ordering::Relaxed);
                        }
                        assert!(filter.contains(&hash(key)), "a present key was missed");
                    }
                });
            }
        });
        let winners: Vec<_> = winners.into_iter().map(AtomicU8::into_inner).collect();
        assert!(winners.iter().all(|&winners| winners <= 1), "a key was added twice");
        let added = winners.iter().map(|&winners| usize::from(winners)).sum::<usize>();
        assert_eq!(filter.len(), added, "the length is wrong");
        // A key that nobody added was taken for another that is in.
        assert!(
            keys as usize - added <= keys as usize / 100,
            "{} of {keys} keys were added by nobody",
            keys as usize - added
        );
    }
}

/// Where there is always room, no insert fails because others are at work.
#[test]
fn contention_is_never_taken_for_a_full_table() {
    for capacity in [4, 10] {
        // One bucket or two: each slot can be reached from each key.
        let filter = build(capacity, Encoding::SemiSorted, 0.001);
        let slots = filter.slots() as u64;
        let hash = |key: u64| Raw(Random(key).next());
        (0..slots - THREADS).for_each(|key| filter.insert(&hash(key)).unwrap());
        let write = |id: u64| {
            for i in 0..scaled(100_000) {
                let key = hash((id + 1) << 32 | (i % 1000));
                filter.insert(&key).expect("each thread has a slot of its own");
                assert!(filter.remove(&key), "a present key was not removed");
            }
        };
        let read = |random: &mut Random| {
            assert!(filter.contains(&hash(random.below(slots - THREADS))), "a permanent key was missed");
        };
        writers_and_readers(THREADS, write, read);
        assert_eq!(filter.len() as u64, slots - THREADS);
    }
}

/// Inserts that must relocate in a table that is small, full but for one slot for each thread, and of more than two
/// buckets.
#[test]
fn a_refused_insert_is_refused_for_want_of_room() {
    let filter = build(60, Encoding::Plain, 1e-9);
    let hash = |key: u64| Raw(Random(key).next());
    let permanent = (0..).take_while(|&key| filter.insert(&hash(key)).is_ok()).count() as u64;
    // Each thread in turn takes out one of the keys that fitted together and puts it back: that must always work.
    let write = |id: u64| {
        let mut random = Random(id);
        for _ in 0..scaled(60_000) {
            let key = hash(random.below(permanent / THREADS) * THREADS + id);
            assert!(filter.remove(&key), "a present key was not removed");
            assert_eq!(filter.insert(&key), Ok(()), "it was in before, so there is room");
        }
    };
    writers_and_readers(THREADS, write, |_| thread::yield_now());
    assert!((0..permanent).all(|key| filter.count(&hash(key)) == 1), "a key was lost or doubled");
}

/// A key is counted once, also while it is on the move.
///
/// Seen elsewhere: a key whose two buckets are the same is counted twice.
#[test]
fn count_is_exact_while_others_relocate() {
    for capacity in [2, 4, 100, 2000] {
        // Fingerprints of 32 bits: nothing is mistaken for another.
        let filter = build(capacity, Encoding::Plain, 1e-9);
        let permanent = filter.capacity() as u64 / 2;
        let hash = |key: u64| Raw(Random(key).next());
        for key in 0..permanent {
            (0..key % 2 + 1).for_each(|_| filter.insert(&hash(key)).unwrap_or_default());
        }
        let copies: Vec<_> = (0..permanent).map(|key| filter.count(&hash(key))).collect();
        let write = |id: u64| {
            let mut random = Random(!id);
            for _ in 0..scaled(50_000) {
                let key = hash((id + 1) << 32 | random.below(1 << 20));
                if filter.insert(&key).is_ok() {
                    assert_eq!(filter.count(&key), 1, "miscounted");
                    assert!(filter.remove(&key), "a present key was not removed");
                }
            }
        };
        let read = |random: &mut Random| {
            if permanent > 0 {
                let key = random.below(permanent);
                assert_eq!(filter.count(&hash(key)), copies[key as usize], "miscounted");
            }
        };
        writers_and_readers(2, write, read);
        assert_eq!(filter.len(), copies.iter().sum::<usize>());
    }
}

/// A table that is filled by all threads at once, until nobody finds room.
///
/// Seen elsewhere: a refused insert pushes another key out.
#[test]
fn racing_inserts_fill_the_table_and_lose_nothing() {
    for capacity in [10, 1000, 30_000] {
        let filter = build(capacity, Encoding::SemiSorted, 0.001);
        let hash = |id: u64, key: u64| Raw(Random(id << 32 | key).next());
        let held: Vec<AtomicUsize> = (0..THREADS).map(|_| AtomicUsize::new(0)).collect();
        let write = |id: u64| {
            for key in 0.. {
                match filter.insert(&hash(id, key)) {
                    Ok(()) => held[id as usize].store(key as usize + 1, Ordering::Release),
                    Err(error) => return assert!(matches!(error, InsertError::Full { .. }), "{error}"),
                }
            }
        };
        let read = |random: &mut Random| {
            let id = random.below(THREADS);
            let held = held[id as usize].load(Ordering::Acquire) as u64;
            if held > 0 {
                assert!(filter.contains(&hash(id, random.below(held))), "a present key was missed");
            }
        };
        writers_and_readers(THREADS, write, read);
        let total = held.iter().map(|held| held.load(Ordering::Relaxed)).sum::<usize>();
        assert_eq!(filter.len(), total, "the length is wrong");
        assert!(total >= capacity as usize, "full at {total} of {capacity}");
        for (id, held) in (0..THREADS).zip(&held) {
            let held = held.load(Ordering::Relaxed) as u64;
            assert!((0..held).all(|key| filter.remove(&hash(id, key))), "a key was lost");
        }
        assert_eq!(filter.len(), 0);
    }
}

/// `clear` in the midst of everything takes out what was there before it, and counts right.
#[test]
fn clear_takes_out_what_was_there_before() {
    let filter = build(2000, Encoding::SemiSorted, 1e-4);
    let hash = |key: u64| Raw(Random(key).next());
    for round in 0..scaled(300) {
        let old = |key: u64| hash(round << 40 | key);
        (0..500).for_each(|key| filter.insert(&old(key)).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| filter.clear());
            for id in 1..3 {
                let filter = &filter;
                scope.spawn(move || {
                    // These make others move. Full is no failure here.
                    (0..800).for_each(|key| _ = filter.insert(&hash(round << 40 | id << 32 | key)));
                });
            }
        });
        let found = (0..500).filter(|&key| filter.contains(&old(key))).count();
        assert!(found <= 3, "{found} keys outlived clear: too many to be false positives");
        filter.clear();
        assert_eq!(filter.len(), 0, "the length is wrong");
    }
}
