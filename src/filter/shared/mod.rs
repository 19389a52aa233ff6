//! What several types of filter have in common: operations, batches, settings of builders, snapshots, merging and
//! digests. Most of it is written once, as a macro with its documentation.

pub(crate) mod batches;
pub(super) mod figures;
pub(super) mod hashes;
pub(crate) mod operations;
mod prefetch;
pub(super) mod settings;

#[cfg(feature = "snapshot")]
mod snapshots;

mod absorbing;
mod digests;
