//! CONCURRENT: what reads a whole table at one moment, while it is in use: saves, digests, `absorb`. `copy_on_write.rs` has
//! the proof.

pub(crate) mod absorb;
pub(crate) mod copy_on_write;
pub(crate) mod merge;
mod of_table;
pub(crate) mod read;
pub(crate) mod spare;
