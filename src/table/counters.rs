//! CONCURRENT: counts that many threads change without sharing a cache line.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use crate::machine::arch::at;
use crate::machine::memory::boxed_slice;
use crate::sync::{AtomicI64, Ordering, Tally};
use crate::verify::fault::{self, Fault};

/// The most shards a table's counts have; beyond, threads share them.
const MAX_SHARDS: usize = 64;

/// All that a table counts, in a number of shards, each on a cache line of its own; a thread always changes the same
/// shard.
///
/// All accesses are relaxed: these are statistics, that order nothing.
#[derive(Debug)]
pub(crate) struct Counters {
    /// A power of two of them, with one that is not used between any two: so they share no cache line, nor a pair of lines
    /// that a processor loads together.
    shards: Box<[Shard]>,
    /// Their number, less one.
    mask: usize,
}

/// The elements from one shard to the next.
const STRIDE: usize = 2;

/// What the threads that share a shard have counted: [`Counts`] says what.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    /// One shard alone may be negative: an item may be inserted by one thread and removed by another.
    len: AtomicI64,
    relocations: Tally,
    longest_path: Tally,
    inserts_refused: Tally,
    lookup_retries: Tally,
    lock_waits: Tally,
    negatives_recorded: Tally,
    false_positives_recorded: Tally,
}

/// What was counted, on all threads together. Sums are taken modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How many items there are.
    pub(crate) len: usize,
    /// Items that an insert moved to their other bucket.
    pub(crate) relocations: u64,
    /// The most relocations that one path took.
    pub(crate) longest_path: u64,
    /// Inserts for which there was no room.
    pub(crate) inserts_refused: u64,
    /// Looks that were repeated because a version had changed.
    pub(crate) lookup_retries: u64,
    /// Locks of stripes that were not free at once.
    pub(crate) lock_waits: u64,
    /// As told by the caller, like the next.
    pub(crate) negatives_recorded: u64,
    pub(crate) false_positives_recorded: u64,
}

impl Counts {
    /// The counts of two tables as one: their sums, and the longer of the longest paths.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            len: self.len.wrapping_add(other.len),
            relocations: self.relocations.wrapping_add(other.relocations),
            longest_path: self.longest_path.max(other.longest_path),
            inserts_refused: self.inserts_refused.wrapping_add(other.inserts_refused),
            lookup_retries: self.lookup_retries.wrapping_add(other.lookup_retries),
            lock_waits: self.lock_waits.wrapping_add(other.lock_waits),
            negatives_recorded: self.negatives_recorded.wrapping_add(other.negatives_recorded),
            false_positives_recorded: self.false_positives_recorded.wrapping_add(other.false_positives_recorded),
        }
    }
}

/// The number of shards for a table of so many buckets: a small table need not pay for them, since its buckets
/// themselves are shared.
fn shards_for(buckets: usize) -> usize {
    /// Asked for once in a process: the answer takes system calls, and allocations that cannot fail but by an abort.
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, usize::from).next_power_of_two());

    let worthwhile = (buckets / 512).next_power_of_two().min(MAX_SHARDS);
    // Asked with the first table in any case, for the first filter is built where memory is not short; a later table may be
    // one that is added where it is.
    worthwhile.min(*THREADS)
}

/// How many elements so many shards take.
fn elements(shards: usize) -> usize {
    (shards - 1) * STRIDE + 1
}

