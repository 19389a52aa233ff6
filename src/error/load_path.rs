//! Why a snapshot could not be loaded from a file.

use core::error::Error;
use core::fmt;
use std::path::PathBuf;

use crate::error::load::LoadError;

/// Why a snapshot could not be loaded from a file: its path, and the reason. Needs the feature `snapshot`.
///
/// The message (its `Display`) names the path. The reason, and what to do, are in the message of its `source`, so print the
/// whole chain of sources, as `{:#}` of an `anyhow::Error` does. In a function that returns a [`LoadError`], `?` keeps the
/// reason alone.
///
/// ```
/// use std::error::Error;
/// use concurrent_cuckoo_filter::SnapshotInfo;
///
/// let error = SnapshotInfo::read_from_path("no such file").unwrap_err();
/// let chain = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
/// let messages: Vec<String> = chain.map(|error| error.to_string()).collect();
/// assert_eq!(messages[0], "the snapshot in \"no such file\" could not be used");
/// assert!(messages[1].starts_with("there is no snapshot"));
/// assert!(messages.len() == 3, "the last one is the system's: {}", messages[2]);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadPathError {
    /// The path of the file.
    pub path: PathBuf,
    /// Why the snapshot in it could not be loaded.
    pub error: LoadError,
}

impl LoadPathError {
    pub(crate) fn new(path: impl Into<PathBuf>, error: LoadError) -> Self {
        Self { path: path.into(), error }
    }
}

impl fmt::Display for LoadPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the snapshot in {:?} could not be used", self.path)
    }
}

/// The source is the [`LoadError`].
impl Error for LoadPathError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

impl From<LoadPathError> for LoadError {
    fn from(LoadPathError { error, .. }: LoadPathError) -> Self {
        error
    }
}
