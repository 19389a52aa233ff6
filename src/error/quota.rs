//! Why a limit is not possible.

use core::error::Error;
use core::time::Duration;

use crate::error::message::messages;
use crate::word::human::{Time, s};

/// Why a [`CuckooRateLimiter`](crate::CuckooRateLimiter) cannot have a limit.
///
/// The message of each error (its `Display`) names what was asked for, what is possible, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The limit, the period or the burst is 0, or the period is longer than 500 years.
    #[non_exhaustive]
    Invalid {
        /// How many requests were to be allowed per period.
        limit: u32,
        /// The period.
        period: Duration,
        /// How many requests were to be allowed at once.
        burst: u32,
    },
    /// The requests would come faster than the limiter can tell apart: an interval would be shorter than its ticks allow.
    #[non_exhaustive]
    TooFast {
        /// How many requests were to be allowed per period.
        limit: u32,
        /// The period.
        period: Duration,
        /// The shortest possible time per request.
        shortest: Duration,
    },
    /// One request would cost more than the longest debt of the limiter.
    #[non_exhaustive]
    TooSlow {
        /// How many requests were to be allowed per period.
        limit: u32,
        /// The period.
        period: Duration,
        /// The longest possible time per request.
        longest: Duration,
    },
    /// The burst is too large.
    #[non_exhaustive]
    BurstTooLarge {
        /// The burst asked for.
        burst: u32,
        /// How many ticks a request has.
        ticks_per_request: u64,
        /// The largest possible burst.
        largest: u64,
    },
    /// The time per request is not nearly a whole number of the limiter's ticks: rounded up, it would be more than a
    /// sixteenth longer.
    #[non_exhaustive]
    Inexact {
        /// How many requests were to be allowed per period.
        limit: u32,
        /// The period.
        period: Duration,
        /// The length of the limiter's ticks.
        tick: Duration,
        /// The next longer time per request that is possible.
        interval: Duration,
    },
    /// The number of ticks per request is 0.
    ZeroTicks,
}

messages! {
    QuotaError:
    Self::Invalid { limit, period, burst } =>
        "a limit of {limit} requests per {} with a burst of {burst} was asked for; each must be more than 0, and the period at \
         most 500 years", Time(*period);
    Self::TooFast { limit, period, shortest } =>
        "a limit of {limit} requests per {} is too fast: the shortest time per request is {}; ask for a lower limit, or build \
         the limiter with more ticks per request for quotas that are faster than its own limit", Time(*period), Time(*shortest);
    Self::TooSlow { limit, period, longest } =>
        "a limit of {limit} requests per {} is too slow for this limiter: one request would be owed for longer than {}, its \
         longest debt; build it with the limit and burst that take longest to repay", Time(*period), Time(*longest);
    Self::BurstTooLarge { burst, ticks_per_request, largest } =>
        "a burst of {burst} requests of {ticks_per_request} tick{} each is too large: the limit is {largest}; ask for a smaller \
         burst, or build the limiter with {}", s(*ticks_per_request),
        if *ticks_per_request > 1 { "fewer ticks per request" } else { "the largest burst" };
    Self::Inexact { limit, period, tick, interval } =>
        "a limit of {limit} requests per {} is not a whole number of ticks of {}: the next possible time per request is {}, \
         more than a sixteenth longer; ask for that, or build the limiter with more ticks per request",
        Time(*period), Time(*tick), Time(*interval);
    Self::ZeroTicks => "0 ticks per request were asked for; ask for 1 or more";
}

impl Error for QuotaError {}
