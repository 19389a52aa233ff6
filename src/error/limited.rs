//! Why a rate limiter rejects a request.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::word::human::Time;

/// Why a [`CuckooRateLimiter`](crate::CuckooRateLimiter) has rejected a request, and when it may be tried again.
///
/// A rejected request has cost nothing.
///
/// ```
/// use std::time::Duration;
/// use concurrent_cuckoo_filter::{CuckooRateLimiter, LimitReason};
///
/// let second = Duration::from_secs(1);
/// let limiter = CuckooRateLimiter::<str>::builder().allow(1, second).capacity(1000).build()?;
/// assert_eq!(limiter.check("10.0.0.1"), Ok(()));
/// let limited = limiter.check("10.0.0.1").unwrap_err();
/// assert_eq!(limited.reason(), LimitReason::Limit);
/// assert!(limited.retry_after() <= second);
/// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    reason: LimitReason,
    /// The time in nanoseconds: a rejected request does not wait for a division. Of a request that can never be allowed, the cost
    /// and the burst, in 32 bits each.
    number: u64,
}

/// Why a request was rejected: [`Limited::reason`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitReason {
    /// The key has used up its burst. (Or one that looks alike has: see
    /// [what keys share](crate::CuckooRateLimiter#keys-that-look-alike).)
    Limit,
    /// The key owes nothing, but the limiter is full, and was built to
    /// [reject new keys](crate::LimiterBuilder::when_full) then.
    ///
    /// Up to [`capacity`](crate::CuckooRateLimiter::capacity) distinct keys may always owe something at a time, in any order and
    /// from any threads. A limiter may take more, but which ones depends on the order.
    Full,
    /// The cost of the request is more than the burst: it can never be allowed.
    CostAboveBurst,
    /// The quota is one of another limiter, with ticks or debts that this one does not have.
    OtherLimiter,
}

impl Limited {
    /// A request that may be tried again after so many nanoseconds.
    #[inline(always)]
    pub(crate) fn after(reason: LimitReason, nanoseconds: u64) -> Self {
        Self { reason, number: nanoseconds }
    }

    /// A request of this cost, which can never be allowed under a quota with this burst.
    pub(crate) fn forever(reason: LimitReason, cost: u32, burst: u32) -> Self {
        Self { reason, number: u64::from(cost) << 32 | u64::from(burst) }
    }

    /// Returns after which time a request of this cost will be allowed, if the key has made none in between. For
    /// [`Full`](LimitReason::Full), that is when there may be room, and for what can never be allowed it is [`Duration::MAX`].
    ///
    /// In the header `Retry-After`, round it up to whole seconds.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        match self.reason {
            LimitReason::Limit | LimitReason::Full => Duration::from_nanos(self.number),
            LimitReason::CostAboveBurst | LimitReason::OtherLimiter => Duration::MAX,
        }
    }

    /// Returns why the request was rejected.
    #[must_use]
    pub fn reason(&self) -> LimitReason {
        self.reason
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = Time(self.retry_after());
        match self.reason {
            LimitReason::Limit => write!(f, "the limit of this key is reached; retry after {after}"),
            LimitReason::Full => {
                write!(f, "the rate limiter is full of other keys; retry after {after}, or give it a larger capacity")
            }
            LimitReason::CostAboveBurst => {
                let [cost, burst] = [self.number >> 32, self.number & u64::from(u32::MAX)];
                write!(
                    f,
                    "the request has a cost of {cost}, more than the burst of {burst}, so it can never be allowed; ask for a lower \
                     cost, or build the limiter with a larger burst"
                )
            }
            LimitReason::OtherLimiter => f.write_str(
                "the quota was made by another rate limiter, whose ticks differ or whose debts are longer; make it by `quota` of \
                 this one",
            ),
        }
    }
}

impl fmt::Debug for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, .. } = self;
        f.debug_struct("Limited").field("reason", reason).field("retry_after", &self.retry_after()).finish()
    }
}

impl Error for Limited {}
