//! Answers that must be exact while other threads work: those of `insert_if_absent`, `count`, `clear` and `len`.

use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

use concurrent_cuckoo_filter::Encoding;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::{build, scattered};
use crate::threads::{THREADS, scaled, sized, sizes, writers_and_readers};

/// Many threads add the same keys.
///
/// Seen in other filters: two calls report that they added the same key.
#[test]
fn of_all_that_race_to_add_a_key_one_does() {
    for round in 0..scaled(10) {
        let filter = build(sized(20_000), Encoding::SemiSorted, 0.001);
        let keys = filter.capacity() as u64;
        let winners: Vec<_> = (0..keys).map(|_| AtomicU8::new(0)).collect();
        let hash = |key: u64| scattered(round << 32 | key);
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
        // A key that no thread added was taken for another that is in.
        assert!(
            keys as usize - added <= keys as usize / 100,
            "{} of {keys} keys were added by no thread",
            keys as usize - added
        );
    }
}

/// A key is counted once, even while it is being moved.
///
/// Seen in other filters: a key whose two buckets are the same is counted twice.
#[test]
fn count_is_exact_while_others_relocate() {
    for capacity in sizes([2, 4, 100, 2000]) {
        // Fingerprints have 32 bits, so no key is mistaken for another.
        let filter = build(capacity, Encoding::Plain, 1e-9);
        let permanent = filter.capacity() as u64 / 2;
        let hash = scattered;
        for key in 0..permanent {
            (0..key % 2 + 1).for_each(|_| filter.insert(&hash(key)).unwrap_or_default());
        }
        let copies: Vec<_> = (0..permanent).map(|key| filter.count(&hash(key))).collect();
        let write = |id: u64| {
            let mut random = SmallRng::seed_from_u64(!id);
            for _ in 0..scaled(50_000) {
                let key = hash((id + 1) << 32 | random.random_range(0..1 << 20));
                if filter.insert(&key).is_ok() {
                    assert_eq!(filter.count(&key), 1, "miscounted");
                    assert!(filter.remove(&key), "a present key was not removed");
                }
            }
        };
        let read = |random: &mut SmallRng| {
            if permanent > 0 {
                let key = random.random_range(0..permanent);
                assert_eq!(filter.count(&hash(key)), copies[key as usize], "miscounted");
            }
        };
        writers_and_readers(2, write, read);
        assert_eq!(filter.len(), copies.iter().sum::<usize>());
    }
}

/// During other operations, `clear` removes the keys that were there before it, and the length is correct.
#[test]
fn clear_takes_out_what_was_there_before() {
    let filter = build(sized(2000), Encoding::SemiSorted, 1e-4);
    let [before, during] = [500, 800].map(|keys| if cfg!(miri) { keys / 30 } else { keys });
    let hash = scattered;
    for round in 0..scaled(300) {
        let old = |key: u64| hash(round << 40 | key);
        (0..before).for_each(|key| filter.insert(&old(key)).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| filter.clear());
            for id in 1..3 {
                let filter = &filter;
                scope.spawn(move || {
                    // These inserts make others move. "Full" is no failure here.
                    (0..during).for_each(|key| _ = filter.insert(&hash(round << 40 | id << 32 | key)));
                });
            }
        });
        let found = (0..before).filter(|&key| filter.contains(&old(key))).count();
        assert!(found <= 3, "{found} keys outlived clear: too many to be false positives");
        filter.clear();
        assert_eq!(filter.len(), 0, "the length is wrong");
    }
}
