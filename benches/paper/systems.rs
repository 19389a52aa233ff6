//! What is compared: this crate's filter in each of its layouts, the systems of the paper, and what people use instead.
//!
//! # What is the same for all
//! - The keys, and the hash: `ahash` with the same constants. Where a crate takes a hash it is given that.
//! - The memory. Where a system's size goes by powers of two, it gets the nearest one *below*, or three times one.
//! - That each is filled to what it is made for, its *capacity*: ours and the quotient filter say what that is; the
//!   other cuckoo filters take 95 % of their slots, the d-left counting Bloom filter 6 keys to a bucket of 8; the Bloom
//!   filters have 13 bits for each key, which is what the paper gives them, and the counting one four times as many.

use std::fs;

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding};

use super::filters::{CountingBloom, DLeft};
use super::measure::{Concurrent, Exclusive, Timed};
use super::space::at_capacity;
use super::support::hash::HASH;
use super::support::ours::{builder, of_size};
use super::support::peers::{AtomicCuckooFilter, LockedScalable};
use super::support::subject::Subject;

/// A filter at work for one thread. Changes tell whether they succeeded.
pub(crate) trait Filter {
    fn insert(&mut self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&mut self, key: u64) -> bool;
}

/// A filter that threads can share: each has a reference, and that is a [`Filter`].
pub(crate) trait Shared: Sync {
    fn insert(&self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&self, key: u64) -> bool;
}

impl<S: Shared> Filter for &S {
    #[inline(always)]
    fn insert(&mut self, key: u64) -> bool {
        S::insert(self, key)
    }

    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        S::contains(self, key)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> bool {
        S::remove(self, key)
    }
}

/// How much is measured of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// It stands in the table and in the figures.
    Figures,
    /// It stands in the table only.
    Table,
    /// Only on two threads.
    Threads,
}

/// One of the systems.
pub(crate) struct System {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) part: Part,
    pub(crate) removes: bool,
    pub(crate) is_shared: bool,
    /// Cache lines of the table that a lookup reads: of a key that is there, and of another.
    pub(crate) lines: [&'static str; 2],
    /// An empty one that takes so many bytes, or somewhat less.
    pub(crate) build: Box<dyn Fn(usize) -> Built>,
}

impl System {
    /// Of those that threads can share, the ones in the figures, and `fastbloom`'s other version.
    pub(crate) fn is_shown_on_two_threads(&self) -> bool {
        self.part != Part::Table && self.is_shared
    }
}

/// A system at one size.
pub(crate) struct Built {
    pub(crate) filter: Box<dyn Timed>,
    /// The memory, if it is known before the keys are in.
    pub(crate) bytes: Option<usize>,
    /// How many keys it is made for.
    pub(crate) capacity: u64,
    /// The false-positive rate that is to be expected then, where there is a formula.
    pub(crate) rate: Option<f64>,
}

impl Built {
    fn shared<S: Shared + 'static>(filter: S, bytes: usize, capacity: u64) -> Self {
        Self { filter: Box::new(Concurrent(filter)), bytes: Some(bytes), capacity, rate: None }
    }

    fn exclusive<F: Filter + 'static>(filter: F, bytes: usize, capacity: u64) -> Self {
        Self { filter: Box::new(Exclusive(filter)), bytes: Some(bytes), capacity, rate: None }
    }

    fn with_rate(self, rate: f64) -> Self {
        Self { rate: Some(rate), ..self }
    }
}

