//! Why a key could not be added.

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
