//! Filters with a hasher of a known key; their snapshots, and how to load these.

use concurrent_cuckoo_filter::{Builder, ConcurrentCuckooFilter, LoadError, StableState};

use crate::support::{LAYOUTS, Layout};

pub(crate) type Filter = ConcurrentCuckooFilter<u64, StableState>;

pub(crate) fn state() -> StableState {
    StableState::with_key(*b"a key for tests.")
}

pub(crate) fn build((encoding, rate, ..): Layout, capacity: usize) -> Filter {
    let builder = builder().capacity(capacity).false_positive_rate(rate);
    builder.encoding(encoding).build().unwrap()
}

/// `ConcurrentCuckooFilter::builder`, with the hasher.
pub(crate) fn builder() -> Builder<u64, StableState> {
    ConcurrentCuckooFilter::<u64>::builder().hasher(state())
}

pub(crate) fn saved(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

pub(crate) fn load(bytes: &[u8]) -> Result<Filter, LoadError> {
    Filter::load(bytes, state(), 1 << 30)
}

/// A filter of every layout, with a few keys in it.
pub(crate) fn small_filters() -> impl Iterator<Item = Filter> {
    LAYOUTS.into_iter().map(|layout| {
        let filter = build(layout, 20);
        (0..15).for_each(|key| filter.insert(&key).unwrap());
        filter
    })
}
