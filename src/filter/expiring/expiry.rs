//! When an entry is to expire, as callers say it.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::table::expiring::clock::{Until, ticks_for};
use crate::word::tick::Tick;

/// When an entry of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is to expire.
///
/// The `_until` methods accept any `Into<Expiry>`: also a [`Tick`], a time ([`SystemTime`]) or a time to live ([`Duration`]).
/// The last two need a filter that was built with a [`lifetime`](crate::ExpiringBuilder::lifetime).
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Expiry};
///
/// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
/// let revoked = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(hour).resolution(minute).build()?;
/// let now = SystemTime::now();
/// revoked.advance_to(revoked.tick_at(now)?);
/// revoked.insert_until("token-1", revoked.tick_at(now + 5 * minute)?)?; // rounded down
/// revoked.insert_until("token-2", now + 5 * minute)?; // the expiry of a token, rounded up
/// revoked.insert_until("token-3", 5 * minute)?; // a time to live
/// revoked.insert_until_batch([("token-4", Expiry::At(now)), ("token-5", Expiry::After(minute))], &mut Vec::new())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A number alone is not an expiry, since it could be a tick, or seconds to live, or seconds since 1970:
///
/// ```compile_fail,E0277
/// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
/// # let revoked = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
/// revoked.insert_until("token-1", 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expiry {
    /// At this tick of the filter's clock.
    AtTick(Tick),
    /// At this time, or up to one length of a tick later: with the first tick that begins then, if tick 0 begins at 1970.
    /// (That is [`tick_at`](crate::ExpiringCuckooFilter::tick_at) rounded up.)
    At(SystemTime),
    /// This long from now, or up to one length of a tick later: the entry's time to live. It expires at the tick that is now
    /// when the entry is added or renewed, plus the duration in ticks, rounded up, plus one. The filter does not know how
    /// much of the present tick is over.
    After(Duration),
}

impl From<Tick> for Expiry {
    fn from(tick: Tick) -> Self {
        Self::AtTick(tick)
    }
}

impl From<SystemTime> for Expiry {
    fn from(time: SystemTime) -> Self {
        Self::At(time)
    }
}

impl From<Duration> for Expiry {
    fn from(time_to_live: Duration) -> Self {
        Self::After(time_to_live)
    }
}

impl Expiry {
    /// The expiry in ticks of this length.
    #[inline(always)]
    pub(super) fn until(self, resolution: impl FnOnce() -> Option<Duration>) -> Until {
        match self {
            Self::AtTick(tick) => Until::Tick(tick.get()),
            _ => resolution().map_or(Until::Unknown, |resolution| self.in_ticks(resolution)),
        }
    }

    fn in_ticks(self, resolution: Duration) -> Until {
        match self {
            Self::AtTick(tick) => Until::Tick(tick.get()),
            Self::After(ttl) => Until::After(ticks_for(ttl, resolution)),
            Self::At(time) => {
                // What is before 1970 has passed.
                let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
                Until::Tick(u64::try_from(since.as_nanos().div_ceil(resolution.as_nanos())).unwrap_or(u64::MAX))
            }
        }
    }
}
