//! The clock of the filter whose entries expire: setting it and reading it.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::tick::TickError;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::table::expiring::clock::Advance;
use crate::word::tick::Tick;

/// The clock.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Sets the clock: `tick` is now. When the call returns, all entries that expire at this tick or earlier have
    /// expired. Returns how the clock has changed.
    ///
    /// If the filter was built with a resolution, write `filter.advance_to(filter.tick_at(SystemTime::now())?)`. If
    /// this passes a time far in the future, entries that are to expire before it are no longer added: `insert_until`
    /// returns `Ok(false)`. The page [`expiry`](crate::guide::expiry#clocks) has a function that checks the time.
    ///
    /// The first call starts the clock. A tick that is not after now changes nothing. A tick before now is also
    /// counted ([`ExpiryStats::clock_steps_back`](crate::ExpiryStats::clock_steps_back)); that happens now and then where
    /// several threads read a clock around the end of a tick. Many threads may call this, as often as they like.
    ///
    /// Cost: three loads where nothing is due. While expired entries are left, each call *sweeps* a thousandth of the
    /// table, or 32 KiB if that is more: about 20 µs, and 120 µs in a table of 192 MB. The call with a new tick also locks
    /// each stripe once (about 20 µs in all), or all of them at once if it skips ticks.
    ///
    /// An expiry has few bits, so after some ticks the same bits mean a later tick. A sweep must finish before that. If
    /// there were too few calls, the call with the next tick sweeps all the rest: about 80 ms for 100 MB, and 150 ms if
    /// every entry has expired (`cargo bench --bench expiring -- --only=sweep`). A tick that is ahead by the longest
    /// lifetime always takes such a pass. Lookups go on meanwhile, and so do inserts. Two kinds of calls wait: inserts
    /// of entries with nearly the longest lifetime, and other calls with that tick at the same time.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, Tick};
    /// let filter = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build()?;
    /// assert_eq!(filter.advance_to(Tick::new(28_500_000)), Advance::Origin);
    /// filter.insert_until("a", Tick::new(28_500_002))?;
    /// assert_eq!(filter.advance_to(Tick::new(28_500_003)), Advance::Forward { ticks: 3 });
    /// assert!(!filter.contains("a"));
    /// assert_eq!(filter.advance_to(Tick::new(28_500_000)), Advance::Behind { by: 3 }); // a clock that goes back
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn advance_to(&self, tick: Tick) -> Advance {
        self.parts.core.advance_to(tick.get())
    }

    /// Returns the current tick of the filter's clock: the largest tick passed to [`advance_to`](Self::advance_to) since the
    /// last [`restart_clock`](Self::restart_clock), or the tick of that restart if it is larger.
    /// `None` if neither was called.
    ///
    /// Cost: a few loads. It takes a lock only while another thread changes the clock.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Option<Tick> {
        self.parts.core.clock().now().map(Tick::new)
    }

    /// Starts a new clock, which shows `tick` now. This expires nothing, and **each entry keeps the rest of its
    /// lifetime**: one that was to expire 5 ticks from now on the old clock expires 5 ticks from now on the new
    /// clock.
    ///
    /// Use it for a filter that was loaded from a snapshot, or whose clock was wrong, and that another clock drives
    /// from now on. No thread should pass ticks of the old clock any more. The expiry of an entry then has another
    /// number, which [`remove_expiring_at`](Self::remove_expiring_at) must be given.
    ///
    /// Cost: it locks all stripes, after waiting for a running sweep.
    pub fn restart_clock(&self, tick: Tick) {
        self.parts.core.restart_clock(tick.get());
    }

    /// Returns the tick in which this time lies, for [`advance_to`](Self::advance_to). Tick 0 begins at 1970. An entry
    /// that is to be found until a time needs no tick: [`Expiry::At`](crate::Expiry::At) rounds up, and this method
    /// rounds down.
    ///
    /// # Errors
    /// [`TickError::ResolutionUnknown`] if the filter was built [by ticks](crate::ExpiringBuilder::lifetime_in_ticks),
    /// [`TickError::BeforeEpoch`] if the time is before 1970.
    pub fn tick_at(&self, time: SystemTime) -> Result<Tick, TickError> {
        let resolution = self.parts.core.clock().resolution().ok_or(TickError::ResolutionUnknown)?;
        let since = time.duration_since(UNIX_EPOCH).map_err(|error| TickError::BeforeEpoch { by: error.duration() })?;
        Ok(Tick::new(u64::try_from(since.as_nanos() / resolution.as_nanos()).unwrap_or(u64::MAX)))
    }
}
