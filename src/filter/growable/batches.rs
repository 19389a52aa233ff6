//! The operations on many keys of a [`GrowableCuckooFilter`].

use core::hash::{BuildHasher, Hash};

use crate::error::insert::{GrowableInsertError, InsertBatchError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::filter::shared::batches::{add_each, append_to, blocks, without_others};
use crate::word::geometry::mixed;

/// The operations on many keys at a time.
///
/// In a table larger than the cache, these are several times as fast as one call for each key (`cargo bench --bench
/// lookups`): while the filter works on the first keys, the buckets of the next ones are on their way from memory.
///
/// Batches of any size work, and are at their best from about a hundred keys on. Keys are passed by reference, as
/// [`BatchKey`] describes.
///
/// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at one point of the
/// call, with all that a single operation promises. A batch allocates only where a single operation does, and for the
/// collection that the answers are appended to. It holds no lock while it asks the iterator for a key or passes on an
/// answer. If the iterator or a key's `Hash` panics, the batch ends there. All keys that it took before, except the
/// last few hundred, have been processed.
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in their order.
    ///
    /// The lookups themselves run in any order, each after its key was taken from the iterator.
    pub fn contains_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<bool>) {
        self.by_hash().contains_batch(self.parts.hash_all(keys), found);
    }

    /// [`insert`](Self::insert) for many keys, in their order.
    ///
    /// It adds a copy for each key. If the keys may repeat, use
    /// [`insert_if_absent_batch`](Self::insert_if_absent_batch). While a batch runs, [`len`](Self::len) may count its
    /// keys by 32 at a time.
    ///
    /// # Errors
    /// Fails if one of the inserts fails. The error says which key. Later keys may have been taken from the iterator,
    /// but were not inserted.
    pub fn insert_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), InsertBatchError<GrowableInsertError>> {
        self.by_hash().insert_batch(self.parts.hash_all(keys))
    }

    /// [`insert_if_absent`](Self::insert_if_absent) for many keys, in their order: appends to `added`, for each key,
    /// whether it was added. Returns how many were.
    ///
    /// # Errors
    /// Fails if one of the inserts fails. The error says which key, and the keys before it have their answers in
    /// `added`. Later keys may have been taken from the iterator, but were not inserted.
    pub fn insert_if_absent_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<GrowableInsertError>> {
        self.by_hash().insert_if_absent_batch(self.parts.hash_all(keys), added)
    }

    /// [`remove`](Self::remove) for many keys, in their order: appends the answers to `removed`.
    pub fn remove_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, removed: &mut Vec<bool>) {
        self.by_hash().remove_batch(self.parts.hash_all(keys), removed);
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
#[allow(clippy::missing_errors_doc, reason = "each operation refers to the one on keys, which has them")]
impl<T: ?Sized, S> ByHash<'_, GrowableCuckooFilter<T, S>> {
    /// Looks up the keys with these hashes, and appends the answers to `found`. See
    /// [`contains_batch`](GrowableCuckooFilter::contains_batch) for promises and cost.
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.parts.core.contains_batch(&mut blocks(all_mixed(hashes)), &mut append_to(found));
    }

    /// Adds one copy of each key with one of these hashes. See [`insert_batch`](GrowableCuckooFilter::insert_batch) for
    /// promises, cost and errors.
    pub fn insert_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
    ) -> Result<(), InsertBatchError<GrowableInsertError>> {
        self.0.parts.core.insert_batch(&mut blocks(all_mixed(hashes))).map(drop)
    }

    /// Adds the keys with these hashes that are absent, and appends to `added` whether each was added. See
    /// [`insert_if_absent_batch`](GrowableCuckooFilter::insert_if_absent_batch) for promises, cost and errors.
    pub fn insert_if_absent_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<GrowableInsertError>> {
        let core = &self.0.parts.core;
        let add = |hash, ()| core.insert_if_absent(hash);
        add_each(core, without_others(all_mixed(hashes)), add, added, |is_new| is_new)
    }

    /// Removes one copy of each key with one of these hashes, and appends the answers to `removed`. See
    /// [`remove_batch`](GrowableCuckooFilter::remove_batch) for promises and cost.
    pub fn remove_batch(self, hashes: impl IntoIterator<Item = Hashed>, removed: &mut Vec<bool>) {
        self.0.parts.core.remove_batch(&mut blocks(all_mixed(hashes)), &mut append_to(removed));
    }
}

/// The hashes as the table takes them.
fn all_mixed(hashes: impl IntoIterator<Item = Hashed>) -> impl Iterator<Item = Hashed> {
    hashes.into_iter().map(|Hashed(hash)| Hashed(mixed(hash)))
}
