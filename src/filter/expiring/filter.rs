//! The filter whose entries expire one by one: its type.

use core::marker::PhantomData;

use crate::filter::by_hash::ByHash;
use crate::filter::expiring::expiry::Expiry;
use crate::filter::shared::parts::Parts;
use crate::hasher::default::DefaultHashBuilder;
use crate::table::by_shape::ExpiringTable;
use crate::table::expiring::clock::Until;

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
/// let builder = ExpiringCuckooFilter::<str>::builder().capacity(100_000).lifetime(longest).resolution(tick);
/// // A false positive rejects a valid token, and nothing confirms it. So it may happen to one token in 100,000.
/// let revoked = builder.false_positive_rate(1e-5).build()?;
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
/// let nonces = builder.lifetime(WINDOW).resolution(TICK).build()?;
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
///   ([`ExpiringInsertError::LifetimeTooLong`](crate::ExpiringInsertError::LifetimeTooLong)). The error names the filter's current tick.
/// - *The clock jumps ahead* by the longest lifetime or more: all entries expire, and none comes back.
///   [`Advance::Forward`](crate::Advance::Forward) says by how much the clock moved, and
///   [`ExpiryStats::clock_jumps`](crate::ExpiryStats::clock_jumps) counts it. That comes too late: [check the
///   time](crate::guide::expiry#clocks) before. If it was a mistake, load the last snapshot or rebuild the filter.
pub struct ExpiringCuckooFilter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<ExpiringTable, S>,
    /// The filter takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<ExpiringTable, S>) -> Self {
        Self { parts, key: PhantomData }
    }

    /// The expiry in ticks of this filter.
    #[inline(always)]
    pub(super) fn until(&self, expiry: impl Into<Expiry>) -> Until {
        expiry.into().until(|| self.parts.core.clock().resolution())
    }

    /// The expiry of an entry that lives as long as entries of this filter can.
    pub(super) fn whole_lifetime(&self) -> Until {
        Until::After(self.parts.core.clock().longest())
    }
}

/// Operations by hash.
impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    /// Returns the filter with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }
}
