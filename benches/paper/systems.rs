//! What is compared: this crate's filter in each of its layouts, the systems of the paper, and systems in common
//! use today.
//!
//! # What is the same for all
//! - The keys, and the hash: `ahash` with the same constants. A crate that takes a hash gets that.
//! - The memory. A system whose size is a power of two gets the nearest one *below*, or three times one.
//! - The fill: each is filled to what it is made for, its *capacity*. Ours and the quotient filter report theirs.
//!   The other cuckoo filters take 95% of their slots, and the d-left counting Bloom filter 6 keys to a bucket of
//!   8. The Bloom filters have 13 bits for each key, as in the paper, and the counting one has four times as many.

use concurrent_cuckoo_filter::Encoding;

use super::filters::{CountingBloom, DLeft};
use super::layout::Layout;
use super::support::exact::{SccIndex, exact};
use super::support::hash::HASH;
use super::support::ours::growable;
use super::support::peers::{ATOMIC, SCALABLE};
use super::support::subject::{Set, Subject};
use super::timed::{self, Timed};

/// One of the systems.
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) removes: bool,
    /// An empty one that takes this many bytes, or slightly less.
    pub(crate) build: Box<dyn Fn(usize) -> Built>,
}

/// A system at one size.
pub(crate) struct Built {
    pub(crate) filter: Box<dyn Timed>,
    /// The memory, if it is known before the keys are in.
    pub(crate) bytes: Option<usize>,
    /// How many keys it is made for.
    pub(crate) capacity: u64,
    /// The false-positive rate that is expected at capacity, if there is a formula.
    pub(crate) rate: Option<f64>,
}

impl Built {
    fn new<F: 'static>(
        filter: F,
        (bytes, capacity): (usize, u64),
        insert: impl Fn(&mut F, u64) -> bool + 'static,
        contains: impl Fn(&F, u64) -> bool + 'static,
        remove: impl Fn(&mut F, u64) -> bool + 'static,
    ) -> Self {
        let filter = Box::new(timed::System { filter, insert, contains, remove });
        Self { filter, bytes: Some(bytes), capacity, rate: None }
    }

    fn of<S: Set + 'static>(set: S, bytes: usize, capacity: u64) -> Self {
        Self::new(set, (bytes, capacity), |set, key| set.insert(key), S::contains, |set, key| set.remove(key))
    }

    fn with_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }
}

