//! What the models in `loom-tests` and `tests/stepped` see of the crate. `compile_model` copies this folder into the
//! edited copy of the source, as its module `model`. The library itself has no such module.
//!
//! A method without a comment is the filters' operation of that name, on a class of keys instead of a key.
#![allow(missing_docs, clippy::missing_errors_doc, reason = "the filters' documentation has it")]
#![allow(clippy::new_without_default, clippy::len_without_is_empty, reason = "no model needs it")]

mod expiring;
pub(crate) mod fault;
mod growable;
mod key;
mod maplet;
mod set;
mod table;
mod timer;
mod words;

pub use expiring::Expiring;
pub use growable::{Growable, GrowableKey};
pub use key::Key;
pub use maplet::Maplet;
pub use set::Set;
pub use table::{Expiry, Image, ModelEntries, ModelLayout, Nothing, Smallest, Table, Usual, Value};
pub use timer::Timer;
pub use words::Words;

#[cfg(ccf_model = "steps")]
pub use crate::sync::steps::{Step, before_each_step};
pub use fault::{Fault, Seeded, inject};
