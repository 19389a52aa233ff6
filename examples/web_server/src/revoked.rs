//! CONCURRENT: the filter of revoked tokens, with times in seconds since 1970 instead of ticks.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, InsertBatchError, InsertError, StableState, Stats};

use crate::clock::{Clock, Consequences};
use crate::wall_clock::WallClock;

pub(crate) type Filter = ExpiringCuckooFilter<str, StableState>;

const WRONG_CLOCK: Consequences = Consequences {
    behind: "the store is asked about every token, which takes longer and is always right",
    jump: "all revoked tokens have expired; that is right if the server was off or asleep for so long; otherwise the \
           clock is wrong, and when it is set right, tokens that the store has not forgotten are refused again",
};

/// How long the store keeps expired tokens, in seconds.
const KEPT: u64 = 60 * 60;

/// A token is revoked *until* a time. The filter has it until the end of the tick that contains that time.
pub(crate) struct Revoked {
    pub(crate) filter: Filter,
    wall_clock: WallClock,
    /// How many seconds a tick has.
    resolution: u64,
    clock: Mutex<Clock>,
}

impl Revoked {
    /// The filter must not be ahead of the clock.
    pub(crate) fn new(filter: Filter, resolution: u64, wall_clock: WallClock) -> Self {
        let clock = Mutex::new(Clock::new(resolution, filter.longest_lifetime(), WRONG_CLOCK));
        let revoked = Self { filter, wall_clock, resolution, clock };
        revoked.advance();
        revoked
    }

    /// Tells the filter the time, and sweeps a share of it. Returns the time.
    pub(crate) fn advance(&self) -> u64 {
        let now = self.wall_clock.now();
        let answer = self.filter.advance_to(now / self.resolution);
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(warning) = clock.warning(answer, Instant::now()) {
            eprintln!("warning: {warning}");
        }
        now
    }

    /// Whether the filter may have forgotten tokens that have not expired at this time, because the clock showed a
    /// later time before.
    pub(crate) fn is_ahead_of(&self, now: u64) -> bool {
        is_ahead_of(&self.filter, now, self.resolution)
    }

    /// A token that is revoked until this time or longer has not expired by the filter's clock.
    pub(crate) fn earliest_live(&self) -> u64 {
        self.filter.now().map_or(0, |tick| tick.saturating_mul(self.resolution) + 1)
    }

    /// The store may forget tokens that were revoked until a time before this one. They left the filter an hour ago.
    ///
    /// So if the clock is ahead by less than an hour, nothing is lost when it is corrected. If it jumps ahead while
    /// the server runs, nothing is lost either.
    pub(crate) fn forgettable_before(&self) -> u64 {
        self.wall_clock.without_jumps().saturating_sub(KEPT).saturating_sub(self.resolution)
    }

    pub(crate) fn contains(&self, token: &str) -> bool {
        self.filter.contains(token)
    }

    /// Adds a token. One that has expired by the filter's clock is not kept, which is no error.
    pub(crate) fn insert(&self, token: &str, until: u64) -> Result<(), InsertError> {
        self.filter.insert(token, self.end(until))
    }

    pub(crate) fn insert_batch<'a>(
        &self,
        tokens: impl Iterator<Item = (&'a str, u64)>,
    ) -> Result<usize, InsertBatchError> {
        self.filter.insert_batch(tokens.map(|(token, until)| (token, self.end(until))))
    }

    /// Adds tokens from an iterator that makes them one by one, so they need not all be in memory.
    pub(crate) fn insert_all(&self, tokens: impl Iterator<Item = (String, u64)>) -> Result<usize, InsertBatchError> {
        self.filter.insert_hash_batch(tokens.map(|(token, until)| (self.filter.hash_one(&*token), self.end(until))))
    }

    /// Removes a token. It must have been inserted with this time.
    pub(crate) fn remove(&self, token: &str, until: u64) {
        self.filter.remove(token, self.end(until));
    }

    /// How many tokens of the filter have not expired by its clock. Reads the whole filter.
    pub(crate) fn live_len(&self) -> usize {
        self.filter.live_len()
    }

    /// How many ticks the sweep of the filter is behind. 0 if there is nothing to sweep.
    pub(crate) fn unswept_ticks(&self, stats: &Stats) -> u64 {
        match (self.filter.now(), stats.oldest_unswept) {
            (Some(now), Some(oldest)) => now.saturating_sub(oldest) + 1,
            _ => 0,
        }
    }

    /// The tick at which an entry expires if it is to be found until this time.
    fn end(&self, until: u64) -> u64 {
        until.div_ceil(self.resolution)
    }
}

/// Whether a filter with ticks of this length was told a later time than this one.
pub(crate) fn is_ahead_of(filter: &Filter, now: u64, resolution: u64) -> bool {
    filter.now().is_some_and(|tick| tick > now / resolution)
}
