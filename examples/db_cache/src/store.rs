//! What is behind the filter: any key-value store that can do this much.

use anyhow::Result;
use concurrent_cuckoo_filter::InsertError;

/// A key and its new value, or `None` to delete the key.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// An entry of the log: its number, whether the key was added (or else removed), and the key.
pub type Logged<'a> = (u64, bool, &'a [u8]);

/// A durable map from keys to values, with a log of the keys that were added and removed.
///
/// Only the cache in front of it may change it. The cache makes one call of [`apply`](Self::apply) at a time. All
/// other methods may be called at any time, from any thread.
///
/// The *log* brings a saved filter up to date. Its entries are numbered 1, 2, 3, … in the order of their commits. The
/// *sequence* of a moment is the number of the last entry then, and 0 before the first.
pub trait Store: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Makes all of the changes, in their order, and appends to the log that these keys were added and those were
    /// removed: all of it or nothing. It is durable when this returns.
    ///
    /// The error is [`WriteError::NotApplied`] if it is certain that nothing has changed, now and after a crash.
    /// Otherwise it is [`WriteError::Unknown`], and what a scan finds after that must remain.
    fn apply(&self, changes: &[Change<'_>], added: &[&[u8]], removed: &[&[u8]]) -> Result<(), WriteError>;

    /// Calls `visit` with each key once, until it fails.
    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// Calls `visit` with each entry of the log after number `after`, in order, until it fails.
    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> Result<()>) -> Result<()>;

    /// The state at one moment.
    fn state(&self) -> Result<State>;

    /// Remembers, durably, that from now on there may be a snapshot called `id` of the filter at `sequence`.
    fn announce(&self, id: u64, sequence: u64) -> Result<()>;

    /// Forgets every announced snapshot except `id`, and drops the log before its sequence, in one durable step. The
    /// snapshot `id` was announced, and its file is in place now.
    fn settle(&self, id: u64) -> Result<()>;
}

/// What a store says about itself.
#[derive(Debug)]
pub struct State {
    /// How many keys there are.
    pub keys: u64,
    /// The number of the last entry of the log.
    pub sequence: u64,
    /// The ids and sequences of the announced snapshots.
    pub snapshots: Vec<(u64, u64)>,
    /// The secret key of the filter's hash: random bytes, drawn when the store is made.
    pub hash_key: [u8; 16],
}

/// Why a write failed, and how certain that is.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum WriteError {
    #[error("the filter has no room, and nothing was written: {0}; rebuild it with a larger capacity")]
    Full(InsertError),
    #[error("the store failed, and nothing was written: {0:#}")]
    NotApplied(anyhow::Error),
    #[error("the commit failed, and all was written or nothing: {0:#}; rebuild the filter")]
    Unknown(anyhow::Error),
    #[error("nothing was written, because the outcome of an earlier write is unknown; rebuild the filter")]
    OutOfStep,
}
