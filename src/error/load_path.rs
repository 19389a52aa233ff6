//! Why a snapshot could not be loaded from a file.

use core::error::Error;
use core::fmt;
use std::path::PathBuf;

use crate::error::load::LoadError;

/// Why a snapshot could not be loaded from a file: its path, and the reason. Needs the feature `snapshot`.
///
/// The message (its `Display`) names the path, the reason and what to do. In a function that returns a [`LoadError`], `?`
/// keeps the reason alone.
///
/// ```
/// use concurrent_cuckoo_filter::SnapshotInfo;
///
/// let error = SnapshotInfo::read_from_path("no such file").unwrap_err();
/// let message = error.to_string();
/// assert!(message.starts_with("\"no such file\": there is no snapshot"), "{message}");
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
        write!(f, "{:?}: {}", self.path, self.error)
    }
}

/// The message has that of the [`LoadError`], so the source is that of the latter.
impl Error for LoadPathError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl From<LoadPathError> for LoadError {
    fn from(LoadPathError { error, .. }: LoadPathError) -> Self {
        error
    }
}
