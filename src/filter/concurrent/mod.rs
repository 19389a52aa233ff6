//! The filter of a fixed size.

pub(crate) mod builder;
pub(crate) mod filter;
