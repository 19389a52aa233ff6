//! Filters and maplets with a hasher of a known key, their snapshots, and how to load them.

use std::fmt::Debug;

use concurrent_cuckoo_filter::{
    ConcurrentBuilder, ConcurrentCuckooFilter, CuckooMaplet, ExpiringBuilder, ExpiringCuckooFilter, FromSnapshot,
    GrowableCuckooFilter, LoadError, Loader, MapletBuilder, Save, StableHashBuilder, Tick, Viewed,
};

use crate::agreed::agreed;
use crate::kinds::Table;
use crate::support::{Layout, MapletLayout, scattered};

pub(crate) type Filter = ConcurrentCuckooFilter<u64, StableHashBuilder>;
pub(crate) type Growable = GrowableCuckooFilter<u64, StableHashBuilder>;
pub(crate) type Maplet = CuckooMaplet<u64, StableHashBuilder>;
pub(crate) type Expiring = ExpiringCuckooFilter<u64, StableHashBuilder>;

pub(crate) fn state() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"a key for tests.")
}

/// A filter of any kind.
pub(crate) trait Kind: Debug + Viewed<Hasher = StableHashBuilder> + FromSnapshot<StableHashBuilder> {
    fn begin(&self) -> Save<'_>;
}

macro_rules! kinds {
    ($($Filter:ty),+) => {
        $(impl Kind for $Filter {
            fn begin(&self) -> Save<'_> {
                self.begin_save().unwrap()
            }
        })+
    };
}
kinds!(Filter, Growable, Maplet, Expiring);

pub(crate) fn saved(filter: &impl Kind) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.begin().write_to(&mut bytes).unwrap();
    bytes
}

pub(crate) fn load_within<F: Kind>(bytes: &[u8], limit: usize) -> Result<F, LoadError> {
    let loaded = Loader::<F, _>::new(state(), limit).load(bytes);
    agreed(bytes, state(), loaded.map(|loaded| loaded.filter))
}

pub(crate) fn load<F: Kind>(bytes: &[u8]) -> Result<F, LoadError> {
    load_within(bytes, 1 << 30)
}

pub(crate) fn build((encoding, rate, ..): Layout, capacity: usize) -> Filter {
    let builder = builder().capacity(capacity).false_positive_rate(rate);
    builder.encoding(encoding).build().unwrap()
}

/// `ConcurrentCuckooFilter::builder` with the hasher.
pub(crate) fn builder() -> ConcurrentBuilder<u64, StableHashBuilder> {
    ConcurrentCuckooFilter::<u64>::builder().hasher(state())
}

pub(crate) fn build_maplet((value_bits, rate, ..): MapletLayout, capacity: usize) -> Maplet {
    maplet_builder().capacity(capacity).value_bits(value_bits).false_positive_rate(rate).build().unwrap()
}

pub(crate) fn maplet_builder() -> MapletBuilder<u64, StableHashBuilder> {
    CuckooMaplet::<u64, _>::builder_with_hasher(state())
}

/// A value of this many bits for a key. The keys up to `2^value_bits` all have different values.
pub(crate) fn value_of(key: u64, value_bits: u32) -> u16 {
    (key.wrapping_mul(0x9e37_79b9) % (1 << value_bits)) as u16
}

/// A filter whose ends have as many bits as the values of the maplet with this layout. So it has that layout. Its
/// lifetimes are the longest for this number of bits.
pub(crate) fn build_expiring((expiry_bits, rate, ..): MapletLayout, capacity: usize) -> Expiring {
    let builder = expiring_builder().capacity(capacity).lifetime_in_ticks((1 << expiry_bits) - 1);
    builder.false_positive_rate(rate).build().unwrap()
}

pub(crate) fn expiring_builder() -> ExpiringBuilder<u64, StableHashBuilder> {
    ExpiringCuckooFilter::<u64, _>::builder_with_hasher(state())
}

/// This many keys, of which no two are of one class, so that no key is found by another's entry. The filter must be
/// empty, and is empty again afterwards.
pub(crate) fn distinct_keys(filter: &Expiring, count: usize) -> Vec<u64> {
    let end = filter.now().unwrap().get() + filter.plan().lifetime_in_ticks.unwrap();
    let keys: Vec<u64> =
        (0..).filter(|key| filter.insert_if_absent_until(key, Tick::new(end)).unwrap()).take(count).collect();
    filter.clear();
    keys
}

/// A filter with a few entries. One key has two. One that grows has grown.
pub(crate) fn small<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) -> F {
    let filter = new(20);
    let keys = if F::NAME.starts_with("Growable") { 200 } else { 15 };
    for (nth, number) in (0..keys).map(|nth| (nth, number(nth))).chain([(1, number(2))]) {
        assert_eq!(filter.insert(&(scattered(nth), number)), Ok(true));
    }
    filter
}

/// A filter that has grown from 32 buckets to some more than 128.
pub(crate) fn small_growable() -> Growable {
    let builder = Growable::builder_with_hasher(state()).capacity(10).false_positive_rate(0.03);
    let filter = builder.build().unwrap();
    let first = filter.capacity();
    (0..).take_while(|_| filter.capacity() < 4 * first).for_each(|key| filter.insert(&key).unwrap());
    filter
}
