//! Chosen faults. A token whose revocation was acknowledged never gets 200, whatever happens to the engine: a node
//! answers 401, or 503 if it can't tell.
//!
//! The tests use the command line, HTTP and Redis alone. Each has real nodes and a real `redis-server` on loopback.
//! Names of options, routes and keys are in `support` alone. "Before" says what `examples/fleet` did.
//!
//! Without `redis-server` the tests print a line and pass. With `FLEET_ENGINE=required` in the environment they fail.
#![cfg(unix)]

/// Tests that need an engine.
macro_rules! tests {
    ($($(#[$about:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$about])* #[test] fn $name() { if crate::engine::has_engine() $body })*
    };
}

mod engine;
mod lies;
mod link;
mod refused;
mod stuck;
mod support;
