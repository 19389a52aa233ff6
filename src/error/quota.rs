//! Why a limit is not possible.

use core::error::Error;
use core::fmt;
use core::time::Duration;

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
        /// How many ticks that is.
        ticks_per_request: u64,
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

/// The message of an error of a limiter's builder, which can have other ticks. That of the error itself is for a limiter that
/// is there.
pub(crate) struct OfBuilder(pub(crate) QuotaError);

impl fmt::Display for OfBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.0 {
            QuotaError::TooFast { ticks_per_request: 1, .. } => "ask for a lower limit",
            QuotaError::TooFast { .. } => "ask for a lower limit, or for fewer ticks per request",
            QuotaError::BurstTooLarge { largest: 0, .. } => "ask for fewer ticks per request",
            QuotaError::BurstTooLarge { ticks_per_request: 1, .. } => {
                "ask for a smaller burst (if none is given, it is the limit)"
            }
            QuotaError::BurstTooLarge { .. } => {
                "ask for a smaller burst (if none is given, it is the limit), or for fewer ticks per request"
            }
            error => return error.fmt(f),
        };
        self.0.fmt_reason(f)?;
        write!(f, "; {remedy}")
    }
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_reason(f)?;
        f.write_str(match self {
            Self::Invalid { .. } => "; each must be more than 0, and the period at most 500 years",
            Self::TooFast { .. } => {
                "; ask for a lower limit, or build the limiter with more ticks per request for quotas that are faster than its \
                 own limit"
            }
            Self::TooSlow { .. } => {
                "; ask for a higher limit, or build the limiter with the limit and burst that take longest to repay"
            }
            Self::BurstTooLarge { .. } => {
                "; ask for a smaller burst, or build the limiter with the limit and burst that take longest to repay"
            }
            Self::Inexact { .. } => "; ask for that, or build the limiter with more ticks per request",
            Self::ZeroTicks => "; ask for 1 or more",
        })
    }
}

/// A limit that was asked for.
struct Asked(u32, Duration);

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(limit, period) = *self;
        write!(f, "a limit of {limit} request{} per {}", s(limit.into()), Time(period))
    }
}

impl QuotaError {
    /// What was asked for, and the limit.
    fn fmt_reason(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Invalid { limit, period, burst } => {
                write!(f, "{} with a burst of {burst} was asked for", Asked(limit, period))
            }
            Self::TooFast { limit, period, shortest, ticks_per_request: ticks } => write!(
                f,
                "{} is too fast: the shortest time per request is {}, that of {ticks} tick{}",
                Asked(limit, period),
                Time(shortest),
                s(ticks)
            ),
            Self::TooSlow { limit, period, longest } => write!(
                f,
                "{} is too slow for this limiter: one request would be owed for longer than {}, its longest debt",
                Asked(limit, period),
                Time(longest)
            ),
            Self::BurstTooLarge { burst, ticks_per_request: ticks, largest } => write!(
                f,
                "a burst of {burst} request{} of {ticks} tick{} each is too large: the limit is {largest}",
                s(burst.into()),
                s(ticks)
            ),
            Self::Inexact { limit, period, tick, interval } => write!(
                f,
                "{} is not a whole number of ticks of {} per request: the next possible time per request is {}, more than a \
                 sixteenth longer",
                Asked(limit, period),
                Time(tick),
                Time(interval)
            ),
            Self::ZeroTicks => f.write_str("0 ticks per request were asked for"),
        }
    }
}

impl Error for QuotaError {}
