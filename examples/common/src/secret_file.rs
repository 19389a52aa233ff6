//! Files that hold a secret.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Writes the secret to a file that only its owner can read. The file is on disk when this returns. `how` says
/// whether the file may exist already.
///
/// # Errors
/// Those of the file system.
pub fn write(path: &Path, secret: &[u8], how: &mut OpenOptions) -> io::Result<()> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(how, 0o600);
    let mut file = how.write(true).open(path)?;
    file.write_all(secret)?;
    file.sync_all()
}

/// Warns on standard error if users other than the owner can read the file.
pub fn warn_if_others_can_read(path: &Path) {
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0
    {
        eprintln!("warning: users other than its owner can read {}; run chmod 600 on it", path.display());
    }
    #[cfg(not(unix))]
    let _ = path;
}
