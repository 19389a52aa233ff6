//! The figures of a [`CuckooRateLimiter`]: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::limiter::filter::CuckooRateLimiter;
use crate::filter::stats::Stats;
use crate::table::core::Core as _;
use crate::table::filter_plan::FilterPlan;

/// Facts about the limiter as a whole.
impl<T: ?Sized, S> CuckooRateLimiter<T, S> {
    /// Returns how many keys are in the table. Those that have repaid their debts and are not removed yet count too.
    /// [`in_debt`](Self::in_debt) counts the others only.
    ///
    /// The number is exact while no other thread uses the limiter. While others do, each change that overlaps the
    /// call may or may not be counted.
    ///
    /// Cost: it adds up at most 64 counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.core.len()
    }

    /// Returns how many keys may owe something at a time: at least as many as were asked for.
    ///
    /// This many distinct keys fit: the probability that one of them displaces another is below one in a billion
    /// for each limiter.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.parts.core.capacity()
    }

    /// Returns the limiter's configuration: its layout, slots and memory, its rate with as many keys as the capacity, and its
    /// [limits](FilterPlan::limits). It is what the builder's `plan` returned, and never changes. Its `Display` is a line
    /// for a log.
    ///
    /// Cost: some arithmetic, about 200 ns. It reads nothing that changes, and allocates nothing.
    #[must_use]
    pub fn plan(&self) -> FilterPlan {
        let core = &self.parts.core;
        FilterPlan::of(FilterKind::Limiter, core.dimensions(), size_of::<Self>())
            .with_limits(core.clock(), core.limits())
    }

    /// Returns all figures at once: sizes, the expected false-positive rate, and counts of what has happened since the
    /// limiter was made: requests that were allowed and rejected, and keys that were evicted.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let core = &self.parts.core;
        Stats::of(core, size_of::<Self>()).with_limits(core.counters().counts(), core.clock(), core.limits())
    }

    /// Returns how many keys owe something now.
    ///
    /// The number is exact while no other thread uses the limiter. Otherwise an entry that is moved to make room may be
    /// counted twice or not at all.
    ///
    /// Cost: one pass over the whole table. Call it for a page of metrics, not for each request.
    #[must_use]
    pub fn in_debt(&self) -> usize {
        self.parts.core.in_debt()
    }

    /// Returns whether no key is in the table. This is as exact as [`len`](Self::len).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the hasher, for example to hash keys with it before they come to the limiter.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.parts.hasher
    }

    /// Forgives all keys that are in debt when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes.
    pub fn clear(&self) {
        self.parts.core.clear();
    }
}

/// Shows statistics, but not the table and not the hasher, whose key is a secret.
impl<T: ?Sized, S> fmt::Debug for CuckooRateLimiter<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuckooRateLimiter")
            .field("len", &self.len())
            .field("limits", &self.limits())
            .field("plan", &self.plan())
            .finish_non_exhaustive()
    }
}

// A key's `Hash` may panic, and so may a clock of the caller's, but they run before a table is touched: no panic can leave
// the limiter half changed.
impl<T: ?Sized, S: UnwindSafe> UnwindSafe for CuckooRateLimiter<T, S> {}
impl<T: ?Sized, S: RefUnwindSafe> RefUnwindSafe for CuckooRateLimiter<T, S> {}
