//! CONCURRENT: a table that grows and shrinks by some buckets at a time, while everybody uses it.

pub(crate) mod change;
pub(crate) mod image;
pub(crate) mod lookup;
pub(crate) mod plan;
pub(crate) mod resize;
pub(crate) mod room;
pub(crate) mod table;
