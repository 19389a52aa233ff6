//! The operations on many keys of a [`RecentCuckooFilter`].

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};

use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::filter::shared::batches::{add_each, append_to, blocks, without_others};
use crate::table::attempt::IfPresent;

/// The operations on many keys at a time.
///
/// In a table larger than the cache, they are several times as fast as one call for each key: while the filter works on
/// the first keys, the buckets of the next ones are on their way from memory.
///
/// Batches of any size work, and are at their best from about a hundred keys on. Keys are passed by reference, as
/// [`BatchKey`] describes.
///
/// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at one point of the
/// call, with all that a single operation promises. (Lookups and removals of a filter of a time go by the time at the
/// beginning of the call.) A batch allocates only for what the answers are appended to. It holds no lock while it asks the
/// iterator for a key or passes on an answer. If the iterator or a key's `Hash` panics, the batch ends there. All keys that
/// it took before, except the last few hundred, have been processed.
impl<T: ?Sized, S: BuildHasher> RecentCuckooFilter<T, S> {
    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in their order.
    ///
    /// The lookups themselves run in any order, each after its key was taken from the iterator.
    pub fn contains_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, found: &mut Vec<bool>) {
        self.by_hash().contains_batch(self.parts.hash_all(keys), found);
    }

    /// [`insert`](Self::insert) for many keys, in their order: appends to `new`, for each key, whether it is new. Returns how
    /// many are. Of a key that is in the batch twice, only the first is new.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RecentCuckooFilter;
    /// let seen = RecentCuckooFilter::<str>::builder().last(1000).false_positive_rate(1e-6).build()?;
    /// let mut new = Vec::new();
    /// assert_eq!(seen.insert_batch(["a", "b", "a"], &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn insert_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, new: &mut Vec<bool>) -> usize {
        self.by_hash().insert_batch(self.parts.hash_all(keys), new)
    }

    /// [`insert_or_renew`](Self::insert_or_renew) for many keys, in their order: appends to `new`, for each key, whether it
    /// is new. Returns how many are.
    pub fn insert_or_renew_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
        new: &mut Vec<bool>,
    ) -> usize {
        self.by_hash().insert_or_renew_batch(self.parts.hash_all(keys), new)
    }

    /// [`remove`](Self::remove) for many keys, in their order: appends the answers to `removed`.
    pub fn remove_batch<K: BatchKey<T> + Hash>(&self, keys: impl IntoIterator<Item = K>, removed: &mut Vec<bool>) {
        self.by_hash().remove_batch(self.parts.hash_all(keys), removed);
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
impl<T: ?Sized, S> ByHash<'_, RecentCuckooFilter<T, S>> {
    /// Looks up the keys with these hashes, and appends the answers to `found`. See
    /// [`contains_batch`](RecentCuckooFilter::contains_batch) for promises and cost.
    pub fn contains_batch(self, hashes: impl IntoIterator<Item = Hashed>, found: &mut Vec<bool>) {
        self.0.parts.core.contains_batch(&mut blocks(hashes), &mut append_to(found));
    }

    /// Makes the keys with these hashes recent ones, and appends to `new` whether each was new. See
    /// [`insert_batch`](RecentCuckooFilter::insert_batch) for promises and cost.
    pub fn insert_batch(self, hashes: impl IntoIterator<Item = Hashed>, new: &mut Vec<bool>) -> usize {
        self.0.add_all(hashes, IfPresent::Skip, new)
    }

    /// Makes the keys with these hashes the newest ones, and appends to `new` whether each was new. See
    /// [`insert_or_renew_batch`](RecentCuckooFilter::insert_or_renew_batch) for promises and cost.
    pub fn insert_or_renew_batch(self, hashes: impl IntoIterator<Item = Hashed>, new: &mut Vec<bool>) -> usize {
        self.0.add_all(hashes, IfPresent::Extend, new)
    }

    /// Makes the keys with these hashes ones that are not among the recent ones, and appends the answers to `removed`. See
    /// [`remove_batch`](RecentCuckooFilter::remove_batch) for promises and cost.
    pub fn remove_batch(self, hashes: impl IntoIterator<Item = Hashed>, removed: &mut Vec<bool>) {
        self.0.parts.core.remove_batch(&mut blocks(hashes), &mut append_to(removed));
    }
}

impl<T: ?Sized, S> RecentCuckooFilter<T, S> {
    /// Adds each key, in order, and appends to `new` whether it was new. `if_present` says what happens to the entry of a
    /// key that was not. Returns how many were new.
    fn add_all(&self, hashes: impl IntoIterator<Item = Hashed>, if_present: IfPresent, new: &mut Vec<bool>) -> usize {
        let core = &self.parts.core;
        let add = |hash, ()| Ok::<_, Infallible>(core.add(hash, if_present));
        let Ok(count) = add_each(core, without_others(hashes), add, new, |is_new| is_new);
        count
    }
}
