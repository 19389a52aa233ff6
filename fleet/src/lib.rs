//! One set of revoked tokens on many servers: a filter in each, and etcd, which keeps them alike.
//!
//! A [`Node`] keeps the set in memory, in an `ExpiringCuckooFilter`, and answers most questions from there. It follows the
//! changes in etcd, and knows when it may lack one. Then it asks etcd, or says that it can't tell.
//!
//! ```no_run
//! use fleet::{Etcd, Node, Settings};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let etcd = Etcd::new("http://10.0.0.1:2379,http://10.0.0.2:2379,http://10.0.0.3:2379");
//! let node = Node::start(Settings { etcd, ..Settings::new(*b"a secret of ours") }).await?;
//! node.revoke("alice's token", node.time() + 3600).await?;
//! // On any node of the fleet:
//! assert!(node.is_revoked("alice's token").await?);
//! # Ok(())
//! # }
//! ```
//!
//! [`http`] has the routes of the program `fleet`. The README says how to run a fleet, and what is guaranteed.

use std::sync::{Mutex, MutexGuard, PoisonError};

mod accept;
mod apply;
mod changes;
mod clock;
mod disputes;
mod error;
mod etcd;
mod filter;
mod follow;
mod history;
pub mod http;
mod keys;
mod link;
mod node;
mod settings;
mod shared;
mod survey;
#[cfg(test)]
mod tests;

pub use accept::{Accepted, accept};
pub use error::NodeError;
pub use etcd::Etcd;
pub use node::{Health, Node, Revocation};
pub use settings::{Settings, time};
pub use shared::State;

/// Nothing is left half done where a thread may panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
