//! The operations of the library's filters as one trait.

use std::fmt;
use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, ExpiringInsertError, GrowableCuckooFilter,
    GrowableInsertError, InsertError, MapletInsertError, Tick,
};

use crate::support::{Identity, Raw};

type Hasher = BuildHasherDefault<Identity>;

/// A filter of the library. An entry is a key with a number: its value, its end, or 0.
pub(crate) trait Table: fmt::Debug + Sync + Sized {
    type Error: fmt::Debug;

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
    fn digest(&self) -> u64;
    /// An empty filter like this one.
    fn another(&self) -> Self;

    /// If an entry is refused, returns how many went in before it.
    fn insert_all(&self, entries: &[(Raw, u64)]) -> Result<(), (usize, Self::Error)>;
    fn remove_all(&self, entries: &[(Raw, u64)]) -> Vec<bool>;
    fn contains_all(&self, keys: &[Raw]) -> Vec<bool>;

    #[cfg(feature = "snapshot")]
    fn begin_save(&self) -> concurrent_cuckoo_filter::Save<'_>;
    #[cfg(feature = "snapshot")]
    fn loaded(bytes: &[u8]) -> Self;
}

macro_rules! table {
    (
        $($Filter:ident $Error:ident),+, |$filter:ident, $key:ident, $number:ident, $entries:ident|
        insert: $insert:expr, insert_if_absent: $insert_if_absent:expr, remove: $remove:expr,
        insert_all: $insert_all:expr, remove_all($removed:ident): $remove_all:expr
    ) => {
        $(
            impl Table for $Filter<Raw, Hasher> {
                type Error = $Error;

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

                fn digest(&self) -> u64 {
                    $Filter::digest(self).expect("there is memory")
                }

                fn another(&self) -> Self {
                    self.empty_like().expect("there is memory")
                }

                fn insert_all(&self, $entries: &[(Raw, u64)]) -> Result<(), (usize, $Error)> {
                    let $filter = self;
                    $insert_all.map(|_| ()).map_err(|refused| (refused.index, refused.error))
                }

                fn remove_all(&self, $entries: &[(Raw, u64)]) -> Vec<bool> {
                    let ($filter, mut removed) = (self, Vec::new());
                    let $removed = &mut removed;
                    $remove_all;
                    removed
                }

                fn contains_all(&self, keys: &[Raw]) -> Vec<bool> {
                    let mut found = Vec::new();
                    self.contains_batch(keys, &mut found);
                    found
                }

                #[cfg(feature = "snapshot")]
                fn begin_save(&self) -> concurrent_cuckoo_filter::Save<'_> {
                    $Filter::begin_save(self).expect("there is memory")
                }

                #[cfg(feature = "snapshot")]
                fn loaded(bytes: &[u8]) -> Self {
                    $Filter::load(bytes, Hasher::default(), usize::MAX).expect("it was just saved")
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
    insert_all: filter.insert_batch(entries.iter().map(|(key, _)| key)),
    remove_all(removed): filter.remove_batch(entries.iter().map(|(key, _)| key), removed)
}

table! {
    CuckooMaplet MapletInsertError, |filter, key, number, entries|
    insert: filter.insert(key, *number as u16).map(|()| true),
    insert_if_absent: filter.insert_if_absent(key, *number as u16).map(|values| values.is_empty()),
    remove: filter.remove(key, *number as u16),
    insert_all: filter.insert_batch(entries.iter().map(|(key, value)| (key, *value as u16))),
    remove_all(removed): filter.remove_batch(entries.iter().map(|(key, value)| (key, *value as u16)), removed)
}

table! {
    ExpiringCuckooFilter ExpiringInsertError, |filter, key, number, entries|
    insert: filter.insert_until(key, Tick::new(*number)),
    insert_if_absent: filter.insert_if_absent_until(key, Tick::new(*number)),
    remove: filter.remove_expiring_at(key, Tick::new(*number)),
    insert_all: filter.insert_until_batch(entries.iter().map(|(key, end)| (key, Tick::new(*end))), &mut Vec::new()),
    remove_all(removed): filter.remove_expiring_at_batch(
        entries.iter().map(|(key, end)| (key, Tick::new(*end))), removed
    )
}
