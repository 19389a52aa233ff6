//! Secret numbers that no one else draws: for the keys of hashers, and for the names of files.

use core::hash::BuildHasher;
use std::hash::RandomState;

use crate::sync::{Ordering, Tally};

/// How often this process has drawn.
static DRAWS: Tally = Tally::new(0);

/// A source of numbers of its own.
///
/// The standard library's hasher asks the system for its keys once for each thread, and then only counts up. A `fork`
/// copies these keys and that count, so parent and children would draw the same numbers. So the number of the process is
/// hashed too: processes that run at the same time have different ones. A child may get the number of an earlier child
/// that has ended. The count of the draws of the whole process tells these two apart if their parent has drawn in between,
/// on whatever thread.
pub(crate) struct RandomNumbers {
    hasher: RandomState,
    process: u32,
    draw: u64,
}

impl RandomNumbers {
    pub(crate) fn new() -> Self {
        // Relaxed: it orders nothing.
        Self { hasher: RandomState::new(), process: process(), draw: DRAWS.fetch_add(1, Ordering::Relaxed) }
    }

    /// The `nth` number of this source.
    pub(crate) fn number(&self, nth: u64) -> u64 {
        self.hasher.hash_one((self.process, self.draw, nth))
    }
}

/// The number of this process. 0 where there are no processes: the standard library would panic there.
fn process() -> u32 {
    if cfg!(target_family = "wasm") { 0 } else { std::process::id() }
}
