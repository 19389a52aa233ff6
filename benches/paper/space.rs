//! Formulas of space.

/// The information-theoretic bound, in bits for each key.
pub(crate) fn bound(rate: f64) -> f64 {
    -rate.log2()
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
const PAPERS_LOAD: f64 = 0.955;
