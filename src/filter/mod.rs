//! The public types: one file for each type of filter and one for its builder. What is the same in all of them is in
//! `operations.rs` and `settings.rs`.

mod absorbing;
pub(crate) mod batch_key;
mod batches;
pub(crate) mod concurrent;
pub(crate) mod concurrent_builder;
mod digests;
pub(crate) mod expiring;
mod expiring_batches;
pub(crate) mod expiring_builder;
mod expiring_clock;
mod expiring_figures;
pub(crate) mod growable;
pub(crate) mod growable_builder;
pub(crate) mod maplet;
pub(crate) mod maplet_batches;
pub(crate) mod maplet_builder;
pub(crate) mod membership;
mod operations;
pub(crate) mod rotating;
pub(crate) mod rotating_builder;
mod sealed;
mod settings;
#[cfg(feature = "snapshot")]
mod snapshots;
pub(crate) mod stats;
