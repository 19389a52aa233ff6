//! A table of debts, with a clock that follows the time. `table/expiring/charge.rs` has the protocol.

use core::time::Duration;

use crate::error::limited::{LimitReason, Limited};
use crate::machine::time::TimeSource;
use crate::plan::limits;
use crate::plan::table_plan::TablePlan;
use crate::table::by_shape::ExpiringTable;
use crate::table::core::{Core, Dimensions};
use crate::table::counters::Counters;
use crate::table::expiring::charge::{Request, Verdict};
use crate::table::expiring::clock::{Clock, Drive, WhenFull};
use crate::table::expiring::timer::Timer;
use crate::table::image::read::ImageSource;
use crate::table::recent_table::{ClockProgress, follow};
use crate::word::quota::Quota;
use crate::word::ring::Ring;

/// A table of debts.
pub(crate) struct LimiterTable {
    table: ExpiringTable,
    /// The limit of a key for which the caller names no other one.
    limits: Quota,
    timer: Timer,
}

/// What a key may still do. [`CuckooRateLimiter::peek`](crate::CuckooRateLimiter::peek) returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Allowance {
    /// How many requests the key may make now.
    pub remaining: u64,
    /// After which time it may make one; 0 if it may now.
    pub next_after: Duration,
    /// After which time it owes nothing, so that it may make as many at once as the burst; 0 if it owes nothing now.
    pub full_after: Duration,
}

/// The shortest tick for the timer, in nanoseconds. It notes the time once in a thousandth of a tick, which all threads see: so
/// about once in a millisecond at most, however short the ticks of the clock are.
const SHORTEST_TICK_OF_TIMER: u64 = 1_000_000_000;

/// A clock for debts whose expiries have a place on this ring, which goes on from there.
pub(crate) fn clock_for(ring: Ring, when_full: WhenFull, past: ClockProgress) -> Clock {
    let longest = limits::longest(ring);
    // Half of the places that the longest debt leaves.
    let drive = Drive::Time { tolerated_lag: (ring.len() - longest) / 2 };
    Clock::with_drive(ring, longest, drive).with_when_full(when_full).at(0, 0, past.place, past.lag)
}

impl LimiterTable {
    /// An empty table with this clock, for this limit. So many nanoseconds of the present tick are over, and it takes the time
    /// from there. `None` if there is no memory for it.
    pub(crate) fn new(plan: TablePlan, clock: Clock, limits: Quota, of_tick: u64, time: TimeSource) -> Option<Self> {
        let table = plan.table_with_clock(clock)?;
        Some(Self { table, limits, timer: Timer::new(of_tick, limits.tick.max(SHORTEST_TICK_OF_TIMER), time) })
    }

    /// Takes the time from there from now on.
    pub(crate) fn with_time(mut self, time: TimeSource) -> Self {
        self.timer = Timer::new(self.timer.so_far(), self.limits.tick.max(SHORTEST_TICK_OF_TIMER), time);
        self
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.table.clock()
    }

    #[inline(always)]
    pub(crate) fn limits(&self) -> Quota {
        self.limits
    }

    /// How many nanoseconds of this tick of the clock are over.
    #[cfg(feature = "snapshot")]
    pub(crate) fn time_since(&self, tick: u64) -> u64 {
        self.timer.so_far().saturating_sub(tick.saturating_mul(self.limits.tick))
    }

    /// Charges the key of this hash for a request, or rejects it.
    #[inline]
    pub(crate) fn check(&self, hash: u64) -> Result<(), Limited> {
        // It costs no more than the burst.
        self.charge(hash, self.limits.cost, self.limits.most())
    }

    /// Charges the key of this hash for `n` requests under this quota, or rejects them.
    pub(crate) fn check_n_with(&self, hash: u64, n: u32, quota: Quota) -> Result<(), Limited> {
        let (cost, most) = (quota.cost * u64::from(n), quota.most());
        if cost > most || !self.has(quota) {
            return Err(self.never_allowed(n, quota));
        }
        self.charge(hash, cost, most)
    }

    fn charge(&self, hash: u64, cost: u64, most: u64) -> Result<(), Limited> {
        let (time, tick) = follow(&self.timer, &self.table, self.limits.tick);
        let counters = self.table.counters();
        let (reason, until) = match self.table.charge(hash, Request { tick, cost, most }) {
            Verdict::Allowed => {
                counters.request_allowed();
                self.table.keep_up();
                return Ok(());
            }
            Verdict::Over { until } => (LimitReason::Limit, until),
            Verdict::NoRoom { until } => (LimitReason::Full, until),
        };
        counters.request_rejected();
        Err(Limited::after(reason, self.nanoseconds_until(until, time)))
    }

    /// Moves the clock on to the time, and waits for that if another thread has the lock of the sweep. Returns the time.
    fn follow_surely(&self) -> u64 {
        let (time, tick) = follow(&self.timer, &self.table, self.limits.tick);
        if self.clock().published_tick() < tick {
            self.table.move_on(tick, true);
        }
        time
    }

    /// Whether this quota is one of this table.
    fn has(&self, quota: Quota) -> bool {
        quota.tick == self.limits.tick && quota.most() <= self.clock().longest()
    }

    /// The answer to a request that can never be allowed.
    #[cold]
    fn never_allowed(&self, n: u32, quota: Quota) -> Limited {
        self.table.counters().request_rejected();
        let reason = if self.has(quota) { LimitReason::CostAboveBurst } else { LimitReason::OtherLimiter };
        Limited::forever(reason, n, quota.burst)
    }

    /// How many nanoseconds it is to the beginning of a tick from this time.
    fn nanoseconds_until(&self, tick: u64, time: u64) -> u64 {
        tick.saturating_mul(self.limits.tick).saturating_sub(time)
    }

    /// What the key of this hash may do under this quota: nothing if it is that of another table.
    pub(crate) fn allowance(&self, hash: u64, quota: Quota) -> Allowance {
        let time = self.follow_surely();
        let (now, debt) = self.table.last_expiry(hash).unwrap_or((0, 0));
        let (expiry, most) = (now + debt, quota.most());
        // The ticks of another limiter have another length.
        let remaining = if self.has(quota) { most.saturating_sub(debt) / quota.cost } else { 0 };
        let next = (expiry + quota.cost).saturating_sub(most);
        Allowance {
            remaining,
            next_after: match remaining {
                0 if self.has(quota) => Duration::from_nanos(self.nanoseconds_until(next, time)),
                0 => Duration::MAX,
                _ => Duration::ZERO,
            },
            full_after: Duration::from_nanos(if debt > 0 { self.nanoseconds_until(expiry, time) } else { 0 }),
        }
    }

    pub(crate) fn remove(&self, hash: u64) -> bool {
        self.follow_surely();
        self.table.remove_first(hash)
    }

    /// How many keys owe something, by a scan of all buckets.
    pub(crate) fn in_debt(&self) -> usize {
        follow(&self.timer, &self.table, self.limits.tick);
        self.table.live_in(0)
    }
}

impl Core for LimiterTable {
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
