//! PURE: what follows from a filter's settings, and the core of a filter of recent keys.

pub(crate) mod filter_plan;
pub(crate) mod plan;
pub(crate) mod recent;
pub(crate) mod timer;
