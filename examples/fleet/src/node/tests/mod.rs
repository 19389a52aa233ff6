//! Nodes in one process, with the engine in memory. Each check has a control: a test with `control` in its name, in
//! which a step is left out and the check fails.
//!
//! - `states`: how a node moves from one state to another, and what it answers in each;
//! - `changes`: the answers to changes, and when they come;
//! - `snapshots`: which snapshot a node joins from;
//! - `digests`: nodes that differ;
//! - `support`: nodes, and what tests do to them.

mod changes;
mod digests;
mod snapshots;
mod states;
mod support;
