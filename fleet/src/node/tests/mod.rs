//! Nodes in this process, with a real `redis-server` whose clock the tests set. Tests with `control` in their names leave
//! a step out, and show that the check notices.
//!
//! - `support`: nodes, and clients of the engine that fail on request;
//! - `states`: how a node moves from one state to another, and what it answers in each;
//! - `faults`: faults that random ones do not find: another log, clocks that jump, two nodes of one name;
//! - `changes`: the answers to changes;
//! - `digests`, `snapshots`: nodes that differ, and what a node joins from.

mod changes;
mod digests;
mod faults;
mod snapshots;
mod states;
mod support;
