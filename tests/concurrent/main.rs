//! Threads that do their worst to each other. Each way in which concurrent cuckoo filters have been seen to fail is a
//! test here.
//!
//! - `churn`: keys that come and go, one by one or in batches, in a table that is nearly full or quite;
//! - `full_tables`: inserts that compete for the last slots;
//! - `answers`: what `count`, `insert_if_absent` and `clear` say and do while others are at work;
//! - `threads`: what these share.
//!
//! `CCF_STRESS=100 cargo test --release --test concurrent` runs a hundred times as long.

mod answers;
mod churn;
mod full_tables;
#[path = "../support/mod.rs"]
mod support;
mod threads;
