//! The filter whose keys expire.
//!
//! - `lifetimes`: exact lifetimes, ticks, `clear`;
//! - `clocks`: clocks that go back, jump, and begin anew;
//! - `full_generations`: what a full generation refuses, and rotation by count;
//! - `building`: rate, memory, requests that cannot be met, operations by hash;
//! - `races`: stress tests with many threads;
//! - `filters`: the filter that these share.
//!
//! (`allocation.rs` tests what it asks of the allocator.)

mod building;
mod clocks;
mod filters;
mod full_generations;
mod lifetimes;
mod races;
#[path = "../support/mod.rs"]
mod support;
