//! The operations on many keys of a [`CuckooMaplet`].

use core::cell::Cell;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::{InsertBatchError, MapletInsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::batches::{add_each, append_to, blocks, blocks_of_pairs};
use crate::lookup::batch::BLOCK;
use crate::table::core::Core as _;
use crate::word::values::Values;

/// The operations on many keys at a time.
///
/// In a table larger than the cache, they are several times as fast as one call for each key: while the maplet works on
/// the first keys, the buckets of the next ones are on their way from memory.
///
/// Batches of any size work, and are at their best from about a hundred keys on. Keys are passed by reference, as
/// [`BatchKey`] describes.
///
/// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at one point of the
/// call, with all that a single operation promises. A batch allocates only where a single operation does, and for the
/// collection that the answers are appended to. It holds no lock while it asks the iterator for a key or passes on an
/// answer. If the iterator or a key's `Hash` panics, the batch ends there. All keys that it took before, except the
/// last few hundred, have been processed.
impl<T: ?Sized, S: BuildHasher> CuckooMaplet<T, S> {
    /// [`values`](Self::values) for many keys: appends the values of each key to `found`, in the same order. They take 16
    /// bytes for each key.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let segments = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
    /// segments.insert_batch([("apple", 3), ("pear", 9)])?;
    ///
    /// let mut found = Vec::new();
    /// segments.values_batch(["apple", "pear", "no such key"], &mut found);
    /// assert!(found.len() == 3 && found[0].contains(3) && found[1].contains(9));
    /// let to_be_read = found.iter().fold(0, |all, values| all | values.mask().unwrap());
    /// assert_eq!(to_be_read & (1 << 3 | 1 << 9), 1 << 3 | 1 << 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<Values>) {
        self.by_hash().values_batch(self.parts.hash_all(keys), found);
    }

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same
    /// order.
    pub fn contains_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<bool>) {
        self.by_hash().contains_batch(self.parts.hash_all(keys), found);
    }

    /// [`insert`](Self::insert) for many pairs, in their order.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair. Later pairs may have been taken from the
    /// iterator, but were not inserted.
    pub fn insert_batch<K: BatchKey<T> + Hash>(
        &self,
        pairs: impl IntoIterator<Item = (K, u16)>,
    ) -> Result<(), InsertBatchError<MapletInsertError>> {
        self.by_hash().insert_batch(self.parts.hash_pairs(pairs))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for many pairs, in their order: appends to `had`, for each pair, the
    /// values that its key had: none if the pair was added. Returns how many were.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair, and the pairs before it have their answers
    /// in `had`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let owners = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
    /// let mut had = Vec::new();
    /// assert_eq!(owners.insert_if_absent_batch([("job-1", 3), ("job-1", 9)], &mut had)?, 1);
    /// assert!(had[0].is_empty() && had[1].contains(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_if_absent_batch<K: BatchKey<T> + Hash>(
        &self,
        pairs: impl IntoIterator<Item = (K, u16)>,
        had: &mut Vec<Values>,
    ) -> Result<usize, InsertBatchError<MapletInsertError>> {
        self.by_hash().insert_if_absent_batch(self.parts.hash_pairs(pairs), had)
    }

    /// [`remove`](Self::remove) for many pairs, in their order: appends to `removed`, for each pair, whether there
    /// was one.
    pub fn remove_batch<K: BatchKey<T> + Hash>(
        &self,
        pairs: impl IntoIterator<Item = (K, u16)>,
        removed: &mut Vec<bool>,
    ) {
        self.by_hash().remove_batch(self.parts.hash_pairs(pairs), removed);
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
#[allow(clippy::missing_errors_doc, reason = "each operation refers to the one on keys, which has them")]
impl<T: ?Sized, S> ByHash<'_, CuckooMaplet<T, S>> {
    /// Looks up the keys with these hashes, and appends the values of each to `found`. See
    /// [`values_batch`](CuckooMaplet::values_batch) for promises and cost.
    pub fn values_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<Values>) {
        self.0.parts.core.values_batch(&mut blocks(hashes), &mut append_to(found));
    }

    /// Looks up the keys with these hashes, and appends the answers to `found`. See
    /// [`contains_batch`](CuckooMaplet::contains_batch) for promises and cost.
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.parts.core.contains_batch(&mut blocks(hashes), &mut append_to(found));
    }

    /// Adds a value to those of each key with one of these hashes. See [`insert_batch`](CuckooMaplet::insert_batch) for
    /// promises, cost and errors.
    pub fn insert_batch(
        self,
        pairs: impl IntoIterator<Item = (Hashed, u16)>,
    ) -> Result<(), InsertBatchError<MapletInsertError>> {
        let values = Cell::new([0; BLOCK]);
        let mut too_large = None;
        let checked = pairs.into_iter().map_while(|(hash, value)| {
            too_large = self.0.check(value).err();
            too_large.is_none().then_some((hash, value))
        });
        let inserted = self.0.parts.core.insert_batch(&mut blocks_of_pairs(checked, &values), &values);
        match (inserted, too_large) {
            (Ok(inserted), Some(error)) => Err(InsertBatchError::new(inserted, error.into())),
            (Ok(_), None) => Ok(()),
            (Err(failed), _) => Err(failed.map()),
        }
    }

    /// Adds a value to each key with one of these hashes that has none, and appends to `had` the values that each had.
    /// See [`insert_if_absent_batch`](CuckooMaplet::insert_if_absent_batch) for promises, cost and errors.
    pub fn insert_if_absent_batch(
        self,
        pairs: impl IntoIterator<Item = (Hashed, u16)>,
        had: &mut Vec<Values>,
    ) -> Result<usize, InsertBatchError<MapletInsertError>> {
        let add = |hash, value| self.insert_if_absent(Hashed(hash), value);
        add_each(&self.0.parts.core, pairs, add, had, |values| values.is_empty())
    }

    /// Removes a value from each key with one of these hashes, and appends to `removed` whether the key had it. See
    /// [`remove_batch`](CuckooMaplet::remove_batch) for promises and cost.
    pub fn remove_batch(self, pairs: impl IntoIterator<Item = (Hashed, u16)>, removed: &mut Vec<bool>) {
        let (core, values) = (&self.0.parts.core, Cell::new([0; BLOCK]));
        let mut pairs = pairs.into_iter();
        loop {
            // A value with too many bits can't have been inserted. It ends one batch, and another begins after it.
            let mut too_large = false;
            let checked = pairs.by_ref().map_while(|(hash, value)| {
                too_large = self.0.check(value).is_err();
                (!too_large).then_some((hash, value))
            });
            core.remove_batch(&mut blocks_of_pairs(checked, &values), &values, &mut append_to(removed));
            if !too_large {
                return;
            }
            removed.push(core.counters().removal(false));
        }
    }
}
