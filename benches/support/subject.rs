//! What is compared: one trait, and the filters behind it, each at the settings that are best for it.
//!
//! # What is the same for all
//! - The hash: `ahash`, seeded with the same constants. This crate is given a `RandomState` that holds them, as its
//!   users would. The others want a type of hasher, or a hasher to clone, and get one in which the compiler can fold
//!   the constants.
//! - The size of the table in bytes. This crate's has exactly that size; the others round to powers of two, and are
//!   built to the nearest one *below*: at 512 KiB that is the same, at 192 MiB it is 128 MiB, which leaves them the
//!   smaller table to miss the cache in. (`atomic-cuckoo-filter` is as fast in 256 MiB as in 128 MiB, give or take 5
//!   %.)
//! - The load, as a share of each table's own slots.
//! - The pages of memory: the usual ones, also with the feature `huge-pages`.
//! - The compiler and its flags; generic code of all crates is compiled in this one, so inlining is open to all.
//!
//! # The rates
//! `atomic-cuckoo-filter` knows fingerprints of 4, 8, 16 and 32 bits. Its default and its best are 16, four to a
//! bucket, which is one word: 0.012 % when full. Four plain fingerprints of 16 bits are that rate here too, four
//! semi-sorted ones of 17 are half of it, and the default setting here (five of 14 bits) has five times that rate in
//! four fifths of the memory. `scalable_cuckoo_filter` can be set to four times 16 bits; `cuckoofilter` has
//! fingerprints of 8 bits only: 3 %, in half the memory.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;

use ahash::{AHasher, RandomState};
use concurrent_cuckoo_filter::{Builder, ConcurrentCuckooFilter, Encoding};
use parking_lot::RwLock;
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// What kind of subject it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// This crate's filter.
    Ours,
    /// Another crate's.
    Peer,
    /// No filter: it answers lookups, always with "present", and takes no keys.
    Limit,
}

/// A filter at one setting, shared by threads.
pub(crate) trait Subject: Sync + Sized + 'static {
    /// A short name for the tables.
    const NAME: &'static str;
    const ABOUT: &'static str;
    const KIND: Kind;

    /// A filter whose table takes so many bytes or, where the crate goes by powers of two, the nearest smaller number.
    fn build(table_bytes: usize) -> Self;
    fn slots(&self) -> u64;
    /// How many items it is made for; where the crate doesn't say, 95 % of its slots.
    fn capacity(&self) -> u64 {
        self.slots() * 95 / 100
    }
    fn fingerprint_bits(&self) -> u32;
    /// The memory of the table and what belongs to it.
    fn bytes(&self) -> usize;
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
}

/// The keys of every subject's hash function.
pub(crate) const HASH: RandomState =
    RandomState::with_seeds(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89);

/// A builder of this crate's filter, with the hash of all, and without huge pages: the others have none either.
pub(crate) fn builder() -> Builder<u64, RandomState> {
    let builder = ConcurrentCuckooFilter::builder().hasher(HASH);
    #[cfg(feature = "huge-pages")]
    let builder = builder.huge_pages(false);
    builder
}

/// This crate's filter with the largest table in so many bytes, or one that is at most 1 % smaller; `build` makes one of
/// some capacity.
///
/// The builder is asked for a capacity, so the one that makes a table of this size is approached by rule of three.
pub(crate) fn of_size(
    table_bytes: usize,
    slots_per_bucket: usize,
    build: impl Fn(usize) -> ConcurrentCuckooFilter<u64>,
) -> ConcurrentCuckooFilter<u64> {
    let buckets = table_bytes / size_of::<u64>();
    let mut capacity = buckets * slots_per_bucket;
    loop {
        let filter = build(capacity);
        let built = filter.slots() / slots_per_bucket;
        if built <= buckets && built >= buckets - buckets / 100 {
            return filter;
        }
        capacity = (capacity as f64 * buckets as f64 / built as f64) as usize - 1;
    }
}

/// `ahash` with these keys, for crates that take a type of hasher and make one with `default` for each hash.
///
/// `AHasher::default` would look up keys that were made at run time; here they are constants, which is quicker.
#[derive(Clone)]
pub(crate) struct KeyedHasher(AHasher);

impl Default for KeyedHasher {
    #[inline]
    fn default() -> Self {
        Self(HASH.build_hasher())
    }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0.write_u64(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.0.write_usize(word);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyedHasher")
    }
}

/// A setting of this crate's filter.
pub(crate) trait Setting: Sync + 'static {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// What to ask the builder for, if anything.
    const RATE: Option<f64>;
    const ENCODING: Option<Encoding>;
    /// The layout that is meant: slots per bucket and bits per fingerprint.
    const LAYOUT: (usize, u32);
}

/// What one gets who asks for nothing.
#[derive(Debug)]
pub(crate) struct Default5x14;

impl Setting for Default5x14 {
    const NAME: &'static str = "ours 5x14";
    const ABOUT: &'static str = "concurrent-cuckoo-filter, default";
    const RATE: Option<f64> = None;
    const ENCODING: Option<Encoding> = None;
    const LAYOUT: (usize, u32) = (5, 14);
}

/// The rate nearest to `atomic-cuckoo-filter`'s, in as many bits.
#[derive(Debug)]
pub(crate) struct Plain4x16;

