//! Nodes in one process, with the engine in memory. Each check has a control: a test named so, in which a step is left out and the
//! check fails.
//!
//! - `states`: how a node comes from one state into another, and what it answers in each;
//! - `changes`: what a change is answered, and when;
//! - `snapshots`: which snapshot a node joins from;
//! - `digests`: nodes that differ;
//! - `support`: nodes and what is done to them.

mod changes;
mod digests;
mod snapshots;
mod states;
mod support;
