//! What the snapshot of a filter of one table declares.

use std::time::Duration;

use crate::error::damage::SnapshotDamage;
use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::error::mismatch::UnsupportedSnapshot;
use crate::plan::table_plan::TablePlan;
use crate::snapshot::format::{Declared, KindHeader, SnapshotCore};
use crate::snapshot::source::SnapshotSource;
use crate::table::by_shape::{ExpiringTable, FilterTable, MapletTable};
use crate::table::core::Core as _;
use crate::table::expiring::clock::{Clock, ClockState, WhenFull};
use crate::table::filter_plan::FilterPlan;
use crate::table::image::read::TableImage;
use crate::table::table::memory_for;
use crate::word::layout::MOST_PAYLOAD_BITS;
use crate::word::ring::Ring;

impl SnapshotCore for FilterTable {
    const KIND: FilterKind = FilterKind::Concurrent;

    type Plan = TablePlan;

    fn kind_header(&self, _: &TableImage<'_>) -> KindHeader {
        KindHeader::NONE
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<TablePlan>, LoadError> {
        Ok(declared(Self::KIND, source.table_header(0)?))
    }

    fn empty(table: TablePlan, _: usize, _: usize) -> Result<Self, LoadError> {
        table.table().ok_or_else(|| out_of_memory(table, 0))
    }
}

impl SnapshotCore for MapletTable {
    const KIND: FilterKind = FilterKind::Maplet;

    type Plan = TablePlan;

    fn kind_header(&self, _: &TableImage<'_>) -> KindHeader {
        KindHeader::of(&[self.dimensions().shape.payload_bits as u8])
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<TablePlan>, LoadError> {
        let [value_bits] = source.take()?;
        source.check_header()?;
        let limit = MOST_PAYLOAD_BITS as u8;
        if !(1..=limit).contains(&value_bits) {
            return Err(SnapshotDamage::InvalidValueBits { value_bits, limit }.into());
        }
        Ok(declared(Self::KIND, source.table_header(value_bits.into())?))
    }

    fn empty(table: TablePlan, _: usize, _: usize) -> Result<Self, LoadError> {
        table.table_of_values().ok_or_else(|| out_of_memory(table, 0))
    }
}

impl SnapshotCore for ExpiringTable {
    const KIND: FilterKind = FilterKind::Expiring;

    type Plan = (TablePlan, Clock);

    fn kind_header(&self, image: &TableImage<'_>) -> KindHeader {
        let clock = self.clock();
        let ClockState { now, reading, ahead, .. } = image.clock_state().expect("the table has a clock");
        let resolution = clock.resolution().unwrap_or_default();
        let mut bytes = [0; 34];
        bytes[0] = self.dimensions().shape.payload_bits as u8;
        bytes[1..5].copy_from_slice(&(clock.longest() as u32).to_le_bytes());
        bytes[5..13].copy_from_slice(&resolution.as_secs().to_le_bytes());
        bytes[13..17].copy_from_slice(&resolution.subsec_nanos().to_le_bytes());
        if let Some(now) = now {
            bytes[17] = 1;
            bytes[18..26].copy_from_slice(&now.to_le_bytes());
            bytes[26..28].copy_from_slice(&clock.place(reading).to_le_bytes());
            bytes[28..32].copy_from_slice(&(reading.lag() as u32).to_le_bytes());
        }
        if clock.when_full() == WhenFull::Refuse {
            return KindHeader::of(&bytes[..32]);
        }
        bytes[17] |= 2;
        bytes[32..].copy_from_slice(&(ahead as u16).to_le_bytes());
        KindHeader::of(&bytes)
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<(TablePlan, Clock)>, LoadError> {
        let [expiry_bits] = source.take()?;
        let longest = u32::from_le_bytes(source.take()?).into();
        let (seconds, nanoseconds) = (u64::from_le_bytes(source.take()?), u32::from_le_bytes(source.take()?));
        let [flags] = source.take()?;
        let now = u64::from_le_bytes(source.take()?);
        let place = u16::from_le_bytes(source.take()?);
        let lag = u32::from_le_bytes(source.take()?).into();
        let (is_known, evicts) = (flags & 1 != 0, matches!(flags, 2 | 3));
        let ahead = if evicts { u16::from_le_bytes(source.take()?) } else { 0 };
        source.check_header()?;
        if flags > 3 {
            return Err(UnsupportedSnapshot::Flags { flags }.into());
        }
        let invalid = || SnapshotDamage::InvalidClock { expiry_bits, longest, nanoseconds, place, lag, ahead };
        let ahead = u64::from(ahead);
        let ring = Ring::of_bits(expiry_bits.into()).ok_or_else(invalid)?;
        let lifetime = 1..=ring.longest();
        let known = if is_known {
            ring.place(place.into()) == place && lag <= ring.len() && ahead < longest
        } else {
            (now, place, lag, ahead) == (0, 0, 0, 0)
        };
        if !lifetime.contains(&longest) || nanoseconds >= 1_000_000_000 || !known {
            return Err(invalid().into());
        }
        let resolution = Duration::new(seconds, nanoseconds);
        let resolution = Some(resolution).filter(|resolution| !resolution.is_zero());
        let when_full = if evicts { WhenFull::EvictSoonest } else { WhenFull::Refuse };
        let clock = Clock::new(ring, longest, resolution, when_full);
        let clock = if is_known { clock.at(now, ahead, place, lag) } else { clock };
        let table = source.table_header(expiry_bits.into())?;
        let plan = FilterPlan::of_table(Self::KIND, table, 0).with_clock(&clock);
        Ok(Declared { plan, clock_state: Some(clock.state()), own: (table, clock) })
    }

    fn empty((table, clock): (TablePlan, Clock), _: usize, _: usize) -> Result<Self, LoadError> {
        let of_clock = size_of_val(&clock);
        table.table_with_clock(clock).ok_or_else(|| out_of_memory(table, of_clock))
    }
}

fn declared(kind: FilterKind, table: TablePlan) -> Declared<TablePlan> {
    Declared { plan: FilterPlan::of_table(kind, table, 0), clock_state: None, own: table }
}

/// The error for a table that could not be allocated, with this many bytes beside it.
fn out_of_memory(table: TablePlan, beside: usize) -> LoadError {
    LoadError::OutOfMemory { bytes: memory_for(table.buckets) + beside }
}
