//! What models need: the steps that they can leave out; and, where the crate is compiled as a model, a table that
//! they fill by hand and the hook before each step.

pub(crate) mod fault;
#[cfg(ccf_model)]
pub mod model;
#[cfg(ccf_model)]
pub(crate) mod model_of_expiring;
#[cfg(ccf_model)]
pub(crate) mod model_of_several;
#[cfg(ccf_model = "steps")]
pub(crate) mod steps;
