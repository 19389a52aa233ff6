//! The figures of the filter whose entries expire: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::shared::operations::{layout_of_table, properties};
use crate::filter::stats::Stats;
use crate::table::face::traits::AnyTable;
use crate::word::layout::Encoding;

properties!(ExpiringCuckooFilter made by "builder().capacity(1000).lifetime_in_ticks(15).build()?");

layout_of_table!(ExpiringCuckooFilter with fingerprints of "7 to 31" in "2 to 6");

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// How many entries take up a slot: the live ones, and those that have expired and are not swept yet.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted. [`live_len`](Self::live_len) counts the live ones only.
    ///
    /// Cost: it adds up at most 64 counters.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(0);
    /// filter.insert("a", 5)?;
    /// filter.insert("a", 9)?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// How many entries are live.
    ///
    /// The number is exact while nobody changes the filter. While others do, an entry that is moved to make room
    /// may be counted twice or not at all.
    ///
    /// Cost: one pass over the whole table. Call it for a page of metrics, not for each request.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<u64>::builder().capacity(100_000).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(0);
    /// filter.insert_hash_batch((0..90_000).map(|key| (filter.hash_one(&key), 1 + key % 2)))?;
    /// filter.advance_to(1);
    /// assert_eq!(filter.live_len(), 45_000);
    /// assert!(filter.len() > 45_000, "the rest is swept later");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.core.live_in(0)
    }

    /// How many entries the filter is made for: at least as many as were asked for.
    ///
    /// That many live entries of distinct keys fit. The probability that an insert is refused before that is below
    /// one in a billion for each filter. All entries of a key are in its two buckets. So a key can have as many
    /// entries as these buckets have slots, 4 to 12 depending on the layout.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// assert!(filter.capacity() >= 1000);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.core.capacity()
    }

    /// How many slots the filter has, each for one entry.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// assert!(filter.slots() >= filter.capacity());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.core.slots()
    }

    /// The memory that the filter takes up, in bytes. It leaves out two things: the decode table of up to 256 KiB
    /// that all semi-sorted filters share, and the name of a schema that the caller has given, up to 255 bytes.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// assert!(filter.memory_usage() >= 8 * filter.slots() / filter.slots_per_bucket());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        size_of::<Self>() + self.core.memory_usage()
    }

    /// The expected false-positive rate at the present load, from 0 to 1. It counts entries that have expired and
    /// are not swept yet, so the actual rate may be a little lower.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// assert_eq!(filter.false_positive_rate(), 0.0, "it is empty");
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(self.load_factor())
    }

    /// The expected false-positive rate with every slot taken. It is at most what the builder was asked for.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let builder = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15);
    /// assert!(builder.false_positive_rate(0.01).build()?.max_false_positive_rate() <= 0.01);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.core.false_positive_rate(1.0)
    }

    /// All figures at once, with counts of what has happened since the filter was made: relocations, refusals,
    /// expired entries, sweeps.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(0);
    /// filter.insert("a", 5)?;
    /// filter.advance_to(20);
    /// assert_eq!(filter.stats().clock_jumps, 1, "all entries expired at once");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        let table: &dyn AnyTable = &*self.core;
        let stats = Stats::of([table], self.memory_usage(), self.false_positive_rate(), self.max_false_positive_rate());
        stats.with_clock(self.core.clock())
    }

    /// Removes all entries that are in the filter when the call begins. The clock goes on.
    ///
    /// Other threads do not see it as one step.
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes that, and the cost.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(7);
    /// filter.insert("a", 9)?;
    /// filter.clear();
    /// assert_eq!((filter.len(), filter.now()), (0, Some(7)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&self) {
        self.core.clear();
    }
}

/// Shows statistics, never the table, and never the hasher, whose key is a secret.
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