impl Counters {
    /// Counters for a table of so many buckets, or `None` if there is no memory for them.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        let shards = shards_for(buckets);
        Some(Self { shards: boxed_slice(elements(shards), Shard::default)?, mask: shards - 1 })
    }

    /// How many bytes [`new`](Self::new) asks the allocator for.
    pub(crate) fn memory_for(buckets: usize) -> usize {
        elements(shards_for(buckets)) * size_of::<Shard>()
    }

    /// Those that are used.
    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().step_by(STRIDE)
    }

    /// The calling thread's shard.
    #[inline]
    fn shard(&self) -> &Shard {
        at(&self.shards, (thread_number() & self.mask) * STRIDE)
    }

    #[inline]
    pub(crate) fn add_len(&self, change: i64) {
        let len = &self.shard().len;
        if fault::injected(Fault::CountDropsUpdates) {
            len.store(len.load(Ordering::Relaxed) + change, Ordering::Relaxed);
        } else {
            len.fetch_add(change, Ordering::Relaxed);
        }
    }

    /// So many hops of a path were carried out.
    pub(crate) fn relocated(&self, hops: u64) {
        let shard = self.shard();
        shard.relocations.fetch_add(hops, Ordering::Relaxed);
        // Nearly never longer: spares an exchange.
        if shard.longest_path.load(Ordering::Relaxed) < hops {
            shard.longest_path.fetch_max(hops, Ordering::Relaxed);
        }
    }

    pub(crate) fn insert_refused(&self) {
        self.shard().inserts_refused.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn lookup_retried(&self) {
        self.shard().lookup_retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A lock was not free.
    #[cold]
    #[inline(never)]
    pub(crate) fn lock_waited(&self) {
        self.shard().lock_waits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn record_negatives(&self, count: u64) {
        self.shard().negatives_recorded.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn record_false_positives(&self, count: u64) {
        self.shard().false_positives_recorded.fetch_add(count, Ordering::Relaxed);
    }

    /// How many items there are: exact while no thread changes that. Each change made meanwhile may or may not be in it.
    pub(crate) fn len(&self) -> usize {
        let sum: i64 = self.shards().map(|shard| shard.len.load(Ordering::Relaxed)).sum();
        // A removal may have been counted where the insertion before it, in an earlier shard, was not.
        sum.max(0) as usize
    }

    /// All counts, each as exact as [`len`](Self::len), but not all of the same moment.
    pub(crate) fn counts(&self) -> Counts {
        let of_shard = |shard: &Shard| Counts {
            len: 0,
            relocations: shard.relocations.load(Ordering::Relaxed),
            longest_path: shard.longest_path.load(Ordering::Relaxed),
            inserts_refused: shard.inserts_refused.load(Ordering::Relaxed),
            lookup_retries: shard.lookup_retries.load(Ordering::Relaxed),
            lock_waits: shard.lock_waits.load(Ordering::Relaxed),
            negatives_recorded: shard.negatives_recorded.load(Ordering::Relaxed),
            false_positives_recorded: shard.false_positives_recorded.load(Ordering::Relaxed),
        };
        let counts = self.shards().map(of_shard).fold(Counts::default(), Counts::merge);
        // By itself: a sum of shards that may be negative.
        Counts { len: self.len(), ..counts }
    }
}

/// A small number of the calling thread's own.
#[cfg(not(ccf_model = "loom"))]
#[inline]
fn thread_number() -> usize {
    use core::cell::Cell;
    use core::sync::atomic::AtomicUsize;

    static NEXT: AtomicUsize = AtomicUsize::new(1);
    std::thread_local! {
        /// 0 before the first use. Computed lazily by hand, for what the standard library does takes two instructions more.
        static NUMBER: Cell<usize> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// loom's threads share one thread, and its models have too few buckets for a second shard.
#[cfg(ccf_model = "loom")]
fn thread_number() -> usize {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_two_tables_are_added_up_and_the_longer_path_is_the_longest() {
        let counts = |n: u64| Counts {
            len: n as usize,
            relocations: 10 * n,
            longest_path: 7 - n,
            inserts_refused: 20 * n,
            lookup_retries: 30 * n,
            lock_waits: 40 * n,
            negatives_recorded: 50 * n,
            false_positives_recorded: 60 * n,
        };
        for (one, other) in [(1, 2), (2, 1)] {
            assert_eq!(counts(one).merge(counts(other)), Counts { longest_path: 6, ..counts(3) });
        }
    }
}
