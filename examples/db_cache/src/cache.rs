//! A filter in front of a key-value store, in step with it: with concurrent writers, and across a crash.
//!
//! This file needs nothing else of this example. [`Store`] says what a database must provide. The rules, with reasons, are
//! in the [guide](https://docs.rs/concurrent-cuckoo-filter/latest/concurrent_cuckoo_filter/guide/in_front_of_a_database/).
//!
//! # What holds
//! Call a key *committed* from the commit that adds it to the commit that removes it.
//!
//! 1. At every moment the filter has a copy of each committed key. So if it says "absent", the key is not in the store.
//! 2. Whenever no write is under way, the filter has exactly one copy of each committed key, and no others. So a removal
//!    never takes the copy of another key that looks the same.
//!
//! # The order
//! Each write holds one lock from beginning to end. It
//!
//! 1. finds out which of its keys are present. Where the filter says "absent" it need not ask the store;
//! 2. inserts a copy of each key that it will add. If one fails, it removes those before it, and the write fails;
//! 3. commits the changes, together with an entry of the log for each key added or removed, in one transaction;
//! 4. removes the copy of each key that it has removed.
//!
//! Around the commit, the filter has more than it needs, never less. If the store refuses the changes, step 2 is undone. If
//! the commit itself fails, or the store panics, nobody knows whether the changes are there. Then nothing is removed, and
//! writes fail until the filter has been rebuilt from what the store really has.
//!
//! # Snapshots
//! A scan of all keys always makes the right filter, but takes long. A snapshot and the log since then make it only if the
//! filter had exactly what the store had at one sequence. So [`Cache::snapshot`] begins a save under the writers' lock. The
//! store keeps its bytes among its own, and drops the log before them in the same transaction: a crash leaves the old
//! snapshot with its log, or the new one, and a store that is restored from a backup has the snapshot of its time. The
//! answer to any doubt is a scan. An empty filter would deny every key.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, Loader, StableHashBuilder};
use parking_lot::{Mutex, MutexGuard};

/// The filter in front of a store. Its hash is stable, so that another process can load a snapshot.
pub type Filter = ConcurrentCuckooFilter<[u8], StableHashBuilder>;

/// The share of gets of absent keys that may go to the store.
const FALSE_POSITIVE_RATE: f64 = 0.001;

/// What the filter is. Change it with the rate, or if the keys are hashed in another way.
const SCHEMA: &str = "db-cache: bytes at 0.001";

/// A store and, in front of it, a filter that knows which keys are not in it. Threads share it by reference.
///
/// The [module](self) describes how the two are kept in step.
#[allow(missing_debug_implementations, reason = "a store need not have one")]
pub struct Cache {
    /// Only look at it: changes must go through the cache.
    pub store: Arc<dyn Store>,
    /// Held while a snapshot is made, so that there is one at a time.
    snapshots: Mutex<()>,
    filter: ArcSwap<Filter>,
    /// The writers' lock, and whether the filter is known to have exactly what the store has.
    in_step: Mutex<bool>,
    /// How many entries of the log [`open`](Self::open) has replayed on the snapshot, or why it has scanned all keys.
    pub restored: Result<u64>,
}

impl Cache {
    /// Loads the filter from its snapshot. If that is not possible for any reason, fills one with room for at least
    /// `capacity` keys from a scan of all keys. It never begins with an empty filter.
    ///
    /// Only this cache may change the store.
    pub fn open(store: Arc<dyn Store>, capacity: usize) -> Result<Self> {
        let (filter, restored) = match load(&*store, capacity) {
            Ok((filter, replayed)) => (filter, Ok(replayed)),
            Err(reason) => (scan(&*store, capacity)?, Err(reason)),
        };
        let (filter, in_step) = (ArcSwap::from_pointee(filter), Mutex::new(true));
        Ok(Self { store, snapshots: Mutex::new(()), filter, in_step, restored })
    }

    /// The filter as it is now. Only look at it: changes must go through the cache.
    pub fn filter(&self) -> Arc<Filter> {
        self.filter.load_full()
    }

