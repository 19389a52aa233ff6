//! The maplet, a filter that also stores a few bits for each key.
//!
//! Its methods stand in the documentation in the order of these modules.

pub(crate) mod builder;

mod operations;

mod batches;

pub(crate) mod filter;

mod merging;
#[cfg(feature = "snapshot")]
mod snapshots;
