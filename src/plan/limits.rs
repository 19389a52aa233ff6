//! PURE: how a rate limiter divides time into ticks, and how many bits an expiry has. `word/quota.rs` has the algorithm.
//!
//! A key's debt ends at most as many ticks after now as its burst costs. The ring of an entry's payload must have a place for
//! each of them. One place in eight is left for the sweep: as long as debts that were repaid take up fewer places, no request
//! waits for it, and the table is passed over only once in a sixteenth of the ring (`table/expiring/charge.rs`).

use core::time::Duration;

use crate::error::quota::QuotaError;
use crate::word::quota::Quota;
use crate::word::ring::{MOST_RING_BITS, Ring};

/// The shortest tick, in nanoseconds. With it, a clock lasts for 22 years (`table/recent_table.rs`).
pub(crate) const SHORTEST_TICK: u64 = 10_000;

/// How many ticks a request costs by default, if so many are possible. So a tick adds a quarter of a request to the bound.
const DEFAULT_TICKS: u64 = 4;

/// What is asked of a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitSettings {
    pub(crate) limit: u32,
    pub(crate) period: Duration,
    pub(crate) burst: u32,
}

/// The longest debt, in ticks, whose expiry has a place on this ring.
pub(crate) fn longest(ring: Ring) -> u64 {
    ring.len() - ring.len().div_ceil(8)
}

fn largest_ring() -> Ring {
    Ring::new(MOST_RING_BITS)
}

/// The shortest ring for this limit, and the limit in ticks: so many per request if that was asked for.
pub(crate) fn divide(settings: LimitSettings, ticks: Option<u32>) -> Result<(Ring, Quota), QuotaError> {
    let period = settings.checked_period()?;
    let cost = match ticks {
        Some(0) => return Err(QuotaError::ZeroTicks),
        Some(ticks) => u64::from(ticks),
        None => settings.default_cost(period),
    };
    let fastest = u128::from(SHORTEST_TICK) * u128::from(cost);
    if u128::from(period) < fastest * u128::from(settings.limit) {
        return Err(settings.too_fast(fastest, cost));
    }
    // Rounded down, as `word/quota.rs` says.
    let tick = (u128::from(period) / (u128::from(settings.limit) * u128::from(cost))) as u64;
    let quota = Quota { cost, burst: settings.burst, tick };
    let rings = (1..=MOST_RING_BITS).map(Ring::new);
    let ring = rings.into_iter().find(|&ring| longest(ring) / cost >= settings.burst.into());
    let largest = longest(largest_ring()) / cost;
    ring.map(|ring| (ring, quota)).ok_or(QuotaError::BurstTooLarge {
        burst: settings.burst,
        ticks_per_request: cost,
        largest,
    })
}

/// This limit in ticks of this length, for expiries on this ring.
pub(crate) fn quota(settings: LimitSettings, tick: u64, ring: Ring) -> Result<Quota, QuotaError> {
    let (period, longest) = (u128::from(settings.checked_period()?), longest(ring));
    let LimitSettings { limit, period: given, burst } = settings;
    // The tick may have been rounded down, by less than a nanosecond.
    let cost = period.div_ceil(u128::from(tick + 1) * u128::from(limit));
    if cost > longest.into() {
        let longest = Duration::from_nanos(tick.saturating_mul(longest));
        return Err(QuotaError::TooSlow { limit, period: given, longest });
    }
    let quota = Quota { cost: cost as u64, burst, tick };
    let slower_by = (cost * u128::from(tick) * u128::from(limit)).saturating_sub(period);
    if slower_by * 16 > period {
        let (tick, interval) = (quota.tick(), quota.interval());
        return Err(match cost {
            1 => settings.too_fast(tick.as_nanos(), 1),
            _ => QuotaError::Inexact { limit, period: given, tick, interval },
        });
    }
    if longest / quota.cost < burst.into() {
        let (ticks_per_request, largest) = (quota.cost, longest / quota.cost);
        return Err(QuotaError::BurstTooLarge { burst, ticks_per_request, largest });
    }
    Ok(quota)
}

impl LimitSettings {
    /// The period in nanoseconds, if nothing is 0.
    fn checked_period(self) -> Result<u64, QuotaError> {
        let Self { limit, period, burst } = self;
        match u64::try_from(period.as_nanos()) {
            Ok(nanoseconds) if limit > 0 && burst > 0 && nanoseconds > 0 => Ok(nanoseconds),
            _ => Err(QuotaError::Invalid { limit, period, burst }),
        }
    }

    /// How many ticks a request costs if the caller does not say: fewer than usual if the ticks would be too short or the
    /// burst too large.
    fn default_cost(self, period: u64) -> u64 {
        let by_time = period / SHORTEST_TICK / u64::from(self.limit);
        let by_burst = longest(largest_ring()) / u64::from(self.burst);
        DEFAULT_TICKS.min(by_time).min(by_burst).max(1)
    }

    fn too_fast(self, shortest: u128, ticks_per_request: u64) -> QuotaError {
        let shortest = Duration::from_nanos(u64::try_from(shortest).unwrap_or(u64::MAX));
        QuotaError::TooFast { limit: self.limit, period: self.period, shortest, ticks_per_request }
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
