//! The identifiers of requests that have come within a window of time.

use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, ExpiringCuckooFilter, ExpiringInsertError, Tick};

use crate::{Clock, Options, TICKS};

/// The identifiers, in memory only.
pub struct Seen {
    pub filter: ExpiringCuckooFilter<[u8]>,
    /// How many seconds a tick of the filter has.
    tick: u64,
    clock: Clock,
}

impl Seen {
    /// Takes a clock that nobody sets, such as the time since the start.
    pub fn new(options: &Options, clock: Clock) -> Result<Self, BuildError> {
        let (window, tick) = (options.window, options.window.div_ceil(TICKS));
        // Of 100,000 new identifiers, one is taken for a repeated one. Its client tries again with another.
        let builder = ExpiringCuckooFilter::builder().capacity(options.ids).false_positive_rate(1e-5);
        let filter = builder.lifetime(Duration::from_secs(window)).resolution(Duration::from_secs(tick)).build()?;
        Ok(Self { filter, tick, clock })
    }

    /// Whether the identifier comes for the first time in the window. It is one step: of many requests with one
    /// identifier, even at the same time, one gets `true`. An error means that there is no room.
    pub fn is_first(&self, id: &[u8]) -> Result<bool, ExpiringInsertError> {
        self.filter.advance_to(Tick::new((self.clock)() / self.tick));
        self.filter.insert_if_absent(id)
    }
}
