//! The identifiers of requests that have come within a window of time.

use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, RecentBuilder, RecentCuckooFilter};

use crate::Options;

/// The identifiers, in memory only.
pub struct Seen {
    pub filter: RecentCuckooFilter<[u8]>,
}

impl Seen {
    /// Takes the time from a clock that nobody sets.
    pub fn new(options: &Options) -> Result<Self, BuildError> {
        Ok(Self { filter: Self::builder(options).build()? })
    }

    /// Takes the time since the start from this clock, for tests.
    pub fn with_clock(
        options: &Options,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, BuildError> {
        Ok(Self { filter: Self::builder(options).clock(clock).build()? })
    }

    fn builder(options: &Options) -> RecentBuilder<[u8]> {
        // Of 43,000 new identifiers, one is taken for a repeated one. Its client tries again with another.
        let builder = RecentCuckooFilter::builder().false_positive_rate(2.3e-5);
        builder.within(Duration::from_secs(options.window), options.ids)
    }

    /// Whether the identifier comes for the first time in the window. It is one step: of many requests with one
    /// identifier, even at the same time, one gets `true`.
    pub fn is_first(&self, id: &[u8]) -> bool {
        self.filter.insert(id)
    }
}
