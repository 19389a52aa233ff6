//! What the snapshot of a filter of recent keys declares.

use crate::error::damage::SnapshotDamage;
use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::error::mismatch::UnsupportedSnapshot;
use crate::machine::time::TimeSource;
use crate::plan::table_plan::TablePlan;
use crate::plan::window::{Division, RING_BITS, Unit};
use crate::snapshot::format::{Declared, KindHeader, SnapshotCore};
use crate::snapshot::source::SnapshotSource;
use crate::table::core::Core as _;
use crate::table::expiring::clock::{Clock, ClockState};
use crate::table::filter_plan::FilterPlan;
use crate::table::image::read::TableImage;
use crate::table::recent_table::{ClockProgress, RecentTable, clock_for};
use crate::table::table::memory_for;
use crate::word::ring::Ring;

/// What builds the empty table of such a filter.
#[allow(unreachable_pub, missing_debug_implementations, reason = "a public trait that nobody can name has it")]
pub struct RecentPlan {
    table: TablePlan,
    clock: Clock,
    division: Division,
    /// How many nanoseconds of the present tick are over, where the time is the clock.
    of_tick: u64,
    time: TimeSource,
}

impl SnapshotCore for RecentTable {
    const KIND: FilterKind = FilterKind::Recent;

    type Plan = RecentPlan;

    fn kind_header(&self, image: &TableImage<'_>) -> KindHeader {
        let Division { unit, per_tick, lifetime } = self.division();
        let state @ ClockState { reading, ahead, .. } = image.clock_state().expect("the table has a clock");
        let (number, of_tick) = (u8::from(unit == Unit::Time), self.of_tick(state));
        let mut bytes = [0; 28];
        bytes[0] = self.dimensions().shape.payload_bits as u8;
        bytes[1] = number;
        bytes[2..10].copy_from_slice(&per_tick.to_le_bytes());
        bytes[10..12].copy_from_slice(&(lifetime as u16).to_le_bytes());
        bytes[12..20].copy_from_slice(&of_tick.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.clock().place(reading).to_le_bytes());
        bytes[22..26].copy_from_slice(&(reading.lag() as u32).to_le_bytes());
        bytes[26..].copy_from_slice(&(ahead as u16).to_le_bytes());
        KindHeader::of(&bytes)
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<RecentPlan>, LoadError> {
        let [expiry_bits] = source.take()?;
        let [unit] = source.take()?;
        let per_tick = u64::from_le_bytes(source.take()?);
        let lifetime = u16::from_le_bytes(source.take()?).into();
        let of_tick = u64::from_le_bytes(source.take()?);
        let place = u16::from_le_bytes(source.take()?);
        let lag = u32::from_le_bytes(source.take()?).into();
        let ahead = u16::from_le_bytes(source.take()?);
        source.check_header()?;
        let (unit, shortest) = match unit {
            0 => (Unit::Keys, 1),
            1 => (Unit::Time, Division::SHORTEST),
            flags => return Err(UnsupportedSnapshot::Flags { flags }.into()),
        };
        let invalid =
            || SnapshotDamage::InvalidClock { expiry_bits, longest: lifetime, nanoseconds: 0, place, lag, ahead };
        let ring = Some(expiry_bits.into()).filter(|bits| RING_BITS.contains(bits)).map(Ring::new);
        let ring = ring.ok_or_else(invalid)?;
        let is_possible = (2..=Division::most_lifetime(ring)).contains(&lifetime)
            && per_tick >= shortest
            && ring.place(place.into()) == place
            && lag <= ring.len()
            && u64::from(ahead) < lifetime;
        if !is_possible {
            return Err(invalid().into());
        }
        let division = Division { unit, per_tick, lifetime };
        // A count that goes on is never greater than that of a tick.
        let past = ClockProgress { of_tick: of_tick.min(per_tick), ahead: ahead.into(), place, lag };
        let clock = clock_for(division, ring, past).ok_or(LoadError::OutOfMemory { bytes: size_of::<Clock>() })?;
        let table = source.table_header(expiry_bits.into())?;
        let plan = FilterPlan::of_table(Self::KIND, table, 0).with_window(&clock, division);
        let clock_state = Some(clock.state());
        Ok(Declared { plan, clock_state, own: RecentPlan { table, clock, division, of_tick, time: source.time() } })
    }

    fn empty(plan: RecentPlan, _: usize, _: usize) -> Result<Self, LoadError> {
        let RecentPlan { table, clock, division, of_tick, time } = plan;
        let bytes = memory_for(table.buckets) + clock.memory_usage();
        Self::new(table, clock, division, of_tick, time).ok_or(LoadError::OutOfMemory { bytes })
    }
}
