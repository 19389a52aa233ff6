//! The store on disk: [redb](https://www.redb.org), an embedded database in one file. It needs `cache.rs` beside it.

use std::path::Path;

use anyhow::{Context, Result};
use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use super::cache::{Change, Logged, State, Store, WriteError};

const VALUES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("values");
/// By number: whether the key was added (or else removed), and the key.
const LOG: TableDefinition<'_, u64, (bool, &[u8])> = TableDefinition::new("log");
const SNAPSHOT: TableDefinition<'_, (), &[u8]> = TableDefinition::new("snapshot");
const HASH_KEY: TableDefinition<'_, (), [u8; 16]> = TableDefinition::new("hash key");

/// A [`Store`] in a redb file. Each change is one transaction, synced to the disk.
#[derive(Debug)]
pub struct RedbStore(Database);

impl RedbStore {
    /// Opens the database, or makes an empty one. redb keeps up to `cache_bytes` of its pages in memory. It locks the
    /// file, so no other process can open it meanwhile.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self> {
        let database = Database::builder().set_cache_size(cache_bytes).create_with_file_format_v3(true).create(path);
        Self::new(database.with_context(|| format!("can't open the database '{}'", path.display()))?)
    }

    /// Makes the tables if the database is new.
    pub fn new(database: Database) -> Result<Self> {
        let transaction = database.begin_write()?;
        transaction.open_table(VALUES)?;
        transaction.open_table(LOG)?;
        transaction.open_table(SNAPSHOT)?;
        let mut hash_keys = transaction.open_table(HASH_KEY)?;
        if hash_keys.get(())?.is_none() {
            let mut hash_key = [0; 16];
            getrandom::fill(&mut hash_key)?;
            hash_keys.insert((), hash_key)?;
        }
        drop(hash_keys);
        transaction.commit()?;
        Ok(Self(database))
    }

    /// Writes the changes and the log, but does not commit them.
    fn prepare(&self, changes: &[Change<'_>], added: &[&[u8]], removed: &[&[u8]]) -> Result<WriteTransaction> {
        let transaction = self.0.begin_write()?;
        let mut values = transaction.open_table(VALUES)?;
        for &(key, value) in changes {
            match value {
                Some(value) => drop(values.insert(key, value)?),
                None => drop(values.remove(key)?),
            }
        }
        let mut log = transaction.open_table(LOG)?;
        let mut sequence = log.last()?.map_or(0, |(number, _)| number.value());
        for (is_added, keys) in [(true, added), (false, removed)] {
            for &key in keys {
                sequence += 1;
                log.insert(sequence, (is_added, key))?;
            }
        }
        drop((values, log));
        Ok(transaction)
    }
}

/// Each read is a transaction of its own. Otherwise it would not see what was committed before it.
impl Store for RedbStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let values = self.0.begin_read()?.open_table(VALUES)?;
        Ok(values.get(key)?.map(|value| value.value().to_vec()))
    }

    fn apply(&self, changes: &[Change<'_>], added: &[&[u8]], removed: &[&[u8]]) -> Result<(), WriteError> {
        // A transaction that is dropped before its commit has no effect.
        let transaction = self.prepare(changes, added, removed).map_err(WriteError::NotApplied)?;
        transaction.commit().map_err(|error| WriteError::Unknown(error.into()))
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.0.begin_read()?.open_table(VALUES)?.iter()?.try_for_each(|entry| visit(entry?.0.value()))
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> Result<()>) -> Result<()> {
        self.0.begin_read()?.open_table(LOG)?.range(after.saturating_add(1)..)?.try_for_each(|entry| {
            let (number, entry) = entry?;
            let (added, key) = entry.value();
            visit((number.value(), added, key))
        })
    }

    fn state(&self) -> Result<State> {
        let transaction = self.0.begin_read()?;
        let hash_key = transaction.open_table(HASH_KEY)?.get(())?.context("the hash key is gone")?.value();
        Ok(State {
            keys: transaction.open_table(VALUES)?.len()?,
            sequence: transaction.open_table(LOG)?.last()?.map_or(0, |(number, _)| number.value()),
            hash_key,
        })
    }

    fn snapshot(&self) -> Result<Option<Vec<u8>>> {
        let table = self.0.begin_read()?.open_table(SNAPSHOT)?;
        Ok(table.get(())?.map(|snapshot| snapshot.value().to_vec()))
    }

    fn keep_snapshot(&self, snapshot: &[u8], sequence: u64) -> Result<()> {
        let transaction = self.0.begin_write()?;
        transaction.open_table(SNAPSHOT)?.insert((), snapshot)?;
        // The entry of that number stays: the next one counts from it. To remove the others one by one would take long.
        let mut rest = Vec::new();
        for entry in transaction.open_table(LOG)?.range(sequence..)? {
            let (number, entry) = entry?;
            rest.push((number.value(), entry.value().0, entry.value().1.to_vec()));
        }
        transaction.delete_table(LOG)?;
        let mut log = transaction.open_table(LOG)?;
        for (number, added, key) in rest {
            log.insert(number, (added, &key[..]))?;
        }
        drop(log);
        Ok(transaction.commit()?)
    }
}
