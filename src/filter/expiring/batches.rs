//! The operations on many keys of an [`ExpiringCuckooFilter`].

use core::cell::Cell;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::{ExpiringInsertError, InsertBatchError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::expiring::expiry::Expiry;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::shared::batches::{append_to, blocks, blocks_of_pairs};
use crate::lookup::batch::BLOCK;
use crate::table::attempt::IfPresent;
use crate::table::expiring::clock::Until;
use crate::word::tick::Tick;

/// The operations on many keys at a time.
///
/// In a table larger than the cache, they are several times as fast as one call for each key: while the filter works on
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
impl<T: ?Sized, S: BuildHasher> ExpiringCuckooFilter<T, S> {
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
    ) -> Result<(), InsertBatchError<ExpiringInsertError>> {
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
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.by_hash().insert_if_absent_batch(self.parts.hash_all(keys), added)
    }

    /// [`remove`](Self::remove) for many keys, in their order: appends the answers to `removed`.
    pub fn remove_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, removed: &mut Vec<bool>) {
        self.by_hash().remove_batch(self.parts.hash_all(keys), removed);
    }
}

/// The operations on many keys at a time that renew entries, or take an expiry with each key.
impl<T: ?Sized, S: BuildHasher> ExpiringCuckooFilter<T, S> {
    /// [`insert_or_renew`](Self::insert_or_renew) for many keys, in their order: appends to `added`, for each key, whether it
    /// is new. Returns how many are.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which key, and the keys before it have their answers in
    /// `added`.
    pub fn insert_or_renew_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.by_hash().insert_or_renew_batch(self.parts.hash_all(keys), added)
    }

    /// [`insert_until`](Self::insert_until) for many pairs of a key and its [`Expiry`] (or a tick, a time, or a time to
    /// live), in their order: appends to `added`, for each pair, whether it was added. Returns how many were.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair, and the pairs before it have their answers in
    /// `added`. Later pairs may have been taken from the iterator, but were not inserted.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
    /// let revoked = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// revoked.advance_to(Tick::new(100));
    /// let mut added = Vec::new();
    /// revoked.insert_until_batch([("token-1", Tick::new(105)), ("token-2", Tick::new(90))], &mut added)?;
    /// assert_eq!(added, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_until_batch<K: BatchKey<T> + Hash, E: Into<Expiry>>(
        &self,
        pairs: impl IntoIterator<Item = (K, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.by_hash().insert_until_batch(self.parts.hash_pairs(pairs), added)
    }

    /// [`insert_if_absent_until`](Self::insert_if_absent_until) for many pairs, as
    /// [`insert_until_batch`](Self::insert_until_batch) takes them.
    ///
    /// # Errors
    /// As for `insert_until_batch`.
    pub fn insert_if_absent_until_batch<K: BatchKey<T> + Hash, E: Into<Expiry>>(
        &self,
        pairs: impl IntoIterator<Item = (K, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.by_hash().insert_if_absent_until_batch(self.parts.hash_pairs(pairs), added)
    }

    /// [`insert_or_renew_until`](Self::insert_or_renew_until) for many pairs, as
    /// [`insert_until_batch`](Self::insert_until_batch) takes them: appends to `added`, for each pair, whether its key is
    /// new. Returns how many are.
    ///
    /// # Errors
    /// As for `insert_until_batch`.
    pub fn insert_or_renew_until_batch<K: BatchKey<T> + Hash, E: Into<Expiry>>(
        &self,
        pairs: impl IntoIterator<Item = (K, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.by_hash().insert_or_renew_until_batch(self.parts.hash_pairs(pairs), added)
    }

    /// [`remove_expiring_at`](Self::remove_expiring_at) for many pairs, in their order: appends to `removed`, for each pair,
    /// whether there was one.
    pub fn remove_expiring_at_batch<K: BatchKey<T> + Hash>(
        &self,
        pairs: impl IntoIterator<Item = (K, Tick)>,
        removed: &mut Vec<bool>,
    ) {
        self.by_hash().remove_expiring_at_batch(self.parts.hash_pairs(pairs), removed);
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
#[allow(clippy::missing_errors_doc, reason = "each operation refers to the one on keys, which has them")]
impl<T: ?Sized, S> ByHash<'_, ExpiringCuckooFilter<T, S>> {
    /// Looks up the keys with these hashes, and appends the answers to `found`. See
    /// [`contains_batch`](ExpiringCuckooFilter::contains_batch) for promises and cost.
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.parts.core.contains_batch(&mut blocks(hashes), &mut append_to(found));
    }

    /// Adds an entry of the whole lifetime for each key with one of these hashes. See
    /// [`insert_batch`](ExpiringCuckooFilter::insert_batch) for promises, cost and errors.
    pub fn insert_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
    ) -> Result<(), InsertBatchError<ExpiringInsertError>> {
        self.0.parts.core.insert_live_batch(&mut blocks(hashes)).map(drop)
    }

    /// Adds an entry of the whole lifetime for each key with one of these hashes that has no live one, and appends to
    /// `added` whether each was added. See [`insert_if_absent_batch`](ExpiringCuckooFilter::insert_if_absent_batch) for
    /// promises, cost and errors.
    pub fn insert_if_absent_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.0.add_all(self.0.for_whole_lifetime(hashes), IfPresent::Skip, added)
    }

    /// Removes one live entry of each key with one of these hashes, the one that expires first, and appends the answers
    /// to `removed`. See [`remove_batch`](ExpiringCuckooFilter::remove_batch) for promises and cost.
    pub fn remove_batch(self, hashes: impl IntoIterator<Item = Hashed>, removed: &mut Vec<bool>) {
        self.0.parts.core.remove_first_batch(&mut blocks(hashes), &mut append_to(removed));
    }

    /// Adds an entry of the whole lifetime for each key with one of these hashes, or renews its live one, and appends
    /// to `added` whether each key is new. See [`insert_or_renew_batch`](ExpiringCuckooFilter::insert_or_renew_batch)
    /// for promises, cost and errors.
    pub fn insert_or_renew_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.0.add_all(self.0.for_whole_lifetime(hashes), IfPresent::Extend, added)
    }

    /// Adds an entry for each key with one of these hashes, with the expiry beside the hash, and appends to `added`
    /// whether each was added. See [`insert_until_batch`](ExpiringCuckooFilter::insert_until_batch) for promises, cost
    /// and errors.
    pub fn insert_until_batch<E: Into<Expiry>>(
        self,
        pairs: impl IntoIterator<Item = (Hashed, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.0.add_all(self.0.with_expiries(pairs), IfPresent::Add, added)
    }

    /// Adds an entry for each key with one of these hashes that has no live one, with the expiry beside the hash, and
    /// appends to `added` whether each was added. See
    /// [`insert_if_absent_until_batch`](ExpiringCuckooFilter::insert_if_absent_until_batch) for promises, cost and
    /// errors.
    pub fn insert_if_absent_until_batch<E: Into<Expiry>>(
        self,
        pairs: impl IntoIterator<Item = (Hashed, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.0.add_all(self.0.with_expiries(pairs), IfPresent::Skip, added)
    }

    /// Ensures that each key with one of these hashes is found at least until the expiry beside the hash, and appends
    /// to `added` whether each key is new. See
    /// [`insert_or_renew_until_batch`](ExpiringCuckooFilter::insert_or_renew_until_batch) for promises, cost and
    /// errors.
    pub fn insert_or_renew_until_batch<E: Into<Expiry>>(
        self,
        pairs: impl IntoIterator<Item = (Hashed, E)>,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.0.add_all(self.0.with_expiries(pairs), IfPresent::Extend, added)
    }

    /// Removes one live entry of each key with one of these hashes that expires at the tick beside the hash, and
    /// appends the answers to `removed`. See
    /// [`remove_expiring_at_batch`](ExpiringCuckooFilter::remove_expiring_at_batch) for promises and cost.
    pub fn remove_expiring_at_batch(self, pairs: impl IntoIterator<Item = (Hashed, Tick)>, removed: &mut Vec<bool>) {
        let expiries = Cell::new([0; BLOCK]);
        let pairs = pairs.into_iter().map(|(hash, expires_at)| (hash, expires_at.get()));
        let mut hashes = blocks_of_pairs(pairs, &expiries);
        self.0.parts.core.remove_until_batch(&mut hashes, &expiries, &mut append_to(removed));
    }
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Pairs each hash with the whole lifetime of an entry.
    fn for_whole_lifetime(&self, hashes: impl IntoIterator<Item = Hashed>) -> impl Iterator<Item = (Hashed, Until)> {
        let until = self.whole_lifetime();
        hashes.into_iter().map(move |hash| (hash, until))
    }

    /// Turns the expiry beside each hash into ticks.
    fn with_expiries<E: Into<Expiry>>(
        &self,
        pairs: impl IntoIterator<Item = (Hashed, E)>,
    ) -> impl Iterator<Item = (Hashed, Until)> {
        pairs.into_iter().map(|(hash, expiry)| (hash, self.until(expiry)))
    }

    /// Adds an entry for each hash, in order, and appends to `added` whether it was added. Returns how many were.
    fn add_all(
        &self,
        entries: impl Iterator<Item = (Hashed, Until)>,
        if_present: IfPresent,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        let untils = Cell::new([Until::default(); BLOCK]);
        let mut count = 0;
        let answer = &mut |is_new: bool| {
            added.push(is_new);
            count += usize::from(is_new);
        };
        self.parts.core.add_until_batch(&mut blocks_of_pairs(entries, &untils), &untils, if_present, answer)?;
        Ok(count)
    }
}
