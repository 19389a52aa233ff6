//! Inserts that compete for the last slots. None is refused while there is room, and none pushes another key out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Encoding, InsertError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::{build, scattered};
use crate::threads::{THREADS, scaled, sizes, writers_and_readers};

/// If there is always room, no insert fails because of contention.
#[test]
fn contention_is_never_taken_for_a_full_table() {
    for capacity in [4, 10] {
        // One bucket or two, so every slot can be reached from every key.
        let filter = build(capacity, Encoding::SemiSorted, 0.001);
        let slots = filter.plan().slots as u64;
        let hash = scattered;
        (0..slots - THREADS).for_each(|key| filter.insert(&hash(key)).unwrap());
        let write = |id: u64| {
            for i in 0..scaled(100_000) {
                let key = hash((id + 1) << 32 | (i % 1000));
                filter.insert(&key).expect("each thread has a slot of its own");
                assert!(filter.remove(&key), "a present key was not removed");
            }
        };
        let read = |random: &mut SmallRng| {
            assert!(filter.contains(&hash(random.random_range(0..slots - THREADS))), "a permanent key was missed");
        };
        writers_and_readers(THREADS, write, read);
        assert_eq!(filter.len() as u64, slots - THREADS);
    }
}

/// Inserts that must relocate, in a small table of more than two buckets. It is full except for one slot for each
/// thread.
#[test]
fn a_refused_insert_is_refused_for_want_of_room() {
    let filter = build(60, Encoding::Plain, 1e-9);
    let hash = scattered;
    let permanent = (0..).take_while(|&key| filter.insert(&hash(key)).is_ok()).count() as u64;
    // Each thread repeatedly takes out a key and puts it back. This must always work, because all keys fitted
    // together before.
    let write = |id: u64| {
        let mut random = SmallRng::seed_from_u64(id);
        for _ in 0..scaled(60_000) {
            let key = hash(random.random_range(0..permanent / THREADS) * THREADS + id);
            assert!(filter.remove(&key), "a present key was not removed");
            assert_eq!(filter.insert(&key), Ok(()), "it was in before, so there is room");
        }
    };
    writers_and_readers(THREADS, write, |_| thread::yield_now());
    assert!((0..permanent).all(|key| filter.count(&hash(key)) == 1), "a key was lost or doubled");
}

/// All threads fill one table at once, until none finds room.
///
/// Seen in other filters: a refused insert pushes another key out.
#[test]
fn racing_inserts_fill_the_table_and_lose_nothing() {
    for capacity in sizes([10, 1000, 30_000]) {
        let filter = build(capacity, Encoding::SemiSorted, 0.001);
        let hash = |id: u64, key: u64| scattered(id << 32 | key);
        let held: Vec<AtomicUsize> = (0..THREADS).map(|_| AtomicUsize::new(0)).collect();
        let write = |id: u64| {
            for key in 0.. {
                match filter.insert(&hash(id, key)) {
                    Ok(()) => held[id as usize].store(key as usize + 1, Ordering::Release),
                    Err(error) => return assert!(matches!(error, InsertError::Full { .. }), "{error}"),
                }
            }
        };
        let read = |random: &mut SmallRng| {
            let id = random.random_range(0..THREADS);
            let held = held[id as usize].load(Ordering::Acquire) as u64;
            if held > 0 {
                assert!(filter.contains(&hash(id, random.random_range(0..held))), "a present key was missed");
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
