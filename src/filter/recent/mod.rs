//! The filter of recent keys.
//!
//! Its methods stand in the documentation in the order of these modules.

pub(crate) mod builder;

mod operations;

mod batches;

pub(crate) mod filter;

mod figures;

mod merging;

#[cfg(feature = "snapshot")]
mod snapshots;
