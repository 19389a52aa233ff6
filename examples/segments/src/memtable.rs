//! CONCURRENT: the puts since the last flush, in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::entry::Entry;

type Map = BTreeMap<Box<[u8]>, Entry>;

/// The newest entry of each key, sorted. No thread puts anything into a sealed memtable.
#[derive(Debug, Default)]
pub(crate) struct Memtable(RwLock<Map>);

impl Memtable {
    pub(crate) fn put(&self, key: &[u8], entry: Entry) {
        // A panic can't leave the tree half changed: nothing between the lock and its release panics.
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        match map.get_mut(key) {
            Some(old) => *old = entry,
            None => {
                map.insert(key.into(), entry);
            }
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<Entry> {
        self.read().get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.read().len()
    }

    /// For a walk over all entries. Writers wait while the guard is held.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
