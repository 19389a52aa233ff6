//! What models see of a set, the table of a concurrent filter.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::InsertError;
use crate::model::key::Key;
use crate::model::table::{ModelLayout, Nothing, Smallest, Table, added, answers, one_block};
use crate::table::core::Core as _;
use crate::table::entries;
use crate::table::image::merge::Merge;
use crate::table::image::read::TableImage;

/// A table whose slots hold only fingerprints.
pub type Set<L = Smallest> = Table<Nothing, L>;

impl<L: ModelLayout> Set<L> {
    pub fn new(buckets: usize) -> Self {
        Self::of(buckets, entries::Nothing)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.0.contains(key.hash())
    }

    pub fn contains_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        answers(|answers| self.0.contains_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn insert(&self, key: Key) -> Result<(), InsertError> {
        self.0.insert(key.hash())
    }

    pub fn insert_if_absent(&self, key: Key) -> Result<bool, InsertError> {
        self.0.insert_if_absent(key.hash())
    }

    pub fn remove(&self, key: Key) -> bool {
        self.0.remove(key.hash())
    }

    /// [`ConcurrentCuckooFilter::absorb`](crate::ConcurrentCuckooFilter::absorb); returns how many copies were added.
    pub fn absorb(&self, other: &Self) -> Result<u64, InsertError> {
        let image = TableImage::begin(other.0.image_source()).expect("a model has memory");
        added(self.0.absorb(&image, Merge::Sum))
    }

    /// [`ConcurrentCuckooFilter::unite`](crate::ConcurrentCuckooFilter::unite); returns how many copies were added.
    pub fn unite(&self, other: &Self) -> Result<u64, InsertError> {
        let image = TableImage::begin(other.0.image_source()).expect("a model has memory");
        added(self.0.absorb(&image, Merge::Union))
    }
}

impl Key {
    /// The `nth` class whose pair is the buckets `first` and `second`, in a set of `buckets` buckets of two slots each.
    pub fn new(buckets: usize, first: usize, second: usize, nth: usize) -> Self {
        <Set>::key(buckets, first, second, nth)
    }
}
