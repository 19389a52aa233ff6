//! Other crates' filters.

use std::hash::BuildHasher;

use ahash::{AHasher, RandomState};
use parking_lot::RwLock;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::hash::{HASH, KeyedHasher};
use super::subject::{About, Built, Kind, Subject, TableSize, set};

pub(crate) type AtomicCuckooFilter = atomic_cuckoo_filter::CuckooFilter<KeyedHasher>;
set!(AtomicCuckooFilter, |filter, key| filter.insert(&key).is_ok(), filter.contains(&key), filter.remove(&key));

/// `atomic-cuckoo-filter` at its default layout: 4 fingerprints of 16 bits in a bucket, which is a word.
///
/// Its other settings don't help it. Buckets of another size straddle words, which costs it a third of its lookups
/// in the L2 cache. Without evictions it needs no lock, but cannot be filled to 90%.
pub(crate) const ATOMIC: Subject<AtomicCuckooFilter> = Subject {
    about: About { name: "atomic", about: "atomic-cuckoo-filter", kind: Kind::Peer, removes: true },
    build: |table_bytes| {
        let builder = atomic_cuckoo_filter::CuckooFilterBuilder::<KeyedHasher>::default();
        let set = builder.capacity(previous_power_of_two(table_bytes / 2)).build().expect("a valid filter");
        let size = TableSize::new(set.capacity(), size_of_val(&set) + set.capacity() * 2);
        Built { set, size }
    },
};

pub(crate) type LockedScalable = RwLock<scalable_cuckoo_filter::ScalableCuckooFilter<u64, AHasher, SmallRng>>;
set!(
    LockedScalable,
    |filter, key| {
        filter.write().insert(&key);
        true
    },
    filter.read().contains(&key),
    filter.write().remove(&key),
    size_of_val(filter) + (filter.read().bits() / 8) as usize
);

/// `RwLock` around `scalable_cuckoo_filter`, also with 4 fingerprints of 16 bits in a bucket.
pub(crate) const SCALABLE: Subject<LockedScalable> = Subject {
    about: About { name: "scalable", about: "RwLock<scalable_cuckoo_filter>", kind: Kind::Peer, removes: true },
    build: |table_bytes| {
        let filter = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
            .initial_capacity(previous_power_of_two(table_bytes / 2))
            // The crate halves this and adds three bits, the logarithm of the eight slots that a lookup reads: 13 +
            // 3.
            .false_positive_probability(1.0 / 4096.0)
            .hasher(HASH.build_hasher())
            .rng(SmallRng::seed_from_u64(1))
            .finish();
        let size = TableSize::new(filter.capacity(), size_of::<LockedScalable>() + (filter.bits() / 8) as usize);
        Built { set: RwLock::new(filter), size }
    },
};

pub(crate) type AtomicBloom = fastbloom::AtomicBloomFilter<RandomState>;
set!(
    AtomicBloom,
    |filter, key| {
        filter.insert(&key);
        true
    },
    filter.contains(&key),
    false
);

/// `fastbloom`'s atomic filter, with 13 bits for each key.
pub(crate) const ATOMIC_BLOOM: Subject<AtomicBloom> = Subject {
    about: About { name: "fastbloom", about: "fastbloom::AtomicBloomFilter", kind: Kind::Peer, removes: false },
    build: |table_bytes| {
        let keys = table_bytes * 8 / 13;
        let set = fastbloom::AtomicBloomFilter::with_num_bits(table_bytes * 8).hasher(HASH).expected_items(keys);
        let size = TableSize::new(keys, set.num_bits() / 8);
        Built { set, size: TableSize { capacity: keys as u64, ..size } }
    },
};

fn previous_power_of_two(n: usize) -> usize {
    1 << n.ilog2()
}
