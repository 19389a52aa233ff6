//! The figures of a [`RecentCuckooFilter`]: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::filter::stats::Stats;
use crate::table::core::Core as _;
use crate::table::filter_plan::FilterPlan;
use crate::word::window::Window;

/// Facts about the filter as a whole.
impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
    /// Returns which keys the filter holds: how many at least, and at most; or for how long.
    #[must_use]
    pub fn window(&self) -> Window {
        self.parts.core.division().window()
    }

    /// Returns how many keys the filter holds. Keys that have expired and are not removed yet count too.
    /// [`recent_len`](Self::recent_len) counts the others only.
    ///
    /// The number is exact while no other thread changes the filter. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters. There are several so that inserts on different threads need not share one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns how many keys the filter has room for at a time, those included that have expired and are not removed yet.
    ///
    /// This many distinct keys fit, in any order, from any threads: the probability that an insert of one of them evicts another is
    /// below one in a billion for each filter. No insert fails, so a [log](crate::guide::beyond_one_process#replaying-a-log) can
    /// always be replayed.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the filter's configuration: its layout, slots and memory, its rate with as many keys as the capacity, and its
    /// [window](FilterPlan::window). It is what the builder's `plan` returned, and never changes. Its `Display` is a line
    /// for a log.
    ///
    /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        let core = &self.parts.core;
        FilterPlan::of(FilterKind::Recent, core.dimensions(), size_of::<Self>())
            .with_window(core.clock(), core.division())
    }

    /// Returns all figures at once: sizes, the expected false-positive rate, and counts of what has happened since the
    /// filter was made: relocations, expired keys, and keys that were evicted, with how early.
    ///
    /// The expected rate counts keys that have expired and are not removed yet, so the actual rate may be a little lower.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = &self.parts.core;
        Stats::of(core, size_of::<Self>()).with_window(core.clock(), core.division())
    }

    /// Returns how many keys are among the recent ones.
    ///
    /// The number is exact while no thread changes the filter. Otherwise an entry that is moved to make room may be
    /// counted twice or not at all.
    ///
    /// Cost: one pass over the whole table. Call it for a page of metrics, not for each request.
    #[must_use]
    pub fn recent_len(&self) -> usize {
        self.parts.core.live()
    }

    /// Returns whether the filter holds no keys. This is as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that `count` keys that were taken for recent ones turned out to be new, for example because a store did not
    /// have them. From this and [`record_negatives`](Self::record_negatives), the filter computes
    /// [`Stats::observed_false_positive_rate`].
    ///
    /// Cost: one addition to the thread's own counter. No other thread waits for it.
    pub fn record_false_positives(&self, count: u64) {
        self.parts.core.counters().record_false_positives(count);
    }

    /// Records that `count` keys were new. The filter does not count lookups by itself, because a lookup that need not retry
    /// writes nothing.
    ///
    /// Cost: one addition to the thread's own counter. If that is too much for each key, add up the answers and record the
    /// sum at intervals. [`Stats`] has an example.
    pub fn record_negatives(&self, count: u64) {
        self.parts.core.counters().record_negatives(count);
    }

    /// Returns the hasher, for example to hash keys with it before they come to the filter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.parts.hasher
    }

    /// Removes all keys that are present when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. In a filter of the last keys they
    /// have counted all the same.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Shows statistics, but not the table and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for RecentCuckooFilter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentCuckooFilter")
            .field("len", &self.len())
            .field("window", &self.window())
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, and so may a clock of the caller's, but they run before a table is touched: no panic can leave
// the filter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for RecentCuckooFilter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for RecentCuckooFilter<T, S> {}
