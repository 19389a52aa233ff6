//! CONCURRENT: one table, which threads share. `stripe.rs` has the protocol and its proof, `table.rs` the table and the
//! steps that all operations consist of, and `entries.rs` what the entries of a table carry, which is what kinds of tables
//! differ in. Below them are the operations of all tables, and then those of some: of a maplet, of a table whose entries
//! expire. `image/` has what reads a whole table at one moment. Filters use a table through `by_shape.rs`.

pub(crate) mod attempt;
pub(crate) mod counters;
pub(crate) mod stripe;
#[allow(clippy::module_inception, reason = "the folder is about the table, and the file has it")]
pub(crate) mod table;

pub(crate) mod batch;
pub(crate) mod by_shape;
mod change;
pub(crate) mod copy_count;
pub(crate) mod core;
mod dead_end;
pub(crate) mod entries;
pub(crate) mod lookup;
pub(crate) mod relocate;

pub(crate) mod expiring;
mod maplet;

pub(crate) mod filter_plan;
pub(crate) mod image;
pub(crate) mod limiter_table;
pub(crate) mod recent_table;

#[cfg(test)]
mod maplet_tests;
#[cfg(test)]
mod table_tests;
