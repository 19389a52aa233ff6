//! How the filter outlives the process: a file, the store's log, and the order of the steps.
//!
//! A scan of all keys always makes the right filter, but it takes long in a large store. So [`Cache::snapshot`] saves
//! the filter now and then. The next start loads it and replays the log since then. That is right only if the filter
//! had exactly what the store had at one sequence. An entry that is replayed on a filter that has it already would add
//! a copy too many, or remove the copy of another key.
//!
//! 1. Begin: under the writers' lock, read the sequence and call `begin_save`. So each write is in both the store and
//!    the filter, or has not begun. Changes after that are not in the snapshot. Writers go on meanwhile.
//! 2. Announce: tell the store that a snapshot of this sequence may come, and its *id*, a random number.
//! 3. Write: put the new file in the place of the old one, in one durable step.
//! 4. Settle: tell the store that only this snapshot counts. The store drops the log before the sequence.
//!
//! | the process dies | the file is | the store knows it by | and the log |
//! |---|---|---|---|
//! | before the end of 3 | the previous one | the id settled last | reaches back to it |
//! | between 3 and 4 | the new one | the id announced | reaches back further than it |
//! | after 4 | the new one | the id settled | reaches back to it |
//!
//! So after the first snapshot there is a usable one at every moment. The store takes only snapshots whose ids it
//! knows. So it refuses one of another store, and one that is newer than a store that was restored from a copy. That
//! holds even if the store has made as many changes since then: they were other changes. [`Cache::open`] checks more.
//! The answer to any doubt is a scan. An empty filter would deny every key.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use concurrent_cuckoo_filter::{Loader, StableHashBuilder};
use example_support::leftovers::delete_partial_files_of;

use crate::{Cache, Filter, State, Store};

/// What the keys of the filter are. Change it if the keys are hashed in another way, or if the attachment changes.
pub const SCHEMA: &str = "db-cache: bytes; id attached; version 2";

/// The share of gets of absent keys that may go to the store.
pub const FALSE_POSITIVE_RATE: f64 = 0.001;

impl Cache {
    /// Saves the filter to its file, from which the next [`open`](Self::open) will load it. Readers and writers go on
    /// meanwhile.
    pub fn snapshot(&self) -> Result<()> {
        let _one_at_a_time = self.snapshots.lock();
        let no_writes = self.lock()?;
        let filter = self.filter();
        let (sequence, save) = (self.store.state()?.sequence, filter.begin_save()?);
        drop(no_writes);
        let id = getrandom::u64()?;
        self.store.announce(id, sequence)?;
        let save = save.position(sequence).attachment(id.to_le_bytes());
        save.write_to_path(&self.snapshot).with_context(|| format!("can't write '{}'", self.snapshot.display()))?;
        self.store.settle(id)
    }
}

/// The filter from the snapshot and the log, and how many entries of the log were replayed.
pub(crate) fn load(store: &dyn Store, path: &Path, capacity: usize) -> Result<(Filter, u64)> {
    delete_partial_files_of(path); // of a process that died in step 3
    let State { keys, snapshots, hash_key, .. } = store.state()?;
    // A filter takes a little more than its file.
    let memory_limit = usize::try_from(fs::metadata(path).context("there is no snapshot")?.len())? + (1 << 20);
    let loader = Loader::<Filter, _>::new(StableHashBuilder::with_key(hash_key), memory_limit);
    let loaded = loader.schema(SCHEMA).read_path(path)?;
    let filter = loaded.filter;

    let id = loaded.attachment.try_into().map(u64::from_le_bytes).ok().context("the snapshot has no id")?;
    let after = loaded.position.context("the snapshot has no position in the log")?;
    ensure!(snapshots.contains(&(id, after)), "the snapshot is not of this store, or not of its past");
    ensure!(filter.capacity() as u64 >= keys.max(capacity as u64), "the snapshot's filter is too small");
    ensure!(filter.max_false_positive_rate() <= FALSE_POSITIVE_RATE, "the snapshot's filter is not exact enough");

    let mut last = after;
    store.for_each_logged(after, &mut |(number, added, key)| {
        ensure!(number == last + 1, "the log has no entry {}", last + 1);
        last = number;
        let done = if added { filter.insert(key).is_ok() } else { filter.remove(key) };
        ensure!(done, "entry {number} of the log does not fit the filter");
        Ok(())
    })?;
    ensure!(filter.len() as u64 == keys, "the snapshot and the log do not come to the keys of the store");
    Ok((filter, last - after))
}

/// A filter of all keys of the store, with room for `capacity` keys, and for a quarter more than there are.
pub(crate) fn scan(store: &dyn Store, capacity: usize) -> Result<Filter> {
    let State { keys, hash_key, .. } = store.state()?;
    let filter = Filter::builder_with_hasher(StableHashBuilder::with_key(hash_key))
        .capacity(capacity.max(usize::try_from(keys + keys / 4)?))
        .false_positive_rate(FALSE_POSITIVE_RATE)
        .schema(SCHEMA)
        .build()?;
    store.for_each_key(&mut |key| Ok(filter.insert(key)?))?;
    Ok(filter)
}
