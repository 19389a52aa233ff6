//! The operations on keys of a [`CuckooMaplet`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::{MapletInsertError, ValueTooLarge};
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::maplet::filter::CuckooMaplet;
use crate::table::core::Core as _;
use crate::word::values::Values;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> CuckooMaplet<T, S> {
    /// Adds the value to those of the key, even if the key has it already.
    ///
    /// The maplet is a multiset of pairs: a pair that is inserted twice must be removed twice.
    ///
    /// Cost: usually two cache lines read and one of them written, with one stripe locked for a few instructions.
    /// (A filter's [`insert`](crate::ConcurrentCuckooFilter::insert) takes no lock. This one does, so that all
    /// operations on a key have one order.) Where both buckets of the key are full, it costs as much as a filter's
    /// insert that relocates.
    ///
    /// # Errors
    /// [`MapletInsertError::ValueTooLarge`] if the value has too many bits; [`MapletInsertError::Full`] or
    /// [`MapletInsertError::TooManyCopies`] if there is no room. After an error nothing has changed.
    #[inline]
    pub fn insert<Q>(&self, key: &Q, value: u16) -> Result<(), MapletInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert(self.hash_one(key), value)
    }

    /// Adds the value unless the key has a value already. Returns the values that the key had: an empty set means
    /// that this value was added.
    ///
    /// It is one step: of many threads that race to add a value to a key without one, at most one gets the empty set. The
    /// others get the value that it added. (If a look-alike has a value, all get that one.)
    ///
    /// The maplet mistakes a key for another at the [false-positive rate](crate::Stats::false_positive_rate), and then adds
    /// nothing. So [`remove`](Self::remove) and [`replace`](Self::replace) only keys for which this returned an empty set,
    /// or accept that they [change another key's value](crate::guide::security#hazards-without-an-adversary).
    ///
    /// Cost: that of [`values`](Self::values) if the key has a value; otherwise that of an [`insert`](Self::insert)
    /// with one stripe locked.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let owners = CuckooMaplet::<str>::builder().capacity(100).value_bits(8).build()?;
    /// assert!(owners.insert_if_absent("job-1", 17)?.is_empty(), "node 17 has it now");
    /// assert!(owners.insert_if_absent("job-1", 99)?.contains(17), "so node 99 learns who has it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q, value: u16) -> Result<Values, MapletInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_if_absent(self.hash_one(key), value)
    }

    /// Returns the values of the key: a set of at most 12, on the stack.
    ///
    /// A value that the key has throughout the call is in the set, whatever other threads do. If the set is empty,
    /// the key is definitely absent. The call takes effect in one step: the set is what the key had at one point in time.
    /// While [`replace`](Self::replace) changes a value, the set has either the old value or the new one.
    ///
    /// **The set is a point-in-time view.** If a value names a place, such as a segment, the key may have moved before
    /// you read that place. The page [`several_places`](crate::guide::several_places) shows how a get notices that.
    ///
    /// The call is lock-free: it takes no lock and waits for no thread. It retries, and counts that for
    /// [`stats`](Self::stats), only if another thread has just changed something in the same stripe.
    ///
    /// Cost: two cache lines of the table, and one of the stripes, which stay in the cache.
    #[doc(alias = "get")]
    #[must_use]
    #[inline]
    pub fn values<Q>(&self, key: &Q) -> Values
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().values(self.hash_one(key))
    }

    /// Returns whether the key is present, with any value: `false` is certain; `true` is wrong for a share of the absent keys,
    /// the [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// It behaves like [`ConcurrentCuckooFilter::contains`](crate::ConcurrentCuckooFilter::contains), at its cost, but
    /// inserts of other threads can also make it retry.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains(self.hash_one(key))
    }

    /// Removes one copy of the value from the key. Returns `true` if the key had one.
    ///
    /// **Remove only pairs that were inserted**, once for each insert. A look-alike may have this value, and would
    /// then lose it. A value with too many bits can't have been inserted, so the answer is `false`.
    ///
    /// Cost: one or two cache lines read and one written, with one stripe locked for a few instructions.
    #[inline]
    pub fn remove<Q>(&self, key: &Q, value: u16) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().remove(self.hash_one(key), value)
    }

    /// Replaces one copy of `old` by `new`. Returns `true` if the key had one.
    ///
    /// It is one step: at any time the key has one of the two values, never neither and never both. It needs no
    /// room. If the key has `new` already, it then has it twice.
    ///
    /// **Replace only pairs that were inserted**, as with [`remove`](Self::remove). An `old` with too many bits
    /// can't have been inserted, so the answer is `false`.
    ///
    /// Cost: that of a [`remove`](Self::remove).
    ///
    /// # Errors
    /// [`ValueTooLarge`] if `new` has too many bits. Nothing has changed then.
    #[inline]
    pub fn replace<Q>(&self, key: &Q, old: u16, new: u16) -> Result<bool, ValueTooLarge>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().replace(self.hash_one(key), old, new)
    }

    /// Returns how many copies of the value the key has. It is the exact number of copies that were inserted and neither
    /// removed nor replaced, plus those of look-alikes. It is 0 for a value with too many bits.
    ///
    /// Cost: two cache lines, with one stripe locked.
    #[must_use]
    #[inline]
    pub fn count<Q>(&self, key: &Q, value: u16) -> usize
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().count(self.hash_one(key), value)
    }

    /// Returns the hash of a key, for [`by_hash`](Self::by_hash). Maplets with the same hasher compute the same hash.
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
impl<T: ?Sized, S> ByHash<'_, CuckooMaplet<T, S>> {
    /// Adds the value to those of the key with this hash. See [`insert`](CuckooMaplet::insert) for promises, cost and
    /// errors.
    #[inline]
    pub fn insert(self, hash: Hashed, value: u16) -> Result<(), MapletInsertError> {
        self.0.check(value)?;
        Ok(self.0.parts.core.insert(hash.0, value)?)
    }

    /// Adds the value unless the key with this hash has a value already, and returns the values that it had. See
    /// [`insert_if_absent`](CuckooMaplet::insert_if_absent) for promises, cost and errors.
    #[inline]
    pub fn insert_if_absent(self, hash: Hashed, value: u16) -> Result<Values, MapletInsertError> {
        self.0.check(value)?;
        Ok(self.0.parts.core.insert_if_absent(hash.0, value)?)
    }

    /// Returns the values of the key with this hash. See [`values`](CuckooMaplet::values) for promises and cost.
    #[must_use]
    #[inline]
    pub fn values(self, hash: Hashed) -> Values {
        self.0.parts.core.values(hash.0)
    }

    /// Returns whether the key with this hash has a value. See [`contains`](CuckooMaplet::contains) for promises and
    /// cost.
    #[must_use]
    #[inline]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.parts.core.contains(hash.0)
    }

    /// Removes one copy of the value from the key with this hash, and returns `true` if the key had one. See
    /// [`remove`](CuckooMaplet::remove) for promises and cost.
    #[inline]
    pub fn remove(self, hash: Hashed, value: u16) -> bool {
        if self.0.check(value).is_err() {
            return self.0.parts.core.counters().removal(false);
        }
        self.0.parts.core.remove(hash.0, value)
    }

    /// Replaces one copy of `old` by `new` for the key with this hash, and returns `true` if the key had one. See
    /// [`replace`](CuckooMaplet::replace) for promises, cost and errors.
    #[inline]
    pub fn replace(self, hash: Hashed, old: u16, new: u16) -> Result<bool, ValueTooLarge> {
        self.0.check(new)?;
        Ok(self.0.check(old).is_ok() && self.0.parts.core.replace(hash.0, old, new))
    }

    /// Returns how many copies of the value the key with this hash has. See [`count`](CuckooMaplet::count) for promises
    /// and cost.
    #[must_use]
    #[inline]
    pub fn count(self, hash: Hashed, value: u16) -> usize {
        if self.0.check(value).is_ok() { self.0.parts.core.count(hash.0, value) } else { 0 }
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
