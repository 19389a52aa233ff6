//! What the models in `loom-tests` and `tests/stepped` see of the crate. Not part of the real library.
//!
//! A method without a comment is the filters' operation of that name, on a class of keys instead of a key.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "the filters' documentation has it")]
#![allow(clippy::new_without_default, clippy::len_without_is_empty, reason = "no model needs it")]

mod expiring;
pub(crate) mod fault;
mod one_table;
mod several;
mod words;

pub use one_table::{Image, Key, ModelLayout, Smallest, SmallestOfValues, Table, Usual, UsualOfValues};
pub use several::{Growable, GrowableKey};
pub use words::Words;

#[cfg(ccf_model = "steps")]
pub use crate::sync::steps::{Step, before_each_step};
pub use fault::{Fault, Seeded, inject};
