//! PURE: a moment by the clock of a filter's caller.

use core::fmt;

/// A point in time on the clock of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
///
/// A time is converted to one by [`tick_at`](crate::ExpiringCuckooFilter::tick_at). [`new`](Self::new) is for clocks
/// that count something else, such as blocks.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
///
/// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
/// let revoked = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(hour).resolution(minute).build()?;
/// revoked.advance_to(revoked.tick_at(SystemTime::now())?);
///
/// let spent = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(100).build()?;
/// let block = 840_000;
/// spent.advance_to(Tick::new(block));
/// spent.insert_until("nonce-1", Tick::new(block + 50))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A number alone is not a tick, since it could be seconds. A clock that took them for ticks would be far in the future, and all
/// that is inserted until a time would have expired already:
///
/// ```compile_fail,E0308
/// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
/// # let revoked = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build().unwrap();
/// revoked.advance_to(1_700_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Tick(u64);

impl Tick {
    /// That many ticks after tick 0 of the clock. What tick 0 is, the caller decides; for
    /// [`SystemTime`](std::time::SystemTime)s it begins at 1970.
    #[must_use]
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// How many ticks after tick 0 it is.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
