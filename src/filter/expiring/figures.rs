//! The figures of an [`ExpiringCuckooFilter`]: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::stats::Stats;
use crate::table::core::Core as _;
use crate::table::filter_plan::FilterPlan;

/// Facts about the filter as a whole.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Returns how many entries the filter holds. Entries that have expired and are not swept yet count too.
    /// [`live_len`](Self::live_len) counts the live ones only.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters. There are several so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns the capacity in entries: at least what was asked for.
    ///
    /// This many entries with distinct keys fit: the probability that an insert of one of them fails is below one in a
    /// billion for each filter.
    ///
    /// All entries of a key are in its two buckets. So a key can have as many entries as these buckets have slots, 4 to
    /// 12 depending on the layout.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the filter's configuration: its layout, slots and memory, and its rate at capacity. It is what the
    /// builder's `plan` returned, and never changes. Its `Display` is a line for a log.
    ///
    /// It has the longest [lifetime](FilterPlan::lifetime_in_ticks): an entry may expire at up to `now +
    /// lifetime_in_ticks`. The bits of an expiry are the [payload](crate::TableLayout::payload_bits) of its layout.
    ///
    /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        FilterPlan::of(FilterKind::Expiring, self.parts.core.dimensions(), size_of::<Self>())
            .with_clock(self.parts.core.clock())
    }

    /// Returns all figures at once: sizes, the expected false-positive rate, and counts of what has happened since the
    /// filter was made: relocations, failed inserts, expired entries and sweeps.
    ///
    /// The expected rate counts entries that have expired and are not swept yet, so the actual rate may be a little
    /// lower.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::of(&self.parts.core, size_of::<Self>()).with_clock(self.parts.core.clock())
    }

    /// Returns how many entries are live.
    ///
    /// The number is exact while no thread changes the filter. Otherwise an entry that is moved to make room may be
    /// counted twice or not at all.
    ///
    /// Cost: one pass over the whole table. Call it for a page of metrics, not for each request.
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.parts.core.live_in(0)
    }

    /// Returns whether the filter holds no entries. This is as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that `count` positive answers turned out to be wrong, for example because the database behind the filter
    /// did not have the keys. From this and [`record_negatives`](Self::record_negatives), the filter computes
    /// [`Stats::observed_false_positive_rate`].
    ///
    /// Cost: one addition to the thread's own counter. No other thread waits for it.
    pub fn record_false_positives(&self, count: u64) {
        self.parts.core.counters().record_false_positives(count);
    }

    /// Records that `count` lookups were answered `false`. The filter does not count them by itself, because a lookup
    /// that need not retry writes nothing.
    ///
    /// Cost: one addition to the thread's own counter. If that is too much for each lookup, add up the answers and
    /// record the sum at intervals. [`Stats`] has an example.
    pub fn record_negatives(&self, count: u64) {
        self.parts.core.counters().record_negatives(count);
    }

    /// Returns the hasher, for example to hash keys with it before they come to the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.parts.hasher
    }

    /// Removes all entries that are present when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. The clock goes on.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Shows statistics, but not the table and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for ExpiringCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringCuckooFilter")
            .field("len", &self.len())
            .field("now", &self.now())
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, but it runs before a table is touched: no panic can leave the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for ExpiringCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for ExpiringCuckooFilter<T, S> {}
