//! CONCURRENT: what reads a whole table at one moment, while it is in use: saves, digests, `absorb`. `save.rs` has the
//! proof.

pub(crate) mod absorb;
mod digest;
pub(crate) mod merge;
pub(crate) mod read;
pub(crate) mod save;
