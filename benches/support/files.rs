//! The location of the files that are named on the command line.

use std::path::{Path, PathBuf};

/// A path relative to the root of the workspace. Cargo runs a benchmark in the folder of its package.
pub(crate) fn from_root(path: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
