//! PURE: what all tables have in common, of whatever layout and whether they grow or not. `Table` implements it in
//! `table/face/dyn_table.rs`, and a growing table in `growth/image.rs`: by the methods of the same names that they have
//! themselves.

use crate::plan::batch::Hashes;
use crate::plan::sizing::{self, LoadLimit};
#[cfg(feature = "snapshot")]
use crate::table::image::read::HasImages;
use crate::table::image::read::Imaged;
use crate::word::layout::Shape;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) shape: Shape,
    pub(crate) buckets: usize,
    pub(crate) limit: LoadLimit,
    pub(crate) memory_usage: usize,
}

/// What filters ask of their table apart from single operations. None of it is compiled for each shape: the numbers of the
/// layout are data.
pub(crate) trait AnyTable: Imaged {
    fn facts(&self) -> Facts;
    fn prefetch(&self, hashes: &[u64]);
    /// Calls `answers` with the answers to all hashes, in order and a block at a time. Dead entries do not count.
    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn clear(&self);

    fn capacity(&self) -> usize {
        let Facts { shape, buckets, limit, .. } = self.facts();
        sizing::capacity_of(shape, buckets, limit)
    }

    fn slots(&self) -> usize {
        let Facts { shape, buckets, .. } = self.facts();
        buckets * shape.slots as usize
    }

    /// The expected false-positive rate while this many copies are in.
    fn rate_with(&self, copies: usize) -> f64 {
        let Facts { shape, buckets, .. } = self.facts();
        sizing::false_positive_rate(shape, buckets, copies as f64 / self.slots() as f64)
    }
}

impl<'a> dyn AnyTable + 'a {
    pub(crate) fn len(&self) -> usize {
        self.counters().len()
    }

    pub(crate) fn shape(&self) -> Shape {
        self.facts().shape
    }

    pub(crate) fn memory_usage(&self) -> usize {
        self.facts().memory_usage
    }
}

/// The core of a filter, and a filter that an image keeps alive.
pub(crate) trait HasTable: Send + Sync {
    fn table(&self) -> &(dyn AnyTable + 'static);
}

impl<T: HasTable + ?Sized> HasTable for Box<T> {
    fn table(&self) -> &(dyn AnyTable + 'static) {
        (**self).table()
    }
}

#[cfg(feature = "snapshot")]
impl<T: HasTable> HasImages for T {
    fn imaged(&self) -> &(dyn Imaged + 'static) {
        self.table()
    }
}
