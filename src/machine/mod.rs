//! What the library asks of the processor and of the system. All `unsafe` code of the crate is in this folder; a file
//! that has some allows it at its head, and each block has its SAFETY note.

pub(crate) mod arch;
pub(crate) mod drawn;
pub(crate) mod memory;
pub(crate) mod pages;
pub(crate) mod range;
pub(crate) mod segments;
pub(crate) mod system;
pub(crate) mod time;
pub(crate) mod words;
