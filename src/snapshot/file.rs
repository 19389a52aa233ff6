//! Files that are replaced as a whole: at every moment the path has either the old bytes or the new ones.
//!
//! A new file is written in the same folder, synced, and renamed over the old one. Then the folder is synced, because
//! it holds the rename. The new file has a random name that no other save has; if there is such a file all the same, the
//! save takes another name. So two saves to one path, by two threads or two processes, never write into one file, nor
//! rename each other's file. A process that dies leaves its file
//! behind. Later saves to the same path delete it when it has not been written to for [`ABANDONED`].

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::load::LoadError;
use crate::error::load_path::LoadPathError;
use crate::machine::drawn::RandomNumbers;

/// A partial file counts as abandoned if it has not been written to for this long, which is longer than a sync takes.
const ABANDONED: Duration = Duration::from_secs(600);

/// How many symbolic links are followed; the same as on Linux.
const MAX_LINKS: usize = 40;

/// Reads a file by `read`, which also gets its length, unless the length has no meaning, as for a pipe.
pub(crate) fn read<R>(
    path: &Path,
    read: impl FnOnce(&mut dyn Read, Option<u64>) -> Result<R, LoadError>,
) -> Result<R, LoadPathError> {
    let opened = open(path).map_err(LoadError::from);
    let result = opened.and_then(|(mut file, available)| read(&mut file, available));
    result.map_err(|error| LoadPathError::new(path, error))
}

fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    if path.as_os_str().is_empty() {
        // The system would say that there is no such file.
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path is empty"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "it is a folder, not a file"));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}

/// Replaces the file with what `write` writes.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let replaced = not_saved(path, replace_target(&target_of(path), write))?;
    sync_folder(&replaced).map_err(|error| {
        let message = format!(
            "{path:?}: the snapshot is written, but its folder could not be synced: {error}; save again, or the file may \
             be the old one after a loss of power"
        );
        io::Error::new(error.kind(), message)
    })
}

/// Adds the file and the remedy to an error of saving. The file is the old one.
pub(crate) fn not_saved<R>(path: &Path, result: io::Result<R>) -> io::Result<R> {
    result.map_err(|error| {
        let advice = match error.kind() {
            // Those of this library say it themselves.
            ErrorKind::InvalidInput | ErrorKind::OutOfMemory | ErrorKind::Other => "",
            ErrorKind::NotFound => "; make its folder, and save again",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "; allow this process to make files in its folder, or choose another one"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                "; make room for it, and save again"
            }
            ErrorKind::InvalidFilename => "; choose a shorter name",
            _ => "; fix this and retry, or choose another path",
        };
        let message =
            format!("{path:?}: the snapshot could not be saved: {error}{advice} (an existing file is untouched)");
        io::Error::new(error.kind(), message)
    })
}

/// Replaces the file, which is not a link. Returns the folder that it is in, which has yet to be synced.
fn replace_target(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<PathBuf> {
    delete_abandoned(path);
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file; choose another path"));
    }
    let mut partial = Partial::create(path, old.as_ref())?;
    write(&mut partial.file)?;
    if let Some(old) = &old {
        keep_owner_and_permissions(&partial.file, old)?;
    }
    partial.file.sync_all()?;
    partial.rename_to(path)?;
    Ok(folder_of(path).to_owned())
}

/// The file to be replaced: the path, or, if it is a link, what the link leads to, whether it exists or not.
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

/// The beginning of the names of the partial files for this path.
fn beginning_of_partial(path: &Path) -> Option<OsString> {
    let mut beginning = OsString::from(".");
    let name = path.file_name()?;
    if name.len() <= MAX_NAME {
        beginning.push(name);
    } else {
        // A part of the name, and a checksum of all of it.
        let part = name.to_string_lossy();
        let cut = (0..=MAX_NAME - 9).rev().find(|&at| part.is_char_boundary(at)).expect("0 is one");
        beginning.push(format!("{}~{:08x}", &part[..cut], crc32fast::hash(name.as_encoded_bytes())));
    }
    beginning.push(".");
    Some(beginning)
}

