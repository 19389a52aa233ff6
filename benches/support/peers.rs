//! Other crates' filters.

use std::hash::{BuildHasher, Hasher};

use ahash::{AHasher, RandomState};
use parking_lot::RwLock;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::hash::{HASH, KeyedHasher};
use super::subject::{Kind, Subject};

/// `atomic-cuckoo-filter` at its default layout: 4 fingerprints of 16 bits in a bucket, which is a word.
///
/// Its other settings don't help it. Buckets of another size straddle words, which costs it a third of its lookups
/// in the L2 cache. Without evictions it needs no lock, but cannot be filled to 90 %.
#[derive(Debug)]
pub(crate) struct AtomicCuckooFilter<H: Hasher + Default = KeyedHasher>(atomic_cuckoo_filter::CuckooFilter<H>);

impl<H: Hasher + Default + Sync + 'static> Subject for AtomicCuckooFilter<H> {
    const NAME: &'static str = "atomic";
    const ABOUT: &'static str = "atomic-cuckoo-filter";
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        let capacity = previous_power_of_two(table_bytes / 2);
        Self(
            atomic_cuckoo_filter::CuckooFilterBuilder::<H>::default()
                .capacity(capacity)
                .build()
                .expect("a valid filter"),
        )
    }

    fn slots(&self) -> u64 {
        self.0.capacity() as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        16
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.0.capacity() * 2
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.insert(&key).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.remove(&key)
    }
}

/// `RwLock` around `scalable_cuckoo_filter`, also with 4 fingerprints of 16 bits in a bucket.
pub(crate) struct LockedScalable(RwLock<scalable_cuckoo_filter::ScalableCuckooFilter<u64, AHasher, SmallRng>>);

impl Subject for LockedScalable {
    const NAME: &'static str = "scalable";
    const ABOUT: &'static str = "RwLock<scalable_cuckoo_filter>";
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        let filter = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
            .initial_capacity(previous_power_of_two(table_bytes / 2))
            // The crate halves this and adds three bits, the logarithm of the eight slots that a lookup reads: 13 +
            // 3.
            .false_positive_probability(1.0 / 4096.0)
            .hasher(HASH.build_hasher())
            .rng(SmallRng::seed_from_u64(1))
            .finish();
        Self(RwLock::new(filter))
    }

    fn slots(&self) -> u64 {
        self.0.read().capacity() as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        let filter = self.0.read();
        (filter.bits() / filter.capacity() as u64) as u32
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + (self.0.read().bits() / 8) as usize
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.write().insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.read().contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.write().remove(&key)
    }
}

/// `fastbloom`'s atomic filter, with 13 bits for each key.
pub(crate) struct AtomicBloom {
    filter: fastbloom::AtomicBloomFilter<RandomState>,
    keys: usize,
}

impl Subject for AtomicBloom {
    const NAME: &'static str = "fastbloom";
    const ABOUT: &'static str = "fastbloom::AtomicBloomFilter";
    const KIND: Kind = Kind::Peer;
    const REMOVES: bool = false;

    fn build(table_bytes: usize) -> Self {
        let keys = table_bytes * 8 / 13;
        let filter = fastbloom::AtomicBloomFilter::with_num_bits(table_bytes * 8).hasher(HASH).expected_items(keys);
        Self { filter, keys }
    }

    fn slots(&self) -> u64 {
        self.keys as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        0
    }

    fn bytes(&self) -> usize {
        size_of_val(self) + self.filter.num_bits() / 8
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.filter.insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    fn remove(&self, _key: u64) -> bool {
        false
    }
}

fn previous_power_of_two(n: usize) -> usize {
    1 << n.ilog2()
}
