//! The operations on keys of an [`ExpiringCuckooFilter`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;

use crate::error::insert::ExpiringInsertError;
use crate::error::tick::TickError;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::expiring::expiry::Expiry;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::table::attempt::IfPresent;
use crate::table::core::Core as _;
use crate::word::tick::Tick;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> ExpiringCuckooFilter<T, S> {
    /// Adds an entry for the key that lives for the whole [lifetime](crate::FilterPlan::lifetime_in_ticks). It is
    /// [`insert_until`](Self::insert_until) the tick `now + lifetime_in_ticks`, and costs the same.
    ///
    /// It adds one even if the key has one already. For repeated keys, use [`insert_if_absent`](Self::insert_if_absent)
    /// or [`insert_or_renew`](Self::insert_or_renew).
    ///
    /// # Errors
    /// [`ExpiringInsertError::ClockNotSet`] if [`advance_to`](Self::advance_to) was never called;
    /// [`ExpiringInsertError::Full`] or [`ExpiringInsertError::TooManyCopies`] if there is no room. (With
    /// [`WhenFull::EvictSoonest`](crate::WhenFull), the [builder](crate::ExpiringBuilder::when_full) says when.) After
    /// an error nothing has changed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
    /// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    /// let seen = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(hour).resolution(minute).build()?;
    /// seen.advance_to(Tick::new(28_000_000));
    /// seen.insert("203.0.113.7")?;
    /// seen.advance_to(Tick::new(28_000_060));
    /// assert!(seen.contains("203.0.113.7"), "some part of the first minute may have been over");
    /// seen.advance_to(Tick::new(28_000_061));
    /// assert!(!seen.contains("203.0.113.7"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<Q>(&self, key: &Q) -> Result<(), ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert(self.hash_one(key))
    }

    /// Adds an entry for the key with this [`Expiry`]: a time, a time to live, or a tick. Returns whether it was added:
    /// `false` if it has already expired by the clock of the filter, which may be [ahead of yours](Self::advance_to).
    ///
    /// It adds one even if the key already has an entry: the filter is a multiset of pairs of a key and an expiry.
    /// Each pair is removed, or expires, on its own. To make one entry live longer, use
    /// [`insert_or_renew_until`](Self::insert_or_renew_until).
    ///
    /// Cost: usually two cache lines read and one of them written, with one stripe locked for a few instructions.
    /// Where both buckets of the key are full, it costs as much as a
    /// [`ConcurrentCuckooFilter::insert`](crate::ConcurrentCuckooFilter::insert) that relocates.
    ///
    /// # Errors
    /// - [`ExpiringInsertError::ClockNotSet`] if [`advance_to`](Self::advance_to) was never called;
    /// - [`ExpiringInsertError::LifetimeTooLong`] if the expiry is further away than the [longest
    ///   lifetime](crate::FilterPlan::lifetime_in_ticks);
    /// - [`ExpiringInsertError::Full`] or [`ExpiringInsertError::TooManyCopies`] if there is no room;
    /// - [`ExpiringInsertError::Evicted`] if the filter has evicted that tick, to make room
    ///   ([`when_full`](crate::ExpiringBuilder::when_full));
    /// - [`ExpiringInsertError::ResolutionUnknown`] for a time or a time to live, if the filter was built [by
    ///   ticks](crate::ExpiringBuilder::lifetime_in_ticks).
    ///
    /// After an error nothing has changed. (Only an insert that evicts may fail after it has evicted some ticks, if
    /// other threads take the room.)
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError, Tick};
    /// let blocked = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime_in_ticks(15).build()?;
    /// blocked.advance_to(Tick::new(1000));
    /// assert!(blocked.insert_until("198.51.100.7", Tick::new(1010))?);
    /// assert!(!blocked.insert_until("198.51.100.9", Tick::new(1000))?, "that is over");
    /// let error = blocked.insert_until("198.51.100.8", Tick::new(1016)).unwrap_err();
    /// assert!(matches!(error, ExpiringInsertError::LifetimeTooLong { longest: 15, .. }), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_until<Q>(&self, key: &Q, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_until(self.hash_one(key), expiry)
    }

    /// Adds an entry for the key that lives for the whole [lifetime](crate::FilterPlan::lifetime_in_ticks), unless
    /// the key has a live one. Returns `true` if it had none. See
    /// [`insert_if_absent_until`](Self::insert_if_absent_until).
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    #[inline]
    pub fn insert_if_absent<Q>(&self, key: &Q) -> Result<bool, ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_if_absent(self.hash_one(key))
    }

    /// Adds an entry for the key, with this [`Expiry`], unless the key has a live one, which then stays as it is.
    /// Returns `true` if an entry was added. Returns `false` if the key had one, or if the new one would have expired
    /// already.
    ///
    /// It is one step: of many threads that race to add one absent key, at most one gets `true`. As in
    /// [`ConcurrentCuckooFilter::insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent), a key that is
    /// mistaken for another is not added. So remove only entries for which this returned `true`.
    ///
    /// Cost: that of an [`insert_until`](Self::insert_until).
    ///
    /// # Errors
    /// As for [`insert_until`](Self::insert_until).
    #[inline]
    pub fn insert_if_absent_until<Q>(&self, key: &Q, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_if_absent_until(self.hash_one(key), expiry)
    }

    /// Adds an entry for the key that lives for the whole [lifetime](crate::FilterPlan::lifetime_in_ticks), or renews
    /// the one that the key has. So a repeated key stays live, in one slot. Returns `true` if the key is new, that
    /// is, if it had no live entry. See [`insert_or_renew_until`](Self::insert_or_renew_until).
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    #[inline]
    pub fn insert_or_renew<Q>(&self, key: &Q) -> Result<bool, ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_or_renew(self.hash_one(key))
    }

    /// Ensures that the key is found at least until this [`Expiry`], with one entry. Returns `true` if the key is new:
    /// if it had no live entry, and one was added.
    ///
    /// If the key has live entries, the one with the latest expiry is renewed: it lives until this expiry too, or is
    /// left as it is if it already lives longer. Returns `false` if the key was present, or if the expiry has already
    /// passed; then nothing changes. So where an expiry may have passed, `false` does not say that the key was seen
    /// before: compare the time first. Use this for what is seen again and again: sessions, leases, blocked addresses,
    /// and nonces that were rejected.
    ///
    /// It is one step: of many threads that race to add one absent key, at most one gets `true`. If the clock moves on
    /// during the call, so that the entry expires while it is renewed, the answer is `true`: when that tick began, the
    /// key was absent.
    ///
    /// **Don't [`remove`](Self::remove) from a filter in which entries are renewed in this way.** A look-alike of
    /// this key shares the one entry with it, so removing either key removes both.
    ///
    /// Cost: that of an [`insert_until`](Self::insert_until), even where nothing is to be done. It needs no room if the
    /// key has an entry.
    ///
    /// # Errors
    /// As for [`insert_until`](Self::insert_until).
    #[inline]
    pub fn insert_or_renew_until<Q>(&self, key: &Q, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().insert_or_renew_until(self.hash_one(key), expiry)
    }

    /// Returns whether the key has a live entry: `false` is certain; `true` is wrong for a share of the absent keys, the
    /// [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// An entry that is live throughout the call is found, whatever other threads do. The call is lock-free. It retries,
    /// and counts that, only if another thread has just changed something in the same stripe, or the clock has moved.
    ///
    /// Cost: two cache lines of the table, one of the stripes and one of the clock. The last two stay in the cache.
    #[must_use]
    #[inline]
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().contains(self.hash_one(key))
    }

    /// Removes one live entry of the key; if it has several, the one that expires first. Returns `true` if there was one.
    ///
    /// **Remove only what was inserted and has not expired yet**, once for each insert. Otherwise a look-alike may have
    /// an entry, and would then lose it. If you cannot know whether the entry has expired, use
    /// [`remove_expiring_at`](Self::remove_expiring_at), which does nothing then. (If a look-alike's entry expires
    /// sooner, the call removes that one, and the look-alike lives as long as your entry. So no live key is missed.)
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

    /// Removes one live entry of the key that expires at this tick. Returns `true` if there was one. Returns `false`
    /// if there was none, or if it has already expired.
    ///
    /// Pass the tick until which the entry was inserted, or what [`expires_at`](Self::expires_at) has returned. For an
    /// entry that was added until a time, the tick is [`tick_at`](Self::tick_at) of that time, plus 1 unless the time
    /// is the beginning of a tick. **Remove only what was inserted**, with the same expiry, once for each insert:
    /// otherwise a look-alike may lose an entry with this expiry.
    ///
    /// Cost: that of a [`remove`](Self::remove).
    #[inline]
    pub fn remove_expiring_at<Q>(&self, key: &Q, expires_at: Tick) -> bool
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().remove_expiring_at(self.hash_one(key), expires_at)
    }

    /// Returns the tick at which the last live entry of the key expires; `None` if the key is definitely absent.
    ///
    /// It is never before the expiry of an entry of the key. It may be later: a look-alike's entry counts too. For a
    /// share of the absent keys, the [false-positive rate](crate::Stats::false_positive_rate), the answer is also a
    /// tick.
    ///
    /// Cost: two cache lines, with one stripe locked.
    #[must_use]
    #[inline]
    pub fn expires_at<Q>(&self, key: &Q) -> Option<Tick>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().expires_at(self.hash_one(key))
    }

    /// Returns the longest time for which the key can still be found; `None` if it is definitely absent.
    ///
    /// It is the time from the *beginning* of the present tick to [`expires_at`](Self::expires_at), in whole
    /// resolutions. So it is never too short, and up to one resolution too long, because the filter does not know how
    /// much of the present tick is over. It suits an HTTP `Retry-After`.
    ///
    /// Cost: that of `expires_at`.
    ///
    /// # Errors
    /// [`TickError::ResolutionUnknown`] if the filter was built [by
    /// ticks](crate::ExpiringBuilder::lifetime_in_ticks).
    #[inline]
    pub fn remaining<Q>(&self, key: &Q) -> Result<Option<Duration>, TickError>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().remaining(self.hash_one(key))
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
impl<T: ?Sized, S> ByHash<'_, ExpiringCuckooFilter<T, S>> {
    /// Adds an entry of the whole lifetime for the key with this hash. See [`insert`](ExpiringCuckooFilter::insert) for
    /// promises, cost and errors.
    #[inline]
    pub fn insert(self, hash: Hashed) -> Result<(), ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.whole_lifetime(), IfPresent::Add).map(drop)
    }

    /// Adds an entry with this expiry for the key with this hash, and returns whether it was added. See
    /// [`insert_until`](ExpiringCuckooFilter::insert_until) for promises, cost and errors.
    #[inline]
    pub fn insert_until(self, hash: Hashed, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.until(expiry), IfPresent::Add)
    }

    /// Adds an entry of the whole lifetime for the key with this hash if it has no live one, and returns `true` if it
    /// had none. See [`insert_if_absent`](ExpiringCuckooFilter::insert_if_absent) for promises, cost and errors.
    #[inline]
    pub fn insert_if_absent(self, hash: Hashed) -> Result<bool, ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.whole_lifetime(), IfPresent::Skip)
    }

    /// Adds an entry with this expiry for the key with this hash if it has no live one, and returns `true` if one was
    /// added. See [`insert_if_absent_until`](ExpiringCuckooFilter::insert_if_absent_until) for promises, cost and
    /// errors.
    #[inline]
    pub fn insert_if_absent_until(self, hash: Hashed, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.until(expiry), IfPresent::Skip)
    }

    /// Adds an entry of the whole lifetime for the key with this hash, or renews its live one, and returns `true` if
    /// the key is new. See [`insert_or_renew`](ExpiringCuckooFilter::insert_or_renew) for promises, cost and errors.
    #[inline]
    pub fn insert_or_renew(self, hash: Hashed) -> Result<bool, ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.whole_lifetime(), IfPresent::Extend)
    }

    /// Ensures that the key with this hash is found at least until this expiry, and returns `true` if the key is new.
    /// See [`insert_or_renew_until`](ExpiringCuckooFilter::insert_or_renew_until) for promises, cost and errors.
    #[inline]
    pub fn insert_or_renew_until(self, hash: Hashed, expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> {
        self.0.parts.core.add_until(hash.0, self.0.until(expiry), IfPresent::Extend)
    }

    /// Returns whether the key with this hash has a live entry. See [`contains`](ExpiringCuckooFilter::contains) for
    /// promises and cost.
    #[must_use]
    #[inline]
    pub fn contains(self, hash: Hashed) -> bool {
        self.0.parts.core.contains(hash.0)
    }

    /// Removes one live entry of the key with this hash, the one that expires first, and returns `true` if there was
    /// one. See [`remove`](ExpiringCuckooFilter::remove) for promises and cost.
    #[inline]
    pub fn remove(self, hash: Hashed) -> bool {
        self.0.parts.core.remove_first(hash.0)
    }

    /// Removes one live entry of the key with this hash that expires at this tick, and returns `true` if there was one.
    /// See [`remove_expiring_at`](ExpiringCuckooFilter::remove_expiring_at) for promises and cost.
    #[inline]
    pub fn remove_expiring_at(self, hash: Hashed, expires_at: Tick) -> bool {
        self.0.parts.core.remove_until(hash.0, expires_at.get())
    }

    /// Returns the tick at which the last live entry of the key with this hash expires. See
    /// [`expires_at`](ExpiringCuckooFilter::expires_at) for promises and cost.
    #[must_use]
    #[inline]
    pub fn expires_at(self, hash: Hashed) -> Option<Tick> {
        // An expiry beyond the largest tick is one that the clock does not reach.
        self.0.parts.core.last_expiry(hash.0).map(|(now, ticks)| Tick::new(now.saturating_add(ticks)))
    }

    /// Returns how long the key with this hash is still found, at most. See
    /// [`remaining`](ExpiringCuckooFilter::remaining) for promises, cost and errors.
    #[inline]
    pub fn remaining(self, hash: Hashed) -> Result<Option<Duration>, TickError> {
        let resolution = self.0.parts.core.clock().resolution().ok_or(TickError::ResolutionUnknown)?;
        Ok(self.0.parts.core.last_expiry(hash.0).map(|(_, ticks)| resolution.saturating_mul(ticks as u32)))
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
