//! How large the tables are, and how full.

use super::filled::Bench;

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Fits in the L2 cache of one core.
    L2,
    /// Fits in the cache that all cores share.
    L3,
    /// Fits in no cache. 192 MB is also the size in the paper's evaluation.
    Large,
}

impl Size {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::Large => "192MB",
        }
    }

    pub(crate) fn table_bytes(self) -> usize {
        match self {
            Self::L2 => 512 << 10,
            Self::L3 => 16 << 20,
            Self::Large => 192 << 20,
        }
    }
}

/// How full the table is for everything that needs a constant load.
pub(crate) const STEADY_LOAD: f64 = 0.9;

/// The number of items at that load: a number of which up to 64 threads have equal shares, if they are a power of two.
pub(crate) fn items(bench: &dyn Bench, load: f64) -> u64 {
    (bench.size().slots as f64 * load / 64.0) as u64 * 64
}

/// Brings the filter to that load.
pub(crate) fn bring_to(bench: &mut dyn Bench, load: f64) {
    let len = items(bench, load);
    if bench.len() < len {
        bench.insert_to(len, 1);
    } else {
        bench.remove_to(len, 1);
    }
}