/// Everything that is compared, ours first.
pub(crate) fn systems() -> Vec<System> {
    let mut systems: Vec<System> = Layout::all().into_iter().map(Layout::system).collect();
    systems.extend([
        System {
            name: "Bloom".into(),
            about: "fastbloom, 13 bits a key, 9 hashes",
            part: Part::Figures,
            removes: false,
            is_shared: false,
            lines: ["9", "2"],
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = fastbloom::BloomFilter::with_num_bits(bytes * 8).hasher(HASH).expected_items(keys);
                assert_eq!(u64::from(filter.num_hashes()), BLOOM_HASHES);
                Built::exclusive(Bloom(filter), bytes, keys as u64).with_rate(bloom_rate())
            }),
        },
        System {
            name: "Bloom, atomic".into(),
            about: "fastbloom's AtomicBloomFilter, 13 bits a key, 9 hashes",
            part: Part::Threads,
            removes: false,
            is_shared: true,
            lines: ["9", "2"],
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = fastbloom::AtomicBloomFilter::with_num_bits(bytes * 8).hasher(HASH).expected_items(keys);
                Built::shared(AtomicBloom(filter), bytes, keys as u64).with_rate(bloom_rate())
            }),
        },
        System {
            name: "blocked Bloom".into(),
            about: "sbbf-rs-safe: split blocks of 32 bytes, 13 bits a key",
            part: Part::Figures,
            removes: false,
            is_shared: false,
            lines: ["1", "1"],
            build: Box::new(|bytes| {
                let keys = bytes * 8 / BLOOM_BITS;
                let filter = sbbf_rs_safe::Filter::new(8, bytes);
                let bytes = filter.as_bytes().len();
                Built::exclusive(BlockedBloom(filter), bytes, keys as u64)
            }),
        },
        System {
            name: "quotient".into(),
            about: "qfilter, 9 bits of remainder",
            part: Part::Figures,
            removes: true,
            is_shared: false,
            lines: ["2 or more", "1 or more"],
            build: Box::new(|bytes| {
                // The largest power of two of slots, at 9 and 2.125 bits each. 95 % of them may be taken.
                let slots = (bytes as f64 * 8.0 / (QUOTIENT_BITS as f64 + 2.125)).log2().floor() as u8;
                let capacity = (1u64 << slots) * 9 / 10;
                let filter = qfilter::Filter::with_fingerprint_size(capacity, slots + QUOTIENT_BITS);
                let filter = filter.expect("a valid filter");
                let (bytes, capacity) = (filter.memory_usage(), filter.capacity());
                // A lookup meets the remainders of its own slot's keys, 0.95 of them on the average.
                Built::exclusive(Quotient(filter), bytes, capacity).with_rate(0.95 / f64::from(1 << QUOTIENT_BITS))
            }),
        },
        System {
            name: "d-left counting Bloom".into(),
            about: "written here: 14 bits of remainder, counters of 2 bits",
            part: Part::Figures,
            removes: true,
            is_shared: false,
            lines: ["1-3", "3"],
            build: Box::new(|bytes| {
                let filter = DLeft::new(bytes);
                let (bytes, capacity) = (filter.bytes(), filter.capacity());
                Built::exclusive(filter, bytes, capacity).with_rate(DLeft::RATE)
            }),
        },
        System {
            name: "counting Bloom".into(),
            about: "written here: counters of 4 bits, 13 a key, 9 hashes",
            part: Part::Figures,
            removes: true,
            is_shared: false,
            lines: ["9", "2"],
            build: Box::new(|bytes| {
                let filter = CountingBloom::new(bytes, BLOOM_HASHES);
                let capacity = filter.counters() / BLOOM_BITS as u64;
                Built::exclusive(filter, bytes, capacity).with_rate(bloom_rate())
            }),
        },
        peer::<AtomicCuckooFilter>("atomic-cuckoo-filter, 4 slots of 16 bits", Part::Figures),
        peer::<LockedScalable>("scalable_cuckoo_filter in a parking_lot::RwLock, 4 slots of 16 bits", Part::Figures),
        System {
            name: "exact set".into(),
            about: "scc::HashIndex<u64, ()>",
            part: Part::Figures,
            removes: true,
            is_shared: true,
            lines: ["-", "-"],
            build: Box::new(|bytes| {
                let keys = bytes / EXACT_BYTES;
                let set = scc::HashIndex::with_capacity_and_hasher(keys, HASH);
                Built { bytes: None, ..Built::shared(Exact(set), 0, keys as u64) }
            }),
        },
    ]);
    systems
}

const BLOOM_BITS: usize = 13;
const BLOOM_HASHES: u64 = 9;

/// The chance that all of a key's bits were set by others.
fn bloom_rate() -> f64 {
    let hashes = BLOOM_HASHES as f64;
    (1.0 - (-hashes / BLOOM_BITS as f64).exp()).powf(hashes)
}

const QUOTIENT_BITS: u8 = 9;
/// About what the exact set takes for a key.
const EXACT_BYTES: usize = 22;

/// The memory that the process occupies, where the system tells: the exact set doesn't say what it takes.
pub(crate) fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
}

/// One of this crate's layouts, found through its builder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) encoding: Encoding,
    pub(crate) slots: usize,
    pub(crate) bits: u32,
    /// With every slot taken. Who asks for this rate and this encoding gets this layout.
    pub(crate) rate: f64,
}

