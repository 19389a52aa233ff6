//! The rate limiter: its type.

use core::marker::PhantomData;
use core::time::Duration;

use crate::error::quota::QuotaError;
use crate::filter::by_hash::ByHash;
use crate::filter::shared::parts::Parts;
use crate::hasher::default::DefaultHashBuilder;
use crate::machine::time::TimeSource;
use crate::plan::limits::{self, LimitSettings};
use crate::table::limiter_table::LimiterTable;
use crate::word::quota::Quota;

/// A rate limiter with a limit for each key, in three bytes per key: so many requests of each client, address or account per
/// second or per hour.
///
/// It keeps one number per key, the time at which the key's debt is repaid, as the expiry of an entry in a cuckoo filter. A
/// key that owes nothing is not in the table. So the memory is constant, whoever comes, and nothing needs to be cleaned up.
/// Many threads share the limiter as they share a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), whose notes on
/// keys and hashers apply here too.
///
/// ```
/// use std::net::{IpAddr, Ipv4Addr};
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::CuckooRateLimiter;
///
/// let limiter = CuckooRateLimiter::<IpAddr>::builder()
///     .allow(100, Duration::from_secs(60)) // for each key
///     .burst(20) // of these at once
///     .capacity(1_000_000) // keys that owe something at one time
///     .build()?;
///
/// let client = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));
/// match limiter.check(&client) {
///     Ok(()) => {} // serve the request
///     Err(limited) => println!("429 Too Many Requests, Retry-After: {:?}", limited.retry_after()),
/// }
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
///
/// The page [`rate_limits`](crate::guide::rate_limits) helps to choose the settings, and says what the keys should be behind
/// a proxy, what to do with several servers, and what a flood does.
///
/// # What is allowed
///
/// The algorithm is GCRA (ITU-T I.371), which decides as a token bucket does. Each request of a key adds the limit's
/// [interval](Quota::interval) to its debt, and the debt is repaid as time goes by. A request that would make it
/// longer than [`burst`](crate::LimiterBuilder::burst) intervals is rejected, and costs nothing.
///
/// - **The bound.** In any time `t`, a key is allowed at most `burst + t / interval` requests, and at most one more, since the
///   limiter counts time in ticks. [`Quota::most_in`] returns the exact number. It holds on any number of threads, for as
///   long as the key is not evicted. Of all threads that race for a key's last request, exactly one gets it.
/// - **A key that keeps to its limit is not rejected**, to the nanosecond, unless it shares its debt with another key. (A tick is
///   rounded down to a nanosecond. So the interval may be shorter than the period divided by the limit, by a ten-thousandth
///   at most.)
///
/// The limiter reads the time itself, as a [`RecentCuckooFilter`](crate::RecentCuckooFilter#the-keys-of-the-last-minute)
/// does, from a clock that nobody sets. If a [clock of your own](crate::LimiterBuilder::clock) stands still or goes back, debts
/// last longer, and never shorter.
///
/// # Keys that look alike
///
/// Keys with the same fingerprint and buckets share one debt. Of the keys that owe nothing, a share of at most the
/// [false-positive rate](crate::LimiterBuilder::false_positive_rate), 0.1% by default, looks like one that does while the
/// table is full. Both keys are then limited together, by the sum of their requests. That
/// rejects a request only if the sum is beyond the limit: in most cases neither key notices. If it does, it is for as long as
/// the other one goes on. An attacker cannot choose keys that look like another one, unless the
/// [hasher's key](crate::guide::security#a-known-hasher-key) is known.
///
/// # When it is full
///
/// The limiter has room for as many keys in debt as its [capacity](Self::capacity). If more come, the new key takes the
/// place of another one: of those in its two buckets, the one that would be repaid first. That key's debt is
/// forgiven, and [`LimiterStats::evicted`](crate::LimiterStats::evicted) counts it. So a check never fails for lack of room.
/// Whoever is deep in debt goes last: in a flood of new keys, each with one request, they displace each other. The builder
/// can also have [new keys rejected](crate::LimiterBuilder::when_full) instead.
///
/// # What concurrent callers may observe
///
/// Operations on keys are linearizable. **A rejected request writes nothing to the table and waits for no lock**, except that
/// the first call in a tick moves the clock on, and that rejections are counted, in the thread's own counter. An allowed
/// request is one step, with one lock held for a few instructions that many keys share. It waits for another thread's
/// removal of expired debts only where that has gone on when a tick began, for the time in which one call removes some.
/// The page [`consistency`](crate::guide::consistency#the-other-types) says more.
pub struct CuckooRateLimiter<T: ?Sized, S = DefaultHashBuilder> {
    pub(in crate::filter) parts: Parts<LimiterTable, S>,
    /// The limiter takes keys by reference and keeps none.
    key: PhantomData<fn(&T)>,
}

