//! Real nodes, as processes, and a real `redis-server`, on loopback.
//!
//! In a storm of changes something bad happens. While it does, probers ask the nodes without a pause: no token may pass on a node that
//! has acknowledged its revocation, nor on another one once a lease has passed since. Afterwards all nodes must be ready with the same
//! digest, and refuse every token whose revocation was acknowledged by any of them. Tests called `control` leave a step out and show
//! that the check notices.
//!
//! Without `redis-server` these tests say so in one line and pass; with `FLEET_ENGINE=required` in the environment they fail.
//!
//! - `crashes`: nodes and the engine are killed;
//! - `network`: connections that go dead, answers that get lost, an engine that is loading;
//! - `pauses`: nodes that sleep;
//! - `store`: snapshots that were damaged;
//! - `requests`: what each request is answered;
//! - `nodes`, `storm`, `support`: what these share.
#![cfg(unix)] // For signals.

mod crashes;
mod network;
mod nodes;
mod pauses;
mod requests;
mod store;
mod storm;
mod support;
