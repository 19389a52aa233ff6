//! PURE: the shape, size and pages of a table that is to be built.

use crate::machine::memory::Pages;
use crate::plan::sizing::LoadLimit;
use crate::word::layout::Shape;

/// From this number of buckets on, a table is requested on huge pages. It takes 4 MiB, which contain one whole huge
/// page of 2 MiB. At half that size, the TLB of most processors holds all of a table's usual pages.
const HUGE_FROM: usize = (4 << 20) / size_of::<u64>();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TablePlan {
    pub(crate) shape: Shape,
    pub(crate) buckets: usize,
    pub(crate) limit: LoadLimit,
    pub(crate) pages: Pages,
}

impl TablePlan {
    /// A table of this shape, with this many buckets and this limit, on these pages if it is large enough for them.
    pub(crate) fn new(shape: Shape, buckets: usize, limit: LoadLimit, pages: Pages) -> Self {
        let pages = if buckets < HUGE_FROM { Pages::Usual } else { pages };
        Self { shape, buckets, limit, pages }
    }
}
