//! PURE: the core of a filter, as far as all of them are alike: tables of a fixed size, whatever their entries carry, and those
//! that grow. What they have in common is little: figures, and being read as a whole. Operations on keys are methods of the
//! tables themselves.

use crate::plan::sizing::{self, LoadLimit};
use crate::table::counters::Counters;
use crate::table::image::read::ImageSource;
use crate::word::layout::Shape;

/// The numbers of a table, from which its capacity and its rate follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dimensions {
    pub(crate) shape: Shape,
    pub(crate) buckets: usize,
    pub(crate) limit: LoadLimit,
    pub(crate) memory_usage: usize,
}

/// The core of a filter.
pub(crate) trait Core {
    fn dimensions(&self) -> Dimensions;

    fn counters(&self) -> &Counters;

    /// The table, to be read as it is at one point in time: by saves, digests and merges.
    fn image_source(&self) -> &(dyn ImageSource + 'static);

    /// Prefetches the buckets and the stripes of these hashes.
    fn prefetch(&self, hashes: &[u64]);

    /// Removes every entry.
    fn clear(&self);

    fn len(&self) -> usize {
        self.counters().len()
    }

    fn capacity(&self) -> usize {
        let Dimensions { shape, buckets, limit, .. } = self.dimensions();
        sizing::capacity_of(shape, buckets, limit)
    }

    fn slots(&self) -> usize {
        let Dimensions { shape, buckets, .. } = self.dimensions();
        buckets * shape.slots as usize
    }

    /// The expected false-positive rate with this many copies.
    fn rate_with(&self, copies: usize) -> f64 {
        let Dimensions { shape, buckets, .. } = self.dimensions();
        sizing::false_positive_rate(shape, buckets, copies as f64 / self.slots() as f64)
    }
}
