//! A table of recent keys: one whose entries expire, with a clock that it drives itself. `table/expiring/recent.rs`
//! has the protocol.

use crate::error::insert::ExpiringInsertError;
use crate::lookup::batch::Hashes;
use crate::machine::memory::Pages;
use crate::machine::time::TimeSource;
use crate::plan::table_plan::TablePlan;
use crate::plan::window::{Division, Unit};
use crate::table::attempt::IfPresent;
use crate::table::by_shape::ExpiringTable;
use crate::table::core::{Core, Dimensions};
use crate::table::counters::Counters;
use crate::table::expiring::clock::{Clock, ClockState, Drive, Until};
use crate::table::expiring::timer::Timer;
use crate::table::image::merge::MergeResult;
use crate::table::image::read::{ImageSource, TableImage};
use crate::word::ring::{LAST_TICK, Ring};

/// A table of recent keys.
pub(crate) struct RecentTable {
    table: ExpiringTable,
    division: Division,
    /// Only where the time is the clock.
    timer: Option<Timer>,
}

/// What a clock showed that is to go on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClockProgress {
    /// How much of the present tick is over: a number of keys or of nanoseconds.
    pub(crate) of_tick: u64,
    /// How many ticks it is ahead, its place on the ring, and by how many ticks the sweep lags.
    pub(crate) ahead: u64,
    pub(crate) place: u16,
    pub(crate) lag: u64,
}

/// A clock for a window that is divided in this way, which goes on from there. `None` if there is no memory for it.
pub(crate) fn clock_for(division: Division, ring: Ring, past: ClockProgress) -> Option<Clock> {
    let drive = match division.unit {
        Unit::Keys => Drive::by_keys(division.per_tick, past.of_tick)?,
        Unit::Time => Drive::Time { tolerated_lag: 0 },
    };
    let clock = Clock::with_drive(ring, division.longest(), drive);
    Some(clock.at(0, past.ahead, past.place, past.lag))
}

/// How many ticks such a clock counts: half of those that it can show.
const MOST_TICKS: u64 = LAST_TICK / 2;

/// Moves the table's clock on to the tick of the time, if no other thread has the lock of its sweep. Returns the time, and a
/// tick that is not before that of the time.
#[inline]
pub(super) fn follow(timer: &Timer, table: &ExpiringTable, per_tick: u64) -> (u64, u64) {
    let (time, tick) = (timer.time(), table.clock().published_tick());
    // Mostly it is still that tick. Then a multiplication is enough.
    if time < (tick + 1).saturating_mul(per_tick) {
        return (time, tick);
    }
    // With the shortest ticks, a clock that jumps ahead by decades stands still then. (Its own ticks would begin anew.)
    let tick = (time / per_tick).min(MOST_TICKS);
    table.move_on(tick, false);
    (time, tick)
}

impl RecentTable {
    /// An empty table with this clock, which is one for this window, and where the time is the clock, with so many
    /// nanoseconds of the present tick over. It takes the time from there. `None` if there is no memory for it.
    pub(crate) fn new(
        plan: TablePlan,
        clock: Clock,
        division: Division,
        of_tick: u64,
        time: TimeSource,
    ) -> Option<Self> {
        let table = plan.table_with_clock(clock)?;
        let timer = match division.unit {
            Unit::Keys => None,
            Unit::Time => Some(Timer::new(of_tick, division.per_tick, time)),
        };
        Some(Self { table, division, timer })
    }

    /// Takes the time from there from now on.
    pub(crate) fn with_time(mut self, time: TimeSource) -> Self {
        self.timer = self.timer.map(|timer| Timer::new(timer.so_far(), self.division.per_tick, time));
        self
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.table.clock()
    }

    pub(crate) fn division(&self) -> Division {
        self.division
    }

