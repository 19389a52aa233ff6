//! PURE: sizes: of a table for so many keys at such a rate, of the ticks of a window or of a limit.

pub(crate) mod limits;
pub(crate) mod sizing;
pub(crate) mod table_plan;
pub(crate) mod window;
