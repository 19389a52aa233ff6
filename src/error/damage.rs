//! What is wrong with a snapshot that is damaged.

use core::fmt;

use crate::error::message::messages;
use crate::word::human::Rate;

/// What is wrong with a snapshot that is [damaged](crate::LoadError::Damaged): no filter writes these bytes. Needs the
/// feature `snapshot`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SnapshotDamage {
    /// The bytes do not begin with the eight bytes that mark a snapshot.
    NotASnapshot,
    /// The bytes end before the snapshot does.
    #[non_exhaustive]
    Truncated {
        /// How many bytes there were.
        available: u64,
        /// The least number of bytes that the snapshot has, judged by the part that was read.
        expected: u64,
    },
    /// Other bytes follow the snapshot in a place where nothing else is allowed: a file, or the bytes of a view.
    #[non_exhaustive]
    TrailingBytes {
        /// How many bytes the snapshot has.
        snapshot: u64,
        /// How many bytes there are in all.
        available: u64,
    },
    /// A header was changed: its checksum does not match.
    #[non_exhaustive]
    WrongHeaderChecksum {
        /// The checksum that the snapshot declares.
        declared: u32,
        /// The checksum of the bytes that were read.
        computed: u32,
    },
    /// Something in the snapshot was changed: the checksum of the whole does not match.
    #[non_exhaustive]
    WrongChecksum {
        /// The checksum that the snapshot declares.
        declared: u32,
        /// The checksum of the bytes that were read.
        computed: u32,
    },
    /// A bucket holds something that no filter stores in it.
    #[non_exhaustive]
    InvalidBucket {
        /// The number of the bucket in its table, from 0.
        bucket: usize,
    },
    /// An entry of an expiring filter would live longer than any entry of that filter can.
    #[non_exhaustive]
    LifetimeTooLong {
        /// The number of its bucket.
        bucket: usize,
        /// In how many ticks it would expire. Evicted ticks count too.
        ticks: u64,
        /// The longest lifetime in ticks.
        limit: u64,
    },
    /// The buckets hold more or fewer entries than the snapshot declares.
    #[non_exhaustive]
    WrongCount {
        /// How many entries the snapshot declares.
        declared: u64,
        /// How many entries there are.
        counted: u64,
    },
    /// No table has this number of buckets. Either the table would be too large, or the number is neither 1 nor even.
    /// In a growable filter, the number is a multiple of 32, and at least the initial number.
    #[non_exhaustive]
    InvalidBuckets {
        /// The number of buckets.
        buckets: u64,
        /// The largest possible number.
        limit: u64,
    },
    /// No growable filter has such sizes.
    #[non_exhaustive]
    InvalidSizes {
        /// The initial number of buckets.
        buckets: u64,
        /// The largest number of buckets.
        max_buckets: u64,
        /// The bits of a fingerprint at the largest size.
        base_bits: u8,
        /// The doublings from one bucket to the largest size.
        doublings: u8,
    },
    /// No growable filter is filled to this share of its load while it grows.
    #[non_exhaustive]
    InvalidLoadWhileGrowing {
        /// The share, which is from 0.70 to 0.95 ([`load_while_growing`](crate::GrowableBuilder::load_while_growing)).
        load_while_growing: f64,
    },
    /// No maplet has values of that many bits.
    #[non_exhaustive]
    InvalidValueBits {
        /// How many bits a value has.
        value_bits: u8,
        /// The largest possible number; the smallest is 1.
        limit: u8,
    },
    /// No filter has such a clock.
    #[non_exhaustive]
    InvalidClock {
        /// How many bits an expiry has: 1 to 16.
        expiry_bits: u8,
        /// The longest lifetime in ticks: at least 1, and below 2 to the power of `expiry_bits`.
        longest: u64,
        /// The nanoseconds of a tick beyond whole seconds, below a billion; 0 for a filter that is not an
        /// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter).
        nanoseconds: u32,
        /// The place of the last tick that has expired, below 2 to the power of `expiry_bits`; 0 if no tick is known.
        place: u16,
        /// By how many ticks the sweep lags behind: at most 2 to the power of `expiry_bits`; 0 if no tick is known.
        lag: u64,
        /// How many ticks after now were evicted: less than `longest`; 0 if no tick is known.
        ahead: u16,
    },
    /// The snapshot declares that it has no position, and yet has one.
    #[non_exhaustive]
    UnexpectedPosition {
        /// The position, which should be 0.
        position: u64,
    },
    /// The snapshot of an expiring filter declares that its clock was never set, and yet has entries. Such a filter
    /// has none before its first tick.
    #[non_exhaustive]
    EntriesWithoutClock {
        /// How many entries it has.
        entries: u64,
    },
    /// The snapshot declares an attachment that is longer than any can be.
    #[non_exhaustive]
    AttachmentTooLong {
        /// How many bytes the snapshot declares.
        len: usize,
        /// How many bytes an attachment can have.
        limit: usize,
    },
}

