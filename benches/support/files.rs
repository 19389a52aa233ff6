//! Where the files are that the command line names.

use std::path::{Path, PathBuf};

/// A path that is told from the root of the workspace: Cargo runs a benchmark in the folder of its package.
pub(crate) fn from_root(path: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
