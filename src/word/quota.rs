//! PURE: a limit, as requests of so many ticks each.
//!
//! # The algorithm
//! It is GCRA, the generic cell rate algorithm of ITU-T I.371: a token bucket without a task that refills it. A key's state
//! is one time, the end of its debt. A request costs `c` ticks. At the tick `now`, the debt would end at
//! `max(end, now) + c`. If that is more than `b · c` ticks after `now`, where `b` is the burst, the request is rejected and the
//! end stays. Otherwise it is the new end. A key without an end owes nothing.
//!
//! # The bound
//! *In any time `t`, a key is allowed at most `b + ⌈t / tick⌉ / c` requests, rounded down.* Let the first of `n` allowed
//! requests come at the tick `x` and the last at the tick `y`. Each adds `c` to the end at least, so the last leaves an end of
//! at least `x + n · c`. It was allowed, so its end is at most `y + b · c`. So `n · c <= (y - x) + b · c`. Two readings of a
//! clock that are `t` apart are at most `⌈t / tick⌉` ticks apart.
//!
//! Without ticks the same algorithm allows `b + t / (c · tick)`. So ticks add less than `1 / c` of a request, and never more
//! than one.
//!
//! *No request is rejected that the algorithm without ticks allows*, if it has allowed all those before. By induction, the
//! end in ticks is never later than the end in time, because readings are rounded down. The latter is at most `b · c` ticks
//! after the time of the request. The end is a whole number, so it is at most `b · c` after the tick of that time, too.
//!
//! *A tick is rounded down* to a nanosecond. So what is said of the algorithm without ticks holds for the limit that was asked
//! for: no request is rejected that keeps to it. (Were it rounded up, a key that makes 30 requests at the beginning of each
//! second would get 29 in the next one.) And a key gets more than by that limit: one request in as many as a tick has
//! nanoseconds.
//!
//! *Under two quotas* of one limiter, all requests of a key add to the same end. So of `n` requests of `c` ticks and `m` of
//! `d` ticks, with bursts `b` and `a`, it is `n · c + m · d <= (y - x) + max(b · c, a · d)`. For each quota alone the bound
//! above holds too: the requests of the other only add to the end.

use core::fmt;
use core::time::Duration;

use crate::word::human::Time;

/// A limit of a [`CuckooRateLimiter`](crate::CuckooRateLimiter): how many requests of one key it allows.
///
/// It is a whole number of the limiter's ticks, and the methods return what it comes to. A limiter has one
/// [of its own](crate::CuckooRateLimiter::limits), for [`check`](crate::CuckooRateLimiter::check), and makes
/// [others](crate::CuckooRateLimiter::quota), for [`check_with`](crate::CuckooRateLimiter::check_with).
///
/// ```
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::CuckooRateLimiter;
///
/// let minute = Duration::from_secs(60);
/// let limiter = CuckooRateLimiter::<str>::builder().allow(100, minute).burst(20).capacity(1000).build()?;
/// let limits = limiter.limits();
/// assert_eq!((limits.interval(), limits.burst()), (Duration::from_millis(600), 20));
/// assert_eq!(limits.most_in(minute), 120);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// How many ticks a request costs; at least 1.
    pub(crate) cost: u64,
    /// At least 1.
    pub(crate) burst: u32,
    /// How many nanoseconds a tick has; at least 1.
    pub(crate) tick: u64,
}

impl Quota {
    /// Returns the time in which a key earns one request: the period divided by the limit, in a whole number of ticks. (Of the
    /// limiter's own limit, a tick is a whole number of nanoseconds, rounded down. Other quotas have so many of these ticks that
    /// they are no faster, but for that rounding.)
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.tick.saturating_mul(self.cost))
    }

    /// Returns how many requests a key that owes nothing may make at once.
    #[must_use]
    pub fn burst(&self) -> u32 {
        self.burst
    }

    /// Returns the length of a tick: the limiter reads the time in whole ticks.
    #[must_use]
    pub fn tick(&self) -> Duration {
        Duration::from_nanos(self.tick)
    }

    /// Returns how many ticks the [interval](Self::interval) has.
    #[must_use]
    pub fn ticks_per_request(&self) -> u64 {
        self.cost
    }

    /// Returns how many requests of a key are allowed at most in any time of this length, if the key is not evicted. With a
    /// cost, each request counts as its cost.
    ///
    /// That is `burst + time / interval`, and at most one request more, for the length of a tick.
    #[must_use]
    pub fn most_in(&self, time: Duration) -> u64 {
        let ticks = time.as_nanos().div_ceil(self.tick.into());
        u64::try_from(ticks / u128::from(self.cost)).unwrap_or(u64::MAX).saturating_add(self.burst.into())
    }

    /// How many ticks after now a debt may end.
    #[inline(always)]
    pub(crate) fn most(&self) -> u64 {
        self.cost * u64::from(self.burst)
    }
}

/// For example "1 request per 600 ms and 20 at once, in ticks of 150 ms".
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (interval, burst, tick) = (Time(self.interval()), self.burst, Time(self.tick()));
        write!(f, "1 request per {interval} and {burst} at once, in ticks of {tick}")
    }
}
