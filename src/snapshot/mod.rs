//! Filters as bytes: the format, what is checked, and the ways in and out.

pub(crate) mod format;
#[cfg(feature = "serde")]
pub(crate) mod serde;
