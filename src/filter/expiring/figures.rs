//! The figures of the filter whose entries expire: counts, sizes, rates.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use crate::error::kind::FilterKind;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::shared::figures::figures;
use crate::filter::shared::operations::properties;
use crate::filter::stats::Stats;
use crate::table::face::any_table::AnyTable;
use crate::table::face::filter_plan::FilterPlan;

properties!(ExpiringCuckooFilter with now);

figures! {
    ExpiringCuckooFilter as Expiring, a "filter" of "entries";
    /// Those that have expired and are not swept yet count too. [`live_len`](Self::live_len) counts the live ones only.
    len;
    ///
    /// All entries of a key are in its two buckets. So a key can have as many entries as these buckets have slots, 4 to
    /// 12 depending on the layout.
    capacity;
    ///
    /// It has the longest [lifetime](FilterPlan::lifetime_in_ticks): an entry may expire at up to `now +
    /// lifetime_in_ticks`. The bits of an expiry are the [payload](crate::TableLayout::payload_bits) of its layout.
    plan;
    /// relocations, failed inserts, expired entries, sweeps. The rate to expect counts entries that have expired and
    /// are not swept yet, so the actual rate may be a little lower.
    ///
    /// Cost: it adds up at most 64 cache lines. It takes no lock and does not allocate.
    stats with clock;
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Returns how many entries are live.
    ///
    /// The number is exact while no thread changes the filter. Otherwise an entry that is moved to make room may be
    /// counted twice or not at all.
    ///
    /// Cost: one pass over the whole table. Call it for a page of metrics, not for each request.
    #[must_use]
    pub fn live_len(&self) -> usize {
        self.core.live_in(0)
    }

    /// Removes all entries that are present when the call begins, as
    /// [`ConcurrentCuckooFilter::clear`](crate::ConcurrentCuckooFilter::clear) describes. The clock goes on.
    pub fn clear(&self) {
        self.core.clear();
    }
}
