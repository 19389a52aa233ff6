//! The operations on keys of a [`RecentCuckooFilter`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::recent::filter::RecentCuckooFilter;
use crate::table::attempt::IfPresent;
use crate::table::core::Core as _;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> RecentCuckooFilter<T, S> {
    /// Returns whether the key is new: `true` if it is not among the recent keys. It is from now on, as the newest one. If it
    /// is among them already, nothing changes: it leaves when it would have.
    ///
    /// It is one step: of many threads that race to insert one key, at most one gets `true`. It never fails.
    ///
    /// A share of the new keys, the [false-positive rate](crate::RecentBuilder::false_positive_rate), is taken for recent
    /// ones: the answer is `false` then, and the key is not added. It counts as new once the key that looks alike has left.
    /// If a key that was rejected must stay rejected, call [`insert_or_renew`](Self::insert_or_renew).
    ///
    /// Cost: usually two cache lines read and one of them written, with one stripe locked for a few instructions; for a new
    /// key also one count that all threads share, or for a window of time one reading of the clock. If keys have expired,
    /// the call removes some: at most those of 4,096 buckets or of a thousandth of the table, which takes about 20 µs, or
    /// 120 µs in a table of 192 MB. One call for each group of keys that expires also locks all stripes (20 µs at most).
    /// It waits for no other thread's removal. The exceptions are [described](RecentCuckooFilter#what-an-insert-costs-at-most).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RecentCuckooFilter;
    /// let seen = RecentCuckooFilter::<str>::builder().last(1000).build()?;
    /// assert!(seen.insert("message-1"));
    /// assert!(!seen.insert("message-1"), "delivered twice");
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert(self.hash_one(key))
    }

    /// Returns whether the key is new, as [`insert`](Self::insert) does, and makes it the newest one in any case: a key that
    /// comes again and again stays.
    ///
    /// It is one step, too: of many threads that race to insert one key, at most one gets `true`. A key that would expire
    /// during the call is either renewed, and the answer is `false`; or it has expired, and the answer is `true`.
    ///
    /// **Don't [`remove`](Self::remove) from a filter in which keys are renewed.** A look-alike of this key shares the one
    /// entry with it, so removing either key removes both.
    ///
    /// Cost: that of an `insert` of a new key. It needs no room if the key is among the recent ones.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::RecentCuckooFilter;
    /// let seen = RecentCuckooFilter::<u64>::builder().last(100).false_positive_rate(1e-6).build()?;
    /// for key in 1..10_000 {
    ///     seen.insert(&key);
    ///     assert_eq!(seen.insert_or_renew(&0), key == 1);
    /// }
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_or_renew<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_or_renew(self.hash_one(key))
    }

    /// Returns whether the key is among the recent ones: `false` is certain, except for keys that were
    /// [evicted](crate::RecentStats::evicted); `true` is wrong for a share of the other keys, the [false-positive
    /// rate](crate::Stats::false_positive_rate). It does not make the key a recent one.
    ///
    /// A key that is among the recent ones throughout the call is found, whatever other threads do. The call is lock-free. It
    /// retries, and counts that, only if another thread has just changed something in the same stripe, or keys have expired.
    /// In a filter of a time, the first call after a group of keys has expired publishes that, and about a thousand calls in a
    /// group's time note how late it is; no other call waits for these.
    ///
    /// Cost: two cache lines of the table, one of the stripes and one of the clock. The last two stay in the cache. In a
    /// filter of a time, also one reading of the clock (about 25 ns).
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains(self.hash_one(key))
    }

    /// Makes the key one that is not among the recent ones. Returns `true` if it was. In a filter of the last keys it has
    /// counted all the same.
    ///
    /// **Remove only a key for which `insert` has returned `true`**, and that cannot have expired. Otherwise a look-alike may
    /// lose its entry.
    ///
    /// Cost: two cache lines read and one written, with one stripe locked for a few instructions.
    #[inline]
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().remove(self.hash_one(key))
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
impl<T: ?Sized, S> ByHash<'_, RecentCuckooFilter<T, S>> {
    /// Returns whether the key with this hash is new, and makes it a recent one. See
    /// [`insert`](RecentCuckooFilter::insert) for promises and cost.
    #[inline]
    pub fn insert(self, hash: Hashed) -> bool {
        self.0.parts.core.add(hash.0, IfPresent::Skip)
    }

    /// Returns whether the key with this hash is new, and makes it the newest one. See
    /// [`insert_or_renew`](RecentCuckooFilter::insert_or_renew) for promises and cost.
    #[inline]
    pub fn insert_or_renew(self, hash: Hashed) -> bool {
        self.0.parts.core.add(hash.0, IfPresent::Extend)
    }

    /// Returns whether the key with this hash is among the recent ones. See [`contains`](RecentCuckooFilter::contains) for
    /// promises and cost.
    #[must_use]
    #[inline]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.parts.core.contains(hash.0)
    }

    /// Makes the key with this hash one that is not among the recent ones. See [`remove`](RecentCuckooFilter::remove) for
    /// promises and cost.
    #[inline]
    pub fn remove(self, hash: Hashed) -> bool {
        self.0.parts.core.remove(hash.0)
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
        self.0.parts.core.prefetch(&[hash.0]);
    }
}
