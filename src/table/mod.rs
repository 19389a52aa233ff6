//! CONCURRENT: one table, which threads share. `stripe.rs` has the protocol and its proof, `save.rs` those of saves.

pub(crate) mod absorb;
pub(crate) mod any;
pub(crate) mod begun;
pub(crate) mod build;
mod change;
pub(crate) mod clock;
pub(crate) mod counters;
mod digest;
mod enclosed;
pub(crate) mod erased;
pub(crate) mod expiring;
mod expiring_erased;
mod image;
pub(crate) mod lookup;
pub(crate) mod plan;
mod relocate;
pub(crate) mod save;
pub(crate) mod stripe;
mod sweep;
mod values;
pub(crate) mod words;

#[cfg(test)]
mod expiring_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
