//! What can go wrong, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use concurrent_cuckoo_filter::{BuildError, InsertError};

use crate::options::MOST_SEGMENTS;

/// Why an operation of the store failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[non_exhaustive]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error from the operating system.
        error: io::Error,
    },
    /// The engine failed.
    Engine(lsm_tree::Error),
    /// A segment has bytes that this program does not write.
    Damaged {
        /// The segment's number.
        segment: u64,
    },
    /// A filter or maplet with these options can't be built.
    Build(BuildError),
    /// The filter or maplet refused a key, although it was built for this many keys. Nothing was changed.
    Full(InsertError),
    /// An earlier flush or compaction failed in the middle, or panicked. Gets and puts still work. To flush or
    /// compact again, reopen the store.
    Halted,
    /// [`Options::most_segments`](crate::Options::most_segments) is 0, or more than a store can have.
    MostSegments {
        /// What the options say.
        asked: usize,
    },
    /// The maplet lacked a pair that had been inserted.
    Lost {
        /// The slot.
        slot: u16,
    },
}

impl Error {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, error } => write!(f, "'{}': {error}", path.display()),
            Self::Engine(error) => write!(f, "the engine failed: {error}"),
            Self::Damaged { segment } => write!(f, "segment {segment} is damaged"),
            Self::Build(error) => write!(f, "the filter can't be built: {error}"),
            Self::Full(error) => write!(f, "nothing was changed: {error}"),
            Self::Halted => write!(
                f,
                "nothing was changed, because an earlier flush or compaction has failed in the middle; open the store \
                 again"
            ),
            Self::MostSegments { asked } => {
                write!(f, "a store can have 1 to {MOST_SEGMENTS} segments, not {asked}: change `most_segments`")
            }
            Self::Lost { slot } => write!(f, "the maplet lacks a pair of slot {slot} that was inserted"),
        }
    }
}

/// It has no source. The message contains the reason, and a caller that prints the whole chain should not print it
/// twice.
impl std::error::Error for Error {}

impl From<lsm_tree::Error> for Error {
    fn from(error: lsm_tree::Error) -> Self {
        Self::Engine(error)
    }
}