messages! {
    SnapshotDamage:
    Self::NotASnapshot =>
        "this is not a snapshot of a filter: it does not begin with the eight bytes that mark one; look for the right \
         file, or rebuild the filter";
    Self::Truncated { available, expected } =>
        "the snapshot is cut short: it has {available} bytes, and needs at least {expected}; fetch it again, or rebuild \
         the filter from the source of truth";
    Self::TrailingBytes { snapshot, available } =>
        "the snapshot ends after {snapshot} bytes, but there are {available}; fetch it again, or rebuild the filter";
    Self::WrongHeaderChecksum { declared, computed } =>
        "the snapshot is damaged: a header has the checksum {computed:#010x}, and should have {declared:#010x}; fetch it \
         again, or rebuild the filter";
    Self::WrongChecksum { declared, computed } =>
        "the snapshot is damaged: its checksum is {computed:#010x}, and should be {declared:#010x}; fetch it again, or \
         rebuild the filter";
    Self::InvalidBucket { bucket } =>
        "the snapshot is damaged: no filter writes what bucket {bucket} holds; fetch it again, or rebuild the \
         filter";
    Self::LifetimeTooLong { bucket, ticks, limit } =>
        "the snapshot is damaged: bucket {bucket} has an entry that would live for {ticks} more ticks, but the longest lifetime \
         is {limit} ticks; fetch it again, or rebuild the filter";
    Self::WrongCount { declared, counted } =>
        "the snapshot is damaged: it declares {declared} keys, but has {counted}; fetch it again, or rebuild the filter";
    Self::InvalidBuckets { buckets, limit } =>
        "the snapshot is damaged: it declares {buckets} buckets, but a table has 1, or an even number up to {limit}, or a multiple of \
         32 if the filter grows; rebuild the filter";
    Self::InvalidSizes { buckets, max_buckets, base_bits, doublings } =>
        "the snapshot is damaged: it declares sizes that no filter has, {buckets} buckets at first and {max_buckets} at most, with \
         fingerprints of {base_bits} bits after {doublings} doublings of one bucket; rebuild the filter";
    Self::InvalidLoadWhileGrowing { load_while_growing } =>
        "the snapshot is damaged: it declares a load_while_growing of {}, but filters have one from 0.7 to 0.95; rebuild the filter",
        Rate::given(*load_while_growing);
    Self::InvalidValueBits { value_bits, limit } =>
        "the snapshot is damaged: it declares values of {value_bits} bits, but values have 1 to {limit}; rebuild the maplet";
    Self::InvalidClock { expiry_bits, longest, nanoseconds, place, lag, ahead } =>
        "the snapshot is damaged: it declares a clock that no filter has: expiries of {expiry_bits} bits, a lifetime of {longest} \
         ticks{}, the place {place}, a lag of {lag} ticks{}; rebuild the filter",
        IfAny(*nanoseconds, "nanoseconds of a tick"), IfAny((*ahead).into(), "evicted ticks");
    Self::UnexpectedPosition { position } =>
        "the snapshot is damaged: it declares that it has no position, but has the position {position}; rebuild the filter";
    Self::EntriesWithoutClock { entries } =>
        "the snapshot is damaged: it declares that its clock was never set, but has {entries} entr{}, which could not \
         expire; rebuild the filter", if *entries == 1 { "y" } else { "ies" };
    Self::AttachmentTooLong { len, limit } =>
        "the snapshot is damaged: it declares an attachment of {len} bytes, but the limit is {limit}; rebuild the filter";
}

/// A number of a clock. It is 0 in snapshots of the types that have none, and is left out then.
struct IfAny(u32, &'static str);

impl fmt::Display for IfAny {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self(0, _) => Ok(()),
            Self(number, of_what) => write!(f, ", {number} {of_what}"),
        }
    }
}
