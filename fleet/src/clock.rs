//! The clocks of a node.
//!
//! Staleness is measured by a monotonic clock alone, which cannot be set.
//!
//! Tokens end at a time of day, and a machine's clock can be set. So there are two clocks for them: the machine's own, and
//! one that starts with it and advances with the monotonic clock. A token is over when **both** say so
//! ([`Clock::earliest`]), and an expiry is too far in the future only if both say so ([`Clock::latest`]).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// It advances while the process is stopped and while the machine sleeps. (The standard library's `Instant` does not count
/// the time of a sleep on Linux.)
#[cfg(any(target_os = "linux", target_os = "android"))]
const MONOTONIC: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const MONOTONIC: ClockId = ClockId::Monotonic;

/// What the clocks of a machine show.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The time of day, since 1970.
    pub wall: Duration,
    /// The monotonic clock.
    pub monotonic: Duration,
}

impl Reading {
    /// What the clocks of this machine show now.
    pub fn of_this_machine() -> Self {
        let time = clock_gettime(MONOTONIC);
        let monotonic = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        Self { wall: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), monotonic }
    }
}

/// The clocks that a node goes by. It believes the time of day with which it starts.
#[derive(Clone)]
pub struct Clock {
    read: Arc<dyn Fn() -> Reading + Send + Sync>,
    /// By how much the time of day was ahead of the monotonic clock at the start.
    ahead: Duration,
}

impl Clock {
    /// A clock that starts now. `read` is [`Reading::of_this_machine`], except in a test that sets the clocks.
    pub fn new(read: impl Fn() -> Reading + Send + Sync + 'static) -> Self {
        let start = read();
        Self { read: Arc::new(read), ahead: start.wall.saturating_sub(start.monotonic) }
    }

    /// The monotonic clock.
    pub(crate) fn monotonic(&self) -> Duration {
        (self.read)().monotonic
    }

    /// The time of day, as the machine says, and as it is if nobody has set the clock since the start.
    fn both(&self) -> (Duration, Duration) {
        let now = (self.read)();
        (now.wall, self.ahead + now.monotonic)
    }

    /// The time by the clock that is behind, in seconds since 1970.
    pub fn earliest(&self) -> u64 {
        let (wall, steady) = self.both();
        wall.min(steady).as_secs()
    }

    /// The time by the clock that is ahead, in seconds since 1970.
    pub fn latest(&self) -> u64 {
        let (wall, steady) = self.both();
        wall.max(steady).as_secs()
    }

    /// By how many seconds the machine's clock was set since the start.
    pub fn was_set_by(&self) -> f64 {
        let (wall, steady) = self.both();
        wall.as_secs_f64() - steady.as_secs_f64()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(Reading::of_this_machine)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("ahead", &self.ahead).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_time_has_come_when_both_clocks_say_so() {
        let shown = Arc::new(Mutex::new((1000, 50)));
        let read = Arc::clone(&shown);
        let clock = Clock::new(move || {
            let (wall, monotonic) = *read.lock().unwrap();
            Reading { wall: Duration::from_secs(wall), monotonic: Duration::from_secs(monotonic) }
        });
        for (wall, monotonic, earliest, latest, set_by) in [
            (1000, 50, 1000, 1000, 0.0),
            (1010, 60, 1010, 1010, 0.0),
            (9010, 60, 1010, 9010, 8000.0),
            (10, 70, 10, 1020, -1010.0),
        ] {
            *shown.lock().unwrap() = (wall, monotonic);
            assert_eq!((clock.earliest(), clock.latest(), clock.was_set_by()), (earliest, latest, set_by));
        }
    }
}
