//! CONCURRENT: what has been put since the last flush, in memory.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::entry::Entry;

type Map = BTreeMap<Box<[u8]>, Entry>;

/// The newest entry of each key, sorted. Once it is sealed, nobody puts anything into it any more.
#[derive(Debug, Default)]
pub(crate) struct Memtable(RwLock<Map>);

impl Memtable {
    pub(crate) fn put(&self, key: &[u8], entry: Entry) {
        // A panic can't leave a tree half changed here: nothing panics between a lock and its release.
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

    /// For a walk through all entries.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}
