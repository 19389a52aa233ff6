//! The clocks of a node. It uses only the monotonic one to decide whether it has had word from the engine lately.

#[cfg(test)]
use std::sync::Arc;
#[cfg(test)]
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment, in nanoseconds since some moment before the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) u64);

impl Moment {
    /// Earlier than every other moment.
    pub(crate) const NEVER: Self = Self(0);

    pub(crate) fn plus(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time.as_nanos() as u64))
    }

    /// The time from the other moment to this one, or 0 if this one is earlier.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A clock that never goes back and that nobody can set. It goes on while the process is stopped and while the
/// machine sleeps. This is why it is not the standard library's `Instant`, which on Linux does not count the time
/// while the machine sleeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// Tests advance the time by this much.
    #[cfg(test)]
    passed: Arc<AtomicU64>,
    /// What tests set the machine's clock to.
    #[cfg(test)]
    pub(crate) fixed: Arc<std::sync::Mutex<Option<u64>>>,
}

impl Clock {
    pub(crate) fn now(&self) -> Moment {
        // In tests, time passes only when they say so, as for their engine.
        #[cfg(test)]
        return Moment(1_000_000_000 + self.passed.load(Ordering::SeqCst));
        #[cfg(not(test))]
        Moment(machine())
    }

    /// The clock of this machine, in milliseconds since 1970. It can be set, so it counts only where a node begins.
    pub(crate) fn machine(&self) -> u64 {
        #[cfg(test)]
        if let Some(fixed) = *self.fixed.lock().unwrap() {
            return fixed;
        }
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
    }

    /// Advances the time at once: a node that was paused sees the same.
    #[cfg(test)]
    pub(crate) fn pass(&self, time: Duration) {
        self.passed.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    }
}

#[cfg(all(not(test), any(target_os = "linux", target_os = "android")))]
fn machine() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    // Plus one, so that no moment is `NEVER`.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 + 1
}

#[cfg(all(not(test), not(any(target_os = "linux", target_os = "android"))))]
fn machine() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1
}
