//! The operations of the library's filters as one trait, and filters of each kind in each layout.

// Each test binary uses a part of this.
#![allow(dead_code, unused_macros, unused_imports, unreachable_pub)]

use std::error::Error;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use concurrent_cuckoo_filter::{
    AbsorbError, BuildError, ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, ExpiringInsertError,
    FilterPlan, GrowableCuckooFilter, GrowableInsertError, InsertError, MapletInsertError, Stats, Tick,
};

use super::support::{Identity, MapletLayout, Raw};

pub type Hasher = BuildHasherDefault<Identity>;
pub type Growable = GrowableCuckooFilter<Raw, Hasher>;
pub type Maplet = CuckooMaplet<Raw, Hasher>;
pub type Expiring = ExpiringCuckooFilter<Raw, Hasher>;

/// A filter of the library. An entry is a key with a number: its value, its end, or 0.
pub trait Table: fmt::Debug + Sync + Sized {
    type Error: Error + PartialEq;
    /// Its name.
    const NAME: &str;

    /// Returns whether the entry was kept.
    fn insert(&self, entry: &(Raw, u64)) -> Result<bool, Self::Error>;
    fn insert_if_absent(&self, entry: &(Raw, u64)) -> Result<bool, Self::Error>;
    fn remove(&self, entry: &(Raw, u64)) -> bool;
    fn contains(&self, key: &Raw) -> bool;
    fn clear(&self);
    fn len(&self) -> usize;
    fn capacity(&self) -> usize;
    /// The number of slots, and of slots of a bucket.
    fn slots(&self) -> (usize, usize);
    fn plan(&self) -> FilterPlan;
    fn stats(&self) -> Stats;
    fn digest(&self) -> u64;
    /// An empty filter like this one.
    fn another(&self) -> Self {
        self.try_another().expect("there is memory")
    }
    fn try_another(&self) -> Result<Self, BuildError>;
    fn absorb(&self, other: &Self) -> Result<u64, AbsorbError>;
    fn unite(&self, other: &Self) -> Result<u64, AbsorbError>;
    /// A number that no entry can have.
    fn invalid(&self) -> Option<u64>;

    /// If an entry is refused, returns how many went in before it. If entries expire, appends whether each was kept.
    fn insert_each(&self, entries: &[(Raw, u64)], kept: &mut Vec<bool>) -> Result<(), (usize, Self::Error)>;
    fn insert_all(&self, entries: &[(Raw, u64)]) -> Result<(), (usize, Self::Error)> {
        self.insert_each(entries, &mut Vec::new())
    }
    /// Appends whether each was added. Returns how many were.
    fn insert_all_absent(&self, entries: &[(Raw, u64)], added: &mut Vec<bool>) -> Result<usize, (usize, Self::Error)>;
    fn remove_each(&self, entries: &[(Raw, u64)], removed: &mut Vec<bool>);
    fn remove_all(&self, entries: &[(Raw, u64)]) -> Vec<bool> {
        let mut removed = Vec::new();
        self.remove_each(entries, &mut removed);
        removed
    }
    fn contains_each(&self, keys: &[Raw], found: &mut Vec<bool>);
    fn contains_all(&self, keys: &[Raw]) -> Vec<bool> {
        let mut found = Vec::new();
        self.contains_each(keys, &mut found);
        found
    }

    #[cfg(feature = "snapshot")]
    fn begin_save(&self) -> concurrent_cuckoo_filter::Save<'_>;
    #[cfg(feature = "snapshot")]
    fn begin_save_owned(self: &Arc<Self>) -> concurrent_cuckoo_filter::Save<'static>
    where
        Self: 'static;
    #[cfg(feature = "snapshot")]
    fn saved(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.begin_save().write_to(&mut bytes).expect("there is memory");
        bytes
    }
    #[cfg(feature = "snapshot")]
    fn loaded(bytes: &[u8]) -> Self {
        Self::load_within(bytes, usize::MAX).expect("it was just saved")
    }
    #[cfg(feature = "snapshot")]
    fn load_within(bytes: &[u8], limit: usize) -> Result<Self, concurrent_cuckoo_filter::LoadError>;
}

