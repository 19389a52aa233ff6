//! PURE: a table of any layout, as filters use it. They change it only by calls of methods
//! of `Table`, which are CONCURRENT.

pub(crate) mod any_table;
pub(in crate::table) mod batch;
pub(crate) mod by_layout;
pub(crate) mod dyn_table;
pub(crate) mod filter_plan;
pub(crate) mod plan;
pub(crate) mod recent;
pub(crate) mod timer;
pub(crate) mod traits;
