//! The public types: a folder for each type of filter, with its builder and what else is long. What is the same in all
//! types is in `shared/`.
//!
//! The documentation of a type shows its methods in the order of these modules. So what a user needs first comes first.

pub(crate) mod concurrent;
pub(crate) mod expiring;
pub(crate) mod figures;
pub(crate) mod growable;
pub(crate) mod maplet;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot_info;
pub(crate) mod stats;

pub(crate) mod batch_key;
pub(crate) mod by_hash;
pub(crate) mod shared;
