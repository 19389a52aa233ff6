//! The operations on keys of a [`CuckooRateLimiter`]. Each hashes its key, and asks the table by that hash.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use crate::error::limited::Limited;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::limiter::filter::CuckooRateLimiter;
use crate::table::core::Core as _;
use crate::table::limiter_table::Allowance;
use crate::word::quota::Quota;

/// The operations on keys.
impl<T: ?Sized, S: BuildHasher> CuckooRateLimiter<T, S> {
    /// Counts a request of the key, or rejects it if the key is at its limit.
    ///
    /// It is one step: of many threads that race for the key's last request, exactly one gets it. A request that is rejected
    /// changes nothing.
    ///
    /// Cost: one reading of the clock (about 25 ns). For a request that is rejected, then two cache lines of the table, one
    /// of the stripes and one of the clock, and one addition to the thread's own counter. One that is allowed also writes one
    /// of these lines, with one stripe locked for a few instructions. If debts have been repaid for a while, it removes
    /// some of them from the table: at most those of 4,096 buckets or of a thousandth of the table, which takes about 20 µs, or
    /// 120 µs in a table of 192 MB. If no request was allowed for so long that the ticks are used up, the next one removes all
    /// of them, in one pass over the table: about 80 ms for 100 MB. A new key costs more where it finds no room at once: it
    /// relocates entries, as in a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), or displaces another key.
    ///
    /// # Errors
    /// [`Limited`] says when to try again.
    ///
    /// ```
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::CuckooRateLimiter;
    ///
    /// let minute = Duration::from_secs(60);
    /// let limiter = CuckooRateLimiter::<str>::builder().allow(100, minute).burst(2).capacity(1000).build()?;
    /// assert!(limiter.check("client-1").is_ok());
    /// assert!(limiter.check("client-1").is_ok());
    /// let limited = limiter.check("client-1").unwrap_err();
    /// assert!(limited.retry_after() <= Duration::from_millis(600));
    /// assert!(limiter.check("client-2").is_ok(), "each key has a limit of its own");
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[inline]
    pub fn check<Q>(&self, key: &Q) -> Result<(), Limited>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().check(self.hash_one(key))
    }

    /// [`check`](Self::check) of a request that counts as `cost` requests. All of them are allowed, or none. A cost of 0 is
    /// always allowed, unless the key owes more than its burst under [another quota](Self::check_with).
    ///
    /// # Errors
    /// [`Limited`], as for `check`. If the cost is more than the burst, no time is long enough: the reason is
    /// [`CostAboveBurst`](crate::LimitReason::CostAboveBurst).
    #[inline]
    pub fn check_n<Q>(&self, key: &Q, cost: u32) -> Result<(), Limited>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().check_n(self.hash_one(key), cost)
    }

    /// [`check`](Self::check) of a key that has another limit than that of the limiter. The quota is one that this limiter's
    /// [`quota`](Self::quota) has returned. (Another limiter's may do if it has the same ticks, and if its debts are no longer
    /// than the longest of this one.)
    ///
    /// # Errors
    /// [`Limited`], as for `check`. If the quota is that of a limiter with other ticks, all requests are rejected: the reason
    /// is [`OtherLimiter`](crate::LimitReason::OtherLimiter).
    #[inline]
    pub fn check_with<Q>(&self, key: &Q, quota: &Quota) -> Result<(), Limited>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().check_n_with(self.hash_one(key), 1, quota)
    }

    /// [`check_n`](Self::check_n) with another limit, as in [`check_with`](Self::check_with).
    ///
    /// # Errors
    /// As for these two.
    #[inline]
    pub fn check_n_with<Q>(&self, key: &Q, cost: u32, quota: &Quota) -> Result<(), Limited>
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().check_n_with(self.hash_one(key), cost, quota)
    }

    /// Returns what the key may do now: how many requests are left, and when there will be more. It counts no request.
    ///
    /// What it returns was right at one moment of the call. Another thread may use up what is left before the caller does. To
    /// decide about a request, call [`check`](Self::check).
    ///
    /// It goes by the tick of the time at which it was called, as an allowed request does: if another thread is removing repaid
    /// debts when a tick begins, it waits for that thread's share (20 to 120 µs). If a [clock of your
    /// own](crate::LimiterBuilder::clock) is behind, it goes by the latest time that the limiter has reached, as `check` does.
    /// `next_after` and `full_after` count from what the clock shows, so they include the time that it takes to catch up. (A clock
    /// that shows less than when the limiter got it counts as if it showed that.)
    ///
    /// Cost: one reading of the clock, and two cache lines of the table, with one stripe locked for a few instructions.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use concurrent_cuckoo_filter::CuckooRateLimiter;
    /// let hour = Duration::from_secs(3600);
    /// let limiter = CuckooRateLimiter::<str>::builder().allow(10, hour).capacity(1000).build()?;
    /// limiter.check_n("client-1", 7).unwrap();
    /// assert_eq!(limiter.peek("client-1").remaining, 3);
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    #[must_use]
    pub fn peek<Q>(&self, key: &Q) -> Allowance
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().peek(self.hash_one(key))
    }

    /// [`peek`](Self::peek) under another limit, as in [`check_with`](Self::check_with). Under a quota of a limiter with other
    /// ticks, nothing is left.
    #[must_use]
    pub fn peek_with<Q>(&self, key: &Q, quota: &Quota) -> Allowance
    where
        T: Borrow<Q>,
        Q: Hash + ?Sized,
    {
        self.by_hash().peek_with(self.hash_one(key), quota)
    }

    /// Forgives the key its debt, for example after a successful login. Returns `true` if it owed something.
    ///
    /// A [key that looks alike](Self#keys-that-look-alike) shares its debt, and is forgiven too.
    ///
    /// What it owes is judged by the time, as in [`peek`](Self::peek): a debt that has been repaid by then is not one, whichever
    /// thread moves the clock on.
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

    /// Returns the hash of a key, for [`by_hash`](Self::by_hash). Limiters and filters with the same hasher compute the same
    /// hash.
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
impl<T: ?Sized, S> ByHash<'_, CuckooRateLimiter<T, S>> {
    /// Counts a request of the key with this hash, or rejects it. See [`check`](CuckooRateLimiter::check) for promises and
    /// cost.
    ///
    /// # Errors
    /// Those of [`check`](CuckooRateLimiter::check).
    #[inline]
    pub fn check(self, hash: Hashed) -> Result<(), Limited> {
        self.0.parts.core.check(hash.0)
    }

    /// Counts a request of this cost of the key with this hash, or rejects it. See [`check_n`](CuckooRateLimiter::check_n).
    ///
    /// # Errors
    /// Those of [`check_n`](CuckooRateLimiter::check_n).
    #[inline]
    pub fn check_n(self, hash: Hashed, cost: u32) -> Result<(), Limited> {
        let core = &self.0.parts.core;
        core.check_n_with(hash.0, cost, core.limits())
    }

    /// Counts a request of the key with this hash under this quota, or rejects it. See
    /// [`check_with`](CuckooRateLimiter::check_with).
    ///
    /// # Errors
    /// Those of [`check_with`](CuckooRateLimiter::check_with).
    #[inline]
    pub fn check_with(self, hash: Hashed, quota: &Quota) -> Result<(), Limited> {
        self.0.parts.core.check_n_with(hash.0, 1, *quota)
    }

    /// Counts a request of this cost of the key with this hash under this quota, or rejects it. See
    /// [`check_n_with`](CuckooRateLimiter::check_n_with).
    ///
    /// # Errors
    /// Those of [`check_n_with`](CuckooRateLimiter::check_n_with).
    #[inline]
    pub fn check_n_with(self, hash: Hashed, cost: u32, quota: &Quota) -> Result<(), Limited> {
        self.0.parts.core.check_n_with(hash.0, cost, *quota)
    }

    /// Returns what the key with this hash may do now. See [`peek`](CuckooRateLimiter::peek).
    #[must_use]
    pub fn peek(self, hash: Hashed) -> Allowance {
        let core = &self.0.parts.core;
        core.allowance(hash.0, core.limits())
    }

    /// Returns what the key with this hash may do now under this quota. See [`peek_with`](CuckooRateLimiter::peek_with).
    #[must_use]
    pub fn peek_with(self, hash: Hashed, quota: &Quota) -> Allowance {
        self.0.parts.core.allowance(hash.0, *quota)
    }

    /// Forgives the key with this hash its debt. See [`remove`](CuckooRateLimiter::remove).
    #[inline]
    pub fn remove(self, hash: Hashed) -> bool {
        self.0.parts.core.remove(hash.0)
    }

    /// Asks the processor to load what an operation on this hash will read, and does not wait for it.
    ///
    /// Call this as soon as the key is known, and do other work before the check: after about 100 to 200 ns the cache
    /// has what the check reads. It is only a hint, and changes no answer. In a table that fits in the cache it gains
    /// nothing. For many keys at a time, [`check_batch`](Self::check_batch) does this by itself.
    ///
    /// Cost: a few instructions that request the cache lines of the key's two buckets and of its stripe. It takes no
    /// lock and writes nothing.
    #[inline]
    pub fn prefetch(self, hash: Hashed) {
        self.0.parts.core.prefetch(&[hash.0]);
    }
}
