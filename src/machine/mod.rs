//! What the library asks of the processor and of the system: memory that may be refused, and the two files with
//! `unsafe` (`arch.rs`, `segments.rs`).

pub(crate) mod arch;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod segments;
