//! What models see of the table of a maplet.

#![allow(private_bounds, private_interfaces, reason = "models name a layout, but do nothing with it")]

use crate::error::insert::InsertError;
use crate::model::key::Key;
use crate::model::table::{ModelLayout, Smallest, Table, Value, added, answers, one_block};
use crate::table::core::Core as _;
use crate::table::entries;
use crate::table::image::merge::Merge;
use crate::table::image::read::TableImage;
use crate::word::values::Values;

/// A table whose slots hold a fingerprint and a value of two bits. A key's value is that of the pair in question.
pub type Maplet<L = Smallest> = Table<Value, L>;

impl<L: ModelLayout> Maplet<L> {
    pub fn new(buckets: usize) -> Self {
        Self::of(buckets, entries::Value)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.0.contains(key.hash())
    }

    pub fn contains_batch<const N: usize>(&self, keys: [Key; N]) -> [bool; N] {
        answers(|answers| self.0.contains_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn values(&self, key: Key) -> Values {
        self.0.values(key.hash())
    }

    pub fn values_batch<const N: usize>(&self, keys: [Key; N]) -> [Values; N] {
        answers(|answers| self.0.values_batch(&mut one_block(keys.map(Key::hash)), answers))
    }

    pub fn insert(&self, key: Key) -> Result<(), InsertError> {
        self.0.insert(key.hash(), key.value)
    }

    /// Returns the values that it found, or none if the value was added.
    pub fn insert_if_absent(&self, key: Key) -> Result<Values, InsertError> {
        self.0.insert_if_absent(key.hash(), key.value)
    }

    pub fn replace(&self, old: Key, new: u16) -> bool {
        self.0.replace(old.hash(), old.value, new)
    }

    pub fn remove(&self, key: Key) -> bool {
        self.0.remove(key.hash(), key.value)
    }

    /// [`CuckooMaplet::unite`](crate::CuckooMaplet::unite); returns how many pairs were added.
    pub fn unite(&self, other: &Self) -> Result<u64, InsertError> {
        let image = TableImage::begin(other.0.image_source()).expect("a model has memory");
        added(self.0.absorb(&image, Merge::Union))
    }
}
