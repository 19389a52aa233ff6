//! PURE: which copies of another table are added to a table, and how that ended.

use crate::error::insert::{ExpiringInsertError, GrowableInsertError, InsertError};
use crate::error::memory::OutOfMemory;
use crate::word::tick::Tick;

/// Which copies of the other table are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// All of them.
    Sum,
    /// Those that are not there.
    Union,
}

#[derive(Clone, Debug)]
pub(crate) struct MergeResult {
    pub(crate) copies: u64,
    /// Why not all copies were added; `None` if all were.
    pub(crate) stopped: Option<MergeError>,
}

#[derive(Clone, Debug)]
pub(crate) enum MergeError {
    /// There was no memory to copy words of the other table, or for this one to grow.
    OutOfMemory,
    NoRoom(InsertError),
    MaxCapacity {
        len: usize,
        max_capacity: usize,
    },
    MemoryLimit {
        len: usize,
        capacity: usize,
        needed: usize,
        limit: usize,
    },
    /// All others were added. The table has evicted the ticks at which these expire.
    Evicted {
        rejected: u64,
        up_to: Tick,
    },
    /// The clock was set back meanwhile, so that the next entry would live too long.
    ClockSetBack,
}

impl From<OutOfMemory> for MergeError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<InsertError> for MergeError {
    fn from(error: InsertError) -> Self {
        Self::NoRoom(error)
    }
}

impl From<GrowableInsertError> for MergeError {
    fn from(error: GrowableInsertError) -> Self {
        match error {
            GrowableInsertError::Full { len, capacity } => Self::NoRoom(InsertError::Full { len, capacity }),
            GrowableInsertError::TooManyCopies { copies, .. } => Self::NoRoom(InsertError::TooManyCopies { copies }),
            GrowableInsertError::MaxCapacity { len, max_capacity } => Self::MaxCapacity { len, max_capacity },
            GrowableInsertError::MemoryLimit { len, capacity, needed, limit } => {
                Self::MemoryLimit { len, capacity, needed, limit }
            }
            GrowableInsertError::OutOfMemory { .. } => Self::OutOfMemory,
        }
    }
}

impl From<ExpiringInsertError> for MergeError {
    fn from(error: ExpiringInsertError) -> Self {
        match error {
            ExpiringInsertError::Full { len, capacity, .. } => Self::NoRoom(InsertError::Full { len, capacity }),
            ExpiringInsertError::TooManyCopies { copies } => Self::NoRoom(InsertError::TooManyCopies { copies }),
            // Both clocks were read before, and this one was not behind.
            _ => Self::ClockSetBack,
        }
    }
}
