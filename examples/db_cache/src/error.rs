//! What can go wrong, what to do about it, and why a filter was rebuilt.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use concurrent_cuckoo_filter::{BuildError, InsertError, LoadError};

/// Why the cache could not do something. `E` is the store's error.
#[derive(Debug)]
#[non_exhaustive]
pub enum CacheError<E> {
    /// The filter has no room for a new key. Nothing was written.
    Full(InsertError),
    /// The store failed. Nothing was written.
    Store(E),
    /// The store failed in its commit: either everything was written or nothing. The cache takes no more writes (see
    /// [`OutOfStep`](Self::OutOfStep)), and reads go on.
    Unknown(E),
    /// An earlier write failed in its commit, or panicked, so the filter may have more in it than the store. Reads
    /// are still right. Writes and snapshots are refused, and nothing was written.
    OutOfStep,
    /// No such filter can be built.
    Build(BuildError),
    /// The cache was opened without a file for snapshots.
    NoSnapshotFile,
    /// The snapshot could not be written. The earlier one, if there is one, is still good.
    #[non_exhaustive]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl<E: fmt::Display> fmt::Display for CacheError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(error) => {
                write!(f, "nothing was written: {error}; rebuild the filter with a larger capacity")
            }
            Self::Store(error) => write!(f, "the store failed, and nothing was written: {error}"),
            Self::Unknown(error) => write!(
                f,
                "the store failed in its commit, which may or may not have taken effect: {error}; \
                 rebuild the filter, or open the store again"
            ),
            Self::OutOfStep => write!(
                f,
                "nothing was written, because an earlier write failed and its outcome is unknown; \
                 rebuild the filter, or open the store again"
            ),
            Self::Build(error) => write!(f, "the filter can't be built: {error}"),
            Self::NoSnapshotFile => write!(f, "there is no file for snapshots; set Options::snapshot"),
            Self::Snapshot { path, error } => {
                write!(f, "the snapshot '{}' can't be written: {error}", path.display())
            }
        }
    }
}

/// Without a source: the message contains the reason, and anyone who prints the whole chain should not read it twice.
impl<E: fmt::Debug + fmt::Display> Error for CacheError<E> {}

/// Where the filter came from when a cache was opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Opened {
    /// It was loaded from a snapshot, and brought up to date from the store's log.
    #[non_exhaustive]
    FromSnapshot {
        /// How many entries of the log were replayed.
        replayed: u64,
    },
    /// It was made from a scan of all keys.
    #[non_exhaustive]
    Rebuilt {
        /// How many keys the store has.
        keys: usize,
        /// Why no snapshot was used.
        reason: RebuildReason,
    },
}

impl fmt::Display for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromSnapshot { replayed } => write!(f, "from a snapshot and {replayed} entries of the log"),
            Self::Rebuilt { keys, reason } => write!(f, "from a scan of {keys} keys, because {reason}"),
        }
    }
}

/// Why no snapshot was used.
#[derive(Debug)]
#[non_exhaustive]
pub enum RebuildReason {
    /// No file for snapshots was named.
    NotAskedFor,
    /// There is no such file, or it can't be read.
    File(io::Error),
    /// It is a snapshot of keys of this schema, but has no sequence or no id.
    Foreign,
    /// The filter in it can't be loaded: it is damaged, of another program, of another hash, or of another version.
    Load(LoadError),
    /// The store does not know the snapshot: it is of another store, or of this one before its file was restored from
    /// a copy.
    Unannounced,
    /// It is smaller, or has a higher false-positive rate, than the options ask for or the store needs.
    TooSmall,
    /// The store's log does not have all changes since the snapshot.
    LogIncomplete,
    /// The filter refuses a key that was added according to the log.
    Insert(InsertError),
    /// The filter, brought up to date, does not have as many keys as the store.
    #[non_exhaustive]
    Mismatch {
        /// How many keys the filter has.
        filter: usize,
        /// How many keys the store has.
        store: u64,
    },
}

impl fmt::Display for RebuildReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAskedFor => write!(f, "no snapshot was asked for"),
            Self::File(error) => write!(f, "the snapshot can't be read: {error}"),
            Self::Foreign => write!(f, "the snapshot does not say which moment of which store it is of"),
            Self::Load(error) => write!(f, "the snapshot can't be loaded: {error}"),
            Self::Unannounced => write!(f, "the snapshot is not of this store, or not of an earlier state of it"),
            Self::TooSmall => write!(f, "the snapshot's filter is smaller or less exact than is asked for"),
            Self::LogIncomplete => write!(f, "the log does not reach back to the snapshot"),
            Self::Insert(error) => write!(f, "the snapshot's filter could not be brought up to date: {error}"),
            Self::Mismatch { filter, store } => {
                write!(f, "the snapshot and the log come to {filter} keys where the store has {store}")
            }
        }
    }
}
