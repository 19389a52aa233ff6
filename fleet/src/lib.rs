//! One set of revoked tokens on many servers: a filter in each, and etcd, which keeps them alike.
//!
//! `README.md` says what is guaranteed and what the limits are. To read the code, begin with `node.rs`.
//!
//! | file | |
//! |---|---|
//! | `node.rs` | joins, follows and answers, and why that is right |
//! | `core.rs`, `settings.rs` | what a node has, and where it stands |
//! | `replica.rs` | what a node knows: the filter, and the last changes in it |
//! | `changes.rs` | changes on their way into etcd |
//! | `epoch.rs` | what operators do |
//! | `records.rs` | what is in etcd |
//! | `etcd` | a client of etcd |
//! | `http.rs`, `metrics.rs` | the routes |

mod changes;
mod clock;
mod core;
mod epoch;
mod etcd;
pub mod http;
mod metrics;
mod node;
mod records;
mod replica;
mod settings;

pub use self::clock::{Clock, Reading};
pub use self::core::{Node, NodeError, Revocation};
pub use self::epoch::{accept, change, found};
pub use self::etcd::Etcd;
pub use self::node::{Health, State};
pub use self::records::{Epoch, Shared, SharedArguments, TokenId};
pub use self::settings::{Settings, duration, fleet_name};
