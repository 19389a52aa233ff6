use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{Encoding, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::{Ends, MAPLET_LAYOUTS, Raw, build, hashes};
use crate::{expiring, maplet};

const ROUNDS: usize = if cfg!(debug_assertions) { 60 } else { 200 };

/// The table is nearly full, and one key comes and goes. Most of its inserts relocate others. At every moment, the
/// digest is either the one with this key or the one without it.
#[test]
fn a_digest_beside_relocations_is_that_of_one_moment() {
    for (encoding, rate) in [(Encoding::SemiSorted, 0.001), (Encoding::Plain, 0.000125)] {
        let filter = build(100_000, encoding, rate);
        let mut extra = hashes(1_000_000, 1 << 20);
        hashes(0, filter.capacity()).for_each(|key| filter.insert(&key).unwrap());
        while filter.len() < filter.plan().slots * 97 / 100 {
            let _ = filter.insert(&extra.next().unwrap());
        }
        let coming: Vec<_> = extra.take(40).collect();
        let without = filter.digest().unwrap();
        let with: Vec<u64> = coming
            .iter()
            .filter_map(|key| {
                filter.insert(key).ok()?;
                let digest = filter.digest().unwrap();
                assert!(filter.remove(key));
                Some(digest)
            })
            .collect();
        assert_eq!(filter.digest().unwrap(), without);
        let done = AtomicBool::new(false);
        let (filter, done) = (&filter, &done);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for key in &coming {
                        if filter.insert(key).is_ok() {
                            assert!(filter.remove(key));
                        }
                    }
                }
            });
            let _ends = Ends(done);
            // Until relocations have happened.
            let relocations = filter.stats().relocations;
            let mut rounds = 0;
            while rounds < 5 * ROUNDS || filter.stats().relocations < relocations + 1000 {
                rounds += 1;
                let digest = filter.digest().unwrap();
                assert!(
                    digest == without || with.contains(&digest),
                    "the digest of a multiset that never was, in round {rounds}"
                );
            }
        });
        assert_eq!(filter.digest().unwrap(), without);
    }
}

/// A key that is in throughout is absorbed once, while other threads relocate it. Their changes in this filter
/// stay.
#[test]
fn a_sum_beside_changes_to_both_is_exact() {
    for round in 0..ROUNDS {
        let [sum, other] = [(); 2].map(|()| build(3000, Encoding::SemiSorted, 0.001));
        let half = sum.capacity() / 2 - 50;
        let (ours, theirs): (Vec<_>, Vec<_>) = (hashes(0, half).collect(), hashes(10_000, half).collect());
        ours.iter().for_each(|key| sum.insert(key).unwrap());
        theirs.iter().for_each(|key| other.insert(key).unwrap());
        let (sum, other, done) = (&sum, &other, &AtomicBool::new(false));
        thread::scope(|scope| {
            let _ends = Ends(done);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(round as u64);
                while !done.load(Ordering::Relaxed) {
                    // Copies of one key fill its buckets, push other keys to their alternate buckets, and are
                    // removed again.
                    let key = Raw(random.random::<u64>());
                    let copies = (0..8).filter(|_| other.insert(&key).is_ok()).count();
                    (0..copies).for_each(|_| assert!(other.remove(&key)));
                }
            });
            scope.spawn(|| ours.iter().step_by(10).for_each(|key| assert!(sum.remove(key))));
            let added = sum.absorb(other).unwrap() as usize;
            assert!((half..=half + 8).contains(&added), "{added} of {half}: lost, or absorbed twice");
        });
        assert!(theirs.iter().all(|key| sum.contains(key)));
        assert!(theirs.iter().all(|key| sum.remove(key)), "absorbed once");
        for (nth, key) in ours.iter().enumerate() {
            assert!(nth % 10 == 0 || sum.remove(key), "a key of this filter was lost");
        }
        assert!(sum.len() <= 8, "{} are left", sum.len());
    }
}

/// Entries die in both filters during an `absorb`. Each lives here as long as it would have there.
#[test]
fn clocks_go_on_meanwhile() {
    for _ in 0..ROUNDS {
        let [sum, other] = [(); 2].map(|()| expiring(4000, 14));
        sum.advance_to(Tick::new(100));
        other.advance_to(Tick::new(100));
        let end = |key: &Raw| 101 + key.0 % 14;
        let keys: Vec<_> = hashes(0, 1800).collect();
        keys.iter().for_each(|key| _ = other.insert_until(key, Tick::new(end(key))).unwrap());
        let (sum, other) = (&sum, &other);
        thread::scope(|scope| {
            scope.spawn(|| {
                (100..105).for_each(|now| {
                    other.advance_to(Tick::new(now));
                })
            });
            scope.spawn(|| {
                (100..108).for_each(|now| {
                    sum.advance_to(Tick::new(now));
                })
            });
            // An error if the other's clock is ahead at this moment.
            while sum.absorb(other).is_err() {}
        });
        for now in 107..116 {
            sum.advance_to(Tick::new(now));
            for key in &keys {
                assert!(sum.contains(key) || end(key) <= now, "it ends at {} and is gone at {now}", end(key));
            }
            assert_eq!(sum.live_len(), keys.iter().filter(|key| end(key) > now).count());
        }
    }
}

/// Several threads add parts to one filter at the same time.
#[test]
fn parts_that_are_absorbed_at_once_are_each_in_once() {
    let whole = maplet(4000, MAPLET_LAYOUTS[2]);
    whole.insert(&Raw(1), 15).unwrap();
    let parts = [(); 4].map(|()| whole.empty_like().unwrap());
    for (nth, part) in parts.iter().enumerate() {
        part.insert(&Raw(1), nth as u16).unwrap();
        hashes(1000 * nth, 800).for_each(|key| part.insert(&key, nth as u16).unwrap());
    }
    thread::scope(|scope| {
        parts.iter().for_each(|part| _ = scope.spawn(|| assert_eq!(whole.absorb(part), Ok(801))));
    });
    assert_eq!(whole.values(&Raw(1)).iter().collect::<Vec<_>>(), [0, 1, 2, 3, 15]);
    for nth in 0..4 {
        assert!(hashes(1000 * nth, 800).all(|key| whole.remove(&key, nth as u16)));
    }
    assert_eq!(whole.len(), 5);
}
