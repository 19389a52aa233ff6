//! The image of a filter's table: what saves, digests and `absorb` read.

use core::fmt;
use std::io;
#[cfg(feature = "snapshot")]
use std::sync::Arc;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::plan::sizing::LoadLimit;
use crate::table::expiring::clock::Reading;
use crate::table::face::traits::{AnyTable, OneTable};
use crate::table::image::absorb::Image;
use crate::table::image::save::SaveNumber;
use crate::word::digest;
use crate::word::layout::Shape;
use crate::word::ring::Moment;

/// The cores of filters of which images can be taken.
pub(crate) trait Imaged {
    /// Begins a save, at this moment.
    fn begin_save(&self) -> Result<TableImage<'_>, OutOfMemory>;

    /// Stores the words of an image from this bucket on, in an empty core that no other thread has yet.
    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]);
}

/// A filter that an image can share, and so keep alive.
#[cfg(feature = "snapshot")]
pub(crate) trait HasTable: Send + Sync {
    fn table(&self) -> &dyn AnyTable;
}

/// How an image holds its table.
enum Held<'a> {
    Borrowed(&'a dyn AnyTable),
    #[cfg(feature = "snapshot")]
    Shared(Arc<dyn HasTable + 'a>),
}

/// A table as it was when a save began, which ends when this is dropped.
pub(crate) struct TableImage<'a> {
    held: Held<'a>,
    save: SaveNumber,
}

impl<'a> TableImage<'a> {
    /// Begins a save of the table, at this moment.
    pub(crate) fn begin(table: &'a dyn AnyTable) -> Result<Self, OutOfMemory> {
        Ok(Self { save: table.begin_save()?, held: Held::Borrowed(table) })
    }

    /// The image of a filter that it keeps alive.
    #[cfg(feature = "snapshot")]
    pub(crate) fn begin_shared(filter: Arc<dyn HasTable + 'a>) -> Result<Self, OutOfMemory> {
        Ok(Self { save: filter.table().begin_save()?, held: Held::Shared(filter) })
    }

    /// In a model: the image of a save whose image was forgotten.
    #[cfg(ccf_model)]
    pub(crate) fn forgotten(table: &'a dyn AnyTable) -> Self {
        Self { save: SaveNumber::ONLY, held: Held::Borrowed(table) }
    }

    fn table(&self) -> &dyn AnyTable {
        match &self.held {
            Held::Borrowed(table) => *table,
            #[cfg(feature = "snapshot")]
            Held::Shared(filter) => filter.table(),
        }
    }

    /// The reading of the table's clock at the moment of the save, if the table has a clock.
    pub(crate) fn reading(&self) -> Option<Reading> {
        self.table().reading(self.save)
    }

    /// The shape of the table, and its number of buckets, at that moment.
    pub(crate) fn layout(&self) -> (Shape, usize) {
        self.table().layout_at(self.save)
    }

    /// The limit of the table's capacity.
    #[cfg(feature = "snapshot")]
    pub(crate) fn limit(&self) -> LoadLimit {
        self.table().facts().limit
    }

    /// Reads the words from this bucket on, as many as a chunk has or as there are. Chunks are read in order, and once.
    /// Returns how many copies are in this one.
    #[cfg(feature = "snapshot")]
    pub(crate) fn read_chunk(&self, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory> {
        self.table().read_chunk(self.save, start, words)
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
        self.table().end_save(self.save);
    }
}

impl fmt::Debug for TableImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableImage").field("save", &self.save).finish_non_exhaustive()
    }
}

impl Image for TableImage<'_> {
    fn moment_and_tick(&self) -> Option<(Moment, u64)> {
        self.reading()?.moment_and_tick()
    }

    fn buckets(&self) -> usize {
        self.layout().1
    }

    fn read(&self, chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>) -> io::Result<u64> {
        self.table().read_image(self.save, chunk)
    }
}

impl<C: OneTable> Imaged for C {
    fn begin_save(&self) -> Result<TableImage<'_>, OutOfMemory> {
        TableImage::begin(self.table())
    }

    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]) {
        self.table().fill_from(start, words);
    }
}
