//! What both benchmarks share.
// Each of the two leaves some of it unused.
#![allow(dead_code)]

pub mod filled;
pub mod keys;
pub mod plan;
pub mod subject;
