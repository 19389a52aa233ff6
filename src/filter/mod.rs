//! The public types: a folder for each type of filter. Its methods are written out there, with bodies of a line or a few.
//! What the types do alike is ordinary generic code in `shared/`. `view/` has lookups in a snapshot that is not loaded.
//!
//! | file in a type's folder | what |
//! |---|---|
//! | `filter.rs` | the type, and facts about the filter as a whole |
//! | `builder.rs` | its construction |
//! | `operations.rs` | operations on one key, and on its hash |
//! | `batches.rs` | the same on many keys |
//! | `merging.rs` | `absorb`, `unite`, `digest`, `empty_like` |
//! | `snapshots.rs` | saving and loading |
//!
//! The documentation of a type shows its methods in the order of these modules. So what a user needs first comes first.

pub(crate) mod concurrent;
pub(crate) mod expiring;
pub(crate) mod figures;
pub(crate) mod growable;
pub(crate) mod limiter;
pub(crate) mod maplet;
pub(crate) mod recent;
#[cfg(feature = "snapshot")]
pub(crate) mod snapshot_info;
pub(crate) mod stats;
#[cfg(feature = "snapshot")]
pub(crate) mod view;

pub(crate) mod batch_key;
pub(crate) mod by_hash;
pub(crate) mod shared;
