//! The filter that forgets by generations.

pub(crate) mod builder;
pub(crate) mod filter;

mod clock;
mod figures;
