//! This crate's filters, at some settings.

use std::ops::Range;

use ahash::RandomState;
use concurrent_cuckoo_filter::{
    ConcurrentBuilder, ConcurrentCuckooFilter, Encoding, GrowableBuilder, GrowableCuckooFilter,
};

use super::hash::HASH;
use super::keys::key;
use super::subject::{About, Built, Kind, Set, Subject, TableSize, set};

pub(crate) type Fixed = ConcurrentCuckooFilter<u64, RandomState>;
pub(crate) type Growable = GrowableCuckooFilter<u64, RandomState>;

/// How many keys a batch has.
pub(crate) const BATCH: usize = 1024;

/// A builder of this crate's filter, with the common hash, and without huge pages, because the others have none
/// either.
pub(crate) fn builder() -> ConcurrentBuilder<u64, RandomState> {
    ConcurrentCuckooFilter::builder().hasher(HASH)
}

/// A builder of a filter that grows, with the common hash, and without huge pages.
pub(crate) fn growable() -> GrowableBuilder<u64, RandomState> {
    GrowableCuckooFilter::builder().hasher(HASH)
}

/// This crate's filter with the largest table in this many bytes, or one that is at most 1% smaller. `build` makes
/// one of a given capacity.
///
/// The builder takes a capacity, so the capacity for a table of this size is approached by the rule of three.
pub(crate) fn of_size(table_bytes: usize, slots_per_bucket: usize, build: impl Fn(usize) -> Fixed) -> Fixed {
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

/// An empty filter of the default layout with a table of this many bytes.
pub(crate) fn default_5x14(table_bytes: usize) -> Fixed {
    of_size(table_bytes, 5, |capacity| builder().capacity(capacity).build().expect("a valid filter"))
}

/// The rate closest to that of `atomic-cuckoo-filter`, in as many bits.
pub(crate) fn plain_4x16(table_bytes: usize) -> Fixed {
    let builder = builder().false_positive_rate(0.000_125).encoding(Encoding::Plain);
    of_size(table_bytes, 4, |capacity| builder.clone().capacity(capacity).build().expect("a valid filter"))
}

/// This filter, which must have such a layout: slots per bucket and bits per fingerprint.
fn built(filter: Fixed, layout: (usize, u32)) -> Built<Fixed> {
    let plan = filter.plan();
    assert_eq!((plan.layout.slots_per_bucket, plan.layout.fingerprint_bits), layout);
    let size = TableSize::new(plan.slots, filter.stats().memory_usage);
    Built { size: TableSize { capacity: filter.capacity() as u64, ..size }, set: filter }
}

/// The default settings.
pub(crate) const DEFAULT_5X14: Subject<Fixed> = Subject {
    about: About { name: "ours 5x14", about: "concurrent-cuckoo-filter, default", kind: Kind::Ours, removes: true },
    build: |table_bytes| built(default_5x14(table_bytes), (5, 14)),
};

pub(crate) const PLAIN_4X16: Subject<Fixed> = Subject {
    about: About { name: "ours 4x16", about: "concurrent-cuckoo-filter, plain", kind: Kind::Ours, removes: true },
    build: |table_bytes| built(plain_4x16(table_bytes), (4, 16)),
};

/// This crate's filters of items without values, as far as the benchmarks need them.
pub(crate) trait Ours: Set + Sized {
    /// An empty one for this many keys, at the default rate.
    fn of_keys(keys: usize) -> Self;
    fn insert_batch(&self, keys: &[u64]);
    fn contains_batch(&self, keys: &[u64], found: &mut Vec<bool>);
}

macro_rules! ours {
    ($Filter:ty, $builder:expr) => {
        set!($Filter, |filter, key| filter.insert(&key).is_ok(), filter.contains(&key), filter.remove(&key));

        impl Ours for $Filter {
            fn of_keys(keys: usize) -> Self {
                $builder.capacity(keys).build().expect("a valid filter")
            }

            fn insert_batch(&self, keys: &[u64]) {
                self.insert_batch(keys).expect("room");
            }

            fn contains_batch(&self, keys: &[u64], found: &mut Vec<bool>) {
                self.contains_batch(keys, found);
            }
        }
    };
}
ours!(Fixed, builder());
ours!(Growable, growable());

/// Inserts the keys of these numbers in batches, without an array of all of them.
pub(crate) fn fill(filter: &impl Ours, numbers: Range<u64>) {
    for start in numbers.clone().step_by(BATCH) {
        let keys: Vec<u64> = (start..numbers.end.min(start + BATCH as u64)).map(key).collect();
        filter.insert_batch(&keys);
    }
}
