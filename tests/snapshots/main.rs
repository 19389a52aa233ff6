//! Snapshots of one table, that of a filter, of a maplet or of a filter whose entries expire: what they hold, saves while others
//! are at work, and bytes that must be refused.
//! `cargo test --all-features --test snapshots`.
//!
//! - `round_trip`: what is saved is loaded again, in the documented format;
//! - `saving`: a save among other threads, and writers that fail;
//! - `refusals`: damaged, foreign and forged bytes, and the memory limit;
//! - `clocks`, `moving_clocks`, `forged_clocks`: the same of filters whose entries expire;
//! - `schemas`: what a snapshot is of, and what the caller has it take along;
//! - `files`: snapshots that replace a file, and processes that are killed meanwhile;
//! - `seeds`: what the fuzzer begins with, for all kinds of filters;
//! - `filters`, `forged`, `writers`: what these share.
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

mod clocks;
mod files;
mod filters;
mod forged;
mod forged_clocks;
mod moving_clocks;
mod refusals;
mod round_trip;
mod saving;
mod schemas;
mod seeds;
#[path = "../support/mod.rs"]
mod support;
mod writers;
