//! The clocks of a node.
//!
//! Staleness is measured by a monotonic clock alone, which cannot be set.
//!
//! Ends of tokens are in seconds since 1970, and the machine's clock can be set. So there are two clocks for them: the
//! machine's, and one that starts with it and goes on with the monotonic clock. A token has expired when **both** say
//! so ([`Clock::earliest`]), and an end is too far in the future only if both say so ([`Clock::latest`]). So if the
//! machine's clock jumps, no token expires early, on any node.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// It goes on while the process is stopped and while the machine sleeps. (The standard library's `Instant` does not count
/// the time of a sleep on Linux.)
#[cfg(any(target_os = "linux", target_os = "android"))]
const MONOTONIC: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const MONOTONIC: ClockId = ClockId::Monotonic;

#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// By how much the machine's clock was ahead of the monotonic one at the start.
    ahead: Duration,
    /// What tests add to the machine's clock and to the monotonic one, in seconds.
    #[cfg(test)]
    pub(crate) shift: Arc<[AtomicI64; 2]>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self::default().started()
    }

    /// A clock of a machine whose clock is wrong.
    #[cfg(test)]
    pub(crate) fn with_shift(seconds: i64) -> Self {
        Self { shift: Arc::new([seconds.into(), 0.into()]), ..Self::default() }.started()
    }

    fn started(mut self) -> Self {
        self.ahead = self.wall().saturating_sub(self.now());
        self
    }

    /// The monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        let time = clock_gettime(MONOTONIC);
        let now = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        #[cfg(test)]
        let now = now + Duration::from_secs(self.shift[1].load(Ordering::SeqCst) as u64);
        now
    }

    /// The machine's clock, since 1970.
    fn wall(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        #[cfg(test)]
        let now = Duration::new(
            now.as_secs().saturating_add_signed(self.shift[0].load(Ordering::SeqCst)),
            now.subsec_nanos(),
        );
        now
    }

    fn steady(&self) -> Duration {
        self.ahead + self.now()
    }

    /// The time by the clock that is behind, in seconds since 1970.
    pub(crate) fn earliest(&self) -> u64 {
        self.wall().min(self.steady()).as_secs()
    }

    /// The time by the clock that is ahead, in seconds since 1970.
    pub(crate) fn latest(&self) -> u64 {
        self.wall().max(self.steady()).as_secs()
    }

    /// By how many seconds the machine's clock was set since the start.
    pub(crate) fn was_set_by(&self) -> i64 {
        (self.wall().as_secs_f64() - self.steady().as_secs_f64()) as i64
    }
}
