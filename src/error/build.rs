//! Why a filter could not be built.

use core::error::Error;
use core::fmt;

/// Why a filter could not be built.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// No capacity was given.
    CapacityMissing,
    /// The table for so many items would be larger than the address space.
    #[non_exhaustive]
    CapacityTooLarge {
        /// The capacity asked for.
        capacity: usize,
        /// The largest possible one at this false-positive rate.
        largest: usize,
    },
    /// The number of live generations of a [`RotatingCuckooFilter`](crate::RotatingCuckooFilter) is not between 2 and
    /// 255, both included.
    #[non_exhaustive]
    InvalidGenerations {
        /// The number asked for.
        generations: usize,
    },
    /// The false-positive rate is no number between 0 and 1, both excluded.
    #[non_exhaustive]
    InvalidRate {
        /// The rate asked for.
        rate: f64,
    },
    /// No bucket layout has so low a false-positive rate.
    #[non_exhaustive]
    RateTooLow {
        /// The rate asked for.
        rate: f64,
        /// The lowest possible one, in the encoding asked for if there was one.
        lowest: f64,
    },
    /// The memory for the filter was refused.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes the filter asks for in all. The decode table of up to 256 KiB that all semi-sorted filters
        /// share comes on top, if this is the first of them.
        bytes: usize,
    },
    /// The filter would take up more memory than the limit that was given.
    #[non_exhaustive]
    MemoryLimit {
        /// How many bytes the empty filter takes up.
        needed: usize,
        /// The limit.
        limit: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CapacityMissing => write!(f, "no capacity was given; call Builder::capacity"),
            Self::CapacityTooLarge { capacity, largest } => write!(
                f,
                "a filter for {capacity} items would not fit in the address space; at this false-positive rate \
                 the limit is {largest} (in each generation, if it has several)"
            ),
            Self::InvalidGenerations { generations } => write!(
                f,
                "{generations} live generations were asked for; there must be 2 to 255 (4 forget a key after 3 to 4 \
                 periods)"
            ),
            Self::InvalidRate { rate } => write!(
                f,
                "the false-positive rate was {rate:?}; it must be more than 0 and less than 1 (0.001 is one in a thousand)"
            ),
            Self::RateTooLow { rate, lowest } => {
                write!(
                    f,
                    "a false-positive rate of {rate:e} can't be met; ask for more: the lowest possible here is {lowest:e}"
                )
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "the memory for the filter, {bytes} bytes, was refused; ask for a smaller capacity")
            }
            Self::MemoryLimit { needed, limit } => write!(
                f,
                "the filter would take up {needed} bytes, more than the memory limit of {limit}; \
                 ask for a smaller capacity or raise the limit"
            ),
        }
    }
}

impl Error for BuildError {}
