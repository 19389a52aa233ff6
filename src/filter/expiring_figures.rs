//! What the filter whose entries expire tells of itself.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::filter::expiring::ExpiringCuckooFilter;
use crate::filter::operations::{layout_of_table, properties};
use crate::filter::stats::Stats;
use crate::table::any::AnyTable;
use crate::word::layout::Encoding;

properties!(ExpiringCuckooFilter made by "builder().capacity(1000).lifetime_in_ticks(15).build()?");

layout_of_table!(ExpiringCuckooFilter with fingerprints of "7 to 31" in "2 to 6");

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// How many entries take up a slot: those that are live, and those that have expired and were not swept yet.
    ///
    /// Exact while no other thread changes the filter; while others do, each change that overlaps the call may or may not be counted.
    /// It adds up at most 64 counters. [`live_len`](Self::live_len) tells the live ones apart.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many entries are live.
    ///
    /// Exact while nobody changes the filter. Beside changes, an entry that is moved to make room may be counted twice or not at
    /// all. Cost: one pass over the whole table. For a page of metrics, not for each request.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<u64>::builder().capacity(100_000).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(0);
    /// filter.insert_hash_batch((0..90_000).map(|key| (filter.hash_one(&key), 1 + key % 2)))?;
    /// filter.advance_to(1);
    /// assert_eq!(filter.live_len(), 45_000);
    /// assert!(filter.len() > 45_000, "the rest is swept by and by");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.core.live_in(0)
    }

    /// How many entries the filter is made for: at least as many as were asked for.
    ///
    /// So many live entries of distinct keys fit: the probability that an insert is refused before is below one in a billion for each
    /// filter. All entries of a key are in its two buckets, so a key can have as many as these have slots, 4 to 12 depending on the
    /// layout.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots the filter has, each for one entry.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// The memory that the filter takes up, in bytes: all of it, but for the decode table of up to 256 KiB that all semi-sorted
    /// filters share, and for the name of a schema that the caller has given, up to 255 bytes.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load, from 0 to 1. Entries that have expired and were not swept yet are
    /// counted in, so it may be a little lower.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken; at most what the builder was asked for.
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(1.0)
    }

    /// All figures at once, with counts of what has happened since the filter was made: relocations, refusals, expired entries, sweeps.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table: &dyn AnyTable = &*self.core;
        let stats = Stats::of([table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate());
        stats.with_clock(self.core.clock())
    }

    /// Removes all entries that are in the filter when the call begins. The clock goes on.
    ///
    /// Not one step for others, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) says, which also has the cost.
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Statistics; never the table, and never the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ExpiringCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringCuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("load_factor", &self.load_factor())
            .field("now", &self.now())
            .field("longest_lifetime", &self.longest_lifetime())
            .field("resolution", &self.resolution())
            .field("false_positive_rate", &self.false_positive_rate())
            .field("encoding", &self.encoding())
            .field("slots_per_bucket", &self.slots_per_bucket())
            .field("fingerprint_bits", &self.fingerprint_bits())
            .field("memory_usage", &self.memory_usage())
            .finish_non_exhaustive()
    }
}
