//! What the library asks of the processor and of the system: fallible allocation, and the two files with `unsafe`
//! (`arch.rs`, `segments.rs`).

pub(crate) mod arch;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod segments;
