//! Snapshots of one table: what they hold, saves while others are at work, and bytes that must be refused.
//! `cargo test --all-features --test snapshots`.
//!
//! - `round_trip`: what is saved is loaded again, in the documented format;
//! - `saving`: a save among other threads, and writers that fail;
//! - `refusals`: damaged, foreign and forged bytes, and the memory limit;
//! - `seeds`: what the fuzzer begins with;
//! - `filters`, `writers`: what these share.
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

mod filters;
mod refusals;
mod round_trip;
mod saving;
mod seeds;
#[path = "../support/mod.rs"]
mod support;
mod writers;
