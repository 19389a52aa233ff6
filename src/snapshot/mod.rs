//! Filters as bytes: the format (described in `format.rs`), its checks, saving and loading.

pub(crate) mod schema;

#[cfg(feature = "snapshot")]
pub(crate) mod file;
#[cfg(feature = "snapshot")]
pub(crate) mod format;
#[cfg(feature = "snapshot")]
mod limiter;
#[cfg(feature = "snapshot")]
pub(crate) mod loader;
#[cfg(feature = "snapshot")]
mod one_table;
#[cfg(feature = "snapshot")]
pub(crate) mod parts;
#[cfg(feature = "snapshot")]
mod pieces;
#[cfg(feature = "snapshot")]
mod recent;
#[cfg(feature = "snapshot")]
pub(crate) mod save;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "snapshot")]
pub(crate) mod source;
