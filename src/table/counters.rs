//! CONCURRENT: counts that many threads change without sharing a cache line.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use crate::machine::arch::at;
use crate::machine::memory::boxed_slice;
use crate::machine::system::processors;
use crate::sync::sizes::INSERTS_PER_CHECK;
use crate::sync::thread::thread_number;
use crate::sync::{AtomicI64, Ordering, Tally};

/// The most shards that a table's counts have. If there are more threads, they share shards.
const MAX_SHARDS: usize = 64;

/// All that a table counts, in a number of shards. Each shard is on cache lines of its own, and a thread always changes
/// the same shard.
///
/// All accesses are relaxed: these are statistics, which order nothing.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Their number is a power of two.
    shards: Box<[CachePadded<Shard>]>,
    /// The number of the filter whose counts these are. No other filter of this process has it.
    filter: u64,
    /// The most relocations that one path took. Not in the shards: it hardly ever changes.
    longest_path: Tally,
}

/// The number of the next filter. Not 0, which is that of none.
static NEXT_FILTER: Tally = Tally::new(1);

/// What the threads that share a shard have counted. [`Counts`] explains the fields.
#[derive(Debug, Default)]
struct Shard {
    /// A [`ShardWord`]: how many items there are, and what inserts into a growing table need to know.
    word: AtomicI64,
    relocations: Tally,
    inserts_failed: Tally,
    removals_not_found: Tally,
    lookup_retries: Tally,
    lock_waits: Tally,
    negatives_recorded: Tally,
    false_positives_recorded: Tally,
    requests_allowed: Tally,
    requests_rejected: Tally,
}

/// The counts of all threads together. Sums are modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) len: usize,
    pub(crate) relocations: u64,
    pub(crate) longest_path: u64,
    pub(crate) inserts_failed: u64,
    pub(crate) removals_not_found: u64,
    /// Attempts of lookups that were invalidated.
    pub(crate) lookup_retries: u64,
    /// Locks of stripes that were contended.
    pub(crate) lock_waits: u64,
    /// As recorded by the caller.
    pub(crate) negatives_recorded: u64,
    pub(crate) false_positives_recorded: u64,
    /// Of a rate limiter.
    pub(crate) requests_allowed: u64,
    pub(crate) requests_rejected: u64,
}

/// The number of shards for a table of this many buckets. A small table need not pay for shards, since threads share
/// its buckets anyway.
#[inline(never)]
fn shards_for(buckets: usize) -> usize {
    /// Computed once per process: this takes a system call, and on some systems allocations that abort the process if they
    /// fail.
    static THREADS: OnceLock<usize> = OnceLock::new();

    let worthwhile = (buckets / 512).next_power_of_two().min(MAX_SHARDS);
    // Computed with the first table in any case. Memory is rarely short when the first filter is built, but it may be
    // when a later table is added.
    // Not while the others wait for it, because the allocator may run any code.
    let threads = THREADS.get().copied().unwrap_or_else(processors);
    worthwhile.min(*THREADS.get_or_init(|| threads.next_power_of_two()))
}

/// What a shard's first word says, from the highest bit to the lowest:
///
/// | bits | what |
/// |---|---|
/// | 40 | how many items the shard has counted; negative if its threads have removed what others inserted |
/// | 11 | how often a check has allowed it to permit further inserts |
/// | 1 | whether it is closed: each of its inserts needs a check |
/// | 12 | how many inserts it has permitted since then |
///
/// All but the first are those of a growing table (`growth/limit.rs`), and 0 in any other. They are in one word so that an
/// insert reads and changes all of them in one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardWord(i64);

impl ShardWord {
    const ITEMS_FROM: u32 = 24;
    const ITEM: i64 = 1 << Self::ITEMS_FROM;
    const PERMIT: i64 = 1 << 13;
    const PERMITS: i64 = Self::ITEM - Self::PERMIT;
    const CLOSED: i64 = 1 << 12;
    const BEGUN: i64 = Self::CLOSED - 1;
    /// An insert that begins: it has counted its item.
    const INSERT: i64 = Self::ITEM + 1;

    fn items(self) -> i64 {
        self.0 >> Self::ITEMS_FROM
    }

    pub(crate) fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    fn permits(self) -> i64 {
        self.0 & Self::PERMITS
    }

    /// Whether an insert may begin without a check.
    #[inline(always)]
    fn permits_insert(self) -> bool {
        self.0 & (Self::CLOSED | Self::BEGUN) < INSERTS_PER_CHECK as i64
    }

    /// After a check that allows further inserts, the first of which is the one that has checked: it begins.
    fn after_check(self) -> Self {
        let permits = (self.permits() + Self::PERMIT) & Self::PERMITS;
        Self((self.0 & !(Self::PERMITS | Self::BEGUN) | permits) + Self::INSERT)
    }
}

impl Counters {
    pub(crate) fn new(buckets: usize) -> Option<Self> {
        let shards = shards_for(buckets);
        Some(Self {
            shards: boxed_slice(shards, CachePadded::default)?,
            filter: NEXT_FILTER.fetch_add(1, Ordering::Relaxed),
            longest_path: Tally::new(0),
        })
    }

    pub(crate) fn memory_for(buckets: usize) -> usize {
        shards_for(buckets) * size_of::<CachePadded<Shard>>()
    }

    #[inline]
    fn shard(&self) -> &Shard {
        let shard: &CachePadded<Shard> = at(&self.shards, thread_number() & (self.shards.len() - 1));
        shard
    }

    #[inline]
    pub(crate) fn add_len(&self, change: i64) {
        self.shard().word.fetch_add(change * ShardWord::ITEM, Ordering::Relaxed);
    }

