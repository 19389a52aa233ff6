//! CONCURRENT: several tables as one filter, which grows (`growth.rs`).

mod begin;
pub(crate) mod gates;
pub(crate) mod growth;
#[cfg(feature = "snapshot")]
mod growth_image;
pub(crate) mod growth_plan;
mod places;
mod search;
