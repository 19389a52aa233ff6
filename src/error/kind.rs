//! Which type of filter an error is about.

use core::fmt;

/// A type of filter, as errors name it. Its `Display` is the name of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilterKind {
    /// A [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter).
    Concurrent,
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter).
    Growable,
    /// A [`CuckooMaplet`](crate::CuckooMaplet).
    Maplet,
    /// An [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
    Expiring,
    /// A [`RecentCuckooFilter`](crate::RecentCuckooFilter).
    Recent,
    /// A [`CuckooRateLimiter`](crate::CuckooRateLimiter).
    Limiter,
}

impl FilterKind {
    /// The number of the type in a snapshot, and in a digest.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Concurrent => 1,
            Self::Growable => 6,
            Self::Maplet => 4,
            Self::Expiring => 5,
            Self::Recent => 7,
            Self::Limiter => 8,
        }
    }

    /// The type that has this number.
    #[cfg(feature = "snapshot")]
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Concurrent, Self::Growable, Self::Maplet, Self::Expiring, Self::Recent, Self::Limiter]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

impl fmt::Display for FilterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Concurrent => "ConcurrentCuckooFilter",
            Self::Growable => "GrowableCuckooFilter",
            Self::Maplet => "CuckooMaplet",
            Self::Expiring => "ExpiringCuckooFilter",
            Self::Recent => "RecentCuckooFilter",
            Self::Limiter => "CuckooRateLimiter",
        })
    }
}