impl Layout {
    /// By memory, and then by rate, as the builder looks through them.
    pub(crate) fn all() -> Vec<Self> {
        let mut layouts = Vec::new();
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            // Each is the cheapest for its own rate; what is asked for next is a rate that it can't meet.
            let mut wanted = 0.5;
            while let Ok(filter) = Self::builder(encoding, wanted).capacity(1000).build() {
                let (slots, bits, rate) =
                    (filter.slots_per_bucket(), filter.fingerprint_bits(), filter.max_false_positive_rate());
                layouts.push(Self { encoding, slots, bits, rate });
                wanted = rate * 0.999;
            }
        }
        layouts.sort_by(|one, other| other.rate.total_cmp(&one.rate));
        layouts
    }

    fn builder(encoding: Encoding, rate: f64) -> concurrent_cuckoo_filter::Builder<u64, RandomState> {
        builder().encoding(encoding).false_positive_rate(rate)
    }

    pub(crate) fn is_semi_sorted(self) -> bool {
        self.encoding == Encoding::SemiSorted
    }

    /// Such as "5x14".
    pub(crate) fn name(self) -> String {
        format!("{}x{}{}", self.slots, self.bits, if self.is_semi_sorted() { "s" } else { "" })
    }

    /// The largest table in so many bytes, or one that is at most 1 % smaller.
    pub(crate) fn with_bytes(self, bytes: usize) -> ConcurrentCuckooFilter<u64> {
        of_size(bytes, self.slots, |capacity| {
            Self::builder(self.encoding, self.rate).capacity(capacity).build().expect("a valid filter")
        })
    }

    fn system(self) -> System {
        // The default, and the plain layout of the same size.
        let is_shown = (self.slots, self.bits) == (5, 14) || (self.slots, self.bits) == (5, 12);
        System {
            name: format!("ours {}", self.name()),
            about: if self.is_semi_sorted() { "semi-sorted" } else { "plain" },
            part: if is_shown { Part::Figures } else { Part::Table },
            removes: true,
            is_shared: true,
            lines: ["2", "2"],
            build: Box::new(move |bytes| {
                let filter = self.with_bytes(bytes);
                let (bytes, capacity) = (filter.memory_usage(), filter.capacity() as u64);
                let (_, rate) = at_capacity(&filter);
                Built::shared(Ours(filter), bytes, capacity).with_rate(rate)
            }),
        }
    }
}

fn peer<S: Subject>(about: &'static str, part: Part) -> System {
    System {
        name: S::NAME.into(),
        about,
        part,
        removes: true,
        is_shared: true,
        lines: ["1-2", "2"],
        build: Box::new(|bytes| {
            let filter = S::build(bytes);
            let (bytes, capacity) = (filter.bytes(), filter.capacity());
            Built::shared(Peer(filter), bytes, capacity)
        }),
    }
}

struct Ours(ConcurrentCuckooFilter<u64>);

impl Shared for Ours {
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

struct Peer<S>(S);

impl<S: Subject> Shared for Peer<S> {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.insert(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.remove(key)
    }
}

struct Bloom(fastbloom::BloomFilter<RandomState>);

impl Filter for Bloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn remove(&mut self, _key: u64) -> bool {
        false
    }
}

struct AtomicBloom(fastbloom::AtomicBloomFilter<RandomState>);

impl Shared for AtomicBloom {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.insert(&key);
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    fn remove(&self, _key: u64) -> bool {
        false
    }
}

struct BlockedBloom(sbbf_rs_safe::Filter);

impl Filter for BlockedBloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert_hash(HASH.hash_one(key));
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains_hash(HASH.hash_one(key))
    }

    fn remove(&mut self, _key: u64) -> bool {
        false
    }
}

struct Quotient(qfilter::Filter);

impl Filter for Quotient {
    /// As many copies as there are keys of one fingerprint, or else a removal would take away the others.
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.0.insert_fingerprint(true, HASH.hash_one(key)).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains_fingerprint(HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        self.0.remove_fingerprint(HASH.hash_one(key))
    }
}

impl Filter for DLeft {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        DLeft::insert(self, HASH.hash_one(key))
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        DLeft::contains(self, HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        DLeft::remove(self, HASH.hash_one(key))
    }
}

impl Filter for CountingBloom {
    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        CountingBloom::insert(self, HASH.hash_one(key));
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        CountingBloom::contains(self, HASH.hash_one(key))
    }

    #[inline]
    fn remove(&mut self, key: u64) -> bool {
        CountingBloom::remove(self, HASH.hash_one(key))
    }
}

struct Exact(scc::HashIndex<u64, (), RandomState>);

impl Shared for Exact {
    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.insert_sync(key, ()).is_ok()
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.remove_sync(&key)
    }
}
