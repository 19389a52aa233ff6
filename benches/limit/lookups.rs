//! The subjects whose lookups are timed, except the limit: ours, Bloom filters, and the hash alone.

use ahash::RandomState;
use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

use super::support::hash::HASH;

/// A subject that can be timed on slices of keys. Each call returns how many keys were found.
pub(crate) trait Lookups {
    fn single(&mut self, keys: &[u64]) -> usize;
    /// `None` if it has no batches.
    fn batched(&mut self, keys: &[u64]) -> Option<usize>;
}

/// The hash alone.
pub(crate) struct Hash;

impl Lookups for Hash {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(HASH.hash_one(key) != 0)).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}

/// This crate's.
pub(crate) struct Ours {
    pub(crate) filter: ConcurrentCuckooFilter<u64, RandomState>,
    pub(crate) answers: Vec<bool>,
}

impl Lookups for Ours {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(self.filter.contains(key))).sum()
    }

    #[inline(never)]
    fn batched(&mut self, keys: &[u64]) -> Option<usize> {
        self.answers.clear();
        self.filter.contains_batch(keys, &mut self.answers);
        Some(self.answers.iter().map(|&found| usize::from(found)).sum())
    }
}

pub(crate) struct Bloom(pub(crate) fastbloom::AtomicBloomFilter<RandomState>);

impl Lookups for Bloom {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(self.0.contains(key))).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}

pub(crate) struct SplitBlock(pub(crate) sbbf_rs_safe::Filter);

impl Lookups for SplitBlock {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|&key| usize::from(self.0.contains_hash(HASH.hash_one(key)))).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}
