//! The sets that are compared, with the same keys and the same hash function.

use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

use ahash::{AHasher, RandomState};
use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
use fastbloom::AtomicBloomFilter;
use parking_lot::RwLock;

/// The largest acceptable false-positive rate of a filter.
pub(crate) const RATE: f64 = 0.001;

/// A set that threads share, and its operations. Each takes some keys, and returns for how many the answer was yes.
pub(crate) struct Set<S> {
    pub(crate) name: &'static str,
    /// Whether it never finds an absent key.
    pub(crate) is_exact: bool,
    /// An empty set for this many keys.
    pub(crate) new: fn(usize) -> S,
    pub(crate) insert: fn(&S, &[&str]) -> usize,
    pub(crate) find: fn(&S, &[&str]) -> usize,
    pub(crate) remove: Option<fn(&S, &[&str]) -> usize>,
}

fn count(keys: &[&str], answer: impl Fn(&str) -> bool) -> usize {
    keys.iter().filter(|key| answer(key)).count()
}

/// `ahash` with fixed keys, so that each run has the same hashes.
pub(crate) struct FixedHasher(AHasher);

impl Default for FixedHasher {
    fn default() -> Self {
        const STATE: RandomState = RandomState::with_seeds(1, 2, 3, 4);
        Self(STATE.build_hasher())
    }
}

impl Hasher for FixedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    fn write_u8(&mut self, byte: u8) {
        self.0.write_u8(byte);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

type Hash = BuildHasherDefault<FixedHasher>;
pub(crate) type Filter = ConcurrentCuckooFilter<str, Hash>;
pub(crate) type Locked = RwLock<HashSet<Box<str>, Hash>>;

fn filter(keys: usize) -> Filter {
    let builder = ConcurrentCuckooFilter::builder().capacity(keys).false_positive_rate(RATE);
    builder.hasher(Hash::default()).build().expect("the settings are valid")
}

pub(crate) const FILTER: Set<Filter> = Set {
    name: "concurrent-cuckoo-filter",
    is_exact: false,
    new: filter,
    insert: |set, keys| count(keys, |key| set.insert(key).is_ok()),
    find: |set, keys| count(keys, |key| set.contains(key)),
    remove: Some(|set, keys| count(keys, |key| set.remove(key))),
};

/// The same filter. Each call is given a thousand keys.
pub(crate) const BATCHES: Set<Filter> = Set {
    name: "the same, in batches",
    is_exact: false,
    new: filter,
    insert: |set, keys| set.insert_batch(keys.iter().copied()).map_or_else(|error| error.index, |()| keys.len()),
    find: |set, keys| {
        let mut found = Vec::new();
        set.contains_batch(keys.iter().copied(), &mut found);
        found.into_iter().filter(|found| *found).count()
    },
    remove: Some(|set, keys| {
        let mut removed = Vec::new();
        set.remove_batch(keys.iter().copied(), &mut removed);
        removed.into_iter().filter(|removed| *removed).count()
    }),
};

/// It has fingerprints of 8 bits (a rate of 3%) or of 16 (0.012%), and rounds its table up to a power of two.
pub(crate) const ATOMIC_CUCKOO: Set<atomic_cuckoo_filter::CuckooFilter<FixedHasher>> = Set {
    name: "atomic-cuckoo-filter",
    is_exact: false,
    new: |keys| atomic_cuckoo_filter::CuckooFilterBuilder::default().capacity(keys).build().expect("valid settings"),
    insert: |set, keys| count(keys, |key| set.insert(key).is_ok()),
    find: |set, keys| count(keys, |key| set.contains(key)),
    remove: Some(|set, keys| count(keys, |key| set.remove(key))),
};

/// A Bloom filter cannot remove a key, and always has room.
pub(crate) const BLOOM: Set<AtomicBloomFilter<Hash>> = Set {
    name: "fastbloom::AtomicBloomFilter",
    is_exact: false,
    new: |keys| AtomicBloomFilter::with_false_pos(RATE).hasher(Hash::default()).expected_items(keys),
    insert: |set, keys| {
        keys.iter().for_each(|key| _ = set.insert(*key));
        keys.len()
    },
    find: |set, keys| count(keys, |key| set.contains(key)),
    remove: None,
};

pub(crate) const SCC: Set<scc::HashIndex<Box<str>, (), Hash>> = Set {
    name: "scc::HashIndex",
    is_exact: true,
    new: |keys| scc::HashIndex::with_capacity_and_hasher(keys, Hash::default()),
    insert: |set, keys| count(keys, |key| set.insert_sync(key.into(), ()).is_ok()),
    find: |set, keys| count(keys, |key| set.contains(key)),
    remove: Some(|set, keys| count(keys, |key| set.remove_sync(key))),
};

pub(crate) const PAPAYA: Set<papaya::HashSet<Box<str>, Hash>> = Set {
    name: "papaya::HashSet",
    is_exact: true,
    new: |keys| papaya::HashSet::with_capacity_and_hasher(keys, Hash::default()),
    insert: |set, keys| count(keys, |key| set.pin().insert(key.into())),
    find: |set, keys| count(keys, |key| set.pin().contains(key)),
    remove: Some(|set, keys| count(keys, |key| set.pin().remove(key))),
};

/// What a program has without another crate. A key is allocated and freed while the lock is not held.
pub(crate) const LOCKED: Set<Locked> = Set {
    name: "RwLock<HashSet>",
    is_exact: true,
    new: |keys| RwLock::new(HashSet::with_capacity_and_hasher(keys, Hash::default())),
    insert: |set, keys| {
        count(keys, |key| {
            let key = key.into();
            set.write().insert(key)
        })
    },
    find: |set, keys| count(keys, |key| set.read().contains(key)),
    remove: Some(|set, keys| {
        count(keys, |key| {
            let removed = set.write().take(key);
            removed.is_some()
        })
    }),
};
