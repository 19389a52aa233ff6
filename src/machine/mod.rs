//! What is asked of the processor and of the system: memory that may be refused, and the library's one file with `unsafe`.

pub(crate) mod arch;
pub(crate) mod memory;
