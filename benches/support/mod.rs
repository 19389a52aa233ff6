//! What the benchmarks share.
// Each of them leaves some of it unused.
#![allow(dead_code)]

pub(crate) mod array;
pub(crate) mod by_threads;
pub(crate) mod clock;
pub(crate) mod exact;
pub(crate) mod filled;
pub(crate) mod hash;
pub(crate) mod keys;
pub(crate) mod options;
pub(crate) mod ours;
pub(crate) mod peers;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod report;
pub(crate) mod subject;
