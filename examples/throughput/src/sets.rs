//! The sets that are compared. All uses of the filter are in this file.

use std::collections::HashSet;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};
use parking_lot::RwLock;

pub(crate) type Filter = ConcurrentCuckooFilter<[u8]>;

/// How many keys a batch has.
pub(crate) const BATCH: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Find,
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetKind {
    Filter,
    /// The filter, with a thousand keys in each call.
    Batches,
    HashSet,
}

impl SetKind {
    pub(crate) const ALL: [Self; 3] = [Self::Filter, Self::Batches, Self::HashSet];

    pub(crate) fn name(self) -> &'static str {
        if self == Self::HashSet { "HashSet" } else { "filter" }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) items: usize,
    /// In bytes.
    pub(crate) memory: usize,
    /// The share of absent keys that are found, by the set's own estimate.
    pub(crate) expected_rate: f64,
}

/// A set of keys that threads share.
pub(crate) trait Set: Sync {
    /// Does this to all of the keys, and returns for how many of them the answer was yes.
    fn apply(&self, operation: Operation, keys: &[&[u8]]) -> usize;

    fn figures(&self) -> Figures;
}

impl Set for Filter {
    #[inline]
    fn apply(&self, operation: Operation, keys: &[&[u8]]) -> usize {
        let keys = keys.iter();
        match operation {
            Operation::Insert => keys.filter(|key| self.insert(**key).is_ok()).count(),
            Operation::Find => keys.filter(|key| self.contains(**key)).count(),
            Operation::Remove => keys.filter(|key| self.remove(**key)).count(),
        }
    }

    fn figures(&self) -> Figures {
        let stats = self.stats();
        Figures { items: self.len(), memory: stats.memory_usage, expected_rate: stats.false_positive_rate }
    }
}

/// The filter, with all keys in one call.
pub(crate) struct Batches(pub(crate) Filter);

impl Set for Batches {
    #[inline]
    fn apply(&self, operation: Operation, keys: &[&[u8]]) -> usize {
        let (count, keys, mut answers) = (keys.len(), keys.iter().copied(), Vec::new());
        match operation {
            Operation::Insert => return self.0.insert_batch(keys).map_or_else(|refused| refused.index, |()| count),
            Operation::Find => self.0.contains_batch(keys, &mut answers),
            Operation::Remove => self.0.remove_batch(keys, &mut answers),
        }
        answers.into_iter().filter(|answer| *answer).count()
    }

    fn figures(&self) -> Figures {
        self.0.figures()
    }
}

/// What a program has without a filter: a set of the keys themselves, behind a lock, with the filter's hasher.
///
/// A key is allocated and freed while the lock is not held.
pub(crate) type LockedSet = RwLock<HashSet<Box<[u8]>, DefaultHashBuilder>>;

pub(crate) fn locked_set(items: usize) -> LockedSet {
    RwLock::new(HashSet::with_capacity_and_hasher(items, DefaultHashBuilder::new()))
}

impl Set for LockedSet {
    #[inline]
    fn apply(&self, operation: Operation, keys: &[&[u8]]) -> usize {
        let insert = |key: &[u8]| {
            let key = key.into();
            self.write().insert(key)
        };
        let remove = |key: &[u8]| {
            let removed = self.write().take(key);
            removed.is_some()
        };
        let keys = keys.iter();
        match operation {
            Operation::Insert => keys.filter(|key| insert(key)).count(),
            Operation::Find => keys.filter(|key| self.read().contains(**key)).count(),
            Operation::Remove => keys.filter(|key| remove(key)).count(),
        }
    }

    fn figures(&self) -> Figures {
        let set = self.read();
        // The standard library's table fills at most 7 of 8 places. Each takes a `Box` and a byte. What the allocator
        // adds to each key is not counted.
        let places = (set.capacity() * 8 / 7).next_power_of_two();
        let keys: usize = set.iter().map(|key| key.len()).sum();
        Figures { items: set.len(), memory: places * (size_of::<Box<[u8]>>() + 1) + keys, expected_rate: 0.0 }
    }
}
