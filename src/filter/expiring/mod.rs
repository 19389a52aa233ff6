//! The filter whose entries expire one by one.
//!
//! Its methods stand in the documentation in the order of these modules.

pub(crate) mod builder;
pub(crate) mod expiry;

mod clock_operations;
mod operations;

mod batches;

pub(crate) mod filter;

mod figures;

mod merging;
#[cfg(feature = "snapshot")]
mod snapshots;
