//! What can go wrong, and what to do about it.

use core::error::Error;
use core::fmt;

/// Why an item could not be added. The filter is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertError {
    /// No free slot can be reached from the item's two buckets within the 2,048 buckets that an insert looks at.
    ///
    /// Below the filter's [`capacity`](crate::ConcurrentCuckooFilter::capacity) this practically does not happen (see
    /// there for how practically), unless the hasher is broken. Remove items, or build a larger filter.
    ///
    /// Of a [`RotatingCuckooFilter`](crate::RotatingCuckooFilter) it is the current generation that is full, and the
    /// figures are that generation's. [Rotate](crate::RotatingCuckooFilter::rotate) more often, build it with
    /// [`rotate_when_full`](crate::RotatingBuilder::rotate_when_full), or build a larger one.
    #[non_exhaustive]
    Full {
        /// How many items the filter held.
        len: usize,
        /// How many it is made for.
        capacity: usize,
    },
    /// The filter already holds as many copies of this item as its two buckets have slots.
    ///
    /// Copies of one item can be nowhere else. Use
    /// [`insert_if_absent`](crate::ConcurrentCuckooFilter::insert_if_absent) if one copy is enough.
    #[non_exhaustive]
    TooManyCopies {
        /// How many copies there are.
        copies: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full, and to grow would take more memory than it is
    /// allowed to.
    ///
    /// Remove items, or build a filter with a higher [limit](crate::GrowableBuilder::memory_limit).
    #[non_exhaustive]
    MemoryLimit {
        /// How many items the filter held.
        len: usize,
        /// How many bytes the filter would take up with one more table.
        needed: usize,
        /// How many it may take up.
        limit: usize,
    },
    /// A [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) is full, and the memory for one more table was refused.
    ///
    /// Each later insert that finds no room asks for it again.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes the table would take up.
        bytes: usize,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { len, capacity } => write!(
                f,
                "the filter is full: it holds {len} items and is made for {capacity}; remove some \
                 (of a rotating filter it is the current generation: rotate) or build a larger one"
            ),
            Self::TooManyCopies { copies } => write!(
                f,
                "the filter already holds {copies} copies of this item, all that its two buckets have room for; \
                 use insert_if_absent if one is enough"
            ),
            Self::MemoryLimit { len, needed, limit } => write!(
                f,
                "the filter is full with {len} items, and with another table it would take up {needed} bytes, more \
                 than its limit of {limit}; remove some items or raise the limit"
            ),
            Self::OutOfMemory { bytes } => write!(
                f,
                "the filter is full, and the memory for another table, {bytes} bytes, was refused; remove some items, \
                 or try again when there is more memory"
            ),
        }
    }
}

impl Error for InsertError {}

/// Why a batch of inserts ended early, and where.
///
/// The keys before the one that was refused are in, as many as [`inserted`](Self::inserted) says; that one and those
/// after it are not. To go on without it, insert the rest of the keys from `inserted + 1` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InsertBatchError {
    /// How many keys went in: the first ones, and no others.
    pub inserted: usize,
    /// Why the next one was refused.
    pub error: InsertError,
}

impl fmt::Display for InsertBatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of the batch, the first {} keys went in, and then: {}", self.inserted, self.error)
    }
}

/// Without a source: the message has the reason in it, and who prints the whole chain should not read it twice.
impl Error for InsertBatchError {}

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

/// Why a snapshot could not be loaded.
///
/// Nothing of it was: there is no filter, and no part of one. Whatever the reason, rebuild the filter from the source of
/// truth, or keep the one that is in use; never take an empty one in its place, for its "no" would be wrong (see the page
/// [`beyond_one_process`](crate::beyond_one_process)).
#[cfg(feature = "snapshot")]
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The reader failed.
    Io(std::io::Error),
    /// The reader came to its end before the snapshot did.
    Truncated,
    /// The first eight bytes are not those of a snapshot.
    NotASnapshot,
    /// The snapshot's format is of another version.
    #[non_exhaustive]
    UnsupportedVersion {
        /// The version of the snapshot.
        version: u16,
        /// The only one that this version of the library reads.
        supported: u16,
    },
    /// A header is damaged: its checksum is another one.
    #[non_exhaustive]
    DamagedHeader {
        /// The checksum that the snapshot states.
        stated: u32,
        /// That of what was read.
        computed: u32,
    },
    /// The snapshot is that of another type of filter.
    #[non_exhaustive]
    WrongKind {
        /// The number of the type that was saved: see the format in `src/snapshot.rs`.
        kind: u8,
        /// That of the type to be loaded.
        expected: u8,
    },
    /// The snapshot was made with another hasher, or with the same in another version, on another processor or in another
    /// process that changes its output. Its fingerprints mean nothing to this one.
    OtherHasher,
    /// No bucket layout is described by these numbers.
    #[non_exhaustive]
    UnknownLayout {
        /// The number of the encoding.
        encoding: u8,
        /// The slots of a bucket.
        slots: u8,
        /// The bits of a fingerprint.
        fingerprint_bits: u8,
    },
    /// No table has so many buckets: it would be too large for the address space, or the number is neither 1 nor even.
    #[non_exhaustive]
    InvalidBuckets {
        /// The number of buckets.
        buckets: u64,
        /// The largest possible one.
        largest: u64,
    },
    /// No filter of this type has so many tables, of this size and at this rate.
    #[non_exhaustive]
    InvalidTables {
        /// How many tables, or live generations.
        tables: u8,
        /// The fewest possible.
        least: u8,
        /// The most possible.
        most: u8,
    },
    /// No filter was asked for such a false-positive rate.
    #[non_exhaustive]
    InvalidRate {
        /// The rate.
        rate: f64,
        /// The lowest possible one; 1 is above the highest.
        lowest: f64,
    },
    /// No generation has such a number.
    #[non_exhaustive]
    InvalidGeneration {
        /// The number.
        generation: u64,
        /// The largest possible one.
        largest: u64,
    },
    /// The snapshot says of the filter what this version of the library does not know.
    #[non_exhaustive]
    UnknownFlags {
        /// The byte, of which only the lowest bit has a meaning.
        flags: u8,
    },
    /// A table is not the one that is due, by what the snapshot says of the filter or of the tables before it.
    #[non_exhaustive]
    UnexpectedTable {
        /// Its number: in a growable filter from the first table on, in a rotating one from the oldest generation on.
        number: usize,
    },
    /// The filter would take up more memory than the caller allows. Nothing was allocated.
    #[non_exhaustive]
    MemoryLimit {
        /// How many bytes it would take.
        needed: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The memory for the filter was refused.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were asked for in all.
        bytes: usize,
    },
    /// A bucket holds what no filter puts there.
    #[non_exhaustive]
    DamagedBucket {
        /// Its number in its table, from 0.
        bucket: usize,
    },
    /// The buckets hold more or fewer items than the snapshot says.
    #[non_exhaustive]
    WrongCount {
        /// How many it says.
        stated: u64,
        /// How many there are.
        counted: u64,
    },
    /// The checksum is another one: something in the snapshot has changed.
    #[non_exhaustive]
    WrongChecksum {
        /// The checksum that the snapshot states.
        stated: u32,
        /// That of what was read.
        computed: u32,
    },
}

