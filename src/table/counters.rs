//! CONCURRENT: counts that many threads change without sharing a cache line.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use crate::machine::arch::at;
use crate::machine::memory::boxed_slice;
use crate::sync::fault::{self, Fault};
use crate::sync::thread::thread_number;
use crate::sync::{AtomicI64, Ordering, Tally};

/// The most shards that a table's counts have. If there are more threads, they share shards.
const MAX_SHARDS: usize = 64;

/// All that a table counts, in a number of shards. Each shard is on a cache line of its own, and a thread always
/// changes the same shard.
///
/// All accesses are relaxed: these are statistics, which order nothing.
#[derive(Debug)]
pub(crate) struct Counters {
    /// The number of shards in use is a power of two. Between any two of them is one that is not used. So they share
    /// no cache line, nor a pair of lines that a processor loads together.
    shards: Box<[Shard]>,
    /// The number of the filter whose counts these are. No other filter of this process has it.
    filter: u64,
}

/// The number of the next filter. Not 0, which is that of none.
static NEXT_FILTER: Tally = Tally::new(1);

/// The distance from one shard in use to the next, in elements.
const STRIDE: usize = 2;

/// What the threads that share a shard have counted. [`Counts`] explains the fields.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    /// It may be negative in one shard: one thread may insert an item and another remove it.
    len: AtomicI64,
    relocations: Tally,
    longest_path: Tally,
    inserts_refused: Tally,
    lookup_retries: Tally,
    lock_waits: Tally,
    negatives_recorded: Tally,
    false_positives_recorded: Tally,
}

/// The counts of all threads together. Sums are modulo 2⁶⁴.
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
    /// As recorded by the caller, like the next.
    pub(crate) negatives_recorded: u64,
    pub(crate) false_positives_recorded: u64,
}

impl Counts {
    /// The counts of two tables as one: their sums, and the maximum of the longest paths.
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

/// The number of shards for a table of this many buckets. A small table need not pay for shards, since threads share
/// its buckets anyway.
fn shards_for(buckets: usize) -> usize {
    /// Computed once in a process: this takes system calls, and allocations that abort the process if they fail.
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| available_parallelism().map_or(1, usize::from).next_power_of_two());

    let worthwhile = (buckets / 512).next_power_of_two().min(MAX_SHARDS);
    // Computed with the first table in any case. Memory is rarely short when the first filter is built, but it may be
    // when a later table is added.
    worthwhile.min(*THREADS)
}

/// The number of elements for this many shards in use.
fn elements(shards: usize) -> usize {
    (shards - 1) * STRIDE + 1
}

impl Counters {
    /// Counters for a table of this many buckets, or `None` if there is no memory for them.
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        let shards = shards_for(buckets);
        Some(Self {
            shards: boxed_slice(elements(shards), Shard::default)?,
            filter: NEXT_FILTER.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// How many bytes [`new`](Self::new) asks the allocator for.
    pub(crate) fn memory_for(buckets: usize) -> usize {
        elements(shards_for(buckets)) * size_of::<Shard>()
    }

    /// The shards in use.
    fn shards(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().step_by(STRIDE)
    }

    /// The calling thread's shard.
    #[inline]
    fn shard(&self) -> &Shard {
        // There are `elements(n)` shards, with `n` in use, a power of two. So their number less one is `(n - 1) *
        // STRIDE`, and the masked product is the number of one in use, times the distance.
        at(&self.shards, (thread_number() * STRIDE) & (self.shards.len() - 1))
    }

    /// Returns what the thread's own shard has counted by now.
    #[inline]
    pub(crate) fn add_len(&self, change: i64) -> i64 {
        let len = &self.shard().len;
        if fault::injected(Fault::CountDropsUpdates) {
            let sum = len.load(Ordering::Relaxed) + change;
            len.store(sum, Ordering::Relaxed);
            return sum;
        }
        len.fetch_add(change, Ordering::Relaxed) + change
    }

    /// Counts the hops of a path that were carried out.
    pub(crate) fn relocated(&self, hops: u64) {
        let shard = self.shard();
        shard.relocations.fetch_add(hops, Ordering::Relaxed);
        // The path is hardly ever longer than before. The test saves an exchange.
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

    pub(crate) fn filter(&self) -> u64 {
        self.filter
    }

    /// How many items there are. It is exact while no thread changes that. Each change made meanwhile may or may not
    /// be included.
    pub(crate) fn len(&self) -> usize {
        let sum: i64 = self.shards().map(|shard| shard.len.load(Ordering::Relaxed)).sum();
        // A removal may be included while the insertion before it, in a shard that was read earlier, is not.
        sum.max(0) as usize
    }

    /// All counts. Each is as exact as [`len`](Self::len), but they are not all of the same moment.
    #[inline(never)]
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
        // Computed separately: it is a sum of shards that may be negative.
        Counts { len: self.len(), ..counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_shards_are_added_up() {
        let shards = boxed_slice(elements(8), Shard::default).expect("memory");
        let counters = Counters { shards, filter: 1 };
        std::thread::scope(|scope| (0..8).for_each(|_| _ = scope.spawn(|| counters.add_len(3))));
        assert_eq!(counters.len(), 24);
    }

    #[test]
    fn counts_of_two_tables_add_up_and_the_longer_path_counts() {
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
