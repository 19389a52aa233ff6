//! The filter whose entries expire one by one: from keys and ticks to answers.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::time::Duration;

use crate::error::insert::ExpiringInsertError;
use crate::error::tick::TickError;
use crate::filter::by_hash::{ByHash, Hashed, by_hash};
use crate::filter::expiring::expiry::Expiry;
use crate::filter::shared::operations::{operation_on_a_key, operations_on_keys};
use crate::hasher::default::DefaultHashBuilder;
use crate::snapshot::schema::Schema;
use crate::table::expiring::IfPresent;
use crate::table::expiring::clock::Until;
use crate::table::face::traits::ExpiringTable;
use crate::word::tick::Tick;

/// A cuckoo filter whose entries expire one by one, each at its own time. It suits revoked tokens, nonces and
/// negative caches.
///
/// A server often has to remember something only until a certain time: a revoked token until it would have expired
/// anyway, a nonce for as long as requests are accepted. This filter keeps each entry until it expires, then reuses its
/// slot. Many threads share it as they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), whose notes
/// on keys, hashers and hazards apply here too. The page [`consistency`](crate::guide::consistency#the-other-types)
/// says what concurrent callers may observe, and [`expiry`](crate::guide::expiry) how to use it.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use concurrent_cuckoo_filter::ExpiringCuckooFilter;
///
/// // Tokens live for at most an hour, so a revocation need not be kept longer. One tick is 5 minutes.
/// let (longest, tick) = (Duration::from_secs(3600), Duration::from_secs(300));
/// let revoked = ExpiringCuckooFilter::<str>::builder().capacity(100_000).lifetime(longest, tick).build()?;
///
/// // From a timer, or before each request. (In a program: `SystemTime::now()`.)
/// let noon = UNIX_EPOCH + Duration::from_secs(1_699_963_200);
/// revoked.advance_to(revoked.tick_at(noon)?);
///
/// let expiry_of_the_token = noon + Duration::from_secs(1000); // from the token itself
/// let is_new = revoked.insert_or_renew_until("token-17", expiry_of_the_token)?;
/// assert!(is_new && revoked.contains("token-17"));
///
/// revoked.advance_to(revoked.tick_at(noon + Duration::from_secs(1200))?);
/// assert!(!revoked.contains("token-17"), "it has expired");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Expiry
///
/// The filter counts time in *ticks* of the caller's clock. It starts no thread and reads no clock:
/// [`advance_to`](Self::advance_to) sets the tick that is *now*. An entry *expires at* a tick: it is live while
/// that tick is after now.
///
/// - **A live entry is always found**: there are no false negatives. (Only a filter that
///   [evicts](crate::ExpiringBuilder::when_full) may drop entries before they expire.)
/// - **An expired entry is never found**, from the moment that `advance_to` has taken effect, whether its slot has
///   been swept or not. (Its key is then an absent key like any other, so a lookup may still find it as a false
///   positive.)
/// - **Expired entries count as free slots.** An insert removes those on its way before it searches further.
///
/// # A nonce window
///
/// Anyone who records a request can send it again: a *replay*. So each request states when it was made and carries
/// a *nonce*, a number that is used once. The server rejects a request that is older than the window, or whose
/// nonce it has seen within the window.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Expiry};
///
/// const WINDOW: Duration = Duration::from_secs(5 * 60);
/// const TICK: Duration = Duration::from_secs(30);
///
/// /// Whether a request that was made at the time `made`, and arrives `now`, is no replay.
/// fn is_fresh(
///     nonces: &ExpiringCuckooFilter<str>,
///     nonce: &str,
///     made: SystemTime,
///     now: SystemTime,
/// ) -> Result<bool, Box<dyn std::error::Error>> {
///     // A request from the future would still be young enough when its nonce has expired.
///     if now.duration_since(made).map_or(true, |age| age > WINDOW) {
///         return Ok(false);
///     }
///     nonces.advance_to(nonces.tick_at(now)?);
///     // In one step: of many requests with this nonce, even at the same time, one passes. It is renewed if it was there:
///     // perhaps another nonce looks alike, and expires sooner. This one must not count as new then, since it was rejected.
///     Ok(nonces.insert_or_renew_until(nonce, Expiry::After(WINDOW))?)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // One new nonce in 43,000 may be taken for a replay: its client tries again with another.
/// let builder = ExpiringCuckooFilter::<str>::builder().capacity(100_000).false_positive_rate(2.3e-5);
/// let nonces = builder.lifetime(WINDOW, TICK).build()?;
/// let (made, second) = (SystemTime::now(), Duration::from_secs(1));
/// assert!(is_fresh(&nonces, "nonce-1", made, made + second)?);
/// assert!(!is_fresh(&nonces, "nonce-1", made, made + WINDOW)?, "a replay");
/// assert!(!is_fresh(&nonces, "nonce-1", made, made + 2 * WINDOW)?, "too old");
/// # Ok(())
/// # }
/// ```
///
/// # Which clock
///
/// Use a clock that survives the process: the time since 1970. Call `advance_to` from a timer, a thousand times per
/// tick, or before each operation. **If it is not called, time stands still.**
///
/// - *The clock goes back*, or starts at 0 in each process: nothing comes back to life. Nothing expires either
///   until the clock has caught up. `advance_to` then returns [`Advance::Behind`](crate::Advance::Behind), and
///   [`ExpiryStats::clock_steps_back`](crate::ExpiryStats::clock_steps_back) counts it. If the clock will not catch up, call
///   [`restart_clock`](Self::restart_clock): each entry keeps the rest of its lifetime.
/// - *The clock stands still*: nothing expires, and inserts with distant expiries fail
///   ([`ExpiringInsertError::LifetimeTooLong`]). The error names the filter's current tick.
/// - *The clock jumps ahead* by the longest lifetime or more: all entries expire, and none comes back.
///   [`Advance::Forward`](crate::Advance::Forward) says by how much the clock moved, and
///   [`ExpiryStats::clock_jumps`](crate::ExpiryStats::clock_jumps) counts it. That comes too late: [check the
///   time](crate::guide::expiry#clocks) before. If it was a mistake, load the last snapshot or rebuild the filter.
pub struct ExpiringCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) core: Box<dyn ExpiringTable>,
    pub(in crate::filter) hasher: S,
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "only snapshots state it"))]
    pub(in crate::filter) schema: Schema,
    key: PhantomData<fn(&T)>,
}

