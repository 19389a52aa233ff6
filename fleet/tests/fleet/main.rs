//! Real nodes, as processes, and a real `redis-server`, on loopback.
//!
//! A fault happens in a storm of changes. Meanwhile, probers ask the nodes without a pause: no token may pass on a
//! node that has acknowledged its revocation, nor on another node once a lease has passed since. Afterwards all
//! nodes must be ready with the same digest, and refuse every token whose revocation any of them acknowledged.
//! Tests with `control` in their names leave a step out and show that the check notices.
//!
//! Without `redis-server` these tests print one line about it and pass. With `FLEET_ENGINE=required` in the
//! environment they fail.
//!
//! - `faults`: chosen faults;
//! - `crashes`: nodes and the engine are killed;
//! - `network`: connections that go dead, answers that get lost, an engine that is loading;
//! - `pauses`: nodes that sleep;
//! - `store`: snapshots that were damaged;
//! - `long`: all of these at random, for as long as one likes;
//! - `requests`: the answer to each request;
//! - `nodes`, `storm`, `support`: what these share.
#![cfg(unix)] // For signals.

mod crashes;
mod faults;
mod long;
mod network;
mod nodes;
mod pauses;
mod requests;
mod store;
mod storm;
mod support;
