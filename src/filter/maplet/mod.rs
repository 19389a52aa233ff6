//! The filter that also has a value for each key.

pub(crate) mod builder;
pub(crate) mod filter;

pub(crate) mod batches;
