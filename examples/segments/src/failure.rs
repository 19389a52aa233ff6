//! Why the program ends early, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use segments::Error;

/// Why the program ends early.
pub(crate) enum Failure {
    /// An argument can't be met.
    Argument(String),
    Open {
        path: PathBuf,
        error: Error,
    },
    Store(Error),
    Engine(lsm_tree::Error),
    /// The store gave wrong answers.
    Wrong(String),
    Threads(io::Error),
    Temporary(io::Error),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(message) | Self::Wrong(message) => f.write_str(message),
            Self::Open { path, error } => {
                write!(f, "can't open the store '{}': {error}; give --path another directory", path.display())
            }
            Self::Store(error) => error.fmt(f),
            Self::Engine(error) => write!(f, "the engine failed: {error}"),
            Self::Threads(error) => write!(f, "can't start a thread: {error}; give --threads a smaller number"),
            Self::Temporary(error) => write!(f, "can't make a temporary directory: {error}; set TMPDIR"),
            Self::Output(error) => write!(f, "can't write the output: {error}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<lsm_tree::Error> for Failure {
    fn from(error: lsm_tree::Error) -> Self {
        Self::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
