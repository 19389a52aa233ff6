//! How the filter outlives the process: a file, the store's log, and the order of the steps.
//!
//! # What must hold
//! When a store is opened, its filter must have exactly one copy of each key, however the process ended before. A
//! scan of all keys can always make such a filter, but it takes long in a large store. So
//! [`Cache::snapshot`](crate::Cache::snapshot) saves the filter now and then. The next start loads it and replays the
//! part of the log since then.
//!
//! # Exactness
//! The log can be replayed only on a filter that has exactly what the store had at one sequence. An entry that is
//! replayed on a filter that has it already would add one copy too many, or remove one too many, which would be
//! another key's.
//!
//! [`begin_save`](concurrent_cuckoo_filter::ConcurrentCuckooFilter::begin_save) fixes such a moment: changes that
//! begin after it has returned are not in the snapshot. The cache reads the sequence and begins the save under the
//! writers' lock. So each write is either done, in both the store and the filter, or has not begun (the second line
//! of *What holds* in [`cache`](crate::cache)). Writers wait for some microseconds. They go on while the filter is
//! written and synced.
//!
//! Each entry of the log is written in the transaction that changes the keys, so the log is right if the store is. The
//! process may be killed at any time.
//!
//! # The order
//! 1. Begin: under the writers' lock, read the sequence and begin the save.
//! 2. Announce: tell the store that a snapshot of this sequence may come, and its *id*, a random number.
//! 3. Write: [`Save::write_to_path`] puts the new file in the place of the old one, in one durable step.
//! 4. Settle: tell the store that only this snapshot counts. The store drops the log up to the sequence.
//!
//! | the process dies | the file is | the store knows it by | and the log |
//! |---|---|---|---|
//! | before the end of 3 | the previous one | the id settled last | reaches back to it |
//! | between 3 and 4 | the new one | the id announced | reaches back further than it |
//! | after 4 | the new one | the id settled | reaches back to it |
//!
//! So after the first snapshot there is a usable one at every moment. A process that dies during step 3 leaves a
//! partial file behind. The next [`Cache::open`](crate::Cache::open) deletes it.
//!
//! # What is refused
//! The store takes only snapshots whose ids it knows. So it refuses a snapshot of another store. It also refuses one
//! that is newer than the store, as happens if the store's file is restored from a copy. That holds even if the store
//! has made the same number of changes again since then: they were other changes. The file, the filter in it or the
//! log can be unusable for other reasons too ([`RebuildReason`] lists them). The answer is always the same: a scan.
//! An empty filter would deny every key.
//!
//! # The file
//! The file is a snapshot as the library writes it. The sequence is its [position](Save::position), and the id is its
//! [attachment](Save::attachment), in eight bytes, little-endian. The [schema](SCHEMA) distinguishes it from
//! snapshots of other programs.

use std::fs;
use std::io;
use std::path::Path;

use concurrent_cuckoo_filter::{LoadError, Loader, Save, StableState};

use crate::error::RebuildReason;
use crate::filter::Filter;

/// What the keys of the filter are. Change it if the keys are hashed in another way, or if the attachment changes.
pub const SCHEMA: &str = "db-cache: keys by StableState::hash_bytes; id attached; version 1";

/// What a filter needs beyond the contents of its snapshot: a few locks, and rounding.
const BESIDES: usize = 1 << 20;

/// A random id for a new snapshot.
pub(crate) fn new_id() -> io::Result<u64> {
    Ok(getrandom::u64()?)
}

/// Puts the snapshot in the place of the earlier one, durably.
pub(crate) fn write(save: Save<'_>, path: &Path, id: u64, sequence: u64) -> io::Result<()> {
    save.position(sequence).attachment(id.to_le_bytes()).write_to_path(path)
}

/// The contents of a snapshot.
pub(crate) struct Snapshot {
    pub(crate) id: u64,
    pub(crate) sequence: u64,
    pub(crate) filter: Filter,
}

/// Reads a snapshot. Allocates no more than the size of the file and a megabyte.
pub(crate) fn read(path: &Path, hasher: StableState) -> Result<Snapshot, RebuildReason> {
    let size = fs::metadata(path).map_err(RebuildReason::File)?.len();
    let memory_limit = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(BESIDES);
    let loader = Loader::<Filter, _>::new(hasher, memory_limit).schema(SCHEMA);
    let loaded = loader.read_path(path).map_err(|error| match error {
        LoadError::Io(error) => RebuildReason::File(error),
        error => RebuildReason::Load(error),
    })?;
    let id = loaded.attachment.try_into().map(u64::from_le_bytes);
    let (Ok(id), Some(sequence)) = (id, loaded.position) else {
        return Err(RebuildReason::Foreign);
    };
    Ok(Snapshot { id, sequence, filter: loaded.filter })
}
