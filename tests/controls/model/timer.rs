//! What models see of the time of a filter by itself.

use core::fmt;

use crate::machine::time::TimeSource;
use crate::table::expiring::timer;

/// The time of a filter, for ticks of one unit. The model says what the source shows.
pub struct Timer(timer::Timer);

impl Timer {
    /// The time of a filter that has reached this, and has not read the source.
    pub fn new(own: u64) -> Self {
        Self(timer::Timer::new(own, 1, TimeSource::System))
    }

    pub fn time_at(&self, reading: u64) -> u64 {
        self.0.time_at(reading)
    }

    pub fn so_far_at(&self, reading: u64) -> u64 {
        self.0.so_far_at(reading)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").finish_non_exhaustive()
    }
}