macro_rules! table {
    (
        $($Filter:ident $Error:ident),+, |$filter:ident, $key:ident, $number:ident, $entries:ident|
        insert: $insert:expr, insert_if_absent: $insert_if_absent:expr, remove: $remove:expr,
        insert_each($kept:ident): $insert_each:expr, insert_all_absent($added:ident): $insert_all_absent:expr,
        remove_each($removed:ident): $remove_each:expr, invalid: $invalid:expr
    ) => {
        $(
            impl Table for $Filter<Raw, Hasher> {
                type Error = $Error;
                const NAME: &str = stringify!($Filter);

                fn insert(&self, ($key, $number): &(Raw, u64)) -> Result<bool, $Error> {
                    let ($filter, _) = (self, $number);
                    $insert
                }

                fn insert_if_absent(&self, ($key, $number): &(Raw, u64)) -> Result<bool, $Error> {
                    let ($filter, _) = (self, $number);
                    $insert_if_absent
                }

                fn remove(&self, ($key, $number): &(Raw, u64)) -> bool {
                    let ($filter, _) = (self, $number);
                    $remove
                }

                fn contains(&self, key: &Raw) -> bool {
                    $Filter::contains(self, key)
                }

                fn clear(&self) {
                    $Filter::clear(self);
                }

                fn len(&self) -> usize {
                    $Filter::len(self)
                }

                fn capacity(&self) -> usize {
                    $Filter::capacity(self)
                }

                fn slots(&self) -> (usize, usize) {
                    (self.plan().slots, self.plan().layout.slots_per_bucket)
                }

                fn plan(&self) -> FilterPlan {
                    $Filter::plan(self)
                }

                fn stats(&self) -> Stats {
                    $Filter::stats(self)
                }

                fn digest(&self) -> u64 {
                    $Filter::digest(self).expect("there is memory")
                }

                fn try_another(&self) -> Result<Self, BuildError> {
                    self.empty_like()
                }

                fn absorb(&self, other: &Self) -> Result<u64, AbsorbError> {
                    $Filter::absorb(self, other)
                }

                fn unite(&self, other: &Self) -> Result<u64, AbsorbError> {
                    $Filter::unite(self, other)
                }

                fn invalid(&self) -> Option<u64> {
                    let $filter = self;
                    $invalid
                }

                fn insert_each(&self, $entries: &[(Raw, u64)], $kept: &mut Vec<bool>) -> Result<(), (usize, $Error)> {
                    let ($filter, _) = (self, &$kept);
                    $insert_each.map(|_| ()).map_err(|refused| (refused.index, refused.error))
                }

                fn insert_all_absent(
                    &self,
                    $entries: &[(Raw, u64)],
                    $added: &mut Vec<bool>,
                ) -> Result<usize, (usize, $Error)> {
                    let $filter = self;
                    $insert_all_absent.map_err(|refused| (refused.index, refused.error))
                }

                fn remove_each(&self, $entries: &[(Raw, u64)], $removed: &mut Vec<bool>) {
                    let $filter = self;
                    $remove_each;
                }

                fn contains_each(&self, keys: &[Raw], found: &mut Vec<bool>) {
                    self.contains_batch(keys, found);
                }

                #[cfg(feature = "snapshot")]
                fn begin_save(&self) -> concurrent_cuckoo_filter::Save<'_> {
                    $Filter::begin_save(self).expect("there is memory")
                }

                #[cfg(feature = "snapshot")]
                fn begin_save_owned(self: &Arc<Self>) -> concurrent_cuckoo_filter::Save<'static> {
                    $Filter::begin_save_owned(self).expect("there is memory")
                }

                #[cfg(feature = "snapshot")]
                fn load_within(bytes: &[u8], limit: usize) -> Result<Self, concurrent_cuckoo_filter::LoadError> {
                    $Filter::load(bytes, Hasher::default(), limit)
                }
            }
        )+
    };
}

table! {
    ConcurrentCuckooFilter InsertError, GrowableCuckooFilter GrowableInsertError, |filter, key, number, entries|
    insert: filter.insert(key).map(|()| true),
    insert_if_absent: filter.insert_if_absent(key),
    remove: filter.remove(key),
    insert_each(kept): filter.insert_batch(entries.iter().map(|(key, _)| key)),
    insert_all_absent(added): filter.insert_if_absent_batch(entries.iter().map(|(key, _)| key), added),
    remove_each(removed): filter.remove_batch(entries.iter().map(|(key, _)| key), removed),
    invalid: { let _ = filter; None }
}

