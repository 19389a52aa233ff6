//! PURE: how a cache is to be opened.

use std::path::PathBuf;

/// How to open a [`Cache`](crate::Cache).
#[derive(Clone, Debug)]
pub struct Options {
    /// How many keys the filter must have room for at least. If the store has more keys, it gets room for them and a
    /// quarter more.
    pub capacity: usize,
    /// The share of gets of absent keys that may go to the store, above 0 and below 1.
    pub false_positive_rate: f64,
    /// The file for snapshots of the filter. `None`: no snapshot is made, and none is loaded. While a snapshot is
    /// written, there is a file beside it, with a dot in front of its name and `.partial` at the end.
    pub snapshot: Option<PathBuf>,
}

impl Options {
    /// Room for `capacity` keys, a false-positive rate of 0.1 %, and no snapshots.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, false_positive_rate: 0.001, snapshot: None }
    }

    /// With snapshots in this file.
    #[must_use]
    pub fn snapshot(self, path: impl Into<PathBuf>) -> Self {
        Self { snapshot: Some(path.into()), ..self }
    }

    /// How many keys a filter for a store with `keys` of them should have room for.
    pub(crate) fn capacity_for(&self, keys: u64) -> usize {
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        self.capacity.max(keys.saturating_add(keys / 4))
    }
}