    /// Counts the item of an insert, in the step by which the shard permits it to begin. Returns `false`, and counts
    /// nothing, if the insert needs a check first.
    #[inline(always)]
    pub(crate) fn count_permitted_insert(&self) -> bool {
        let word = &self.shard().word;
        let mut now = ShardWord(word.load(Ordering::Relaxed));
        while now.permits_insert() {
            match word.compare_exchange_weak(now.0, now.0 + ShardWord::INSERT, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => now = ShardWord(other),
            }
        }
        false
    }

    /// The word of this thread's shard.
    pub(crate) fn word(&self) -> ShardWord {
        ShardWord(self.shard().word.load(Ordering::Relaxed))
    }

    /// Counts the item of an insert that has made its check, so that it begins, and permits further inserts of this
    /// thread's shard, [`INSERTS_PER_CHECK`] with this one. Does nothing if the shard was closed, or a check has allowed it
    /// any, since the caller has read this word. Returns whether the insert has begun.
    pub(crate) fn count_checked_insert(&self, seen: ShardWord) -> bool {
        let word = &self.shard().word;
        let mut now = seen;
        while !now.is_closed() && now.permits() == seen.permits() {
            match word.compare_exchange_weak(now.0, now.after_check().0, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => now = ShardWord(other),
            }
        }
        false
    }

    /// Closes all shards, so that each insert that begins later needs a check. Returns how many items were counted when that was
    /// done; each removal meanwhile may or may not be included.
    pub(crate) fn close(&self) -> usize {
        let close =
            |shard: &CachePadded<Shard>| ShardWord(shard.word.fetch_or(ShardWord::CLOSED, Ordering::Relaxed)).items();
        self.shards.iter().map(close).sum::<i64>().max(0) as usize
    }

    /// Opens all shards again.
    pub(crate) fn open(&self) {
        self.shards.iter().for_each(|shard| _ = shard.word.fetch_and(!ShardWord::CLOSED, Ordering::Relaxed));
    }

    /// How many inserts the shards may permit at one time, all together.
    pub(crate) fn most_permitted(&self) -> usize {
        self.shards.len() * INSERTS_PER_CHECK
    }

    pub(crate) fn relocated(&self, hops: u64) {
        self.shard().relocations.fetch_add(hops, Ordering::Relaxed);
        // The path is hardly ever longer than before. The comparison saves an exchange.
        if self.longest_path.load(Ordering::Relaxed) < hops {
            self.longest_path.fetch_max(hops, Ordering::Relaxed);
        }
    }

    pub(crate) fn insert_failed(&self) {
        self.shard().inserts_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a removal, or that there was nothing to remove; returns which.
    #[inline]
    pub(crate) fn removal(&self, found: bool) -> bool {
        if found {
            self.add_len(-1);
        } else {
            self.removals_not_found(1);
        }
        found
    }

    /// Counts removals that have found nothing.
    #[cold]
    #[inline(never)]
    pub(crate) fn removals_not_found(&self, count: u64) {
        self.shard().removals_not_found.fetch_add(count, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn lookup_retried(&self) {
        self.shard().lookup_retries.fetch_add(1, Ordering::Relaxed);
    }

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

    #[inline]
    pub(crate) fn request_allowed(&self) {
        self.shard().requests_allowed.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn request_rejected(&self) {
        self.shard().requests_rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn filter(&self) -> u64 {
        self.filter
    }

    /// How many items there are. It is exact while no thread changes that. Each change made meanwhile may or may not
    /// be included.
    pub(crate) fn len(&self) -> usize {
        let sum: i64 = self.shards.iter().map(|shard| ShardWord(shard.word.load(Ordering::Relaxed)).items()).sum();
        // A removal may be included while the insertion before it, in a shard that was read earlier, is not.
        sum.max(0) as usize
    }

    /// All counts. Each is as exact as [`len`](Self::len), but they are not all of the same moment.
    #[inline(never)]
    pub(crate) fn counts(&self) -> Counts {
        let longest_path = self.longest_path.load(Ordering::Relaxed);
        let mut counts = Counts { len: self.len(), longest_path, ..Counts::default() };
        let add = |sum: &mut u64, count: &Tally| *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
        for shard in &self.shards {
            add(&mut counts.relocations, &shard.relocations);
            add(&mut counts.inserts_failed, &shard.inserts_failed);
            add(&mut counts.removals_not_found, &shard.removals_not_found);
            add(&mut counts.lookup_retries, &shard.lookup_retries);
            add(&mut counts.lock_waits, &shard.lock_waits);
            add(&mut counts.negatives_recorded, &shard.negatives_recorded);
            add(&mut counts.false_positives_recorded, &shard.false_positives_recorded);
            add(&mut counts.requests_allowed, &shard.requests_allowed);
            add(&mut counts.requests_rejected, &shard.requests_rejected);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_shards_are_added_up() {
        let shards = boxed_slice(8, CachePadded::default).expect("memory");
        let counters = Counters { shards, filter: 1, longest_path: Tally::new(0) };
        let count = |nth| {
            counters.add_len(3);
            counters.relocated(nth);
            counters.removals_not_found(2);
        };
        std::thread::scope(|scope| (0..8).for_each(|nth| _ = scope.spawn(move || count(nth))));
        let counts = counters.counts();
        assert_eq!((counters.len(), counts.len, counts.relocations, counts.longest_path), (24, 24, 28, 7));
        assert_eq!((counts.removals_not_found, counts.inserts_failed), (16, 0));
    }
}
