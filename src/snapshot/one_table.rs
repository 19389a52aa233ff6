//! A filter of one table as a snapshot, there and back.

use std::io;

use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::snapshot::format::{Begun, Head, Saved};
use crate::snapshot::source::{Source, TABLE_HEADER};
use crate::table::any::{AnyTable, FilterTable, MapletTable};
use crate::table::plan::Plan;
use crate::table::words;
use crate::word::layout::MOST_PAYLOAD_BITS;

impl Saved for Box<dyn FilterTable> {
    const KIND: FilterKind = FilterKind::Concurrent;

    fn begin_save(&self) -> io::Result<Begun<'_>> {
        begin_save(Head::NONE, &**self)
    }

    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let mut table = load(source, 0, memory_of_caller, Plan::table)?;
        source.words(&mut *table)?;
        Ok(table)
    }
}

impl Saved for Box<dyn MapletTable> {
    const KIND: FilterKind = FilterKind::Maplet;

    fn begin_save(&self) -> io::Result<Begun<'_>> {
        begin_save(Head::of(&[self.shape().payload_bits as u8]), &**self)
    }

    fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let [value_bits] = source.take()?;
        source.header_seal()?;
        let most = MOST_PAYLOAD_BITS as u8;
        if !(1..=most).contains(&value_bits) {
            return Err(LoadError::InvalidValueBits { value_bits, most });
        }
        let mut table = load(source, value_bits.into(), memory_of_caller, Plan::table_with_payload)?;
        source.words(&mut *table)?;
        Ok(table)
    }
}

fn begin_save(head: Head, table: &dyn AnyTable) -> io::Result<Begun<'_>> {
    Begun::new(head, [table].into_iter())
}

/// The empty table that the header of its section describes, with so many payload bits.
fn load<T>(
    source: &mut Source<'_>,
    payload_bits: u32,
    memory_of_caller: usize,
    table: impl FnOnce(Plan) -> Option<T>,
) -> Result<T, LoadError> {
    let plan = source.table_header(payload_bits)?;
    source.expect_tables(1, plan.buckets, TABLE_HEADER)?;
    source.reserve(plan.memory_usage().saturating_add(memory_of_caller))?;
    table(plan).ok_or_else(|| LoadError::OutOfMemory { bytes: words::memory_for(plan.buckets) })
}
