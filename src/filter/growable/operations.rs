//! The operations on keys of a [`GrowableCuckooFilter`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::GrowableInsertError;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::growable::filter::GrowableCuckooFilter;
use crate::word::geometry::mixed;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> GrowableCuckooFilter<T, S> {
    /// Adds one copy of the key, even if the key is present already.
    ///
    /// The filter is a multiset: a key that was inserted twice must be removed twice. To add a key only once, use
    /// [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: usually two cache lines read and one of them written, under the lock of that bucket. One insert in 32 may also
    /// [split buckets](Self#growth-and-shrinking).
    ///
    /// # Errors
    /// A [`GrowableInsertError`] if there are as many copies of the key as there [may be](crate::guide::growth#copies),
    /// or if there are [`max_capacity`](Self::max_capacity) keys: up to that many distinct keys are always accepted, in any order,
    /// from any threads. Before that, an insert fails if there is no room and the memory to grow is denied. After an error the keys are the same as before, and a later attempt may succeed. The table may
    /// have grown, by at most 128 buckets.
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), GrowableInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert(self.hash_one(key))
    }

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// If many threads race to add one absent key, at most one gets `true`, also while the filter grows. As in
    /// [`ConcurrentCuckooFilter::insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent), a key that is mistaken
    /// for another is not added. So [`remove`](Self::remove) only keys for which this returned `true`.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise also that of an
    /// [`insert`](Self::insert), with one stripe locked.
    ///
    /// # Errors
    /// Fails as [`insert`](Self::insert) does, if the key is absent and there is no room.
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, GrowableInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_if_absent(self.hash_one(key))
    }

    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably
    /// present. The share of absent keys that get `true` is the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do, and however the filter grows.
    /// The call is lock-free: it takes no lock and waits for no other thread.
    ///
    /// Cost: two cache lines of the table, even while it grows, and one of the stripes and one with the size. The last
    /// two stay in the cache.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains(self.hash_one(key))
    }

    /// Removes one copy of the key, and returns `true` if there was one.
    ///
    /// **Remove only keys that were inserted**, once for each insert, at whatever size. A key that was never inserted can be
    /// mistaken for one that was, as in [`contains`](Self::contains). Removing it makes the other key disappear.
    ///
    /// Cost: the cache lines of a lookup, with one stripe and one bucket locked.
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().remove(self.hash_one(key))
    }

    /// Returns how many copies of the key are in the filter. That is the exact number of copies that were inserted
    /// and not removed, plus the copies of any other keys that the filter cannot distinguish from this one.
    ///
    /// Cost: the cache lines of a lookup, with one stripe locked. Where [`contains`](Self::contains) is enough, it is
    /// faster and waits for no other thread.
    #[must_use]
    #[inline]
    pub fn count<Q>(&self, key: &Q) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().count(self.hash_one(key))
    }

    /// Returns the hash of a key, for [`by_hash`](Self::by_hash). Filters with the same hasher compute the same hash.
    #[inline(always)]
    #[must_use]
    pub fn hash_one<Q>(&self, key: &Q) -> Hashed
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.parts.hash_one(key)
    }
}

/// The operations on keys, by the hash of the key.
#[allow(clippy::missing_errors_doc, reason = "each operation refers to the one on a key, which has them")]
impl<T: ?Sized, S> ByHash<'_, GrowableCuckooFilter<T, S>> {
    /// Adds one copy of the key with this hash. See [`insert`](GrowableCuckooFilter::insert) for promises, cost and
    /// errors.
    #[inline]
    pub fn insert(self, hash: Hashed) -> Result<(), GrowableInsertError> {
        self.0.parts.core.insert(mixed(hash.0))
    }

    /// Adds the key with this hash if it is absent, and returns `true` if it added the key. See
    /// [`insert_if_absent`](GrowableCuckooFilter::insert_if_absent) for promises, cost and errors.
    #[inline]
    pub fn insert_if_absent(self, hash: Hashed) -> Result<bool, GrowableInsertError> {
        self.0.parts.core.insert_if_absent(mixed(hash.0))
    }

    /// Returns whether the key with this hash is in the filter. See [`contains`](GrowableCuckooFilter::contains) for
    /// promises and cost.
    #[must_use]
    #[inline]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.parts.core.contains(mixed(hash.0))
    }

    /// Removes one copy of the key with this hash, and returns `true` if there was one. See
    /// [`remove`](GrowableCuckooFilter::remove) for promises and cost.
    #[inline]
    pub fn remove(self, hash: Hashed) -> bool {
        self.0.parts.core.remove(mixed(hash.0))
    }

    /// Returns how many copies of the key with this hash are in the filter. See [`count`](GrowableCuckooFilter::count)
    /// for promises and cost.
    #[must_use]
    #[inline]
    pub fn count(self, hash: Hashed) -> usize {
        self.0.parts.core.count(mixed(hash.0))
    }

    /// Asks the processor to load what an operation on this hash will read, and does not wait for it.
    ///
    /// Call this as soon as the key is known, and do other work before the lookup: after about 100 to 200 ns the cache
    /// has what the lookup reads. It is only a hint, and changes no answer. In a table that fits in the cache it gains
    /// nothing. For many keys at a time, a batch such as [`contains_batch`](Self::contains_batch) does this by itself.
    ///
    /// Cost: a few instructions that request the cache lines of the key's two buckets and of its stripe. It takes no
    /// lock and writes nothing.
    #[inline]
    pub fn prefetch(self, hash: Hashed) {
        self.0.parts.core.prefetch(&[mixed(hash.0)]);
    }
}
