//! What is compared: this crate's filter in each of its layouts, the systems of the paper, and systems in common
//! use today.
//!
//! # What is the same for all
//! - The keys, and the hash: `ahash` with the same constants. A crate that takes a hash gets that.
//! - The memory. A system whose size is a power of two gets the nearest one *below*, or three times one.
//! - The fill: each is filled to what it is made for, its *capacity*. Ours and the quotient filter report theirs.
//!   The other cuckoo filters take 95 % of their slots, and the d-left counting Bloom filter 6 keys to a bucket of
//!   8. The Bloom filters have 13 bits for each key, as in the paper, and the counting one has four times as many.

use concurrent_cuckoo_filter::GrowableCuckooFilter;

use super::adapters::{AtomicBloom, BlockedBloom, Bloom, Exact, Peer, Quotient};
use super::filters::{CountingBloom, DLeft};
use super::layout::{Layout, at_capacity};
use super::support::hash::HASH;
use super::support::peers::{AtomicCuckooFilter, LockedScalable};
use super::support::subject::Subject;
use super::timed::{Filter, Timed};

/// How much is measured of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It is in the table and in the figures.
    Figures,
    /// It is in the table only.
    Table,
    /// It is only in the table with the measures of `fastfilter_cpp`.
    FastFilter,
}

/// One of the systems.
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) part: Part,
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
    fn new<F: Filter + 'static>(filter: F, bytes: usize, capacity: u64) -> Self {
        Self { filter: Box::new(filter), bytes: Some(bytes), capacity, rate: None }
    }

    fn with_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }
}

/// All systems, ours first.
pub(crate) fn systems() -> Vec<System> {
    let mut systems: Vec<System> = Layout::all().into_iter().map(ours).collect();
    systems.extend([
        System {
            name: "ours, growable".into(),
            about: "GrowableCuckooFilter, from its smallest size to its largest",
            part: Part::Table,
            removes: true,
            build: Box::new(growable),
        },
        System {
            name: "Bloom".into(),
            about: "fastbloom, 13 bits a key, 9 hashes",
            part: Part::Figures,
            removes: false,
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = fastbloom::BloomFilter::with_num_bits(bytes * 8).hasher(HASH).expected_items(keys);
                assert_eq!(u64::from(filter.num_hashes()), BLOOM_HASHES);
                Built::new(Bloom(filter), bytes, keys as u64).with_rate(bloom_rate())
            }),
        },
        System {
            name: "Bloom, atomic".into(),
            about: "fastbloom's AtomicBloomFilter, 13 bits a key, 9 hashes",
            part: Part::FastFilter,
            removes: false,
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).hasher(HASH).expected_items(keys);
                Built::new(AtomicBloom(filter), bytes, keys as u64).with_rate(bloom_rate())
            }),
        },
        System {
            name: "blocked Bloom".into(),
            about: "sbbf-rs-safe: split blocks of 32 bytes, 13 bits a key",
            part: Part::Figures,
            removes: false,
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = sbbf_rs_safe::Filter::new(8, bytes);
                let bytes = filter.as_bytes().len();
                Built::new(BlockedBloom(filter), bytes, keys as u64)
            }),
        },
        System {
            name: "quotient".into(),
            about: "qfilter, 9 bits of remainder",
            part: Part::Figures,
            removes: true,
            build: Box::new(|bytes| {
                // The largest power of two of slots, at 9 and 2.125 bits each. 95 % of them may be taken.
                let slots = (bytes as f64 * 8.0 / (QUOTIENT_BITS as f64 + 2.125)).log2().floor() as u8;
                let capacity = (1u64 << slots) * 9 / 10;
                let filter = qfilter::Filter::with_fingerprint_size(capacity, slots + QUOTIENT_BITS);
                let filter = filter.expect("a valid filter");
                let (bytes, capacity) = (filter.memory_usage(), filter.capacity());
                // A lookup compares with the remainders of its own slot's keys, 0.95 of them on average.
                Built::new(Quotient(filter), bytes, capacity).with_rate(0.95 / f64::from(1 << QUOTIENT_BITS))
            }),
        },
        System {
            name: "d-left counting Bloom".into(),
            about: "written here: 14 bits of remainder, counters of 2 bits",
            part: Part::Figures,
            removes: true,
            build: Box::new(|bytes| {
                let filter = DLeft::new(bytes);
                let (bytes, capacity) = (filter.bytes(), filter.capacity());
                Built::new(filter, bytes, capacity).with_rate(DLeft::RATE)
            }),
        },
        System {
            name: "counting Bloom".into(),
            about: "written here: counters of 4 bits, 13 a key, 9 hashes",
            part: Part::Figures,
            removes: true,
            build: Box::new(|bytes| {
                let filter = CountingBloom::new(bytes, BLOOM_HASHES);
                let capacity = filter.counters() / BLOOM_BITS as u64;
                Built::new(filter, bytes, capacity).with_rate(bloom_rate())
            }),
        },
        peer::<AtomicCuckooFilter>("atomic-cuckoo-filter, 4 slots of 16 bits", Part::Figures),
        peer::<LockedScalable>("scalable_cuckoo_filter in a parking_lot::RwLock, 4 slots of 16 bits", Part::Figures),
        System {
            name: "exact set".into(),
            about: "scc::HashIndex<u64, ()>",
            part: Part::Figures,
            removes: true,
            build: Box::new(|bytes| {
                let keys = bytes / EXACT_BYTES;
                let set = scc::HashIndex::with_capacity_and_hasher(keys, HASH);
                Built { bytes: None, ..Built::new(Exact(set), 0, keys as u64) }
            }),
        },
    ]);
    systems
}

