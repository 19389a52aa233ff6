//! How the filter outlives the process: a file, the store's log, and what is done in which order.
//!
//! # What must hold
//! When a store is opened, its filter must have exactly one copy of each key, however the process ended before. It always
//! can be had by a scan. A scan of a large store takes long, so [`Cache::snapshot`](crate::Cache::snapshot) saves the
//! filter now and then, and the next start loads it and does to it again what the log says was done since.
//!
//! # Exactness
//! The log can be replayed only on a filter that has exactly what the store had at one sequence: an entry replayed on a
//! filter that has it already would leave a copy too many, or take one too many, which would be another key's. `save` by
//! itself promises less, for what comes and goes meanwhile may or may not be saved. So the sequence is read and the filter
//! saved under the writers' lock, when each write is either done in both or has not begun (the second line of *What
//! holds* in [`cache`](crate::cache)). Writers wait for as long as it takes to write the filter, of 1.65 MB for a million
//! keys, to the system's page cache; not for the sync to the disk. Readers go on.
//!
//! Each entry of the log is written in the transaction that changes the keys, so the log is right if the store is: the
//! process may be killed at any time.
//!
//! # The order
//! 1. Draft: write the file under another name, with a random number, the *id*, and the sequence in front. Release the
//!    lock. Sync it.
//! 2. Announce: tell the store the id and the sequence.
//! 3. Publish: rename the file. Sync the directory.
//! 4. Settle: tell the store that only this snapshot counts. It drops the log up to the sequence.
//!
//! | the process dies | the file is | which the store knows by | and the log |
//! |---|---|---|---|
//! | before 3 | the previous one | the id settled last | reaches back to it |
//! | between 3 and 4 | the new one | the id announced | reaches back further than it |
//! | after 4 | the new one | the id settled | reaches back to it |
//!
//! So there is a snapshot that can be used at every moment after the first one.
//!
//! # What is refused
//! The store names the snapshots that it will take, by their ids. A snapshot of another store is therefore refused, and so
//! is one that is newer than the store, because the store's file was put back from a copy, also when this store has
//! since made as many changes again: they were others. Whatever else is wrong, with the file, the filter in it or
//! the log ([`RebuildReason`] has the list), the answer is the same: a scan. An empty filter would
//! deny every key.
//!
//! # Format
//! | bytes | |
//! |---|---|
//! | 16 | `db-cache filter` and a 1, for the version |
//! | 8 | the id, little-endian |
//! | 8 | the sequence, little-endian |
//! | rest | the filter, as [`save`](concurrent_cuckoo_filter::ConcurrentCuckooFilter::save) writes it, with its checksum |
//!
//! Id and sequence need no checksum: the store must know them both.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use concurrent_cuckoo_filter::StableState;

use crate::error::RebuildReason;
use crate::filter::Filter;

const MAGIC: &[u8; 16] = b"db-cache filter\x01";

/// What a filter needs beyond what its snapshot has in it: a few locks, and rounding.
const BESIDES: usize = 1 << 20;

/// A new snapshot's name.
pub(crate) fn new_id() -> io::Result<u64> {
    Ok(getrandom::u64()?)
}

/// A snapshot that is not yet in its place. Dropped, it is deleted.
pub(crate) struct Draft<'p> {
    path: &'p Path,
    draft: PathBuf,
    file: Option<File>,
}

impl<'p> Draft<'p> {
    /// Writes the filter to a file beside `path`.
    pub(crate) fn write(path: &'p Path, id: u64, sequence: u64, filter: &Filter) -> io::Result<Self> {
        let mut name = OsString::from(path);
        name.push(".new");
        let draft = PathBuf::from(name);
        let file = File::create(&draft)?;
        let mut this = Self { path, draft, file: None };
        let mut out = BufWriter::new(&file);
        out.write_all(MAGIC)?;
        out.write_all(&id.to_le_bytes())?;
        out.write_all(&sequence.to_le_bytes())?;
        filter.save(&mut out)?;
        out.flush()?;
        drop(out);
        this.file = Some(file);
        Ok(this)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_all)
    }

    /// Puts it in its place, durably.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        // Some systems do not rename a file that is open.
        self.file = None;
        fs::rename(&self.draft, self.path)?;
        sync_directory_of(self.path)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // If it has been published, there is no such file. If not, and it can't be deleted, the next one replaces it.
        self.file = None;
        let _ = fs::remove_file(&self.draft);
    }
}

/// A rename lasts once the directory has been synced.
#[cfg(unix)]
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

/// Elsewhere a directory can't be opened, and the rename is the system's to keep.
#[cfg(not(unix))]
fn sync_directory_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The id, the sequence and the filter of a snapshot.
///
/// It allocates no more than the size of the file, and a megabyte.
pub(crate) fn read(path: &Path, hasher: StableState) -> Result<(u64, u64, Filter), RebuildReason> {
    let file = File::open(path).map_err(RebuildReason::File)?;
    let size = file.metadata().map_err(RebuildReason::File)?.len();
    let memory_limit = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(BESIDES);
    let mut from = BufReader::new(file);
    let mut magic = [0; 16];
    let mut id = [0; 8];
    let mut sequence = [0; 8];
    let header = [&mut magic[..], &mut id, &mut sequence].into_iter().try_for_each(|field| from.read_exact(field));
    match header {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(RebuildReason::File(error)),
        Ok(()) if magic == *MAGIC => {}
        _ => return Err(RebuildReason::Foreign),
    }
    let filter = Filter::load(&mut from, hasher, memory_limit).map_err(RebuildReason::Load)?;
    if from.read(&mut [0]).map_err(RebuildReason::File)? != 0 {
        return Err(RebuildReason::TooLong);
    }
    Ok((u64::from_le_bytes(id), u64::from_le_bytes(sequence), filter))
}
