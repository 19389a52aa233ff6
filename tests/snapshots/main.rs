//! Snapshots: what they hold, saves while other threads work, and bytes that must be refused.
//!
//! `cargo test --all-features --test snapshots`
//!
//! - `round_trip`: a saved filter can be loaded again, in the documented format;
//! - `saving`: a save while other threads work, and writers that fail;
//! - `refusals`: damaged, foreign and forged bytes, and the memory limit;
//! - `clocks`, `forged_clocks`: the same for filters whose entries expire;
//! - `growable`: the same for filters that grow and shrink;
//! - `moved`: saves that outlive their callers, and that are read instead of written;
//! - `inspection`: what a snapshot says that it is, without being loaded;
//! - `schemas`: what a snapshot is of, and the caller's own data in it;
//! - `files`: snapshots that replace a file, and processes that are killed meanwhile;
//! - `views`: lookups in a snapshot that is not loaded;
//! - `other_languages`: the test vectors of the guide's page on the format, and the reader in Python;
//! - `saver`: the example of the same name;
//! - `seeds`: the first inputs of the fuzzer, for all kinds of filters;
//! - `agreed`, `filters`, `forged`, `writers`: helpers that these share.
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

mod agreed;
mod clocks;
mod files;
mod filters;
mod forged;
mod forged_clocks;
mod growable;
mod inspection;
#[path = "../support/kinds.rs"]
mod kinds;
mod moved;
mod other_languages;
#[path = "../support/forged.rs"]
mod parts;
mod refusals;
mod round_trip;
mod saver;
mod saving;
mod schemas;
mod seeds;
#[path = "../support/mod.rs"]
mod support;
mod views;
mod writers;
