//! Keys come and go while other threads look for keys that stay.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use concurrent_cuckoo_filter::Encoding;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::{Raw, build, hashes, scattered};
use crate::threads::{THREADS, scaled, sized, sizes, writers_and_readers};

/// Threads insert and remove keys of their own in a table that is nearly or completely full. Other threads look up
/// permanent keys. Each of the writers takes `steps`.
///
/// Seen in other filters: keys whose insert returned `Ok` are never found again; the length drifts; `remove` misses
/// a present key during a relocation.
fn churn(steps: u64, slots_to_fill: f64, encoding: Encoding, rate: f64, capacity: u64) {
    let filter = build(sized(capacity), encoding, rate);
    let keys = (filter.plan().slots as f64 * slots_to_fill) as u64;
    // Each key of the churn is in half of the time.
    let (permanent, churned) = (keys * 8 / 10, keys * 4 / 10 / THREADS);
    let hash = scattered;
    (0..permanent).for_each(|key| filter.insert(&hash(key)).unwrap());

    let (present, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let write = |id: u64| {
        let own = |key: u64| hash((id + 1) << 32 | key);
        let mut random = SmallRng::seed_from_u64(!id);
        let mut inside = vec![false; churned as usize];
        for _ in 0..scaled(steps) {
            let key = random.random_range(0..churned);
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
    let read = |random: &mut SmallRng| {
        assert!(filter.contains(&hash(random.random_range(0..permanent))), "a permanent key was missed");
        assert!(filter.len() <= filter.plan().slots + THREADS as usize, "the length is absurd");
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
    churn(300_000, 0.96, Encoding::SemiSorted, 0.001, 3000);
    churn(300_000, 0.96, Encoding::Plain, 0.01, 3000);
}

#[test]
fn churn_in_a_full_table_loses_nothing() {
    // Refused inserts take long.
    const FULL: u64 = 30_000;
    churn(FULL, 1.02, Encoding::SemiSorted, 0.001, 3000);
    churn(FULL, 1.02, Encoding::SemiSorted, 0.003, 300);
    churn(FULL, 1.02, Encoding::Plain, 0.07, 300);
    churn(FULL, 1.02, Encoding::Plain, 1e-9, 1000);
}

#[test]
fn churn_where_buckets_share_stripes_loses_nothing() {
    churn(100_000, 0.99, Encoding::SemiSorted, 0.001, 200_000);
}

/// The same in batches. Each writer inserts and removes its keys in batches, of sizes that end anywhere within the
/// block that is processed at a time.
fn churn_by_batches(slots_to_fill: f64, encoding: Encoding, rate: f64, capacity: u64) {
    let filter = build(sized(capacity), encoding, rate);
    let keys = (filter.plan().slots as f64 * slots_to_fill) as usize;
    // Each key of the churn is in half of the time.
    let (permanent, churned) = (keys * 8 / 10, keys * 4 / 10 / THREADS as usize);
    let permanent: Vec<Raw> = hashes(0, permanent).collect();
    filter.insert_batch(&permanent).unwrap();

    let (present, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let must_be_full = slots_to_fill > 1.0 && !cfg!(miri);
    let [enough, most] = [2000, 200_000].map(scaled);
    let write = |id: u64| {
        let mut random = SmallRng::seed_from_u64(!id);
        // The present keys are at the end of the queue. Keys go around in it.
        let mut own: VecDeque<Raw> = hashes((id as usize + 1) << 24, churned).collect();
        let mut inside = 0;
        let mut answers = Vec::new();
        for round in 0..most {
            // The table is full only while most keys of all threads are in. On a busy machine, one thread may have
            // ended before the next begins. So all go on until an insert was refused.
            if round >= enough && (!must_be_full || refused.load(Ordering::Relaxed) > 0) {
                break;
            }
            answers.clear();
            let some = random.random_range(0..200);
            if random.random_bool(0.5) {
                let outside = own.len() - inside;
                let batch = own.range(..some.min(outside));
                let len = batch.len();
                let inserted = filter.insert_batch(batch).map_or_else(
                    |error| {
                        refused.fetch_add(1, Ordering::Relaxed);
                        error.index
                    },
                    |()| len,
                );
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
    let read = |random: &mut SmallRng| {
        let first = random.random_range(0..permanent.len());
        let some = random.random_range(0..200);
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
    if must_be_full {
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

/// Keys with the fingerprint and pair of a permanent key come and go, and so move its only copy from bucket to
/// bucket.
///
/// Seen in other filters: a lookup misses the permanent key, because no version changes.
#[test]
fn twins_that_come_and_go_hide_no_permanent_key() {
    for (encoding, rate) in [(Encoding::Plain, 0.07), (Encoding::SemiSorted, 0.001)] {
        for capacity in sizes([16, 300, 8000]) {
            let filter = build(capacity, encoding, rate);
            let permanent = filter.plan().slots as u64 * 8 / 10;
            let hash = scattered;
            (0..permanent).for_each(|key| filter.insert(&hash(key)).unwrap());
            let write = |id: u64| {
                let mut random = SmallRng::seed_from_u64(!id);
                for _ in 0..scaled(60_000) {
                    // Up to three twins of some permanent keys, one after another or interleaved.
                    let twins = [0; 3].map(|_| hash(random.random_range(0..permanent)));
                    let added = twins.map(|twin| filter.insert(&twin).is_ok());
                    for (twin, added) in twins.iter().zip(added) {
                        assert!(!added || filter.remove(twin), "a present key was not removed");
                    }
                }
            };
            let read = |random: &mut SmallRng| {
                assert!(filter.contains(&hash(random.random_range(0..permanent))), "a permanent key was missed");
                let mut found = Vec::new();
                let some = [0; 40].map(|_| hash(random.random_range(0..permanent)));
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
