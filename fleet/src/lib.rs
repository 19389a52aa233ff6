//! One set of revoked tokens on many servers: a filter in each, and a log in Redis that keeps them alike.
//!
//! A [`Node`] keeps the set in memory, in an `ExpiringCuckooFilter`, and answers most questions from
//! there. It follows a log, and knows when it may lack a change. Then it asks the engine, or says that it can't tell.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use fleet::{EngineSettings, Node, RedisEngine, Settings};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = RedisEngine::new(EngineSettings::new("redis://127.0.0.1:6379", "revoked"))?;
//! let node = Node::start(Settings::new(*b"a secret of ours"), Arc::new(engine)).await?;
//! node.revoke("alice's token", 1_900_000_000).await?;
//! // On any node of the fleet:
//! assert!(node.is_revoked("alice's token").await?);
//! # Ok(())
//! # }
//! ```
//!
//! - [`node`]: the node, and what it says of itself;
//! - [`log`]: what a node needs from an engine, as traits, and how a log proves which one it is;
//! - [`change`]: what a message of the log contains;
//! - [`RedisEngine`]: the engine in Redis 7 or Valkey;
//! - [`http`]: the routes of the program `fleet`.
//!
//! The README says how to run a fleet, and what is guaranteed. The RUNBOOK is for its operators.

pub mod change;
mod engine;
pub mod http;
pub mod log;
pub mod node;
#[doc(hidden)]
pub mod testing;

pub use engine::{EngineSettings, RedisEngine};
pub use node::{Node, NodeError, Revocation, Settings};
