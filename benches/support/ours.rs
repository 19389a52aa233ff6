//! This crate's filter, at some settings.

use std::marker::PhantomData;

use ahash::RandomState;
use concurrent_cuckoo_filter::{Builder, ConcurrentCuckooFilter, Encoding};

use super::hash::HASH;
use super::subject::{Kind, Subject};

/// A builder of this crate's filter, with the common hash, and without huge pages, because the others have none
/// either.
pub(crate) fn builder() -> Builder<u64, RandomState> {
    ConcurrentCuckooFilter::builder().hasher(HASH)
}

/// This crate's filter with the largest table in this many bytes, or one that is at most 1 % smaller. `build` makes
/// one of a given capacity.
///
/// The builder takes a capacity, so the capacity for a table of this size is approached by the rule of three.
pub(crate) fn of_size(
    table_bytes: usize,
    slots_per_bucket: usize,
    build: impl Fn(usize) -> ConcurrentCuckooFilter<u64, RandomState>,
) -> ConcurrentCuckooFilter<u64, RandomState> {
    let buckets = table_bytes / size_of::<u64>();
    let mut capacity = buckets * slots_per_bucket;
    loop {
        let filter = build(capacity);
        let built = filter.plan().slots / slots_per_bucket;
        if built <= buckets && built >= buckets - buckets / 100 {
            return filter;
        }
        capacity = (capacity as f64 * buckets as f64 / built as f64) as usize - 1;
    }
}

/// A setting of this crate's filter.
pub(crate) trait Setting: Sync + 'static {
    const NAME: &'static str;
    const ABOUT: &'static str;
    /// The rate to request from the builder, if any.
    const RATE: Option<f64>;
    const ENCODING: Option<Encoding>;
    /// The layout that must result: slots per bucket and bits per fingerprint.
    const LAYOUT: (usize, u32);
}

/// The default settings.
#[derive(Debug)]
pub(crate) struct Default5x14;

impl Setting for Default5x14 {
    const NAME: &'static str = "ours 5x14";
    const ABOUT: &'static str = "concurrent-cuckoo-filter, default";
    const RATE: Option<f64> = None;
    const ENCODING: Option<Encoding> = None;
    const LAYOUT: (usize, u32) = (5, 14);
}

/// The rate closest to that of `atomic-cuckoo-filter`, in as many bits.
#[derive(Debug)]
pub(crate) struct Plain4x16;

impl Setting for Plain4x16 {
    const NAME: &'static str = "ours 4x16";
    const ABOUT: &'static str = "concurrent-cuckoo-filter, plain";
    const RATE: Option<f64> = Some(0.000_125);
    const ENCODING: Option<Encoding> = Some(Encoding::Plain);
    const LAYOUT: (usize, u32) = (4, 16);
}

/// This crate's filter.
#[derive(Debug)]
pub(crate) struct Ours<L> {
    filter: ConcurrentCuckooFilter<u64, RandomState>,
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
        assert_eq!(
            (filter.plan().layout.slots_per_bucket, filter.plan().layout.fingerprint_bits),
            L::LAYOUT,
            "{}",
            L::NAME
        );
        Self { filter, setting: PhantomData }
    }

    fn slots(&self) -> u64 {
        self.filter.plan().slots as u64
    }

    fn capacity(&self) -> u64 {
        self.filter.capacity() as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        self.filter.plan().layout.fingerprint_bits
    }

    fn bytes(&self) -> usize {
        self.filter.stats().memory_usage
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
