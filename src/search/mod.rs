//! PURE: the search for a path that makes room for an insert, in any table.

pub(crate) mod path;
