//! Pure: the shape, size and pages of a table that is to be built.

use crate::machine::memory::Pages;
use crate::plan::sizing::LoadLimit;
use crate::table::expiring::clock::Clock;
use crate::table::face::by_layout;
use crate::table::face::traits::{ExpiringTable, FilterTable, MapletTable};
use crate::word::layout::Shape;

/// From this number of buckets on, a table is requested on huge pages. It takes 4 MiB, which contain one whole huge
/// page of 2 MiB. At half that size, the TLB of most processors holds all of a table's usual pages.
const HUGE_FROM: usize = (4 << 20) / size_of::<u64>();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePlan {
    pub(crate) shape: Shape,
    pub(crate) buckets: usize,
    pub(crate) limit: LoadLimit,
    pages: Pages,
}

impl TablePlan {
    /// A table of this shape, with this many buckets and this limit, on these pages if it is large enough for them.
    pub(crate) fn new(shape: Shape, buckets: usize, limit: LoadLimit, pages: Pages) -> Self {
        Self { shape, buckets, limit, pages: pages_for(buckets, pages) }
    }

    pub(crate) fn table(self) -> Option<Box<dyn FilterTable>> {
        by_layout::new(self.pages, self.shape, self.buckets, self.limit)
    }

    pub(crate) fn table_with_payload(self) -> Option<Box<dyn MapletTable>> {
        by_layout::with_payload(self.pages, self.shape, self.buckets, self.limit)
    }

    pub(crate) fn table_with_clock(self, clock: Clock) -> Option<Box<dyn ExpiringTable>> {
        by_layout::with_clock(self.pages, self.shape, self.buckets, self.limit, clock)
    }

    /// What `AnyTable::memory_usage` of such a table will be, without a clock.
    pub(crate) fn memory_usage(self) -> usize {
        by_layout::memory_usage(self.shape, self.buckets)
    }
}

/// The pages for a table of this many buckets.
pub(crate) fn pages_for(buckets: usize, wanted: Pages) -> Pages {
    if buckets < HUGE_FROM { Pages::Usual } else { wanted }
}
