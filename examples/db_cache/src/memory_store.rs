//! A store in memory: for tests, and as the shortest example of a store.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::store::{ApplyError, Change, Logged, Membership, Store};

/// A [`Store`] in memory. It is as durable as the process.
#[derive(Debug)]
pub struct MemoryStore {
    tables: RwLock<Tables>,
    hash_key: [u8; 16],
}

#[derive(Debug, Default)]
struct Tables {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    sequence: u64,
    log: BTreeMap<u64, (Vec<u8>, Membership)>,
    snapshots: BTreeMap<u64, u64>,
}

impl MemoryStore {
    /// An empty store.
    ///
    /// # Errors
    /// If the system has no random bytes.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut hash_key = [0; 16];
        getrandom::fill(&mut hash_key)?;
        Ok(Self { tables: RwLock::default(), hash_key })
    }

    // While the lock is held, no foreign code runs except `visit`. It runs under the read lock, which a panic does
    // not poison.
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Store for MemoryStore {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.read().values.get(key).cloned())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Infallible> {
        Ok(self.read().values.contains_key(key))
    }

    fn len(&self) -> Result<u64, Infallible> {
        Ok(self.read().values.len() as u64)
    }

    fn apply(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<(), ApplyError<Infallible>> {
        let mut tables = self.write();
        for change in changes {
            match change {
                Change::Put { key, value } => drop(tables.values.insert(key.to_vec(), value.to_vec())),
                Change::Delete { key } => drop(tables.values.remove(*key)),
            }
        }
        for entry in log {
            tables.sequence += 1;
            let sequence = tables.sequence;
            tables.log.insert(sequence, (entry.key.to_vec(), entry.membership));
        }
        Ok(())
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), Infallible> {
        self.read().values.keys().for_each(|key| visit(key));
        Ok(())
    }

    fn sequence(&self) -> Result<u64, Infallible> {
        Ok(self.read().sequence)
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(u64, Logged<'_>)) -> Result<(), Infallible> {
        for (&sequence, (key, membership)) in self.read().log.range(after.saturating_add(1)..) {
            visit(sequence, Logged { key, membership: *membership });
        }
        Ok(())
    }

    fn hash_key(&self) -> Result<[u8; 16], Infallible> {
        Ok(self.hash_key)
    }

    fn announce(&self, id: u64, sequence: u64) -> Result<(), Infallible> {
        self.write().snapshots.insert(id, sequence);
        Ok(())
    }

    fn announced(&self, id: u64) -> Result<Option<u64>, Infallible> {
        Ok(self.read().snapshots.get(&id).copied())
    }

    fn settle(&self, id: u64) -> Result<(), Infallible> {
        let mut tables = self.write();
        if let Some(&sequence) = tables.snapshots.get(&id) {
            tables.snapshots.retain(|&other, _| other == id);
            tables.log = tables.log.split_off(&sequence.saturating_add(1));
        }
        Ok(())
    }
}
