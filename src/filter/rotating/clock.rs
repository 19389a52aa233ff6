//! The clock of the filter that forgets whole periods: rotations, by hand and by ticks.

use crate::filter::rotating::filter::RotatingCuckooFilter;
use crate::table::expiring::clock::Advance;

/// Rotations and the clock.
impl<T: ?Sized, S> RotatingCuckooFilter<T, S> {
    /// Begins a new generation and, in the same step, expires the oldest one. Returns the number of the new generation.
    ///
    /// Rotations of all callers add up: two threads that rotate at the same time rotate twice. To rotate once in each
    /// period, whichever thread comes first, use [`advance_to`](Self::advance_to).
    ///
    /// Cost: one pass over the table that has expired (some 90 ms for 100 MB). This thread clears it after that step,
    /// while others use the new generation. Only two kinds of calls wait until that is done: another rotation, and an
    /// insert that `g` rotations have overtaken.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.insert("a")?;
    /// assert_eq!(seen.rotate(), 1);
    /// assert!(seen.contains("a"));
    /// seen.insert("b")?;
    /// assert_eq!(seen.rotate(), 2);
    /// assert!(!seen.contains("a") && seen.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rotate(&self) -> u64 {
        self.core.rotate()
    }

    /// Sets the clock of the filter to `tick`. The filter rotates as many times as `tick` is greater than the
    /// greatest tick before. Returns what the call did.
    ///
    /// A tick is the number of periods that have passed on the caller's clock: for a new generation every minute,
    /// `unix_seconds / 60`. The first call only sets the origin, and rotates nothing. If the tick is greater by `n`,
    /// the `n` oldest generations expire. So after a pause of `g` periods or more, everything expires. (`u64::MAX`
    /// counts as `u64::MAX - 1`.)
    ///
    /// **Which clock.** Take one that goes on when the process ends: the time since 1970. A filter that is saved and
    /// loaded goes on from its last tick. Do not use a clock that begins at 0 in each process, such as
    /// `start.elapsed().as_secs() / 60`. A loaded filter would wait until that clock reaches the old tick, and
    /// nothing would expire until then.
    ///
    /// **A clock that goes back** stops the rotations until it has caught up. A tick below the greatest one before
    /// changes nothing, and the call returns [`Advance::Behind`]. After a single tick from the far future, the same
    /// happens for a long time. [`Stats::clock_steps_back`](crate::Stats::clock_steps_back) and
    /// [`Stats::clock_jumps`](crate::Stats::clock_jumps) show both cases. If the clock will not catch up, begin a new
    /// one with [`restart_clock`](Self::restart_clock). `Behind` by 1, now and then, is harmless: if two threads read
    /// the clock around the end of a period, one of them calls late.
    ///
    /// When the call returns, the rotations have taken effect, whichever thread has made them. A thread that calls it
    /// and then inserts, inserts into the generation of that tick, or a later one. **Time stands still while nobody
    /// calls it.** So call it before each operation, or at intervals from a task of your own. Many threads may call
    /// it.
    ///
    /// Cost: one load if nothing is due. The thread that rotates clears the table that has expired, as in
    /// [`rotate`](Self::rotate). Others that bring the same tick do not wait for that. After a pause of several
    /// periods it clears as many tables, up to `g`, and the others wait for all but the last.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(3).build()?;
    /// assert_eq!(seen.advance_to(28_500_000), Advance::Origin);
    /// seen.insert("a")?;
    /// assert_eq!(seen.advance_to(28_500_002), Advance::Forward { ticks: 2 });
    /// assert!(seen.contains("a"));
    /// assert_eq!(seen.advance_to(28_500_001), Advance::Behind { by: 1 }); // a clock that goes back
    /// assert!(seen.contains("a"));
    /// seen.advance_to(28_500_003);
    /// assert!(!seen.contains("a"));
    /// assert_eq!(seen.generation(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn advance_to(&self, tick: u64) -> Advance {
        self.core.advance_to(tick)
    }

    /// Begins a new clock, which now shows `tick`. The next rotation comes with a greater tick, whatever ticks there
    /// were before. The call itself rotates nothing, and nothing expires by it.
    ///
    /// Use it for a filter whose clock has jumped ahead by mistake, or for one that was loaded from a snapshot and
    /// has another clock from now on. After the call, no thread should bring ticks of the old clock.
    ///
    /// **How long keys live then**: the next rotation comes when the new clock shows `tick + 1`. The old clock might
    /// have reached its next tick later or earlier. So the present keys live up to one period longer or shorter than
    /// they would have. If a shorter life does harm, as in replay protection, pass the present tick plus 1. They then
    /// live for up to two periods longer, and [`advance_to`](Self::advance_to) returns [`Advance::Behind`] by one
    /// until that tick has come.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{Advance, RotatingCuckooFilter};
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(2).build()?;
    /// seen.advance_to(28_500_000);
    /// seen.insert("a")?;
    /// assert_eq!(seen.advance_to(0), Advance::Behind { by: 28_500_000 });
    /// seen.restart_clock(0);
    /// seen.advance_to(1);
    /// assert!(seen.contains("a"));
    /// seen.advance_to(2);
    /// assert!(!seen.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn restart_clock(&self, tick: u64) {
        self.core.restart_clock(tick);
    }

    /// Returns the tick that the filter's clock shows, or `None` if there was no tick yet. It is the greatest tick
    /// given to [`advance_to`](Self::advance_to) since [`restart_clock`](Self::restart_clock), or that of
    /// `restart_clock`. In a filter that was loaded, it may be ahead of the caller's clock.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::with_capacity(1000);
    /// assert_eq!(seen.now(), None);
    /// seen.advance_to(28_500_000);
    /// seen.advance_to(28_499_999); // behind, so it changes nothing
    /// assert_eq!(seen.now(), Some(28_500_000));
    /// ```
    #[must_use]
    pub fn now(&self) -> Option<u64> {
        self.core.tick()
    }

    /// Returns how many rotations there have been, for whatever reason. That is the number of the current generation,
    /// from 0 on.
    ///
    /// A jump of [`advance_to`](Self::advance_to) counts as no more rotations than there are generations.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// let seen = RotatingCuckooFilter::<str>::builder().capacity(1000).generations(4).build()?;
    /// seen.rotate();
    /// assert_eq!(seen.generation(), 1);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.core.generation()
    }

    /// Returns how many generations are live: `g` in this documentation.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RotatingCuckooFilter;
    /// assert_eq!(RotatingCuckooFilter::<str>::with_capacity(1000).generations(), 4); // the default
    /// ```
    #[must_use]
    pub fn generations(&self) -> usize {
        self.core.live_generations()
    }
}
