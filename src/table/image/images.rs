//! Images of a filter's tables that belong together: what saves, digests and `absorb` read.

use crate::error::memory::OutOfMemory;
use std::io;

use crate::error::kind::FilterKind;
use crate::table::expiring::clock::Reading;
use crate::table::face::traits::{AnyTable, OneTable};
use crate::table::image::absorb::Image;
use crate::table::image::save::SaveNumber;
use crate::word::digest;
use crate::word::layout::Shape;
use crate::word::ring::Moment;

/// The cores of filters of which images can be taken.
pub(crate) trait Imaged {
    /// Begins a save of each table, at this moment.
    fn begin_save(&self) -> Result<Images<'_>, OutOfMemory>;

    /// Stores the words of an image from this bucket on, in an empty core that no other thread has yet.
    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]);
}

/// The images of a filter's tables, of one moment.
#[derive(Debug)]
pub(crate) struct Images<'a> {
    /// In the order in which they are to be written.
    pub(crate) tables: Vec<TableImage<'a>>,
}

/// A table as it was at a moment that is past: that of a save, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TableImage<'a> {
    table: &'a dyn AnyTable,
    save: SaveNumber,
}

impl<'a> TableImage<'a> {
    /// Begins a save of the table, at this moment.
    pub(crate) fn begin(table: &'a dyn AnyTable) -> Result<Self, OutOfMemory> {
        Ok(Self { table, save: table.begin_save()? })
    }

    /// In a model: that of a save that has begun, and whose image was forgotten.
    #[cfg(ccf_model)]
    pub(crate) fn forgotten(table: &'a dyn AnyTable) -> Self {
        Self { table, save: SaveNumber::ONLY }
    }

    pub(crate) fn table(&self) -> &dyn AnyTable {
        self.table
    }

    /// The reading of the table's clock at the moment of the save, if the table has a clock.
    pub(crate) fn reading(&self) -> Option<Reading> {
        self.table().reading(self.save)
    }

    /// The shape of the table, and its number of buckets, at that moment.
    pub(crate) fn layout(&self) -> (Shape, usize) {
        self.table().layout_at(self.save)
    }

    /// The sum of the digests of all copies.
    fn digest(&self) -> Result<u64, OutOfMemory> {
        self.table().digest(self.save)
    }
}

impl Drop for TableImage<'_> {
    fn drop(&mut self) {
        self.table().end_save(self.save);
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

impl<'a> Images<'a> {
    /// Begins a save of each of the tables, in this order.
    pub(crate) fn new(tables: impl ExactSizeIterator<Item = &'a dyn AnyTable>) -> Result<Self, OutOfMemory> {
        let mut images = Vec::new();
        images.try_reserve_exact(tables.len()).map_err(|_| OutOfMemory::new())?;
        for table in tables {
            images.push(TableImage::begin(table)?);
        }
        Ok(Self { tables: images })
    }

    /// The digest, at the moment of the save, of a filter of this kind with this probe.
    pub(crate) fn digest(&self, kind: FilterKind, probe: u64) -> Result<u64, OutOfMemory> {
        let numbers = self.tables.last().expect("a filter has a table").table().of_classes();
        let kind = u64::from(kind.number());
        let digest = [kind].into_iter().chain(numbers).chain([probe]).fold(0, digest::with);
        let sum = self
            .tables
            .iter()
            .try_fold(0, |sum: u64, table| Ok::<_, OutOfMemory>(sum.wrapping_add(table.digest()?)))?;
        Ok(digest::with(digest, sum))
    }
}

impl<C: OneTable> Imaged for C {
    fn begin_save(&self) -> Result<Images<'_>, OutOfMemory> {
        Images::new([self.table()].into_iter())
    }

    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]) {
        self.table().fill_from(start, words);
    }
}
