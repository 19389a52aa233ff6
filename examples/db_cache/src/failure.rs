//! Why the program ends early, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use db_cache::{CacheError, RedbError};

/// Why the program ends early.
pub(crate) enum Failure {
    /// An argument can't be satisfied.
    Argument(String),
    Open {
        path: PathBuf,
        error: RedbError,
    },
    Cache(CacheError<RedbError>),
    Store(RedbError),
    /// The file of keys can't be used.
    Input(String),
    /// The cache gave wrong answers.
    Wrong(String),
    Threads(io::Error),
    Temporary(io::Error),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(message) | Self::Input(message) | Self::Wrong(message) => f.write_str(message),
            Self::Open { path, error } => {
                write!(f, "can't open the database '{}': {error}; give --path another file", path.display())
            }
            Self::Cache(error @ CacheError::Full(_)) => {
                write!(f, "{error}: db-cache --path FILE rebuild --capacity N")
            }
            Self::Cache(error) => error.fmt(f),
            Self::Store(error) => write!(f, "the database failed: {error}"),
            Self::Threads(error) => write!(f, "can't start a thread: {error}; give --threads a smaller number"),
            Self::Temporary(error) => {
                write!(f, "can't make a directory for a temporary database: {error}; give --path FILE")
            }
            Self::Output(error) => write!(f, "can't write the output: {error}"),
        }
    }
}

impl From<CacheError<RedbError>> for Failure {
    fn from(error: CacheError<RedbError>) -> Self {
        Self::Cache(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