    /// How much of the present tick of the clock in this state is over: a number of keys, or of nanoseconds by now.
    pub(crate) fn of_tick(&self, state: ClockState) -> u64 {
        match &self.timer {
            None => state.added.min(self.division.per_tick),
            Some(timer) => {
                let begin = state.now.expect("the filter has set its clock").saturating_mul(self.division.per_tick);
                timer.so_far().saturating_sub(begin)
            }
        }
    }

    /// An empty table like this one, for a window that its ring has.
    pub(crate) fn another(&self, division: Division) -> Option<Self> {
        let Dimensions { shape, buckets, limit, .. } = self.dimensions();
        let plan = TablePlan::new(shape, buckets, limit, Pages::Usual);
        let clock = clock_for(division, self.clock().ring(), ClockProgress::default())?;
        let time = self.timer.as_ref().map_or(TimeSource::default(), Timer::source);
        Self::new(plan, clock, division, 0, time)
    }

    /// Moves the clock on if it follows the time. Returns a tick that is not before that of the time.
    #[inline]
    pub(crate) fn follow_time(&self) -> u64 {
        let Some(timer) = &self.timer else { return 0 };
        follow(timer, &self.table, self.division.per_tick).1
    }

    /// Adds an entry of the whole lifetime unless there is one, or renews it if so asked. Returns whether it was added.
    #[inline]
    pub(crate) fn add(&self, hash: u64, if_present: IfPresent) -> bool {
        let tick = self.follow_time();
        let until = Until::FromAtLeast { tick, ticks: self.division.lifetime };
        let is_new = loop {
            match self.table.add_until(hash, until, if_present) {
                Ok(is_new) => break is_new,
                Err(error) => {
                    // No other error occurs: the clock is set, and an entry that finds no room displaces another one.
                    debug_assert!(matches!(error, ExpiringInsertError::LifetimeTooLong { .. }), "{error}");
                    // The clock is late by more than a tick.
                    self.table.move_on(tick, true);
                }
            }
        };
        // A clock that counts keys has counted none otherwise.
        if is_new || if_present == IfPresent::Extend || self.timer.is_some() {
            self.table.keep_up();
        }
        is_new
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.follow_time();
        self.table.contains(hash)
    }

    #[inline]
    pub(crate) fn remove(&self, hash: u64) -> bool {
        self.follow_time();
        self.table.remove_first(hash)
    }

    /// Adds what an image of the other table holds and this one lacks, and is within this window (`table/expiring/recent.rs`,
    /// *A union*). Both windows are of the same unit.
    pub(crate) fn unite(&self, other: &Self, image: &TableImage<'_>) -> MergeResult {
        let theirs = image.clock_state().expect("the table has a clock");
        // The other filter's time is read first: what passes until this one's is read is not taken off.
        let of_their_tick = other.of_tick(theirs);
        self.follow_time();
        let ours = self.table.clock_state();
        let of_our_tick = self.of_tick(ours);
        let now = ours.now.expect("the filter has set its clock");
        self.table.unite_recent(image, &|ticks| {
            let left = self.division.left_of(other.division, of_their_tick, ticks)?;
            Some(now + self.division.ticks_for(left, of_our_tick))
        })
    }

    /// Looks up all hashes by the time at the beginning of the call.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.follow_time();
        self.table.contains_batch(hashes, answers);
    }

    /// Removes an entry for each hash, by the time at the beginning of the call.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.follow_time();
        self.table.remove_first_batch(hashes, answers);
    }

    /// How many entries are live, by a scan of all buckets.
    pub(crate) fn live(&self) -> usize {
        self.follow_time();
        self.table.live_in(0)
    }
}

impl Core for RecentTable {
    fn dimensions(&self) -> Dimensions {
        self.table.dimensions()
    }

    fn counters(&self) -> &Counters {
        self.table.counters()
    }

    fn image_source(&self) -> &(dyn ImageSource + 'static) {
        self.table.image_source()
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.table.prefetch(hashes);
    }

    fn clear(&self) {
        self.table.clear();
    }
}
