//! Chosen faults. A token whose revocation was acknowledged never gets 200, whatever happens to the engine: a node
//! answers 401, or 503 if it can't tell. "Before" says what `examples/fleet` did.

/// Tests that need an engine.
macro_rules! tests {
    ($($(#[$about:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$about])* #[test] fn $name() { if crate::support::has_engine() $body })*
    };
}

mod engine;
mod lies;
mod link;
mod refused;
mod stuck;
mod support;
