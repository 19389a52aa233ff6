//! What the types of filter have in common, as ordinary generic code behind their methods.

pub(crate) mod batches;
pub(super) mod parts;
pub(super) mod settings;

mod merging;
#[cfg(feature = "snapshot")]
mod snapshots;