operations_on_keys! {
    ExpiringCuckooFilter, core::convert::identity:

    /// Adds an entry for the key, which is found for the whole [lifetime](crate::FilterPlan::lifetime_in_ticks) of the
    /// filter's entries: [`insert_until`](Self::insert_until) the tick `now + lifetime_in_ticks`, at its cost.
    ///
    /// It adds one even if the key has one already. For repeated keys, use [`insert_if_absent`](Self::insert_if_absent)
    /// or [`insert_or_renew`](Self::insert_or_renew).
    ///
    /// # Errors
    /// [`ExpiringInsertError::ClockNotSet`] if [`advance_to`](Self::advance_to) was never called;
    /// [`ExpiringInsertError::Full`] or [`ExpiringInsertError::TooManyCopies`] if there is no room. (With
    /// [`WhenFull::EvictOldest`](crate::WhenFull), the [builder](crate::ExpiringBuilder::when_full) says when.) After
    /// an error nothing has changed.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
    /// let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    /// let seen = ExpiringCuckooFilter::<str>::builder().capacity(100).lifetime(hour, minute).build()?;
    /// seen.advance_to(Tick::new(28_000_000));
    /// seen.insert("203.0.113.7")?;
    /// seen.advance_to(Tick::new(28_000_060));
    /// assert!(seen.contains("203.0.113.7"), "some part of the first minute may have been over");
    /// seen.advance_to(Tick::new(28_000_061));
    /// assert!(!seen.contains("203.0.113.7"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    insert() -> Result<(), ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.whole_lifetime(), IfPresent::Add).map(drop)
    };

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
    insert_until(expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.until(expiry), IfPresent::Add)
    };

    /// [`insert_if_absent_until`](Self::insert_if_absent_until) with the whole
    /// [lifetime](crate::FilterPlan::lifetime_in_ticks): adds an entry for the key unless the key has a live one. Returns
    /// `true` if it had none.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    insert_if_absent() -> Result<bool, ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.whole_lifetime(), IfPresent::Refuse)
    };

    /// Adds an entry for the key, with this [`Expiry`], unless the key has a live one, which then stays as it is. Returns
    /// `true` if one was added: `false` also if the new one would have expired already.
    ///
    /// It is one step: of many threads that race to add one absent key, at most one gets `true`. As in
    /// [`ConcurrentCuckooFilter::insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent), a key that is mistaken
    /// for another is not added. So remove only entries for which this returned `true`.
    ///
    /// Cost: that of an [`insert_until`](Self::insert_until).
    ///
    /// # Errors
    /// As for [`insert_until`](Self::insert_until).
    insert_if_absent_until(expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.until(expiry), IfPresent::Refuse)
    };

    /// [`insert_or_renew_until`](Self::insert_or_renew_until) with the whole
    /// [lifetime](crate::FilterPlan::lifetime_in_ticks) from now on. A repeated key stays live, in one slot. Returns `true`
    /// if the key had no live entry: if it is new.
    ///
    /// # Errors
    /// As for [`insert`](Self::insert).
    insert_or_renew() -> Result<bool, ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.whole_lifetime(), IfPresent::Extend)
    };

    /// Ensures that the key is found at least until this [`Expiry`], with one entry. Returns `true` if the key is new:
    /// if it had no live entry, and one was added.
    ///
    /// If the key has live entries, the one with the latest expiry is renewed: it lives until this expiry too, or is left
    /// as it is if it already lives longer. Returns `false` if the key was present, or if the expiry has already passed;
    /// then nothing changes. So where an expiry may have passed, `false` does not say that the key was seen before: compare
    /// the time first. Use this for what is seen again and again: sessions, leases, blocked addresses, and nonces that were
    /// rejected.
    ///
    /// It is one step: of many threads that race to add one absent key, at most one gets `true`. If the clock moves on
    /// during the call, so that the entry expires while it is renewed, the answer is `true`: when that tick began, the key
    /// was absent.
    ///
    /// **Don't [`remove`](Self::remove) from a filter in which entries are renewed in this way.** A look-alike of
    /// this key shares the one entry with it, so removing either key removes both.
    ///
    /// Cost: that of an [`insert_until`](Self::insert_until), even where nothing is to be done. It needs no room if the
    /// key has an entry.
    ///
    /// # Errors
    /// As for [`insert_until`](Self::insert_until).
    insert_or_renew_until(expiry: impl Into<Expiry>) -> Result<bool, ExpiringInsertError> = |filter, hash| {
        filter.add(hash, filter.until(expiry), IfPresent::Extend)
    };

    /// Returns whether the key has a live entry: `false` is certain; `true` is wrong for a share of the absent keys, the
    /// [false-positive rate](crate::Stats::false_positive_rate).
    ///
    /// An entry that is live throughout the call is found, whatever other threads do. The call is lock-free. It retries,
    /// and counts that, only if another thread has just changed something in the same stripe, or the clock has moved.
    ///
    /// Cost: two cache lines of the table, one of the stripes and one of the clock. The last two stay in the cache.
    #[must_use]
    contains() -> bool = |filter, hash| filter.core.contains_live(hash);

    /// Removes one live entry of the key; if it has several, the one that expires first. Returns `true` if there was one.
    ///
    /// **Remove only what was inserted and has not expired yet**, once for each insert. Otherwise a look-alike may have
    /// an entry, and would then lose it. If you cannot know whether the entry has expired, use
    /// [`remove_expiring_at`](Self::remove_expiring_at), which does nothing then. (If a look-alike's entry expires
    /// sooner, the call removes that one, and the look-alike lives as long as your entry. So no live key is missed.)
    ///
    /// Cost: two cache lines read and one written, with one stripe locked for a few instructions.
    remove() -> bool = |filter, hash| filter.core.remove_first(hash);

    /// Removes one live entry of the key that expires at this tick. Returns `true` if there was one: `false` also if it has
    /// already expired.
    ///
    /// It is the tick until which it was inserted, or what [`expires_at`](Self::expires_at) has returned. For an entry
    /// that was added until a time, it is [`tick_at`](Self::tick_at) of that time, plus 1 unless the time is the
    /// beginning of a tick. **Remove only what was inserted**, with the same expiry, once for each insert: otherwise a
    /// look-alike may lose an entry with this expiry.
    ///
    /// Cost: that of a [`remove`](Self::remove).
    remove_expiring_at(expires_at: Tick) -> bool = |filter, hash| filter.core.remove_until(hash, expires_at.get());

    /// Returns the tick at which the last live entry of the key expires; `None` if the key is definitely absent.
    ///
    /// It is never before the expiry of an entry of the key. It may be later: a look-alike's entry counts too. And a share
    /// of the absent keys, the [false-positive rate](crate::Stats::false_positive_rate), has an answer.
    ///
    /// Cost: two cache lines, with one stripe locked.
    #[must_use]
    expires_at() -> Option<Tick> = |filter, hash| {
        // An end beyond the largest tick is one that the clock does not reach.
        filter.core.last_end(hash).map(|(now, ticks)| Tick::new(now.saturating_add(ticks)))
    };

    /// Returns how long the key is still found, at most; `None` if it is definitely absent.
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
    remaining() -> Result<Option<Duration>, TickError> = |filter, hash| {
        let resolution = filter.core.clock().resolution().ok_or(TickError::ResolutionUnknown)?;
        Ok(filter.core.last_end(hash).map(|(_, ticks)| resolution.saturating_mul(ticks as u32)))
    };
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    #[inline(always)]
    pub(super) fn until(&self, expiry: impl Into<Expiry>) -> Until {
        expiry.into().until(|| self.core.clock().resolution())
    }

    pub(super) fn whole_lifetime(&self) -> Until {
        Until::After(self.core.clock().longest())
    }

    #[inline]
    fn add(&self, hash: u64, until: Until, if_present: IfPresent) -> Result<bool, ExpiringInsertError> {
        self.core.add_until(hash, until, if_present)
    }

    pub(in crate::filter) fn from_parts(core: Box<dyn ExpiringTable>, hasher: S, schema: Schema) -> Self {
        Self { core, hasher, schema, key: PhantomData }
    }
}
