//! The public types: one file for each type of filter and one for its builder. Where the first would be long, the clock
//! and the figures have files of their own. What is the same in all types is in `operations.rs` and `settings.rs`.
//!
//! The documentation of a type shows its methods in the order of these modules. So what a user needs first comes first.

pub(crate) mod concurrent_builder;
pub(crate) mod expiring_builder;
pub(crate) mod growable_builder;
pub(crate) mod maplet_builder;
pub(crate) mod rotating_builder;

pub(crate) mod concurrent;
pub(crate) mod expiring;
pub(crate) mod growable;
pub(crate) mod maplet;
pub(crate) mod membership;
pub(crate) mod rotating;
pub(crate) mod stats;

mod expiring_clock;
mod expiring_figures;
mod maplet_figures;
mod rotating_clock;
mod rotating_figures;

pub(crate) mod batch_key;
mod batches;
mod expiring_batches;
pub(crate) mod maplet_batches;

mod operations;
mod sealed;
mod settings;

#[cfg(feature = "snapshot")]
mod snapshots;

mod absorbing;
mod digests;
