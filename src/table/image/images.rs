//! Images of a filter's tables that belong together: what saves, digests and `absorb` read.

use std::io;

use crate::error::kind::FilterKind;
use crate::table::face::traits::{AnyTable, OneTable};
use crate::table::image::absorb::Image;
use crate::table::image::save::TableSave;
use crate::word::digest;
use crate::word::layout::{Encoding, Shape};
use crate::word::ring::Moment;

/// The cores of filters of which images can be taken.
pub(crate) trait Imaged {
    /// Begins a save of each table, at this moment.
    fn begin_save(&self) -> io::Result<Images<'_>>;
}

/// The images of a filter's tables, of one moment.
#[derive(Debug)]
pub(crate) struct Images<'a> {
    /// In the order in which they are to be written.
    pub(crate) tables: Vec<TableImage<'a>>,
}

/// A table as it was at a moment that is past.
#[derive(Debug)]
pub(crate) struct TableImage<'a> {
    pub(crate) table: &'a dyn AnyTable,
    pub(crate) save: TableSave<'a>,
}

impl Image for TableImage<'_> {
    fn moment_and_tick(&self) -> Option<(Moment, u64)> {
        self.save.moment_and_tick()
    }

    fn read(&self, chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>) -> io::Result<u64> {
        self.table.read_image(&self.save, chunk)
    }
}

impl<'a> Images<'a> {
    /// Begins a save of each of the tables, in this order.
    pub(crate) fn new(tables: impl ExactSizeIterator<Item = &'a dyn AnyTable>) -> io::Result<Self> {
        let mut images = Vec::new();
        images.try_reserve_exact(tables.len())?;
        for table in tables {
            images.push(TableImage { table, save: table.begin_save()? });
        }
        Ok(Self { tables: images })
    }

    /// The digest, at the moment of the save, of a filter of this kind with this probe.
    ///
    /// A filter that grows may have a key's copy in any of its tables, and all tables count together.
    pub(crate) fn digest(&self, kind: FilterKind, probe: u64) -> io::Result<u64> {
        // In a filter that grows, the table with the coarsest classes comes last.
        let table = self.tables.last().expect("a filter has a table").table;
        let Shape { encoding, slots, fingerprint_bits, payload_bits } = table.shape();
        let encoding = u32::from(encoding == Encoding::SemiSorted);
        let shape = [kind.number().into(), encoding, slots, fingerprint_bits, payload_bits];
        let digest = shape.into_iter().map(u64::from).chain([table.buckets() as u64, probe]).fold(0, digest::with);
        let mut sum = 0u64;
        for TableImage { table, save } in &self.tables {
            sum = sum.wrapping_add(table.digest(save)?);
        }
        Ok(digest::with(digest, sum))
    }
}

impl<C: OneTable> Imaged for C {
    fn begin_save(&self) -> io::Result<Images<'_>> {
        Images::new([self.table()].into_iter())
    }
}
