//! Why the server does not start, or does not end well.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use concurrent_cuckoo_filter::{BuildError, InsertError};

use crate::store;

/// Why the server does not start, or does not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    File {
        verb: &'static str,
        path: PathBuf,
        error: String,
    },
    Key(String),
    Store(store::Error),
    Build(&'static str, BuildError),
    TooSmall {
        tokens: u64,
        error: InsertError,
    },
    /// The store has a token that the filter can't keep for long enough.
    TooShort {
        needed: u64,
    },
    Load(PathBuf, String),
    Listen(String, io::Error),
    Metrics(String),
    System(io::Error),
}

impl Failure {
    pub(crate) fn file(verb: &'static str, path: &Path, error: impl fmt::Display) -> Self {
        Self::File { verb, path: path.to_owned(), error: error.to_string() }
    }
}

impl From<store::Error> for Failure {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { verb, path, error } => write!(f, "can't {verb} {}: {error}", path.display()),
            Self::Key(why) => write!(f, "{why}"),
            Self::Store(error) => write!(f, "the store of revoked tokens has failed: {error}"),
            Self::Build(options, error) => write!(f, "{options} can't be met: {error}"),
            Self::TooSmall { tokens, error } => write!(
                f,
                "the store has {tokens} revoked tokens, and the filter has no room for them: {error}; give a larger \
                 --capacity"
            ),
            Self::TooShort { needed } => write!(
                f,
                "the store has a token that is revoked until about {needed} s from now, and --longest-lifetime and \
                 --leeway say that there is none; set the clock right if it is behind, or give a \
                 --longest-lifetime of {needed}"
            ),
            Self::Load(path, why) => write!(f, "{} was loaded in part: {why}", path.display()),
            Self::Listen(address, error) => write!(f, "can't listen on {address}: {error}"),
            Self::Metrics(why) => write!(f, "no metrics: {why}"),
            Self::System(error) => write!(f, "{error}"),
        }
    }
}
