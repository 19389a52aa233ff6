//! The filter and the store, in step.
//!
//! # What holds
//! Call a key *committed* from the commit that adds it to the commit that removes it.
//!
//! 1. At every moment the filter has a copy of each committed key. So if it says "absent", the key is not in the store.
//! 2. Whenever no write is under way, the filter has exactly one copy of each committed key, and no others. So it does
//!    not fill up with deleted keys. And a removal never takes the copy of another key that looks the same.
//!
//! # The order
//! Each write holds one lock from beginning to end. (redb has one writer at a time in any case.) So of two threads
//! that put the same key, the second finds it present. A write
//!
//! 1. finds out which of its keys are present. Where the filter says "absent" it need not ask the store;
//! 2. inserts a copy of each key that it will add. If one is refused, it removes those before it, and the write
//!    fails;
//! 3. commits the changes, together with an entry of the log for each key added or removed, in one transaction;
//! 4. removes the copy of each key that it has removed.
//!
//! Around the commit, the filter has more than it needs, never less. If steps 2 and 3 were exchanged, a get between
//! them would deny a committed key. And if the filter were full, the put would have happened, but not be found.
//!
//! If the store refuses the changes, step 2 is undone. If the commit itself fails, nobody knows whether the changes
//! are there. Then nothing is removed, so 1 holds. But 2 may not hold, so writes are refused until the filter has
//! been rebuilt from what the store really has. A store that panics is treated in the same way.
//!
//! Readers take no lock. A get that begins after a put has returned finds the key: the copy was there before the
//! commit. A get that uses a filter that [`Cache::rebuild`] has replaced took it before, when it had all keys.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};

use crate::{Change, Filter, Store, WriteError, snapshot};

/// A store and, in front of it, a filter that knows which keys are not in it. Threads share it by reference.
///
/// The [module](self) describes how the two are kept in step.
#[expect(missing_debug_implementations, reason = "a store need not have one")]
pub struct Cache {
    /// Only look at it: changes must go through the cache.
    pub store: Arc<dyn Store>,
    pub(crate) snapshot: PathBuf,
    /// Held while a snapshot is made, so that there is one at a time.
    pub(crate) snapshots: Mutex<()>,
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
    /// Only this cache may change the store and the file of the snapshot.
    pub fn open(store: Arc<dyn Store>, snapshot: impl Into<PathBuf>, capacity: usize) -> Result<Self> {
        let snapshot = snapshot.into();
        let (filter, restored) = match snapshot::load(&*store, &snapshot, capacity) {
            Ok((filter, replayed)) => (filter, Ok(replayed)),
            Err(reason) => (snapshot::scan(&*store, capacity)?, Err(reason)),
        };
        let (filter, in_step) = (ArcSwap::from_pointee(filter), Mutex::new(true));
        Ok(Self { store, snapshot, snapshots: Mutex::new(()), filter, in_step, restored })
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
        self.filter.store(Arc::new(snapshot::scan(&*self.store, capacity)?));
        *in_step = true;
        Ok(())
    }

    /// The writers' lock.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, bool>, WriteError> {
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
