//! The store on disk: [redb](https://www.redb.org), an embedded database in one file.

use std::error::Error;
use std::fmt;
use std::path::Path;

use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition, WriteTransaction};

use crate::store::{ApplyError, Change, Logged, Membership, Store};

const VALUES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("values");
/// By sequence number: a byte, [`ADDED`] or [`REMOVED`], and the key.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
/// The sequences of the announced snapshots, by their ids.
const SNAPSHOTS: TableDefinition<'_, u64, u64> = TableDefinition::new("snapshots");
const SEQUENCE: TableDefinition<'_, (), u64> = TableDefinition::new("sequence");
const HASH_KEY: TableDefinition<'_, (), [u8; 16]> = TableDefinition::new("hash key");

const ADDED: u8 = b'+';
const REMOVED: u8 = b'-';

/// A [`Store`] in a redb file. Values, log and the rest are tables of one database. Each change of them is one
/// transaction, synced to the disk.
///
/// The file is locked: no second process, and no second store, can open it meanwhile.
#[derive(Debug)]
pub struct RedbStore {
    database: Database,
}

/// redb failed, or its file has contents that this store did not write. (Boxed, because it is large and rarely made.)
#[derive(Debug)]
pub struct RedbError(Box<redb::Error>);

impl fmt::Display for RedbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for RedbError {}

impl<E: Into<redb::Error>> From<E> for RedbError {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

/// An error for contents of the file that this store does not write.
fn corrupted(what: &str) -> RedbError {
    redb::Error::Corrupted(what.to_owned()).into()
}

impl RedbStore {
    /// Opens the database, or makes an empty one if the file does not exist. redb keeps up to `cache_bytes` of its
    /// pages in memory.
    ///
    /// After a crash, redb first repairs the file. For that it reads all of it.
    ///
    /// # Errors
    /// If the file can't be opened, if it is no database, or if another process has it open.
    pub fn open(path: &Path, cache_bytes: usize) -> Result<Self, RedbError> {
        let database = Database::builder().set_cache_size(cache_bytes).create_with_file_format_v3(true).create(path)?;
        let transaction = database.begin_write()?;
        transaction.open_table(VALUES)?;
        transaction.open_table(LOG)?;
        transaction.open_table(SNAPSHOTS)?;
        transaction.open_table(SEQUENCE)?;
        let new = transaction.open_table(HASH_KEY)?.get(())?.is_none();
        if new {
            let mut hash_key = [0; 16];
            getrandom::fill(&mut hash_key).map_err(|error| redb::Error::Io(error.into()))?;
            transaction.open_table(HASH_KEY)?.insert((), hash_key)?;
            transaction.commit()?;
        } else {
            transaction.abort()?;
        }
        Ok(Self { database })
    }

    /// Writes the changes and the log, but does not commit them.
    fn prepare(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<WriteTransaction, RedbError> {
        let transaction = self.database.begin_write()?;
        let mut values = transaction.open_table(VALUES)?;
        for change in changes {
            match change {
                Change::Put { key, value } => drop(values.insert(key, value)?),
                Change::Delete { key } => drop(values.remove(key)?),
            }
        }
        drop(values);
        if !log.is_empty() {
            let mut sequences = transaction.open_table(SEQUENCE)?;
            let mut sequence = sequences.get(())?.map_or(0, |last| last.value());
            let mut entries = transaction.open_table(LOG)?;
            let mut bytes = Vec::new();
            for entry in log {
                sequence += 1;
                bytes.clear();
                bytes.push(match entry.membership {
                    Membership::Added => ADDED,
                    Membership::Removed => REMOVED,
                });
                bytes.extend_from_slice(entry.key);
                entries.insert(sequence, &bytes[..])?;
            }
            sequences.insert((), sequence)?;
        }
        Ok(transaction)
    }
}

impl Store for RedbStore {
    type Error = RedbError;

    // Each read is a transaction of its own. Otherwise it would not see what was committed before it.

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedbError> {
        let values = self.database.begin_read()?.open_table(VALUES)?;
        Ok(values.get(key)?.map(|value| value.value().to_vec()))
    }

    fn contains(&self, key: &[u8]) -> Result<bool, RedbError> {
        Ok(self.database.begin_read()?.open_table(VALUES)?.get(key)?.is_some())
    }

    fn len(&self) -> Result<u64, RedbError> {
        Ok(self.database.begin_read()?.open_table(VALUES)?.len()?)
    }

    fn apply(&self, changes: &[Change<'_>], log: &[Logged<'_>]) -> Result<(), ApplyError<RedbError>> {
        // A transaction that is dropped before its commit has no effect.
        let transaction = self.prepare(changes, log).map_err(ApplyError::NotApplied)?;
        transaction.commit().map_err(|error| ApplyError::Unknown(error.into()))
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8])) -> Result<(), RedbError> {
        let values = self.database.begin_read()?.open_table(VALUES)?;
        for entry in values.iter()? {
            visit(entry?.0.value());
        }
        Ok(())
    }

    fn sequence(&self) -> Result<u64, RedbError> {
        let sequences = self.database.begin_read()?.open_table(SEQUENCE)?;
        Ok(sequences.get(())?.map_or(0, |last| last.value()))
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(u64, Logged<'_>)) -> Result<(), RedbError> {
        let log = self.database.begin_read()?.open_table(LOG)?;
        for entry in log.range(after.saturating_add(1)..)? {
            let (sequence, bytes) = entry?;
            let (membership, key) = match bytes.value() {
                [ADDED, key @ ..] => (Membership::Added, key),
                [REMOVED, key @ ..] => (Membership::Removed, key),
                _ => return Err(corrupted("an entry of the log is neither of a key added nor of one removed")),
            };
            visit(sequence.value(), Logged { key, membership });
        }
        Ok(())
    }

    fn hash_key(&self) -> Result<[u8; 16], RedbError> {
        let hash_keys = self.database.begin_read()?.open_table(HASH_KEY)?;
        let hash_key = hash_keys.get(())?.ok_or_else(|| corrupted("the filter's hash key is gone"))?;
        Ok(hash_key.value())
    }

    fn announce(&self, id: u64, sequence: u64) -> Result<(), RedbError> {
        let transaction = self.database.begin_write()?;
        transaction.open_table(SNAPSHOTS)?.insert(id, sequence)?;
        Ok(transaction.commit()?)
    }

    fn announced(&self, id: u64) -> Result<Option<u64>, RedbError> {
        let snapshots = self.database.begin_read()?.open_table(SNAPSHOTS)?;
        Ok(snapshots.get(id)?.map(|sequence| sequence.value()))
    }

    fn settle(&self, id: u64) -> Result<(), RedbError> {
        let transaction = self.database.begin_write()?;
        let sequence = transaction.open_table(SNAPSHOTS)?.get(id)?.map(|sequence| sequence.value());
        if let Some(sequence) = sequence {
            transaction.open_table(SNAPSHOTS)?.retain(|other, _| other == id)?;
            // Removing the old entries one by one would take as long as writing them did. The entries that remain are
            // few: they were written since the snapshot.
            let log = transaction.open_table(LOG)?;
            let later = log
                .range(sequence.saturating_add(1)..)?
                .map(|entry| entry.map(|(number, bytes)| (number.value(), bytes.value().to_vec())))
                .collect::<Result<Vec<_>, _>>()?;
            drop(log);
            transaction.delete_table(LOG)?;
            let mut log = transaction.open_table(LOG)?;
            for (number, bytes) in later {
                log.insert(number, &bytes[..])?;
            }
        }
        Ok(transaction.commit()?)
    }
}
