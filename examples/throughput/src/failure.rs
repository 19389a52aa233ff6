//! Why a run ends early, and its messages.

use std::fmt;
use std::io;

use concurrent_cuckoo_filter::{BuildError, InsertBatchError, InsertError};

/// Why the example ends early.
pub(crate) enum Failure {
    /// An argument can't be met.
    Argument(String),
    /// The keys can't be read.
    Keys(String),
    Build(BuildError),
    Insert(InsertError),
    /// The filter gave wrong answers.
    Wrong(Vec<String>),
    Threads {
        wanted: usize,
        error: io::Error,
    },
    /// The plot can't be written.
    Plot(String),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(message) | Self::Keys(message) | Self::Plot(message) => f.write_str(message),
            Self::Build(error) => write!(f, "can't build the filter: {error}"),
            Self::Insert(error) => write!(f, "an insert within the filter's capacity was refused: {error}"),
            Self::Wrong(faults) => write!(f, "the filter broke its promise: {}", faults.join("; ")),
            Self::Threads { wanted, error } => {
                write!(f, "can't start {wanted} threads: {error}; give --threads a smaller number")
            }
            Self::Output(error) => write!(f, "can't write the report: {error}"),
        }
    }
}

impl From<InsertError> for Failure {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<InsertBatchError> for Failure {
    fn from(ended: InsertBatchError) -> Self {
        Self::Insert(ended.error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
