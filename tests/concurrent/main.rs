//! Stress tests with many threads. Each way in which other concurrent cuckoo filters have been seen to fail is a
//! test here.
//!
//! - `churn`: keys that come and go, one by one or in batches, in a table that is nearly or completely full;
//! - `full_tables`: inserts that compete for the last slots;
//! - `answers`: what `count`, `insert_if_absent` and `clear` return and do while other threads work;
//! - `threads`: helpers that these share.
//!
//! `CCF_STRESS=100 cargo test --release --test concurrent` runs 100 times as long.

mod answers;
mod churn;
mod full_tables;
#[path = "../support/mod.rs"]
mod support;
mod threads;
