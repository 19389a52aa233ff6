//! CONCURRENT: counts of what a node has done, for the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count that only goes up. It gives no ordering between threads.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// Requests to `/protected`, by their outcome.
    pub(crate) accepted: Tally,
    pub(crate) revoked: Tally,
    pub(crate) malformed: Tally,
    pub(crate) unavailable: Tally,
    /// How often the record was asked for a token.
    pub(crate) questions: Tally,
    /// Messages and changes that were applied.
    pub(crate) messages: Tally,
    pub(crate) changes: Tally,
    /// How often a filter was loaded, or started empty.
    pub(crate) joins: Tally,
    /// How often a filter was rebuilt from the record.
    pub(crate) rebuilt: Tally,
    /// How often the clocks contradicted each other.
    pub(crate) contradictions: Tally,
    /// How often this node's digest differed.
    pub(crate) differences: Tally,
    /// Snapshots that were written, and those that were passed over when the node joined.
    pub(crate) written: Tally,
    pub(crate) passed_over: Tally,
    /// Messages that were sent again.
    pub(crate) retries: Tally,
    /// Moments that came while the keeper was busy.
    pub(crate) skipped: Tally,
}
