//! PURE: what can go wrong, and what to do about it.

pub(crate) mod absorb;
pub(crate) mod build;
#[cfg(feature = "snapshot")]
pub(crate) mod damage;
pub(crate) mod insert;
pub(crate) mod kind;
pub(crate) mod limited;
#[cfg(feature = "snapshot")]
pub(crate) mod load;
#[cfg(feature = "snapshot")]
pub(crate) mod load_path;
pub(crate) mod memory;
mod message;
#[cfg(feature = "snapshot")]
pub(crate) mod mismatch;
pub(crate) mod quota;
pub(crate) mod tick;
