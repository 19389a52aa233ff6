//! The two sets that are compared. All uses of the filter are in this file.

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

/// How a thread passes its keys to a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// One key a call.
    Single,
    /// All keys in one call.
    Batched,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetKind {
    Filter,
    HashSet,
}

impl SetKind {
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Filter { "filter" } else { "HashSet" }
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
    fn apply(&self, operation: Operation, keys: &[&[u8]], calls: Calls) -> usize;

    fn figures(&self) -> Figures;
}

impl Set for Filter {
    #[inline]
    fn apply(&self, operation: Operation, keys: &[&[u8]], calls: Calls) -> usize {
        let count = keys.len();
        let keys = keys.iter().copied();
        let mut answers = Vec::new();
        match (operation, calls) {
            (Operation::Insert, Calls::Single) => return keys.filter(|key| self.insert(key).is_ok()).count(),
            (Operation::Find, Calls::Single) => return keys.filter(|key| self.contains(key)).count(),
            (Operation::Remove, Calls::Single) => return keys.filter(|key| self.remove(key)).count(),
            (Operation::Insert, Calls::Batched) => {
                return self.insert_batch(keys).map_or_else(|refused| refused.index, |()| count);
            }
            (Operation::Find, Calls::Batched) => self.contains_batch(keys, &mut answers),
            (Operation::Remove, Calls::Batched) => self.remove_batch(keys, &mut answers),
        }
        answers.into_iter().filter(|answer| *answer).count()
    }

    fn figures(&self) -> Figures {
        Figures {
            items: self.len(),
            memory: self.stats().memory_usage,
            expected_rate: self.stats().false_positive_rate,
        }
    }
}

/// What a program has without a filter: a set of the keys themselves, behind a lock, with the filter's hasher.
///
/// A key is allocated and freed while the lock is not held. A batch takes the lock once.
pub(crate) type LockedSet = RwLock<HashSet<Box<[u8]>, DefaultHashBuilder>>;

pub(crate) fn locked_set(items: usize) -> LockedSet {
    RwLock::new(HashSet::with_capacity_and_hasher(items, DefaultHashBuilder::new()))
}

impl Set for LockedSet {
    #[inline]
    fn apply(&self, operation: Operation, keys: &[&[u8]], calls: Calls) -> usize {
        let keys = keys.iter().copied();
        match (operation, calls) {
            (Operation::Insert, Calls::Single) => keys
                .filter(|&key| {
                    let key = key.into();
                    self.write().insert(key)
                })
                .count(),
            (Operation::Find, Calls::Single) => keys.filter(|&key| self.read().contains(key)).count(),
            (Operation::Remove, Calls::Single) => keys
                .filter(|&key| {
                    let removed = self.write().take(key);
                    removed.is_some()
                })
                .count(),
            (Operation::Insert, Calls::Batched) => {
                let keys: Vec<Box<[u8]>> = keys.map(Box::from).collect();
                let mut set = self.write();
                keys.into_iter().map(|key| usize::from(set.insert(key))).sum()
            }
            (Operation::Find, Calls::Batched) => {
                let set = self.read();
                keys.filter(|&key| set.contains(key)).count()
            }
            (Operation::Remove, Calls::Batched) => {
                let mut set = self.write();
                let removed: Vec<_> = keys.filter_map(|key| set.take(key)).collect();
                drop(set);
                removed.len()
            }
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
