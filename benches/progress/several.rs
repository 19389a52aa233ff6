//! Filters that grow.

use std::sync::atomic::{AtomicU64, Ordering};

use concurrent_cuckoo_filter::GrowableCuckooFilter;

use crate::support::clock::Times;
use crate::support::filled::on_new_threads;
use crate::support::hash::HASH;
use crate::support::keys::key;

/// The number of keys for these buckets, five in each, at about 95 % load.
fn keys_in(bytes: usize) -> usize {
    bytes / size_of::<u64>() * 5 * 95 / 100
}

/// The times of inserts while a filter grew to the capacity of a table of this many bytes, from an eighth of it, and the
/// time of a `reserve` of one key more than there is room for.
pub(crate) fn growth(bytes: usize, threads: u64) -> (Times, Times) {
    let builder = GrowableCuckooFilter::<u64>::builder().hasher(HASH).capacity(keys_in(bytes) / 8);
    let filter = builder.build().expect("a valid filter");
    let next = AtomicU64::new(0);
    let (_, results) = on_new_threads(threads, |_| {
        let mut times = Times::default();
        while filter.capacity() < keys_in(bytes) {
            let first = next.fetch_add(64, Ordering::Relaxed);
            for number in first..first + 64 {
                times.time(|| filter.insert(&key(number))).expect("it grows");
            }
        }
        times
    });
    let mut inserts = Times::default();
    results.iter().for_each(|times| inserts.extend(times));
    let mut reserve = Times::default();
    let more = filter.capacity() - filter.len() + 1;
    reserve.time(|| filter.reserve(more)).expect("there is memory");
    (inserts, reserve)
}
