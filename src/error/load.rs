//! Why a snapshot could not be loaded.

use core::error::Error;
use std::io;

use crate::error::damage::SnapshotDamage;
use crate::error::message::messages;
use crate::error::mismatch::{SnapshotMismatch, UnsupportedSnapshot};

/// Why a snapshot could not be loaded: there is no filter, and no part of one. Needs the feature `snapshot`.
///
/// Whatever the reason, rebuild the filter from the source of truth, or keep the one that is in use. [Never use an empty
/// filter in its place](crate::guide::beyond_one_process#when-a-snapshot-cannot-be-loaded), because its "definitely
/// absent" would be wrong. The variants say who should hear of it:
///
/// ```
/// # use concurrent_cuckoo_filter::LoadError;
/// # fn level(error: &LoadError) -> &'static str {
/// match error {
///     LoadError::NotFound(_) => "error",    // the file was lost, or its path is wrong: an empty filter is saved at installation
///     LoadError::Mismatch(_) => "info",     // the settings, the keys or the hasher have changed since
///     LoadError::Unsupported(_) => "warn",  // another version of the library has saved it
///     LoadError::Damaged(_) => "error",     // a disk, a copy or a person has changed the bytes
///     _ => "error",                         // the reader or the memory
/// }
/// # }
/// # assert_eq!(level(&std::io::Error::from(std::io::ErrorKind::NotFound).into()), "error");
/// ```
///
/// The message of each error (its `Display`) names the reason, also the system's, and what to do.
/// [`LoadPathError`](crate::LoadPathError) also names the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no such file. The system's error is part of the message.
    NotFound(io::Error),
    /// The reader failed, or the file could not be opened. The error that it failed with is part of the message.
    Io(io::Error),
    /// The snapshot is damaged or incomplete, or it is something else: no filter writes these bytes.
    Damaged(SnapshotDamage),
    /// The snapshot differs from what is expected: another type of filter, other keys, settings or hasher. Its bytes
    /// are as they were written, as far as they were read.
    Mismatch(SnapshotMismatch),
    /// This version of the library cannot read the snapshot.
    Unsupported(UnsupportedSnapshot),
    /// The filter would use more memory than the caller allows. Nothing was allocated.
    #[non_exhaustive]
    MemoryLimit {
        /// How many bytes the filter would use.
        needed: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The snapshot has more keys than a growable filter takes within the caller's limits: the
    /// [`max_capacity`](crate::Loader::max_capacity), or what fits in the memory limit.
    #[non_exhaustive]
    TooManyKeys {
        /// How many keys the snapshot has.
        len: u64,
        /// How many the filter would take.
        limit: usize,
        /// How many it would take with more memory. If that is `limit`, the memory is not what limits them.
        max_capacity: usize,
    },
    /// A growable filter cannot have the [`max_capacity`](crate::Loader::max_capacity) that the caller asks for. Nothing was
    /// allocated.
    #[non_exhaustive]
    MaxCapacity {
        /// How many keys were asked for.
        max_capacity: usize,
        /// The capacity at the size that the snapshot has: the filter cannot be loaded at a smaller one.
        least: usize,
        /// The capacity at the largest size that this filter can have.
        most: usize,
    },
    /// The memory for the filter could not be allocated.
    #[non_exhaustive]
    OutOfMemory {
        /// How many bytes were asked for in all.
        bytes: usize,
    },
}

messages! {
    LoadError:
    Self::NotFound(error) =>
        "there is no snapshot: {error}; check the path, or, at the very first start, build the filter from the source of \
         truth and save it";
    Self::Io(error) =>
        "the snapshot could not be read: {error}; correct this and load it again, or rebuild the filter from the source \
         of truth";
    Self::Damaged(damage) => "{damage}";
    Self::Mismatch(mismatch) => "{mismatch}";
    Self::Unsupported(unsupported) => "{unsupported}";
    Self::MemoryLimit { needed, limit } =>
        "the filter would use {needed} bytes, but the limit is {limit}; raise the limit if you trust the snapshot";
    Self::TooManyKeys { len, limit, max_capacity } =>
        "the snapshot has {len} keys, but within the loader's {0} the GrowableCuckooFilter takes only {limit}; raise the {0}",
        if limit < max_capacity { "memory_limit" } else { "max_capacity" };
    Self::MaxCapacity { max_capacity, least, most } =>
        "the loader's max_capacity of {max_capacity} is not possible: at the size that it has in the snapshot, the \
         GrowableCuckooFilter has a capacity of {least} keys, and at the largest one {most}; ask for a number from {least} to \
         {most}{}", if max_capacity < least { ", or call shrink_to_fit before the filter is saved" } else { "" };
    Self::OutOfMemory { bytes } =>
        "the {bytes} bytes of the filter could not be allocated; try again when there is more memory";
}

/// The message has that of the system's or the reader's error, so the source is what that one is due to, if anything.
impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotFound(error) | Self::Io(error) => error.source(),
            _ => None,
        }
    }
}

/// [`NotFound`](Self::NotFound) if the error is of that kind, otherwise [`Io`](Self::Io).
impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::NotFound(error) } else { Self::Io(error) }
    }
}

impl From<SnapshotDamage> for LoadError {
    fn from(damage: SnapshotDamage) -> Self {
        Self::Damaged(damage)
    }
}

impl From<SnapshotMismatch> for LoadError {
    fn from(mismatch: SnapshotMismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}

impl From<UnsupportedSnapshot> for LoadError {
    fn from(unsupported: UnsupportedSnapshot) -> Self {
        Self::Unsupported(unsupported)
    }
}
