//! PURE: what is decided before anything is done: how large a table is to be, which path makes room, which keys of a
//! batch are under way. No atomics, no locks, no input or output.

pub(crate) mod batch;
pub(crate) mod path;
pub(crate) mod sizing;
