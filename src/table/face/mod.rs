//! PURE: what follows from a filter's settings, and the cores of filters that go by the time.

pub(crate) mod filter_plan;
pub(crate) mod limiter;
pub(crate) mod plan;
pub(crate) mod recent;
pub(crate) mod timer;
