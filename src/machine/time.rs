//! The time that a filter goes by which moves its clock on itself: that of the system, from a clock that nobody sets and that
//! also runs while the machine sleeps where the system has one, or that of the caller.
#![allow(unsafe_code, reason = "a system call; it has its SAFETY note")]

use core::panic::{RefUnwindSafe, UnwindSafe};
use core::time::Duration;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Where the time comes from: the setting `clock` of a builder and of a `Loader`.
#[derive(Clone, Default)]
pub(crate) enum TimeSource {
    /// The system. Some have no clock, and then reading it panics. So it is read only where an operation needs the time.
    #[default]
    System,
    Caller(Arc<dyn Fn() -> Duration + Send + Sync>),
}

impl TimeSource {
    pub(crate) fn of_caller(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self::Caller(Arc::new(clock))
    }
}

// A clock of the caller's that panics is called again for the next operation. Nothing of a filter is half changed then.
impl UnwindSafe for TimeSource {}
impl RefUnwindSafe for TimeSource {}

/// The clock that also runs while the machine sleeps.
#[cfg(all(target_os = "linux", not(miri)))]
const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
#[cfg(all(target_os = "macos", not(miri)))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The time since some moment before the first call.
///
/// - **Linux**: `CLOCK_BOOTTIME`, which also counts the time for which the machine sleeps.
/// - **macOS**: `CLOCK_MONOTONIC`, which does the same there.
/// - **Elsewhere**: the clock of [`Instant`]. On Windows it counts that time; other systems decide.
pub(crate) fn monotonic_time() -> Duration {
    #[cfg(all(any(target_os = "linux", target_os = "macos"), not(miri)))]
    if let Some(time) = system_time(CLOCK) {
        return time;
    }
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// `None` if the system does not have this clock.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(miri)))]
fn system_time(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = core::mem::MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the system writes one `timespec`, for which there is room.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has succeeded, so the system has written it.
    let time = unsafe { time.assume_init() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_never_goes_back() {
        let mut last = Duration::ZERO;
        for _ in 0..1000 {
            let now = monotonic_time();
            assert!(now >= last, "{now:?} after {last:?}");
            last = now;
        }
    }

    /// It is at least the time for which the machine was awake.
    #[test]
    #[cfg(all(target_os = "linux", not(miri)))]
    fn the_time_includes_that_of_sleep() {
        let awake = system_time(libc::CLOCK_MONOTONIC).expect("every Linux has this clock");
        let time = monotonic_time();
        assert!(time >= awake, "{time:?}, {awake:?}");
    }
}
