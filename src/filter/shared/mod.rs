//! What several types of filter have in common: operations, batches, settings of builders, snapshots, merging and
//! digests. Most of it is written once, as a macro with its documentation.

pub(crate) mod batches;
pub(super) mod figures;
pub(crate) mod operations;
pub(super) mod settings;

#[cfg(feature = "snapshot")]
mod snapshots;

mod absorbing;
