//! What the models in `loom-tests` and `tests/stepped` see of the crate. Not part of the real library.
#![allow(clippy::missing_errors_doc, reason = "the errors are those of the operations that they call")]

mod expiring;
mod one_table;
mod several;

pub use one_table::{AnyLayout, Image, Key, Smallest, SmallestOfValues, Table, Usual, UsualOfValues};
pub use several::{Growable, GrowableKey};

pub use crate::sync::fault::{Fault, Seeded, inject};
#[cfg(ccf_model = "steps")]
pub use crate::sync::steps::{Step, before_each_step};
