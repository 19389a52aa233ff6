//! One set of revoked tokens on many servers: a filter in each, and a log in Redis that keeps them alike.
//!
//! - `change`: what a message of the log contains;
//! - `log`: what a node needs from an engine;
//! - `engine`: the engines;
//! - `node`: a filter that follows the log, and the answers of a node;
//! - `command`: the command line;
//! - `demo`: a fleet of three nodes on this machine, and how it behaves;
//! - `bench`: the figures of the README;
//! - `proxy`: a connection that fails as connections do.

mod bench;
mod change;
mod command;
mod demo;
pub mod engine;
mod log;
mod node;
pub mod proxy;

pub use command::main;
