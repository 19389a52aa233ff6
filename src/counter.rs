//! CONCURRENT: a count that many threads change without sharing a cache line.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use crossbeam_utils::CachePadded;

use crate::fault::{self, Fault};
use crate::memory::boxed_slice;
use crate::sync::{AtomicI64, Ordering};

/// The most shards a counter has; beyond, threads share them.
const MAX_SHARDS: usize = 64;

/// The sum of a number of shards, each on a cache line of its own; a thread always changes the same shard.
#[derive(Debug)]
pub(crate) struct Counter {
    /// A power of two of them. One shard alone may be negative: an item may be inserted by one thread and removed by
    /// another.
    shards: Box<[Shard]>,
}

type Shard = CachePadded<AtomicI64>;

/// The number of shards for a table of so many buckets: a small table need not pay for them, since its buckets
/// themselves are shared.
fn shards_for(buckets: usize) -> usize {
    /// Asked for once in a process: the answer takes system calls, and allocations that cannot fail but by an abort.
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, usize::from).next_power_of_two());

    let worthwhile = (buckets / 256).next_power_of_two().min(MAX_SHARDS);
    if worthwhile == 1 { 1 } else { worthwhile.min(*THREADS) }
}

impl Counter {
    /// A counter for a table of so many buckets, or `None` if there is no memory for it.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        Some(Self { shards: boxed_slice(shards_for(buckets), Shard::default)? })
    }

    /// How many bytes [`new`](Self::new) asks the allocator for.
    pub(crate) fn memory_for(buckets: usize) -> usize {
        shards_for(buckets) * size_of::<Shard>()
    }

    #[inline]
    pub(crate) fn add(&self, change: i64) {
        let shard = thread_number() & (self.shards.len() - 1);
        let shard = &self.shards[shard];
        // Relaxed: a statistic, that orders nothing.
        if fault::injected(Fault::CountDropsUpdates) {
            shard.store(shard.load(Ordering::Relaxed) + change, Ordering::Relaxed);
        } else {
            shard.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// The sum: exact while no thread changes it. Each change made meanwhile may or may not be in it.
    pub(crate) fn sum(&self) -> usize {
        let sum: i64 = self.shards.iter().map(|shard| shard.load(Ordering::Relaxed)).sum();
        // A removal may have been counted where the insertion before it, in an earlier shard, was not.
        sum.max(0) as usize
    }
}

/// A small number of the calling thread's own.
#[cfg(not(ccf_model = "loom"))]
#[inline]
fn thread_number() -> usize {
    use core::sync::atomic::AtomicUsize;

    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // While a thread's locals are being dropped, any number will do.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

/// loom's threads share one thread, and its models have too few buckets for a second shard.
#[cfg(ccf_model = "loom")]
fn thread_number() -> usize {
    0
}