#[cfg(feature = "snapshot")]
impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The reason itself is the source.
            Self::Io(_) => write!(f, "the snapshot could not be read"),
            Self::Truncated => {
                write!(f, "the snapshot is cut short; fetch it again, or rebuild the filter from the source of truth")
            }
            Self::NotASnapshot => write!(
                f,
                "this is no snapshot of a filter: its first eight bytes are others; look for the right file, or rebuild the \
                 filter"
            ),
            Self::UnsupportedVersion { version, supported } => write!(
                f,
                "the snapshot has format version {version}, and this library reads {supported}; save it anew with the \
                 library that is to load it, or rebuild the filter"
            ),
            Self::DamagedHeader { stated, computed } => write!(
                f,
                "a header of the snapshot is damaged: its checksum is {computed:#010x}, and should be {stated:#010x}; fetch \
                 it again, or rebuild the filter"
            ),
            Self::WrongKind { kind, expected } => write!(
                f,
                "the snapshot is of a filter of kind {kind}, and one of kind {expected} was to be loaded; kind 1 is \
                 ConcurrentCuckooFilter, 2 GrowableCuckooFilter, 3 RotatingCuckooFilter"
            ),
            Self::OtherHasher => write!(
                f,
                "the snapshot was made with another hasher, or one whose output has changed; load it with the same hasher \
                 and key (StableState is one that is stable), or rebuild the filter"
            ),
            Self::UnknownLayout { encoding, slots, fingerprint_bits } => write!(
                f,
                "the snapshot states a bucket layout of encoding {encoding}, {slots} slots and {fingerprint_bits} bits, \
                 which this library does not have; rebuild the filter"
            ),
            Self::InvalidBuckets { buckets, largest } => write!(
                f,
                "the snapshot states {buckets} buckets; a table has 1, or an even number up to {largest}; rebuild the filter"
            ),
            Self::InvalidTables { tables, least, most } => write!(
                f,
                "the snapshot states {tables} tables or generations; here there are {least} to {most}; rebuild the filter"
            ),
            Self::InvalidRate { rate, lowest } => write!(
                f,
                "the snapshot states a false-positive rate of {rate:?}; the lowest is {lowest:e}, and all are below 1; \
                 rebuild the filter"
            ),
            Self::InvalidGeneration { generation, largest } => write!(
                f,
                "the snapshot states {generation} as the number of a generation; the largest is {largest}; rebuild the filter"
            ),
            Self::UnknownFlags { flags } => write!(
                f,
                "the snapshot states the flags {flags:#04x}, of which this library knows the lowest alone; load it with the \
                 version that has saved it, or rebuild the filter"
            ),
            Self::UnexpectedTable { number } => write!(
                f,
                "table {number} of the snapshot is another one than the filter it is of can have; rebuild the filter"
            ),
            Self::MemoryLimit { needed, limit } => write!(
                f,
                "the filter would take {needed} bytes, and the limit is {limit}; raise the limit if the snapshot is to be \
                 trusted"
            ),
            Self::OutOfMemory { bytes } => {
                write!(f, "the memory for the filter, {bytes} bytes, was refused; provide more, or load it elsewhere")
            }
            Self::DamagedBucket { bucket } => write!(
                f,
                "bucket {bucket} of the snapshot is damaged: no filter has such a one; fetch it again, or rebuild the filter"
            ),
            Self::WrongCount { stated, counted } => {
                write!(f, "the snapshot states {stated} items and has {counted}; fetch it again, or rebuild the filter")
            }
            Self::WrongChecksum { stated, computed } => write!(
                f,
                "the snapshot is damaged: its checksum is {computed:#010x}, and should be {stated:#010x}; fetch it again, or \
                 rebuild the filter"
            ),
        }
    }
}

#[cfg(feature = "snapshot")]
impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(feature = "snapshot")]
impl From<std::io::Error> for LoadError {
    fn from(error: std::io::Error) -> Self {
        // What `read_exact` says of an end that comes too soon.
        if error.kind() == std::io::ErrorKind::UnexpectedEof { Self::Truncated } else { Self::Io(error) }
    }
}
