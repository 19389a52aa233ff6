//! PURE: the lookups of all tables and views: what they ask (`query.rs`), where they read (`source.rs`), and how
//! (`fixed.rs`, and `growing.rs` in tables that grow). `batch.rs` has the loop of all batches, and the window of blocks in
//! which their buckets are prefetched; `pairs.rs` and `places.rs` have what a block of lookups works on.

pub(crate) mod batch;
pub(crate) mod fixed;
pub(crate) mod growing;
pub(crate) mod pairs;
pub(crate) mod places;
pub(crate) mod query;
pub(crate) mod source;
