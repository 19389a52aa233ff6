//! The filter whose entries expire one by one.

pub(crate) mod builder;
pub(crate) mod expiry;
pub(crate) mod filter;

mod clock;
mod figures;

mod batches;