/// All systems, ours first.
pub(crate) fn systems() -> Vec<System> {
    let mut systems: Vec<System> = Layout::all().into_iter().map(ours).collect();
    systems.extend([
        system("ours, growable", "GrowableCuckooFilter, from its smallest size to its largest", grown),
        System {
            removes: false,
            ..system("Bloom", "fastbloom, 13 bits a key, 9 hashes", |bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = fastbloom::BloomFilter::with_num_bits(bytes * 8).hasher(HASH).expected_items(keys);
                assert_eq!(u64::from(filter.num_hashes()), BLOOM_HASHES);
                let insert = |filter: &mut fastbloom::BloomFilter<_>, key| {
                    filter.insert(&key);
                    true
                };
                let contains = |filter: &fastbloom::BloomFilter<_>, key| filter.contains(&key);
                Built::new(filter, (bytes, keys as u64), insert, contains, |_, _| false).with_rate(bloom_rate())
            })
        },
        System {
            removes: false,
            ..system("blocked Bloom", "sbbf-rs-safe: split blocks of 32 bytes, 13 bits a key", |bytes| {
                let filter = sbbf_rs_safe::Filter::new(8, bytes);
                let size = (filter.as_bytes().len(), (bytes * 8 / BLOOM_BITS) as u64);
                let insert = |filter: &mut sbbf_rs_safe::Filter, key| {
                    filter.insert_hash(HASH.hash_one(key));
                    true
                };
                let contains = |filter: &sbbf_rs_safe::Filter, key| filter.contains_hash(HASH.hash_one(key));
                Built::new(filter, size, insert, contains, |_, _| false)
            })
        },
        system("quotient", "qfilter, 9 bits of remainder", |bytes| {
            // The largest power of two of slots, at 9 and 2.125 bits each. 95% of them may be taken.
            let slots = (bytes as f64 * 8.0 / (QUOTIENT_BITS as f64 + 2.125)).log2().floor() as u8;
            let capacity = (1u64 << slots) * 9 / 10;
            let filter = qfilter::Filter::with_fingerprint_size(capacity, slots + QUOTIENT_BITS);
            let filter = filter.expect("a valid filter");
            let size = (filter.memory_usage(), filter.capacity());
            Built::new(
                filter,
                size,
                // As many copies as there are keys of one fingerprint. Otherwise a removal would remove the others too.
                |filter, key| filter.insert_fingerprint(true, HASH.hash_one(key)).is_ok(),
                |filter, key| filter.contains_fingerprint(HASH.hash_one(key)),
                |filter, key| filter.remove_fingerprint(HASH.hash_one(key)),
            )
            // A lookup compares with the remainders of its own slot's keys, 0.95 of them on average.
            .with_rate(0.95 / f64::from(1 << QUOTIENT_BITS))
        }),
        system("d-left counting Bloom", "written here: 14 bits of remainder, counters of 2 bits", |bytes| {
            let filter = DLeft::new(bytes);
            let size = (filter.bytes(), filter.capacity());
            Built::new(
                filter,
                size,
                |filter, key| filter.insert_hash(HASH.hash_one(key)),
                |filter, key| filter.contains_hash(HASH.hash_one(key)),
                |filter, key| filter.remove_hash(HASH.hash_one(key)),
            )
            .with_rate(DLeft::RATE)
        }),
        system("counting Bloom", "written here: counters of 4 bits, 13 a key, 9 hashes", |bytes| {
            let filter = CountingBloom::new(bytes, BLOOM_HASHES);
            let size = (bytes, filter.counters() / BLOOM_BITS as u64);
            Built::new(
                filter,
                size,
                |filter, key| filter.insert_hash(HASH.hash_one(key)),
                |filter, key| filter.contains_hash(HASH.hash_one(key)),
                |filter, key| filter.remove_hash(HASH.hash_one(key)),
            )
            .with_rate(bloom_rate())
        }),
        peer(&ATOMIC, "atomic-cuckoo-filter, 4 slots of 16 bits"),
        peer(&SCALABLE, "scalable_cuckoo_filter in a parking_lot::RwLock, 4 slots of 16 bits"),
        system("exact set", "scc::HashIndex<u64, ()>", |bytes| {
            let built = (exact::<SccIndex>().build)(bytes);
            // Its memory is known when the keys are in.
            Built { bytes: None, ..Built::of(built.set, 0, built.size.slots) }
        }),
    ]);
    systems
}

/// One that can remove.
fn system(name: &str, about: &'static str, build: impl Fn(usize) -> Built + 'static) -> System {
    System { name: name.into(), about, removes: true, build: Box::new(build) }
}

/// Another crate's filter, with the settings of the other benchmarks.
fn peer<S: Set + 'static>(peer: &Subject<S>, about: &'static str) -> System {
    let build = peer.build;
    system(peer.about.name, about, move |bytes| {
        let built = build(bytes);
        Built::of(built.set, built.size.bytes, built.size.capacity)
    })
}

const BLOOM_BITS: usize = 13;
const BLOOM_HASHES: u64 = 9;

/// The probability that other keys have set all of a key's bits.
fn bloom_rate() -> f64 {
    let hashes = BLOOM_HASHES as f64;
    (1.0 - (-hashes / BLOOM_BITS as f64).exp()).powf(hashes)
}

const QUOTIENT_BITS: u8 = 9;

/// One of this crate's layouts.
fn ours(layout: Layout) -> System {
    let about = if layout.encoding == Encoding::SemiSorted { "semi-sorted" } else { "plain" };
    system(&format!("ours {}", layout.name()), about, move |bytes| {
        let filter = layout.with_bytes(bytes);
        let (bytes, capacity) = (filter.stats().memory_usage, filter.capacity() as u64);
        let rate = filter.plan().max_false_positive_rate;
        Built::of(filter, bytes, capacity).with_rate(rate)
    })
}

/// A growable filter that takes this many bytes at its largest size, or up to 2% less.
fn grown(bytes: usize) -> Built {
    let builder = || growable().capacity(0);
    let (mut most, mut takes) = (bytes / size_of::<u64>() * 5, usize::MAX);
    while takes > bytes {
        most -= most / 64;
        let plan = builder().max_capacity(most).plan().expect("a valid filter");
        takes = plan.max_memory_usage.expect("a growable filter has a largest size");
    }
    let filter = builder().max_capacity(most).build().expect("a valid filter");
    let capacity = filter.max_capacity() as u64;
    Built::of(filter, takes, capacity)
}