impl<T: ?Sized, S> CuckooRateLimiter<T, S> {
    pub(in crate::filter) fn from_parts(parts: Parts<LimiterTable, S>) -> Self {
        Self { parts, key: PhantomData }
    }
}

/// Limits, operations by hash, and another clock.
impl<T: ?Sized, S> CuckooRateLimiter<T, S> {
    /// Returns the limit that the limiter was built with, in its ticks.
    #[must_use]
    pub fn limits(&self) -> Quota {
        self.parts.core.limits()
    }

    /// Returns another limit of this limiter, for [`check_with`](Self::check_with): for some keys, such as those of paying
    /// customers, or for all of them **from now on**. A running server that is to change its limits makes a quota of the new
    /// ones, and keeps it where all threads read it. The debts stay: each is repaid when it would have been.
    ///
    /// The interval must be a whole number of the limiter's ticks, or is rounded up to one by at most a sixteenth. And its entries
    /// must have room for the ticks of the burst, as they have for those of the limiter's own. So build the limiter with the
    /// quota that takes longest to repay, and with enough [ticks per
    /// request](crate::LimiterBuilder::ticks_per_request) for the fastest.
    ///
    /// A key that is checked under two quotas has one debt, to which both add. So in any time, its requests under both
    /// together cost at most that time, a tick, and the longer one of both bursts. For each quota alone, [`Quota::most_in`]
    /// holds.
    ///
    /// # Errors
    /// A [`QuotaError`] says what is possible.
    ///
    /// ```
    /// use std::time::Duration;
    /// use concurrent_cuckoo_filter::CuckooRateLimiter;
    ///
    /// let minute = Duration::from_secs(60);
    /// let limiter = CuckooRateLimiter::<str>::builder()
    ///     .allow(100, minute)
    ///     .burst(20)
    ///     .ticks_per_request(40) // of 15 ms each
    ///     .capacity(100_000)
    ///     .build()?;
    /// let paying = limiter.quota(1000, minute, 200)?;
    /// for _ in 0..200 {
    ///     assert!(limiter.check_with("customer-7", &paying).is_ok());
    /// }
    /// assert!(limiter.check_with("customer-7", &paying).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn quota(&self, limit: u32, period: Duration, burst: u32) -> Result<Quota, QuotaError> {
        let core = &self.parts.core;
        limits::quota(LimitSettings { limit, period, burst }, core.limits().tick, core.clock().ring())
    }

    /// Returns the limiter with operations on hashes instead of keys.
    #[inline(always)]
    #[must_use]
    pub fn by_hash(&self) -> ByHash<'_, Self> {
        ByHash(self)
    }

    /// Returns the limiter with another clock, as [`LimiterBuilder::clock`](crate::LimiterBuilder::clock) sets it: from now
    /// on, it takes the time from this function. Debts stay as they are.
    #[must_use]
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let Parts { core, hasher, schema } = self.parts;
        Self::from_parts(Parts { core: core.with_time(TimeSource::of_caller(clock)), hasher, schema })
    }
}
