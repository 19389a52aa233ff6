//! The filter whose keys expire.
//!
//! - `lifetimes`: exact lifetimes, ticks, `clear`;
//! - `clocks`: clocks that go back, jump, and begin anew;
//! - `full_generations`: what a full generation refuses, and rotation by count;
//! - `building`: rate, memory, requests that can't be met, operations by hash;
//! - `races`: threads that do their worst;
//! - `filters`: what these share.
//!
//! (What it asks of the allocator is in `allocation.rs`.)

mod building;
mod clocks;
mod filters;
mod full_generations;
mod lifetimes;
mod races;
#[path = "../support/mod.rs"]
mod support;
