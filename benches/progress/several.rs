//! Filters of several tables, while they grow or rotate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{GrowableCuckooFilter, RotatingCuckooFilter};

use crate::support::clock::Times;
use crate::support::filled::on_new_threads;
use crate::support::hash::HASH;
use crate::support::keys::key;

/// The number of keys for these buckets, five in each, at about 95 % load.
fn keys_in(bytes: usize) -> usize {
    bytes / size_of::<u64>() * 5 * 95 / 100
}

/// The times of inserts while a filter grew from an eighth to a newest table of this many bytes, and the times of
/// `reserve`, which adds one more such table.
pub(crate) fn growth(bytes: usize, threads: u64) -> (Times, Times) {
    let filter = GrowableCuckooFilter::<u64>::builder().hasher(HASH).capacity(keys_in(bytes) / 8).build();
    let filter = filter.expect("a valid filter");
    let next = AtomicU64::new(0);
    let (_, results) = on_new_threads(threads, |_| {
        let mut times = Times::default();
        while filter.tables() < 4 {
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
    let tables = filter.tables();
    while filter.tables() == tables {
        let more = filter.capacity() - filter.len() + 1;
        reserve.time(|| filter.reserve(more)).expect("there is memory");
    }
    (inserts, reserve)
}

/// The times of the rotations of one thread, in a filter whose tables have this many bytes, and of the inserts of
/// all others meanwhile.
pub(crate) fn rotation(bytes: usize, threads: u64, time: Duration) -> (Times, Times) {
    let filter = RotatingCuckooFilter::<u64>::builder().hasher(HASH).generation_capacity(keys_in(bytes)).generations(2);
    let filter = filter.build().expect("a valid filter");
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let rotator = scope.spawn(|| {
            let (mut times, begin) = (Times::default(), Instant::now());
            while times.count() < 5 || begin.elapsed() < time {
                times.time(|| filter.rotate());
                thread::sleep(Duration::from_millis(1));
            }
            ended.store(true, Ordering::Relaxed);
            times
        });
        let (_, results) = on_new_threads(threads - 1, |thread| {
            let (mut times, mut number) = (Times::default(), thread);
            while !ended.load(Ordering::Relaxed) {
                // A generation may be full for a while.
                _ = times.time(|| filter.insert(&key(number)));
                number += threads;
            }
            times
        });
        let mut inserts = Times::default();
        results.iter().for_each(|times| inserts.extend(times));
        (rotator.join().expect("no panic"), inserts)
    })
}
