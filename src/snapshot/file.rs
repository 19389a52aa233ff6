//! Files that are replaced as a whole: at every moment the path has either the old bytes or the new ones.
//!
//! A new file is written in the same folder, synced, and renamed over the old one; then the folder is synced, in which the
//! rename stands. The new file has a random name that no other save has, so that two saves to one path, by two threads or two
//! processes, never write into one file, nor rename each other's. A process that dies leaves it behind. Later saves to the same path delete it when
//! nobody has written to it for [`ABANDONED`].

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For how long nobody has written to a partial file that is taken for abandoned: longer than it takes to sync one.
const ABANDONED: Duration = Duration::from_secs(600);

/// How many links are followed, as Linux does.
const MAX_LINKS: usize = 40;

/// Has `write` write the file anew.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let path = target_of(path);
    delete_abandoned(&path);
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let message = format!("{} is no file, and can't be replaced by one", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
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

/// How many hexadecimal digits a partial file has between the beginning and the end of its name.
const DIGITS: usize = 16;

/// Whether this is the name of a partial file, where those for a path begin like this.
fn is_partial(name: &OsStr, beginning: &OsStr) -> bool {
    let middle = name.as_encoded_bytes().strip_prefix(beginning.as_encoded_bytes());
    let middle = middle.and_then(|rest| rest.strip_suffix(PARTIAL.as_bytes()));
    middle.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Deletes what earlier saves to this path have left behind, as far as that is possible.
fn delete_abandoned(path: &Path) {
    let (Some(beginning), Ok(entries)) = (beginning_of_partial(path), fs::read_dir(folder_of(path))) else { return };
    for entry in entries.flatten() {
        let idle = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_partial(&entry.file_name(), &beginning) && idle().is_some_and(|idle| idle > ABANDONED) {
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
        // At random, so that no save on another machine or in another container has it either: if this file is taken for
        // abandoned and deleted, there must never be another one of its name.
        let number = RandomState::new().hash_one(path);
        let mut partial = beginning;
        partial.push(format!("{number:0DIGITS$x}{PARTIAL}"));
        let path = folder_of(path).join(partial);
        let file = options
            .open(&path)
            .map_err(|error| io::Error::new(error.kind(), format!("{} can't be written: {error}", path.display())))?;
        Ok(Self { file, path, renamed: false })
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

/// Gives the file the owner, the group and the permissions of the old one. What is not allowed is left, and no group can read
/// it that could not read the old one.
fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

        let new = file.metadata()?;
        let has_group = new.gid() == old.gid()
            // Only some may give a file away; more may give it to another group of their own.
            || fchown(file, Some(old.uid()), Some(old.gid())).is_ok()
            || fchown(file, None, Some(old.gid())).is_ok();
        if new.uid() != old.uid() && new.gid() == old.gid() {
            let _ = fchown(file, Some(old.uid()), None);
        }
        if !has_group {
            let mode = old.permissions().mode() & !0o070;
            return file.set_permissions(fs::Permissions::from_mode(mode));
        }
    }
    file.set_permissions(old.permissions())
}

/// Sees to it that a rename survives a loss of power.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // Elsewhere a folder can't be opened, and there is nothing to sync.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
