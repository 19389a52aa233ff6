//! For the tests, the demo and the benchmark: an engine for one process, and a network that fails.

pub mod proxy;
pub mod server;