    /// The value of a key. The filter's statistics count what it has kept from the store, and its false positives.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let filter = self.filter.load();
        if !filter.contains(key) {
            filter.record_negatives(1);
            return Ok(None);
        }
        let value = self.store.get(key)?;
        if value.is_none() {
            filter.record_false_positives(1);
        }
        Ok(value)
    }

    /// Gives the key this value: `true` if there was no such key before.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, WriteError> {
        Ok(self.apply(&[(key, Some(value))])?.0 == 1)
    }

    /// Removes the key and its value: `true` if there was such a key.
    pub fn delete(&self, key: &[u8]) -> Result<bool, WriteError> {
        Ok(self.apply(&[(key, None)])?.1 == 1)
    }

    /// Makes all of the changes, in their order, in one transaction. Returns how many keys were added and how many
    /// removed. A thousand changes are much faster in one call than in a thousand, because the disk is synced once.
    pub fn apply(&self, changes: &[Change<'_>]) -> Result<(usize, usize), WriteError> {
        let mut in_step = self.lock()?;
        let filter = self.filter.load();
        let [added, removed] = self.net_effect(&filter, changes).map_err(WriteError::NotApplied)?;
        if added.is_empty() && removed.is_empty() && changes.iter().all(|(_, value)| value.is_none()) {
            return Ok((0, 0)); // deletes of absent keys
        }
        // From here to the end, a panic of the store leaves the filter with more than it needs, never less.
        *in_step = false;
        if let Err(refused) = filter.insert_batch(added.iter().copied()) {
            remove_all(&filter, &added[..refused.index]);
            *in_step = true;
            return Err(WriteError::Full(refused.error));
        }
        let result = self.store.apply(changes, &added, &removed);
        match &result {
            Ok(()) => remove_all(&filter, &removed),
            Err(WriteError::NotApplied(_)) => remove_all(&filter, &added),
            Err(_) => return result.map(|()| (0, 0)),
        }
        *in_step = true;
        result.map(|()| (added.len(), removed.len()))
    }

    /// Fills a filter with room for at least `capacity` keys from a scan, and puts it in the place of the present one.
    /// For a filter that is full, and after a failed commit. Writers wait meanwhile, and readers go on.
    pub fn rebuild(&self, capacity: usize) -> Result<()> {
        let mut in_step = self.in_step.lock();
        self.filter.store(Arc::new(scan(&*self.store, capacity)?));
        *in_step = true;
        Ok(())
    }

    /// Saves the filter in the store, from which the next [`open`](Self::open) will load it. Readers and writers go on
    /// meanwhile.
    pub fn snapshot(&self) -> Result<()> {
        let _one_at_a_time = self.snapshots.lock();
        let no_writes = self.lock()?;
        let filter = self.filter();
        let (sequence, save) = (self.store.state()?.sequence, filter.begin_save()?);
        drop(no_writes);
        let mut bytes = Vec::new();
        save.position(sequence).write_to(&mut bytes)?;
        self.store.keep_snapshot(&bytes, sequence)
    }

    /// The writers' lock.
    fn lock(&self) -> Result<MutexGuard<'_, bool>, WriteError> {
        let in_step = self.in_step.lock();
        if *in_step { Ok(in_step) } else { Err(WriteError::OutOfStep) }
    }

    /// The keys that the changes add in the end, and those that they remove. Needs the writers' lock.
    fn net_effect<'c>(&self, filter: &Filter, changes: &[Change<'c>]) -> Result<[Vec<&'c [u8]>; 2]> {
        // Whether each key is present before the changes, and after those seen so far.
        let mut keys: HashMap<&[u8], (bool, bool)> = HashMap::with_capacity(changes.len());
        for &(key, value) in changes {
            let before = match keys.get(key) {
                Some(&(before, _)) => before,
                None => filter.contains(key) && self.store.get(key)?.is_some(),
            };
            keys.insert(key, (before, value.is_some()));
        }
        let with = |fate| keys.iter().filter(|(_, its)| **its == fate).map(|(key, _)| *key).collect();
        Ok([with((false, true)), with((true, false))])
    }
}

/// Removes a copy of each key. Each copy is there: this write inserted it, or it belongs to a committed key.
fn remove_all(filter: &Filter, keys: &[&[u8]]) {
    for key in keys {
        let removed = filter.remove(key);
        debug_assert!(removed, "a key of the store was not in the filter");
    }
}