/// The longest name that is in the name of a partial file as it is. Names have up to 255 bytes in most file systems.
const MAX_NAME: usize = 255 - (2 + DIGITS + PARTIAL.len());

/// The end of the names of all partial files.
const PARTIAL: &str = ".partial";

/// How many hexadecimal digits the name of a partial file has between its beginning and its end.
const DIGITS: usize = 16;

/// How many names a save tries that other files have. More than one would be a surprise.
const NAMES: u64 = 16;

/// The name of a partial file, where the names for a path begin with `beginning`.
fn partial_name(beginning: &OsStr, number: u64) -> OsString {
    let mut name = beginning.to_owned();
    name.push(format!("{number:0DIGITS$x}{PARTIAL}"));
    name
}

/// Whether this is the name of a partial file, where the names for a path begin with `beginning`.
fn is_partial(name: &OsStr, beginning: &OsStr) -> bool {
    let middle = name.as_encoded_bytes().strip_prefix(beginning.as_encoded_bytes());
    let middle = middle.and_then(|rest| rest.strip_suffix(PARTIAL.as_bytes()));
    middle.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Deletes what earlier saves to this path have left behind, as far as possible.
fn delete_abandoned(path: &Path) {
    let (Some(beginning), Ok(entries)) = (beginning_of_partial(path), fs::read_dir(folder_of(path))) else { return };
    for entry in entries.flatten() {
        let idle = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_partial(&entry.file_name(), &beginning) && idle().is_some_and(|idle| idle > ABANDONED) {
            // Another save may have deleted it already.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A new file, which is deleted unless it is renamed.
struct Partial {
    file: File,
    path: PathBuf,
    renamed: bool,
}

impl Partial {
    /// A file beside `path` with a name of its own. Anyone who may not read the old file may not read it either.
    fn create(path: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        let beginning = beginning_of_partial(path)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the path has no file name; add one"))?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if old.is_some() {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = old;
        // The name is random, so that no save on another machine or in another container has it either. If this
        // file is taken for abandoned and deleted, no other file may ever have its name.
        let (drawn, mut nth) = (RandomNumbers::new(), 0);
        loop {
            let path = folder_of(path).join(partial_name(&beginning, drawn.number(nth)));
            nth += 1;
            match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && nth < NAMES => {}
                file => return Ok(Self { file: file?, path, renamed: false }),
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
            // There is already an error to report.
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

/// Gives the file the owner, the group and the permissions of the old one. What is not allowed is left out. No
/// group can read the new file that could not read the old one.
fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

        let new = file.metadata()?;
        let has_group = new.gid() == old.gid()
            // Only some users may give a file away; more may give it to another group of their own.
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

/// Makes sure that a rename survives a loss of power.
fn sync_folder(folder: &Path) -> io::Result<()> {
    // On other systems a folder can't be opened, and there is nothing to sync.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Also for names that are as long as they may be, each save finds what others to the same path have left behind, and
    /// nothing else.
    #[test]
    fn the_names_of_partial_files_are_short_enough_and_differ() {
        let names =
            ["a".into(), "n".repeat(229), "n".repeat(230), "n".repeat(255), "ü".repeat(127), "ü".repeat(126) + "u"];
        let beginnings = names.clone().map(|name| beginning_of_partial(Path::new(&name)).expect("it has a name"));
        for (nth, beginning) in beginnings.iter().enumerate() {
            let partial = partial_name(beginning, 7);
            assert!(partial.len() <= 255, "{partial:?}");
            assert!(
                partial.len() > 250 || names[nth].len() < 200,
                "as much of the name as there is room for: {partial:?}"
            );
            for (other, beginning) in beginnings.iter().enumerate() {
                assert_eq!(is_partial(&partial, beginning), nth == other, "{partial:?} for {beginning:?}");
            }
        }
    }
}
