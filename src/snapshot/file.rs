//! Files that are replaced as a whole: at every moment the path has either the old bytes or the new ones.
//!
//! A new file is written in the same folder, synced, and renamed over the old one; then the folder is synced, in which the
//! rename stands. The new file has a name that no other save has, so that two saves to one path, by two threads or two
//! processes, never write into one file. A process that dies leaves it behind. Later saves to the same path delete it when
//! nobody has written to it for [`ABANDONED`].

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use crate::sync::{Ordering, Tally};

/// For how long nobody has written to a partial file that is taken for abandoned: longer than it takes to sync one.
const ABANDONED: Duration = Duration::from_secs(600);

/// How many links are followed, as Linux does.
const MAX_LINKS: usize = 40;

/// Has `write` write the file anew.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let path = target_of(path);
    delete_abandoned(&path);
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

/// What is to be replaced: the path, or where it is a link, what that leads to, whether it exists or not.
fn target_of(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => break,
        }
    }
    path
}

/// How the names of the partial files for this path begin.
fn beginning_of_partial(path: &Path) -> Option<OsString> {
    let mut beginning = OsString::from(".");
    beginning.push(path.file_name()?);
    beginning.push(".");
    Some(beginning)
}

/// The end of the names of all partial files.
const PARTIAL: &str = ".partial";

/// Deletes what earlier saves to this path have left behind, as far as that is possible.
fn delete_abandoned(path: &Path) {
    let (Some(beginning), Ok(entries)) = (beginning_of_partial(path), fs::read_dir(folder_of(path))) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_partial = name.as_encoded_bytes().starts_with(beginning.as_encoded_bytes())
            && name.as_encoded_bytes().ends_with(PARTIAL.as_bytes());
        let idle = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_partial && idle().is_some_and(|idle| idle > ABANDONED) {
            // Another save may be quicker to delete it.
            let _ = fs::remove_file(entry.path());
        }
    }
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
        static NEXT: Tally = Tally::new(0);

        let beginning = beginning_of_partial(path).ok_or_else(|| {
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
            let mut partial = beginning.clone();
            // Relaxed: any number that no other thread has.
            partial.push(format!("{}-{}{PARTIAL}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
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
