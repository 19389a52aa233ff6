//! What the snapshot of a rate limiter declares.

use crate::error::damage::SnapshotDamage;
use crate::error::kind::FilterKind;
use crate::error::load::LoadError;
use crate::error::mismatch::UnsupportedSnapshot;
use crate::machine::time::TimeSource;
use crate::plan::limits;
use crate::plan::table_plan::TablePlan;
use crate::snapshot::format::{Declared, KindHeader, SnapshotCore};
use crate::snapshot::source::SnapshotSource;
use crate::table::core::Core as _;
use crate::table::expiring::clock::{Clock, ClockState, WhenFull};
use crate::table::filter_plan::FilterPlan;
use crate::table::image::read::TableImage;
use crate::table::limiter_table::{LimiterTable, clock_for};
use crate::table::recent_table::ClockProgress;
use crate::table::table::memory_for;
use crate::word::quota::Quota;
use crate::word::ring::Ring;

/// What builds the empty table of a limiter.
#[allow(unreachable_pub, missing_debug_implementations, reason = "a public trait that nobody can name has it")]
pub struct LimiterPlan {
    table: TablePlan,
    clock: Clock,
    limits: Quota,
    /// How many nanoseconds of the present tick are over.
    of_tick: u64,
    time: TimeSource,
}

impl SnapshotCore for LimiterTable {
    const KIND: FilterKind = FilterKind::Limiter;

    type Plan = LimiterPlan;

    fn kind_header(&self, image: &TableImage<'_>) -> KindHeader {
        let Quota { cost, burst, tick } = self.limits();
        let ClockState { now, reading, .. } = image.clock_state().expect("the table has a clock");
        let of_tick = self.time_since(now.expect("the limiter has set its clock")).min(tick);
        let mut bytes = [0; 32];
        bytes[0] = self.dimensions().shape.payload_bits as u8;
        bytes[1] = u8::from(self.clock().when_full() == WhenFull::Refuse);
        bytes[2..10].copy_from_slice(&tick.to_le_bytes());
        bytes[10..14].copy_from_slice(&(cost as u32).to_le_bytes());
        bytes[14..18].copy_from_slice(&burst.to_le_bytes());
        bytes[18..26].copy_from_slice(&of_tick.to_le_bytes());
        bytes[26..28].copy_from_slice(&self.clock().place(reading).to_le_bytes());
        bytes[28..].copy_from_slice(&(reading.lag() as u32).to_le_bytes());
        KindHeader::of(&bytes)
    }

    fn read_declared(source: &mut SnapshotSource<'_>) -> Result<Declared<LimiterPlan>, LoadError> {
        let [expiry_bits] = source.take()?;
        let [flags] = source.take()?;
        let tick = u64::from_le_bytes(source.take()?);
        let cost = u32::from_le_bytes(source.take()?).into();
        let burst = u32::from_le_bytes(source.take()?);
        let of_tick = u64::from_le_bytes(source.take()?);
        let place = u16::from_le_bytes(source.take()?);
        let lag = u32::from_le_bytes(source.take()?).into();
        source.check_header()?;
        let when_full = match flags {
            0 => WhenFull::EvictSoonest,
            1 => WhenFull::Refuse,
            flags => return Err(UnsupportedSnapshot::Flags { flags }.into()),
        };
        let limits = Quota { cost, burst, tick };
        let longest = limits.most();
        let invalid = || SnapshotDamage::InvalidClock { expiry_bits, longest, nanoseconds: 0, place, lag, ahead: 0 };
        let ring = Ring::of_bits(expiry_bits.into()).ok_or_else(invalid)?;
        let is_possible = (1..=limits::longest(ring)).contains(&longest)
            && tick >= limits::SHORTEST_TICK
            && of_tick <= tick
            && ring.place(place.into()) == place
            && lag <= ring.len();
        if !is_possible {
            return Err(invalid().into());
        }
        let clock = clock_for(ring, when_full, ClockProgress { place, lag, ..ClockProgress::default() });
        let table = source.table_header(expiry_bits.into())?;
        let plan = FilterPlan::of_table(Self::KIND, table, 0).with_limits(&clock, limits);
        let clock_state = Some(clock.state());
        Ok(Declared { plan, clock_state, own: LimiterPlan { table, clock, limits, of_tick, time: source.time() } })
    }

    fn empty(plan: LimiterPlan, _: usize, _: usize) -> Result<Self, LoadError> {
        let LimiterPlan { table, clock, limits, of_tick, time } = plan;
        let bytes = memory_for(table.buckets) + clock.memory_usage();
        Self::new(table, clock, limits, of_tick, time).ok_or(LoadError::OutOfMemory { bytes })
    }
}
