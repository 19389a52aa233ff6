//! Why one filter could not take in another.

use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::error::insert::InsertError;
use crate::word::layout::Encoding;

/// How the table of a filter is laid out. Filters that were built with the same settings have the same geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Geometry {
    /// How many buckets there are.
    pub buckets: usize,
    /// How the slots of a bucket are put into a word.
    pub encoding: Encoding,
    /// How many slots a bucket has.
    pub slots_per_bucket: usize,
    /// How many bits a fingerprint has.
    pub fingerprint_bits: u32,
    /// How many bits there are beside the fingerprint: those of a value, or of the end of an entry; 0 in a filter without either.
    pub payload_bits: u32,
}

/// "1000 buckets of 5 slots with 14 bits, semi-sorted".
impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buckets, encoding, slots_per_bucket, fingerprint_bits, payload_bits } = self;
        write!(f, "{buckets} buckets of {slots_per_bucket} slots with {fingerprint_bits}")?;
        if *payload_bits > 0 {
            write!(f, " + {payload_bits}")?;
        }
        let encoding = match encoding {
            Encoding::Plain => "plain",
            Encoding::SemiSorted => "semi-sorted",
        };
        write!(f, " bits, {encoding}")
    }
}

/// Why one filter could not take in another.
///
/// Nothing has changed, except by [`Refused`](Self::Refused) and [`OutOfMemory`](Self::OutOfMemory), which tell how many copies had been
/// added by then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AbsorbError {
    /// The hashers are not the same, so the fingerprints of one mean nothing to the other.
    ///
    /// Build both with one hasher: `builder().hasher(hasher.clone())`, or make one by `empty_like`.
    Hasher,
    /// The schemas are not the same: the keys of one are not those of the other.
    #[cfg(feature = "snapshot")]
    #[non_exhaustive]
    Schema {
        /// That of the filter that was to take in the other.
        ours: String,
        /// That of the other.
        theirs: String,
    },
    /// The tables are not laid out alike.
    ///
    /// Build both with the same settings, or make one by `empty_like`.
    #[non_exhaustive]
    Geometry {
        /// That of the filter that was to take in the other.
        ours: Geometry,
        /// That of the other.
        theirs: Geometry,
    },
    /// The ticks of two [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter)s are not equally long.
    #[non_exhaustive]
    Resolution {
        /// That of the filter that was to take in the other.
        ours: Duration,
        /// That of the other.
        theirs: Duration,
    },
    /// The entries of the other [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) may live longer than those of this one can.
    #[non_exhaustive]
    Lifetime {
        /// The longest lifetime in the filter that was to take in the other, in ticks.
        ours: u64,
        /// That in the other.
        theirs: u64,
    },
    /// The clock of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is behind that of the other, whose entries may end later
    /// than it can tell.
    ///
    /// Call [`advance_to`](crate::ExpiringCuckooFilter::advance_to) first.
    #[non_exhaustive]
    ClockBehind {
        /// The tick of the filter that was to take in the other, if it knows one.
        ours: Option<u64>,
        /// The tick of the other.
        theirs: u64,
    },
    /// Both together hold more than the filter is made for.
    #[non_exhaustive]
    TooMany {
        /// How many the filter holds that was to take in the other.
        len: usize,
        /// How many the other one holds.
        coming: usize,
        /// How many the former is made for.
        capacity: usize,
    },
    /// A copy was refused, as an insert would be. Those before it are in; take them out by building the filter anew.
    ///
    /// Below the capacity this takes many keys that have several copies in both together, or others that insert meanwhile.
    #[non_exhaustive]
    Refused {
        /// How many copies were added.
        absorbed: u64,
        /// Why the next one was not.
        error: InsertError,
    },
    /// The memory was refused in which buckets of the other filter are put aside that are changed meanwhile. What came before is in.
    ///
    /// Try with fewer changes to the other one, or none.
    #[non_exhaustive]
    OutOfMemory {
        /// How many copies were added.
        absorbed: u64,
    },
}

impl fmt::Display for AbsorbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hasher => write!(
                f,
                "the filters have different hashers, or the same with different keys; build both with clones of one hasher"
            ),
            #[cfg(feature = "snapshot")]
            Self::Schema { ours, theirs } => write!(
                f,
                "this filter's keys are {ours:?}, and those of the filter to absorb are {theirs:?}; only filters of the same \
                 keys can be put together"
            ),
            Self::Geometry { ours, theirs } => write!(
                f,
                "this filter has {ours}, and the filter to absorb has {theirs}; build both with the same settings"
            ),
            Self::Resolution { ours, theirs } => write!(
                f,
                "a tick of this filter is {ours:?}, and one of the filter to absorb is {theirs:?}; build both with the same \
                 resolution"
            ),
            Self::Lifetime { ours, theirs } => write!(
                f,
                "entries of this filter live for {ours} ticks at most, and those of the filter to absorb for {theirs}; build \
                 both for the longer lifetime"
            ),
            Self::ClockBehind { ours: None, theirs } => write!(
                f,
                "this filter has been told no tick, and the one to absorb is at tick {theirs}; call advance_to({theirs}) first"
            ),
            Self::ClockBehind { ours: Some(ours), theirs } => write!(
                f,
                "this filter is at tick {ours}, and the one to absorb at tick {theirs}; call advance_to({theirs}) first"
            ),
            Self::TooMany { len, coming, capacity } => write!(
                f,
                "this filter holds {len}, and the one to absorb {coming}; it is made for {capacity}: build both with more \
                 capacity"
            ),
            Self::Refused { absorbed, error } => {
                write!(f, "after {absorbed} copies were absorbed, one was refused: {error}")
            }
            Self::OutOfMemory { absorbed } => write!(
                f,
                "after {absorbed} copies were absorbed, the memory was refused in which buckets are put aside that others \
                 change meanwhile; try again from a filter that is as it was, with fewer changes to the one to absorb"
            ),
        }
    }
}

impl Error for AbsorbError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }
}
