//! Filters as bytes: the format (`format.rs` describes it), what is checked, and the ways in and out.

pub(crate) mod schema;

#[cfg(feature = "snapshot")]
mod file;
#[cfg(feature = "snapshot")]
pub(crate) mod format;
#[cfg(feature = "snapshot")]
pub(crate) mod loader;
#[cfg(feature = "snapshot")]
mod one_table;
#[cfg(feature = "snapshot")]
pub(crate) mod parts;
#[cfg(feature = "snapshot")]
pub(crate) mod save;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "snapshot")]
mod sink;
#[cfg(feature = "snapshot")]
pub(crate) mod source;
