//! The clock of the filter whose entries expire: what it is told, and what it tells.

use core::time::Duration;

use crate::error::insert::InsertError;
use crate::filter::expiring::ExpiringCuckooFilter;
use crate::table::clock::{Advance, ticks_for};

/// The clock.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Tells the filter the time: `tick` is now. All entries that expire at this tick or earlier have expired when it returns. Says
    /// what came of it.
    ///
    /// The first call sets the clock. A tick that is no later than now changes nothing; a tick that is earlier is counted
    /// ([`Stats::clock_steps_back`](crate::Stats::clock_steps_back)), and usual now and then where several threads read a clock around the end of a tick. Many
    /// threads may call it, as often as they like.
    ///
    /// Cost: three loads where nothing is due. While expired entries are left, each call sweeps a thousandth of the table, or 32 KiB if
    /// that is more: some 20 µs, and 120 µs in a table of 192 MB. The call that brings a new tick also locks each stripe once (some 20 µs
    /// in all). If too few calls came since the last one, it may have to sweep the rest of the table, some 80 ms for 100 MB; a tick that is
    /// the longest lifetime ahead always takes such a pass.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter};
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build()?;
    /// assert_eq!(filter.advance_to(28_500_000), Advance::Origin);
    /// filter.insert("a", 28_500_002)?;
    /// assert_eq!(filter.advance_to(28_500_001), Advance::Forward { ticks: 1 });
    /// assert_eq!(filter.advance_to(28_500_000), Advance::Behind { by: 1 }); // a clock that goes back
    /// assert!(filter.contains("a"));
    /// assert_eq!(filter.advance_to(28_500_003), Advance::Forward { ticks: 2 });
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn advance_to(&self, tick: u64) -> Advance {
        self.core.advance_to(tick)
    }

    /// The tick that is now, by the clock of the filter: the greatest that it was told, or that of the last
    /// [`restart_clock`](Self::restart_clock) if there was none greater since. `None` if it was told none.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.core.clock().now()
    }

    /// Begins a new clock, which shows `tick` now. Nothing expires by it, and **each entry keeps the rest of its lifetime**: one that was
    /// to expire 5 ticks from now on the old clock does so 5 ticks from now on the new one.
    ///
    /// For a filter that was loaded from a snapshot, or whose clock was wrong, and that is driven by another clock from now on. No
    /// thread should bring ticks of the old clock any more. An entry's end has another number then, which
    /// [`remove`](Self::remove) has to be told.
    ///
    /// Cost: locks all stripes, after a sweep that is under way.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build()?;
    /// filter.advance_to(28_500_000);
    /// filter.insert("a", 28_500_002)?;
    /// filter.restart_clock(0);
    /// filter.advance_to(1);
    /// assert!(filter.contains("a"));
    /// filter.advance_to(2);
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restart_clock(&self, tick: u64) {
        self.core.restart_clock(tick);
    }

    /// The tick at which an entry expires that is to be found for at least this long from now on: that of now, plus the lifetime in
    /// whole resolutions, plus one, since nobody knows how much of the present tick is over.
    ///
    /// So an entry lives for the lifetime, rounded up to whole resolutions, and up to one resolution longer.
    ///
    /// # Errors
    /// [`InsertError::ClockNotSet`] if the filter was told no tick yet, [`InsertError::ResolutionUnknown`] if it was built
    /// [by ticks](crate::ExpiringBuilder::lifetime_in_ticks).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use concurrent_cuckoo_filter::ExpiringCuckooFilter;
    /// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    /// let nonces = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(hour, minute).build()?;
    /// nonces.advance_to(28_500_000);
    /// assert!(nonces.insert_if_absent("nonce-1", nonces.expires_after(5 * minute)?)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn expires_after(&self, lifetime: Duration) -> Result<u64, InsertError> {
        let resolution = self.resolution().ok_or(InsertError::ResolutionUnknown)?;
        let now = self.now().ok_or(InsertError::ClockNotSet)?;
        Ok(now.saturating_add(ticks_for(lifetime, resolution)))
    }

    /// How long a tick is, if the filter was built with a [`lifetime`](crate::ExpiringBuilder::lifetime).
    #[must_use]
    pub fn resolution(&self) -> Option<Duration> {
        self.core.clock().resolution()
    }

    /// The longest lifetime of an entry, in ticks: it may expire at up to `now + longest_lifetime`.
    #[must_use]
    pub fn longest_lifetime(&self) -> u64 {
        self.core.clock().longest()
    }

    /// How many bits of its slot an end takes up, from 1 to 16.
    #[must_use]
    pub fn end_bits(&self) -> u32 {
        self.core.shape().payload_bits
    }
}