const BLOOM_BITS: usize = 13;
const BLOOM_HASHES: u64 = 9;

/// The probability that other keys have set all of a key's bits.
fn bloom_rate() -> f64 {
    let hashes = BLOOM_HASHES as f64;
    (1.0 - (-hashes / BLOOM_BITS as f64).exp()).powf(hashes)
}

const QUOTIENT_BITS: u8 = 9;
/// About as many bytes as the exact set takes for a key.
const EXACT_BYTES: usize = 22;

/// One of this crate's layouts.
fn ours(layout: Layout) -> System {
    // The default, and the plain layout of the same size.
    let is_shown = (layout.slots, layout.bits) == (5, 14) || (layout.slots, layout.bits) == (5, 12);
    System {
        name: format!("ours {}", layout.name()),
        about: if layout.is_semi_sorted() { "semi-sorted" } else { "plain" },
        part: if is_shown { Part::Figures } else { Part::Table },
        removes: true,
        build: Box::new(move |bytes| {
            let filter = layout.with_bytes(bytes);
            let (bytes, capacity) = (filter.stats().memory_usage, filter.capacity() as u64);
            let (_, rate) = at_capacity(&filter);
            Built::new(filter, bytes, capacity).with_rate(rate)
        }),
    }
}

/// A growable filter that takes this many bytes at its largest size, or up to 2 % less.
fn growable(bytes: usize) -> Built {
    let builder = || GrowableCuckooFilter::builder().hasher(HASH).capacity(0);
    let (mut most, mut takes) = (bytes / size_of::<u64>() * 5, usize::MAX);
    while takes > bytes {
        most -= most / 64;
        let plan = builder().max_capacity(most).plan().expect("a valid filter");
        takes = plan.max_memory_usage.expect("a growable filter has a largest size");
    }
    let filter = builder().max_capacity(most).build().expect("a valid filter");
    let capacity = filter.max_capacity() as u64;
    Built::new(filter, takes, capacity)
}

fn peer<S: Subject>(about: &'static str, part: Part) -> System {
    System {
        name: S::NAME.into(),
        about,
        part,
        removes: true,
        build: Box::new(|bytes| {
            let filter = S::build(bytes);
            let (bytes, capacity) = (filter.bytes(), filter.capacity());
            Built::new(Peer(filter), bytes, capacity)
        }),
    }
}
