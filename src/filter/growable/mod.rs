//! The filter that grows.

pub(crate) mod builder;
pub(crate) mod filter;
