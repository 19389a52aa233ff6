//! What an engine promises, tested on each engine: the one in memory, and a real `redis-server`.
//!
//! Each rule has a control: the same check fails if the engine leaves out the step that the rule is about.
//!
//! - `subject`: the engines under test, and what can be done to them behind a node's back;
//! - `appending`: identifiers, outcomes, and the record;
//! - `clock`: ticks;
//! - `following`: numbers without a hole, gaps, and other logs;
//! - `fleet`: what nodes agree on, and digests;
//! - `snapshots`: chunks, the list, and the lease;
//! - `alike`: both engines do the same;
//! - `crashes`: the engine is killed;
//! - `network`: connections that fail, and an engine that is not ready;
//! - `strange`: data that no node has written.

mod alike;
mod appending;
mod clock;
mod crashes;
mod fleet;
mod following;
mod network;
mod snapshots;
mod strange;
mod subject;
