//! The library as a model: a copy of its source, in which each control can leave out a step (`tests/controls`).
#![allow(dead_code, unused_imports, reason = "models need less than users")]
#![allow(clippy::collapsible_if, reason = "each edit of the copy stays on its line")]

include!(concat!(env!("OUT_DIR"), "/src/lib.rs"));