fn pairs(entries: &[(Raw, u64)]) -> impl Iterator<Item = (&Raw, u16)> {
    entries.iter().map(|(key, value)| (key, *value as u16))
}

table! {
    CuckooMaplet MapletInsertError, |filter, key, number, entries|
    insert: filter.insert(key, *number as u16).map(|()| true),
    insert_if_absent: filter.insert_if_absent(key, *number as u16).map(|values| values.is_empty()),
    remove: filter.remove(key, *number as u16),
    insert_each(kept): filter.insert_batch(pairs(entries)),
    insert_all_absent(added): {
        let mut had = Vec::new();
        let all = filter.insert_if_absent_batch(pairs(entries), &mut had);
        added.extend(had.into_iter().map(|values| values.is_empty()));
        all
    },
    remove_each(removed): filter.remove_batch(pairs(entries), removed),
    invalid: Some(1 << filter.plan().layout.payload_bits).filter(|&value| value < 1 << 16)
}

fn ends(entries: &[(Raw, u64)]) -> impl Iterator<Item = (&Raw, Tick)> {
    entries.iter().map(|(key, end)| (key, Tick::new(*end)))
}

table! {
    ExpiringCuckooFilter ExpiringInsertError, |filter, key, number, entries|
    insert: filter.insert_until(key, Tick::new(*number)),
    insert_if_absent: filter.insert_if_absent_until(key, Tick::new(*number)),
    remove: filter.remove_expiring_at(key, Tick::new(*number)),
    insert_each(kept): filter.insert_until_batch(ends(entries), kept),
    insert_all_absent(added): filter.insert_if_absent_until_batch(ends(entries), added),
    remove_each(removed): filter.remove_expiring_at_batch(ends(entries), removed),
    invalid: Some(filter.now()?.get() + filter.plan().lifetime_in_ticks? + 1)
}

pub fn growable(capacity: usize, rate: f64) -> Growable {
    let builder = Growable::builder_with_hasher(Hasher::default()).capacity(capacity);
    builder.false_positive_rate(rate).build().expect("a valid filter")
}

pub fn maplet(capacity: usize, (value_bits, rate, ..): MapletLayout) -> Maplet {
    let builder = Maplet::builder_with_hasher(Hasher::default()).capacity(capacity);
    builder.value_bits(value_bits).false_positive_rate(rate).build().expect("a valid maplet")
}

/// The tick at which [`expiring`] filters begin.
pub const NOW: u64 = 28_500_000;

/// A filter with ends of as many bits as the values of the maplet with this layout, which has that layout, at tick [`NOW`].
pub fn expiring(capacity: usize, (expiry_bits, rate, ..): MapletLayout) -> Expiring {
    let builder = Expiring::builder_with_hasher(Hasher::default()).capacity(capacity);
    let builder = builder.lifetime_in_ticks((1 << expiry_bits) - 1).false_positive_rate(rate);
    let filter = builder.build().expect("a valid filter");
    filter.advance_to(Tick::new(NOW));
    filter
}

/// Calls a generic function for each kind of filter in each layout, with what makes one for so many keys, and with what
/// gives the number of the `nth` entry. The caller has `kinds` and `support` in scope.
macro_rules! in_each_layout {
    ($check:ident) => {{
        kinds::in_each_layout!(of_a_fixed_size: $check);
        for rate in [0.1, 0.001, 1e-6] {
            $check(|capacity| kinds::growable(capacity / 8, rate), |_| 0);
        }
    }};
    (of_a_fixed_size: $check:ident) => {{
        // Under Miri, some.
        let each = if cfg!(miri) { 4 } else { 1 };
        for (encoding, rate, ..) in support::LAYOUTS.into_iter().step_by(each) {
            $check(|capacity| support::build(capacity as u64, encoding, rate), |_| 0);
        }
        for layout @ (bits, ..) in support::MAPLET_LAYOUTS.into_iter().step_by(each) {
            $check(|capacity| kinds::maplet(capacity, layout), |nth| nth % (1 << bits));
            let end = |nth: u64| kinds::NOW + 1 + nth % ((1 << bits) - 1);
            $check(|capacity| kinds::expiring(capacity, layout), end);
        }
    }};
}
pub(crate) use in_each_layout;
