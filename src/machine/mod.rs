//! What the library asks of the processor and of the system: fallible allocation, and the files with `unsafe` (`arch.rs`,
//! `range.rs`, `segments.rs`, `words.rs`).

pub(crate) mod arch;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod range;
pub(crate) mod segments;
pub(crate) mod words;
