//! Inserts and removals, single and batched.

use std::time::Instant;

use ahash::RandomState;
use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

use super::source::BATCH;
use super::support::keys::key;

/// Inserts up to 75 % of the slots and removals from 90 % on, single and batched. In millions a second, one pair
/// for each round.
pub(crate) struct Changes {
    pub(crate) inserts: Vec<[f64; 2]>,
    pub(crate) removals: Vec<[f64; 2]>,
}

/// Fills the filter to 90 %, and times what that takes.
pub(crate) fn fill(filter: &ConcurrentCuckooFilter<u64, RandomState>, rounds: usize) -> (u64, Changes) {
    let slots = filter.plan().slots as u64;
    // A single slice and a batched slice alternate.
    let slice = slots * 3 / 4 / (2 * rounds as u64);
    let mut keys: Vec<u64> = Vec::new();
    let mut len = 0;
    let mut changes = Changes { inserts: Vec::new(), removals: Vec::new() };
    let mut timed = |from: u64, to: u64, change: &mut dyn FnMut(&[u64])| {
        let start = Instant::now();
        for first in (from..to).step_by(BATCH) {
            keys.clear();
            keys.extend((first..to.min(first + BATCH as u64)).map(key));
            change(&keys);
        }
        (to - from) as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    let mut insert_each = |keys: &[u64]| keys.iter().for_each(|key| filter.insert(key).expect("room"));
    let mut insert_all = |keys: &[u64]| assert_eq!(filter.insert_batch(keys), Ok(()));
    for _ in 0..rounds {
        let single = timed(len, len + slice, &mut insert_each);
        let batched = timed(len + slice, len + 2 * slice, &mut insert_all);
        changes.inserts.push([single, batched]);
        len += 2 * slice;
    }
    let full = slots * 9 / 10;
    timed(len, full, &mut insert_each);

    let slice = slots / 20 / (2 * rounds as u64);
    let mut removed = Vec::with_capacity(BATCH);
    let mut gone = 0;
    for _ in 0..rounds {
        let single = timed(gone, gone + slice, &mut |keys| assert!(keys.iter().all(|key| filter.remove(key))));
        let batched = timed(gone + slice, gone + 2 * slice, &mut |keys| {
            removed.clear();
            filter.remove_batch(keys, &mut removed);
            assert!(removed.iter().all(|&removed| removed));
        });
        changes.removals.push([single, batched]);
        gone += 2 * slice;
    }
    timed(0, gone, &mut insert_each);
    (full, changes)
}
