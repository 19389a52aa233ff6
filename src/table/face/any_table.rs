//! What all tables have in common, of whatever layout and whether they grow or not; and the image of a table, which saves,
//! digests and `absorb` read.

use core::fmt::{self, Debug};
use std::io;
#[cfg(feature = "snapshot")]
use std::sync::Arc;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
use crate::plan::batch::Hashes;
use crate::plan::sizing::{self, LoadLimit};
use crate::table::counters::Counters;
use crate::table::expiring::clock::Reading;
use crate::table::image::merge::{Absorbed, Merge};
use crate::table::image::read::each_chunk;
use crate::table::image::save::{SaveNumber, Saving};
use crate::word::digest;
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
pub(crate) trait AnyTable: Debug + Send + Sync {
    fn facts(&self) -> Facts;
    fn counters(&self) -> &Counters;
    fn prefetch(&self, hashes: &[u64]);
    /// Calls `answers` with the answers to all hashes, in order and a block at a time.
    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool]));
    fn clear(&self);
    fn saving(&self) -> &Saving;
    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory>;
    /// Reads the words from this bucket on, as they were at the moment of a save of this table: as many as a chunk has, or
    /// as there are. Chunks are read in order, and once. Returns how many copies are in this one.
    fn read_chunk(&self, save: SaveNumber, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory>;
    fn shape_of(&self, buckets: usize) -> Shape;
    fn of_classes(&self) -> [u64; 5];
    /// The sum of the digests of all copies at the moment of a save of this table.
    fn digest(&self, save: SaveNumber) -> Result<u64, OutOfMemory>;
    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed;
    /// Stores the words of an image from this bucket on, in an empty table that no other thread has yet.
    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]);

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

enum Held<'a> {
    Borrowed(&'a dyn AnyTable),
    #[cfg(feature = "snapshot")]
    Shared(Arc<dyn HasTable + 'a>),
}

/// A table as it was at a moment that is past: that of a save, which ends when this is dropped.
pub(crate) struct TableImage<'a> {
    held: Held<'a>,
    save: SaveNumber,
}

impl<'a> TableImage<'a> {
    /// Begins a save of the table, at this moment.
    pub(crate) fn begin(table: &'a dyn AnyTable) -> Result<Self, OutOfMemory> {
        Ok(Self { save: table.begin_save()?, held: Held::Borrowed(table) })
    }

    /// The same of a filter that the image keeps alive.
    #[cfg(feature = "snapshot")]
    pub(crate) fn begin_shared(filter: Arc<dyn HasTable + 'a>) -> Result<Self, OutOfMemory> {
        Ok(Self { save: filter.table().begin_save()?, held: Held::Shared(filter) })
    }

    fn table(&self) -> &dyn AnyTable {
        match &self.held {
            Held::Borrowed(table) => *table,
            #[cfg(feature = "snapshot")]
            Held::Shared(filter) => filter.table(),
        }
    }

    pub(crate) fn reading(&self) -> Option<Reading> {
        self.table().saving().reading(self.save)
    }

    /// The shape of the table, and its number of buckets, at that moment.
    pub(crate) fn layout(&self) -> (Shape, usize) {
        let buckets = self.table().saving().buckets(self.save);
        (self.table().shape_of(buckets), buckets)
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn limit(&self) -> LoadLimit {
        self.table().facts().limit
    }

    pub(crate) fn read_chunk(&self, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory> {
        self.table().read_chunk(self.save, start, words)
    }

    /// Passes the words to `chunk`, in order and a chunk at a time. Returns how many copies are in them.
    pub(crate) fn read(&self, chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>) -> io::Result<u64> {
        each_chunk(self.layout().1, |start, words| self.read_chunk(start, words), chunk)
    }

    /// The digest, at the moment of the save, of a filter of this kind with this probe.
    pub(crate) fn digest(&self, kind: FilterKind, probe: u64) -> Result<u64, OutOfMemory> {
        let kind = u64::from(kind.number());
        let numbers = self.table().of_classes();
        let digest = [kind].into_iter().chain(numbers).chain([probe]).fold(0, digest::with);
        Ok(digest::with(digest, self.table().digest(self.save)?))
    }
}

impl Drop for TableImage<'_> {
    fn drop(&mut self) {
        self.table().saving().end(self.save);
    }
}

impl Debug for TableImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableImage").field("save", &self.save).finish_non_exhaustive()
    }
}