/// The filter from the snapshot and the log, and how many entries of the log were replayed.
fn load(store: &dyn Store, capacity: usize) -> Result<(Filter, u64)> {
    let (State { keys, hash_key, .. }, snapshot) = (store.state()?, store.snapshot()?);
    let snapshot = snapshot.context("there is no snapshot")?;
    // A filter takes a little more than its snapshot.
    let loader = Loader::<Filter, _>::new(StableHashBuilder::with_key(hash_key), snapshot.len() + (1 << 20));
    let loaded = loader.schema(SCHEMA).load(&snapshot[..])?;
    let filter = loaded.filter;
    let position = loaded.position.context("the snapshot has no position in the log")?;
    ensure!(filter.capacity() as u64 >= keys.max(capacity as u64), "the snapshot's filter is too small");

    let mut replayed = 0;
    store.for_each_logged(position, &mut |(number, added, key)| {
        replayed += 1;
        let done = if added { filter.insert(key).is_ok() } else { filter.remove(key) };
        ensure!(done && number == position + replayed, "entry {number} of the log does not fit the filter");
        Ok(())
    })?;
    ensure!(filter.len() as u64 == keys, "the snapshot and the log do not come to the keys of the store");
    Ok((filter, replayed))
}

/// A filter of all keys of the store, with room for `capacity` keys, and for a quarter more than there are.
fn scan(store: &dyn Store, capacity: usize) -> Result<Filter> {
    let State { keys, hash_key, .. } = store.state()?;
    let filter = Filter::builder_with_hasher(StableHashBuilder::with_key(hash_key))
        .capacity(capacity.max(usize::try_from(keys + keys / 4)?))
        .false_positive_rate(FALSE_POSITIVE_RATE)
        .schema(SCHEMA)
        .build()?;
    store.for_each_key(&mut |key| Ok(filter.insert(key)?))?;
    Ok(filter)
}

/// A key and its new value, or `None` to delete the key.
pub type Change<'a> = (&'a [u8], Option<&'a [u8]>);

/// An entry of the log: its number, whether the key was added (or else removed), and the key.
pub type Logged<'a> = (u64, bool, &'a [u8]);

/// A durable map from keys to values, with a log of the keys that were added and removed.
///
/// Only the cache in front of it may change it. The cache makes one call of [`apply`](Self::apply) at a time. All
/// other methods may be called at any time, from any thread.
///
/// The *log* brings a saved filter up to date. Its entries are numbered 1, 2, 3, … in the order of their commits. The
/// *sequence* of a moment is the number of the last entry then, and 0 before the first.
pub trait Store: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Makes all of the changes, in their order, and appends to the log that these keys were added and those were
    /// removed: all of it or nothing. It is durable when this returns.
    ///
    /// The error is [`WriteError::NotApplied`] if it is certain that nothing has changed, now and after a crash.
    /// Otherwise it is [`WriteError::Unknown`], and what a scan finds after that must remain.
    fn apply(&self, changes: &[Change<'_>], added: &[&[u8]], removed: &[&[u8]]) -> Result<(), WriteError>;

    /// Calls `visit` with each key once, until it fails.
    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// Calls `visit` with each entry of the log after number `after`, in order, until it fails.
    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> Result<()>) -> Result<()>;

    /// The state at one moment.
    fn state(&self) -> Result<State>;

    /// The snapshot that was kept last.
    fn snapshot(&self) -> Result<Option<Vec<u8>>>;

    /// Keeps these bytes in the place of the snapshot before, and drops the log before this sequence, in one durable step.
    fn keep_snapshot(&self, snapshot: &[u8], sequence: u64) -> Result<()>;
}

/// What a store says about itself.
#[derive(Debug)]
pub struct State {
    /// How many keys there are.
    pub keys: u64,
    /// The number of the last entry of the log.
    pub sequence: u64,
    /// The secret key of the filter's hash: random bytes, drawn when the store is made.
    pub hash_key: [u8; 16],
}

/// Why a write failed, and how certain that is.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum WriteError {
    #[error("the filter has no room, and nothing was written: {0}; rebuild it with a larger capacity")]
    Full(InsertError),
    #[error("the store failed, and nothing was written: {0:#}")]
    NotApplied(anyhow::Error),
    #[error("the commit failed, and all was written or nothing: {0:#}; rebuild the filter")]
    Unknown(anyhow::Error),
    #[error("nothing was written, because the outcome of an earlier write is unknown; rebuild the filter")]
    OutOfStep,
}
