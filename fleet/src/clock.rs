//! The clocks of a node.
//!
//! Whether the node has heard of the cluster lately is decided by a monotonic clock alone, which nobody can set.
//!
//! Ends of tokens are in seconds since 1970, and the machine's clock can be set. So there are two clocks for them: the
//! machine's, and one that starts with it and goes on with the monotonic clock. A token has ended when **both** say so
//! ([`Clock::earliest`]), and an end is too late only if both say so ([`Clock::latest`]). A jump of the machine's clock
//! therefore ends nothing early, on no node.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment of the monotonic clock, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    pub(crate) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// The time from the earlier moment to this one, or 0.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The machine's clock and the monotonic one at the start, both in nanoseconds.
    start: (u64, Moment),
    /// What tests add to the machine's clock, in seconds, and to the monotonic one, in nanoseconds.
    #[cfg(test)]
    pub(crate) shift: Arc<[AtomicI64; 2]>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: (0, Moment(0)),
            #[cfg(test)]
            shift: Arc::default(),
        }
        .started()
    }

    /// A clock of a machine whose clock is wrong.
    #[cfg(test)]
    pub(crate) fn with_shift(shift: Arc<[AtomicI64; 2]>) -> Self {
        Self { start: (0, Moment(0)), shift }.started()
    }

    fn started(mut self) -> Self {
        self.start = (self.wall(), self.now());
        self
    }

    /// The monotonic clock. It goes on while the process is stopped and while the machine sleeps. (The standard
    /// library's `Instant` does not count the time of a sleep on Linux.)
    pub(crate) fn now(&self) -> Moment {
        let now = monotonic();
        #[cfg(test)]
        let now = now.saturating_add_signed(self.shift[1].load(Ordering::SeqCst));
        Moment(now)
    }

    /// The machine's clock, in nanoseconds since 1970.
    fn wall(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        #[cfg(test)]
        let now = now.saturating_add_signed(self.shift[0].load(Ordering::SeqCst).saturating_mul(1_000_000_000));
        now
    }

    fn steady(&self) -> u64 {
        self.start.0.saturating_add(self.now().since(self.start.1).as_nanos() as u64)
    }

    /// The time by the clock that is behind, in seconds since 1970.
    pub(crate) fn earliest(&self) -> u64 {
        self.wall().min(self.steady()) / 1_000_000_000
    }

    /// The time by the clock that is ahead, in seconds since 1970.
    pub(crate) fn latest(&self) -> u64 {
        self.wall().max(self.steady()) / 1_000_000_000
    }

    /// By how many seconds the machine's clock was set since the start.
    pub(crate) fn was_set_by(&self) -> i64 {
        (self.wall() as i64 - self.steady() as i64) / 1_000_000_000
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn monotonic() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn monotonic() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
