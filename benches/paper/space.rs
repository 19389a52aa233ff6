//! The results that need no clock: memory for a rate (table 2, the space row of table 3, figure 3) and how full a
//! table gets (figure 2).

use super::layout::{Layout, at_capacity, load_at_capacity};
use super::support::keys::key;
use super::support::ours::builder;

/// The information-theoretic bound, in bits for each key.
pub(crate) fn bound(rate: f64) -> f64 {
    -rate.log2()
}

/// The same for filters from which keys can be removed, at low rates (*Fingerprint Filters Are Optimal*).
pub(crate) fn bound_with_removals(rate: f64) -> f64 {
    bound(rate) + std::f64::consts::LOG2_E
}

/// A Bloom filter with the best number of hashes for the rate.
pub(crate) fn bloom(rate: f64) -> f64 {
    std::f64::consts::LOG2_E * bound(rate)
}

/// The paper's cuckoo filter at its load of 95.5 %. It has buckets of four slots, so it takes three bits more than
/// the bound.
pub(crate) fn papers_plain(rate: f64) -> f64 {
    (bound(rate) + 3.0) / PAPERS_LOAD
}

/// The paper's semi-sorted filter, which saves a bit.
pub(crate) fn papers_semi_sorted(rate: f64) -> f64 {
    (bound(rate) + 2.0) / PAPERS_LOAD
}

/// The share of its slots that the paper's table fills.
pub(crate) const PAPERS_LOAD: f64 = 0.955;

/// One line of the space row: a rate, and what this crate's builder chooses for it.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) asked: f64,
    pub(crate) layout: String,
    /// Bits for each key, at capacity.
    pub(crate) bits: f64,
    /// The rate at capacity, as the filter computes it.
    pub(crate) rate: f64,
}

impl Space {
    /// A line for each rate of the paper's range.
    pub(crate) fn row(capacity: usize) -> Vec<Self> {
        let rates = [1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4, 5e-5, 2e-5, 1e-5, 5e-6, 2e-6, 1e-6];
        rates.into_iter().map(|asked| Self::of(asked, capacity)).collect()
    }

    fn of(asked: f64, capacity: usize) -> Self {
        let filter = builder().capacity(capacity).false_positive_rate(asked).build().expect("a valid filter");
        let layout = Layout {
            encoding: filter.plan().layout.encoding,
            slots: filter.plan().layout.slots_per_bucket,
            bits: filter.plan().layout.fingerprint_bits,
            rate: filter.plan().max_false_positive_rate,
        };
        let (bits, rate) = at_capacity(&filter);
        Self { asked, layout: layout.name(), bits, rate }
    }
}

/// A layout in a table of the given size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InTable {
    pub(crate) layout: Layout,
    /// The share of the slots that is taken at capacity.
    pub(crate) load: f64,
    /// Bits for each key, at capacity.
    pub(crate) bits: f64,
    /// The computed rate at capacity.
    pub(crate) rate: f64,
}

impl InTable {
    pub(crate) fn of(layout: Layout, table_bytes: usize) -> Self {
        let filter = layout.with_bytes(table_bytes);
        let (bits, rate) = at_capacity(&filter);
        Self { layout, load: load_at_capacity(&filter), bits, rate }
    }
}

/// How full a layout's table of one size gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads {
    /// The share of the slots that are taken when it first refuses a key.
    pub(crate) first_refused: f64,
    /// The same at capacity.
    pub(crate) capacity: f64,
}

impl Loads {
    pub(crate) fn of(layout: Layout, buckets: usize) -> Self {
        let filter = layout.with_bytes(buckets * size_of::<u64>());
        let capacity = load_at_capacity(&filter);
        let refused = (0..).find(|&index| filter.insert(&key(index)).is_err());
        assert!(refused >= Some(filter.capacity() as u64), "{} refuses a key below its capacity", layout.name());
        Self { first_refused: filter.stats().load_factor, capacity }
    }
}
