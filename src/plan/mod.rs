//! PURE: what is decided before anything is done: how large a table is, which path makes room, which keys of a
//! batch are in flight. No atomics, no locks, no input or output.

pub(crate) mod limits;
pub(crate) mod path;
pub(crate) mod sizing;
pub(crate) mod table_plan;
pub(crate) mod window;