impl Setting for Plain4x16 {
    const NAME: &'static str = "ours 4x16";
    const ABOUT: &'static str = "concurrent-cuckoo-filter, plain";
    const RATE: Option<f64> = Some(0.000_125);
    const ENCODING: Option<Encoding> = Some(Encoding::Plain);
    const LAYOUT: (usize, u32) = (4, 16);
}

/// Half that rate, in as many bits.
#[derive(Debug)]
pub(crate) struct SemiSorted4x17;

impl Setting for SemiSorted4x17 {
    const NAME: &'static str = "ours 4x17";
    const ABOUT: &'static str = "concurrent-cuckoo-filter, semi-sorted";
    const RATE: Option<f64> = Some(0.000_125);
    const ENCODING: Option<Encoding> = Some(Encoding::SemiSorted);
    const LAYOUT: (usize, u32) = (4, 17);
}

/// This crate's filter.
#[derive(Debug)]
pub(crate) struct Ours<L> {
    filter: ConcurrentCuckooFilter<u64>,
    setting: PhantomData<L>,
}

impl<L: Setting> Subject for Ours<L> {
    const NAME: &'static str = L::NAME;
    const ABOUT: &'static str = L::ABOUT;
    const KIND: Kind = Kind::Ours;

    fn build(table_bytes: usize) -> Self {
        let filter = of_size(table_bytes, L::LAYOUT.0, |capacity| {
            let mut builder = builder().capacity(capacity);
            if let Some(rate) = L::RATE {
                builder = builder.false_positive_rate(rate);
            }
            if let Some(encoding) = L::ENCODING {
                builder = builder.encoding(encoding);
            }
            builder.build().expect("a valid filter")
        });
        assert_eq!((filter.slots_per_bucket(), filter.fingerprint_bits()), L::LAYOUT, "{}", L::NAME);
        Self { filter, setting: PhantomData }
    }

    fn slots(&self) -> u64 {
        self.filter.slots() as u64
    }

    fn capacity(&self) -> u64 {
        self.filter.capacity() as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        self.filter.fingerprint_bits()
    }

    fn bytes(&self) -> usize {
        self.filter.memory_usage()
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.filter.insert(&key).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.filter.contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.filter.remove(&key)
    }
}

/// `atomic-cuckoo-filter` at its default layout, 4 fingerprints of 16 bits to a bucket, which is a word.
///
/// Its other settings don't help it: buckets of another size straddle words, which costs it a third of its lookups in
/// the L2 cache; without evictions it needs no lock, but can't be filled to 90 %.
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

/// `RwLock` around `scalable_cuckoo_filter`, also with 4 fingerprints of 16 bits to a bucket.
pub(crate) struct LockedScalable(RwLock<scalable_cuckoo_filter::ScalableCuckooFilter<u64, AHasher, SmallRng>>);

impl Subject for LockedScalable {
    const NAME: &'static str = "scalable";
    const ABOUT: &'static str = "RwLock<scalable_cuckoo_filter>";
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        let filter = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
            .initial_capacity(previous_power_of_two(table_bytes / 2))
            // It halves this and takes three bits more, the logarithm of the eight slots that a lookup reads: 13 + 3.
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

/// `RwLock` around `cuckoofilter`, whose fingerprints always have 8 bits.
pub(crate) struct LockedCuckoofilter(RwLock<cuckoofilter::CuckooFilter<KeyedHasher>>);

impl Subject for LockedCuckoofilter {
    const NAME: &'static str = "cuckoofilter";
    const ABOUT: &'static str = "RwLock<cuckoofilter>";
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        Self(RwLock::new(cuckoofilter::CuckooFilter::with_capacity(previous_power_of_two(table_bytes))))
    }

    fn slots(&self) -> u64 {
        (self.bytes() - size_of::<cuckoofilter::CuckooFilter<KeyedHasher>>()) as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        8
    }

    fn bytes(&self) -> usize {
        self.0.read().memory_usage()
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.write().add(&key).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.read().contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.write().delete(&key)
    }
}

/// What memory allows: two words on two random cache lines, whose places come from the hash of the key, and nothing
/// else.
pub(crate) struct Limit(Vec<u64>);

impl Limit {
    #[inline(always)]
    fn word(&self, hash: u64) -> u64 {
        self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize]
    }
}

impl Subject for Limit {
    const NAME: &'static str = "limit";
    const ABOUT: &'static str = "two random cache lines";
    const KIND: Kind = Kind::Limit;

    fn build(table_bytes: usize) -> Self {
        // Not zeros: those would be pages that the system shares and never loads.
        Self(vec![1; table_bytes / size_of::<u64>()])
    }

    /// So that as many keys are looked up here as elsewhere.
    fn slots(&self) -> u64 {
        self.0.len() as u64 * 4
    }

    fn fingerprint_bits(&self) -> u32 {
        0
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn insert(&self, _key: u64) -> bool {
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        let hash = HASH.hash_one(key);
        self.word(hash) & self.word(hash.rotate_left(32)) != 0
    }

    fn remove(&self, _key: u64) -> bool {
        true
    }
}

fn previous_power_of_two(n: usize) -> usize {
    1 << n.ilog2()
}
