//! The filter of these tests.

use concurrent_cuckoo_filter::{RotatingBuilder, RotatingCuckooFilter};

pub(crate) type Filter = RotatingCuckooFilter<u64>;

/// With so few false positives that none occurs.
pub(crate) fn exact(generations: usize, capacity: usize) -> RotatingBuilder<u64> {
    Filter::builder().generation_capacity(capacity).generations(generations).false_positive_rate(1e-6)
}
