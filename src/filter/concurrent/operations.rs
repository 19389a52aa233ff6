//! The operations on keys of a [`ConcurrentCuckooFilter`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::InsertError;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::concurrent::filter::ConcurrentCuckooFilter;
use crate::table::core::Core as _;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooFilter<T, S> {
    /// Adds one copy of the key, even if the key is present already.
    ///
    /// The filter is a multiset, as in the paper: a key that was inserted twice has the [`count`](Self::count) 2 and must be
    /// removed twice. To add a key only once, use [`insert_if_absent`](Self::insert_if_absent).
    ///
    /// Cost: usually two cache lines read and one of them written by a compare-exchange, without a lock, plus the
    /// thread's own counter. If both buckets of the key are full, the insert also searches for the nearest free slot.
    /// In the default layout, that is one insert in 150 at a load of 0.5 to 0.75, one in three around 0.9, and three in
    /// four at capacity. The search examines 3 to 30 buckets on average and 2,048 at most. One or two relocations
    /// follow, rarely more. Each locks one stripe for a few instructions.
    ///
    /// # Errors
    /// [`InsertError::Full`] if no free slot is within reach, and [`InsertError::TooManyCopies`] if copies of this key,
    /// or of look-alikes, fill its two buckets. Nothing has changed then. Contention is never the reason.
    /// Such a failure takes [36 to 94 µs](crate::guide::costs#an-insert-that-finds-no-room-at-once) in a full table: the search
    /// goes to its limit twice, and the insert goes through all stripes after each search. If other threads invalidate a
    /// search, it locks all stripes and searches again.
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert(self.hash_one(key))
    }

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// It does so in one step: if many threads race to add one absent key, at most one gets `true`. A share of the
    /// absent keys, the [false-positive rate](crate::Stats::false_positive_rate), is mistaken for another key, and is not
    /// added: then all get `false`. If that would lose something, build the filter with a lower rate.
    ///
    /// A key for which this returns `false` may have no copy of its own, but share that of a look-alike. So
    /// [`remove`](Self::remove) only keys for which it returned `true`. See
    /// [`security`](crate::guide::security#hazards-without-an-adversary) for what is lost even then.
    ///
    /// Cost: that of [`contains`](Self::contains) if the key is present. Otherwise that of an
    /// [`insert`](Self::insert) with one stripe locked.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert), if the key is absent. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};
    /// let seen = ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// assert!(seen.insert_if_absent("request-1")?);
    /// assert!(!seen.insert_if_absent("request-1")?, "a replay");
    /// # Ok::<(), InsertError>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, InsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_if_absent(self.hash_one(key))
    }

    /// Returns whether the key is in the filter: `false` if it is definitely absent, `true` if it is probably
    /// present. The share of absent keys that get `true` is the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// A key that is present throughout the call is found, whatever other threads do. The call is lock-free: it takes
    /// no lock and waits for no other thread. If another thread has just moved or removed something, the call retries. Only
    /// then does it write: it adds one to a counter for [`stats`](Self::stats).
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
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
    /// **Remove only keys that were inserted**, once for each insert. A key that was never inserted can be mistaken for
    /// one that was, as in [`contains`](Self::contains). Removing it makes that other key disappear (section 3.3 of the
    /// paper). Most such removals find nothing, and [`Stats::removals_not_found`](crate::Stats::removals_not_found)
    /// counts them.
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions, plus the
    /// thread's own counter.
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
    /// Cost: two cache lines, with one stripe locked. Where [`contains`](Self::contains) is enough, it is faster and
    /// waits for no other thread.
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
impl<T: ?Sized, S> ByHash<'_, ConcurrentCuckooFilter<T, S>> {
    /// Adds one copy of the key with this hash. See [`insert`](ConcurrentCuckooFilter::insert) for promises, cost and
    /// errors.
    #[inline]
    pub fn insert(self, hash: Hashed) -> Result<(), InsertError> {
        self.0.parts.core.insert(hash.0)
    }

    /// Adds the key with this hash if it is absent, and returns `true` if it added the key. See
    /// [`insert_if_absent`](ConcurrentCuckooFilter::insert_if_absent) for promises, cost and errors.
    #[inline]
    pub fn insert_if_absent(self, hash: Hashed) -> Result<bool, InsertError> {
        self.0.parts.core.insert_if_absent(hash.0)
    }

    /// Returns whether the key with this hash is in the filter. See [`contains`](ConcurrentCuckooFilter::contains) for
    /// promises and cost.
    #[must_use]
    #[inline]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.parts.core.contains(hash.0)
    }

    /// Removes one copy of the key with this hash, and returns `true` if there was one. See
    /// [`remove`](ConcurrentCuckooFilter::remove) for promises and cost.
    #[inline]
    pub fn remove(self, hash: Hashed) -> bool {
        self.0.parts.core.remove(hash.0)
    }

    /// Returns how many copies of the key with this hash are in the filter. See
    /// [`count`](ConcurrentCuckooFilter::count) for promises and cost.
    #[must_use]
    #[inline]
    pub fn count(self, hash: Hashed) -> usize {
        self.0.parts.core.count(hash.0)
    }

    /// Asks the processor to load what an operation on this hash will read, and does not wait for it.
    ///
    /// In a table larger than the cache, a lookup mostly waits for memory. So call this as soon as the key is known,
    /// and do other work before the lookup: parse the rest of the request, or check a signature. After about 100 to 200
    /// ns the cache has what the lookup reads. For many keys at a time, a batch such as
    /// [`contains_batch`](Self::contains_batch) does this by itself.
    ///
    /// It is only a hint, and changes no answer. In a table that fits in the cache it gains nothing. On processors
    /// other than x86-64 and AArch64 it does nothing.
    ///
    /// Cost: a few instructions that request the cache lines of the key's two buckets and of its stripe. It takes no
    /// lock and writes nothing.
    ///
    /// ```
    /// # let revoked = concurrent_cuckoo_filter::ConcurrentCuckooFilter::<str>::with_capacity(1000);
    /// # let parse = |body: &str| body.len();
    /// let (token, body) = ("token-17", "a long body");
    /// let hash = revoked.hash_one(token);
    /// revoked.by_hash().prefetch(hash);
    /// let request = parse(body); // meanwhile the lines are on their way
    /// if revoked.by_hash().contains(hash) {
    ///     println!("perhaps revoked: look into the database for a request of {request} bytes");
    /// }
    /// ```
    #[inline]
    pub fn prefetch(self, hash: Hashed) {
        self.0.parts.core.prefetch(&[hash.0]);
    }
}
