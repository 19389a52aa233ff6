//! A filter of one table as a snapshot, there and back.

use std::io;

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::snapshot::format::{Begun, Saved};
use crate::snapshot::source::{Source, TABLE_HEADER};
use crate::table::any::AnyTable;
use crate::table::words;

impl Saved for Box<dyn AnyTable> {
    const KIND: FilterKind = FilterKind::Concurrent;

    fn begin_save(&self) -> io::Result<Begun<'_>> {
        Begun::new(None, [&**self].into_iter())
    }

    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let plan = source.table_header()?;
        source.expect_tables(1, plan.buckets, TABLE_HEADER)?;
        source.reserve(plan.memory_usage().saturating_add(memory_of_caller))?;
        let mut table =
            plan.table().ok_or_else(|| LoadError::OutOfMemory { bytes: words::memory_for(plan.buckets) })?;
        source.words(&mut *table)?;
        Ok(table)
    }
}
