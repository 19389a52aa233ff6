//! The machine that an example runs on.

use std::thread;

/// How many threads run at the same time. 1 if the system does not say.
#[must_use]
pub fn hardware_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
