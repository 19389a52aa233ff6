//! Files that are replaced as a whole: at every moment the path has either the old bytes or the new ones.
//!
//! A new file is written in the same folder, synced, and renamed over the old one; then the folder is synced, in which the
//! rename stands.

use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;

/// Has `write` write the file anew.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // What a link leads to is to be replaced, and not the link.
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let old = fs::metadata(&path).ok();
    let mut partial = Partial::create(&path, old.as_ref())?;
    write(&mut partial.file)?;
    if let Some(old) = &old {
        keep_owner_and_permissions(&partial.file, old)?;
    }
    partial.file.sync_all()?;
    partial.rename_to(&path)?;
    sync_folder(folder_of(&path))
}

/// A new file, which is removed again unless it is renamed.
struct Partial {
    file: File,
    path: PathBuf,
    renamed: bool,
}

impl Partial {
    /// A file beside `path` with a name of its own, which nobody may read who may not read the old one.
    fn create(path: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);

        let name = path.file_name().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not the path of a file", path.display()))
        })?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if old.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = old;
        loop {
            let mut partial = OsString::from(".");
            partial.push(name);
            // Relaxed: any number that no other thread has.
            partial.push(format!(".{}-{}.partial", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
            let path = folder_of(path).join(partial);
            match options.open(&path) {
                Ok(file) => return Ok(Self { file, path, renamed: false }),
                // Left behind by a process that had this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                Err(error) => return Err(error),
            }
        }
    }

    fn rename_to(mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.renamed {
            // There is an error to report already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder that the file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};

        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only some may give a file away. Who may not keeps it.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
        }
    }
    file.set_permissions(old.permissions())
}

/// Sees to it that a rename survives a loss of power.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder can't be opened, and there is nothing to sync.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
