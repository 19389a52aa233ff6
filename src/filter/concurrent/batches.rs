//! The operations on many keys of a [`ConcurrentCuckooFilter`].

use core::hash::{BuildHasher, Hash};

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::filter::shared::batches::{add_each, append_to, blocks, without_others};

/// The operations on many keys at a time.
///
/// In a table larger than the cache, batches are [two to six
/// times](crate::guide::choosing_parameters#batches-and-huge-pages) as fast as one call for each key, because the
/// buckets of the next keys are prefetched. In a table that fits in the cache, lookups gain less: they use AVX-512 or
/// AVX2 if the processor has it. Inserts gain because many are counted at once.
///
/// ```
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// let seen = ConcurrentCuckooFilter::<str>::with_capacity(1000);
/// let (mut added, mut found) = (Vec::new(), Vec::new());
/// assert_eq!(seen.insert_if_absent_batch(["a", "b", "a"], &mut added)?, 2);
/// assert_eq!(added, [true, true, false]);
/// seen.contains_batch(["a", "no such key", "b"], &mut found);
/// assert_eq!(found, [true, false, true]);
///
/// let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// let keys: Vec<u64> = (0..10_000).collect(); // too many
/// let error = numbers.insert_batch(&keys).unwrap_err();
/// let (inserted, others) = keys.split_at(error.index); // to go on, insert the others where there is room
/// assert!(inserted.iter().all(|key| numbers.contains(key)) && !others.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Batches of any size work, and are at their best from about a hundred keys on. Keys are passed by reference, as
/// [`BatchKey`] describes.
///
/// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at one point of the
/// call, with all that a single operation promises. A batch allocates only where a single operation does, and for the
/// collection that the answers are appended to. It holds no lock while it asks the iterator for a key or passes on an
/// answer. If the iterator or a key's `Hash` panics, the batch ends there. All keys that it took before, except the
/// last few hundred, have been processed.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
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
    ) -> Result<(), InsertBatchError<InsertError>> {
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
    ) -> Result<usize, InsertBatchError<InsertError>> {
        self.by_hash().insert_if_absent_batch(self.parts.hash_all(keys), added)
    }

    /// [`remove`](Self::remove) for many keys, in their order: appends the answers to `removed`.
    pub fn remove_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, removed: &mut Vec<bool>) {
        self.by_hash().remove_batch(self.parts.hash_all(keys), removed);
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
#[allow(clippy::missing_errors_doc, reason = "each operation refers to the one on keys, which has them")]
impl<T: ?Sized, S> ByHash<'_, ConcurrentCuckooFilter<T, S>> {
    /// Looks up the keys with these hashes, and appends the answers to `found`. See
    /// [`contains_batch`](ConcurrentCuckooFilter::contains_batch) for promises and cost.
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.parts.core.contains_batch(&mut blocks(hashes), &mut append_to(found));
    }

    /// Adds one copy of each key with one of these hashes. See [`insert_batch`](ConcurrentCuckooFilter::insert_batch)
    /// for promises, cost and errors.
    pub fn insert_batch(self, hashes: impl IntoIterator<Item = Hashed>) -> Result<(), InsertBatchError<InsertError>> {
        self.0.parts.core.insert_batch(&mut blocks(hashes)).map(drop)
    }

    /// Adds the keys with these hashes that are absent, and appends to `added` whether each was added. See
    /// [`insert_if_absent_batch`](ConcurrentCuckooFilter::insert_if_absent_batch) for promises, cost and errors.
    pub fn insert_if_absent_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<InsertError>> {
        let core = &self.0.parts.core;
        let add = |hash, ()| core.insert_if_absent(hash);
        add_each(core, without_others(hashes), add, added, |is_new| is_new)
    }

    /// Removes one copy of each key with one of these hashes, and appends the answers to `removed`. See
    /// [`remove_batch`](ConcurrentCuckooFilter::remove_batch) for promises and cost.
    pub fn remove_batch(self, hashes: impl IntoIterator<Item = Hashed>, removed: &mut Vec<bool>) {
        self.0.parts.core.remove_batch(&mut blocks(hashes), &mut append_to(removed));
    }
}
