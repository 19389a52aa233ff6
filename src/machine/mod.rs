//! What the library asks of the processor and of the system: memory that may be refused, and the one file with
//! `unsafe`.

pub(crate) mod arch;
pub(crate) mod memory;
pub(crate) mod pages;
