//! CONCURRENT: several tables as one filter: one that grows (`growth.rs`), one that rotates (`generations.rs`).

mod begin;
pub(crate) mod clock;
pub(crate) mod gates;
pub(crate) mod generations;
#[cfg(feature = "snapshot")]
mod generations_image;
pub(crate) mod growth;
#[cfg(feature = "snapshot")]
mod growth_image;
pub(crate) mod growth_plan;
mod places;
mod search;
