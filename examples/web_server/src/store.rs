//! The exact list of revoked tokens, on disk: what the filter's positives are checked against.
//!
//! Each snapshot of the filter begins a new *epoch*. Besides the tokens, the store keeps those that were revoked in the
//! epochs since the last snapshot; they are added to it when it is loaded.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::{
    Database, ReadOnlyTable, ReadableTable, ReadableTableMetadata, Table, TableDefinition, TableError, WriteTransaction,
};

/// The tokens.
const REVOKED: TableDefinition<'_, &str, ()> = TableDefinition::new("revoked");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");

/// Drawn when the store is made, so that no other store's snapshot is taken for one of this.
const ID: &str = "id";
/// The present epoch.
const EPOCH: &str = "epoch";
/// The oldest epoch of which the list is still there.
const OLDEST: &str = "oldest";

/// The tokens that were revoked in an epoch, in their order. Some of them may have been reinstated since.
///
/// A table for each, since to drop a table is one step, and to remove a million entries from one is not.
fn list(epoch: u64) -> String {
    format!("revoked in epoch {epoch}")
}

fn table(name: &str) -> TableDefinition<'_, u64, &'static str> {
    TableDefinition::new(name)
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What went wrong in the database. In a box, since results are handed about that are mostly fine.
#[derive(Debug)]
pub(crate) struct Error(Box<redb::Error>);

impl<E> From<E> for Error
where
    E: DatabaseProblem + Into<redb::Error>,
{
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

/// The errors of the database's different operations.
trait DatabaseProblem {}
impl DatabaseProblem for redb::CommitError {}
impl DatabaseProblem for redb::DatabaseError {}
impl DatabaseProblem for redb::StorageError {}
impl DatabaseProblem for redb::TableError {}
impl DatabaseProblem for redb::TransactionError {}
impl DatabaseProblem for std::io::Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

pub(crate) struct Store {
    database: Database,
    id: u64,
    delay: Duration,
    questions: AtomicU64,
}

impl Store {
    /// Opens the store, or makes an empty one.
    pub(crate) fn open(path: &Path, cache: usize, delay: Duration) -> Result<Self> {
        let database = Database::builder().set_cache_size(cache).create(path)?;
        let transaction = database.begin_write()?;
        let id = {
            transaction.open_table(REVOKED)?;
            let mut facts = transaction.open_table(FACTS)?;
            let known = facts.get(ID)?.map(|id| id.value());
            match known {
                Some(id) => id,
                None => {
                    let id = getrandom::u64().map_err(|error| std::io::Error::other(error.to_string()))?;
                    facts.insert(ID, id)?;
                    id
                }
            }
        };
        transaction.commit()?;
        Ok(Self { database, id, delay, questions: AtomicU64::new(0) })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The present epoch.
    pub(crate) fn epoch(&self) -> Result<u64> {
        self.fact(EPOCH)
    }

    /// The oldest epoch of which it is known what was revoked in it.
    pub(crate) fn oldest(&self) -> Result<u64> {
        self.fact(OLDEST)
    }

    /// Begins a new epoch, and returns it. What was revoked in those before is durable, and in the filter.
    pub(crate) fn begin_epoch(&self) -> Result<u64> {
        let transaction = self.database.begin_write()?;
        let epoch = {
            let mut facts = transaction.open_table(FACTS)?;
            let epoch = facts.get(EPOCH)?.map_or(0, |epoch| epoch.value()) + 1;
            facts.insert(EPOCH, epoch)?;
            epoch
        };
        transaction.commit()?;
        Ok(epoch)
    }

    /// Forgets what was revoked in the epochs before this one, which a snapshot has now.
    pub(crate) fn forget_before(&self, epoch: u64) -> Result<()> {
        let oldest = self.oldest()?;
        let transaction = self.database.begin_write()?;
        for old in oldest..epoch {
            transaction.delete_table(table(&list(old)))?;
        }
        transaction.open_table(FACTS)?.insert(OLDEST, epoch)?;
        transaction.commit()?;
        Ok(())
    }

    /// How often [`contains`](Self::contains) was asked.
    pub(crate) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// Whether the token is revoked.
    ///
    /// The reading itself is not moved to another thread: most of what is asked is in the store's cache, where the move
    /// would cost more than the reading. A store that often reads from a slow disk would have to be asked by
    /// `spawn_blocking`.
    pub(crate) async fn contains(&self, token: &str) -> Result<bool> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        Ok(self.read(REVOKED)?.get(token)?.is_some())
    }

    /// How many tokens are revoked.
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.read(REVOKED)?.len()?)
    }

    /// Hands on all tokens.
    pub(crate) fn for_all<R>(&self, take: impl FnOnce(&mut dyn Iterator<Item = Result<String>>) -> R) -> Result<R> {
        let revoked = self.read(REVOKED)?;
        let mut tokens = revoked.iter()?.map(|entry| Ok(entry?.0.value().to_owned()));
        Ok(take(&mut tokens))
    }

    /// Hands on the tokens that were revoked in this epoch or a later one, and still are. A token that was revoked twice
    /// meanwhile comes twice.
    pub(crate) fn for_recent<R>(
        &self,
        from: u64,
        take: impl FnOnce(&mut dyn Iterator<Item = Result<String>>) -> R,
    ) -> Result<R> {
        let now = self.database.begin_read()?;
        let revoked = now.open_table(REVOKED)?;
        let mut lists = Vec::new();
        for epoch in from..=self.epoch()? {
            match now.open_table(table(&list(epoch))) {
                Ok(list) => lists.push(list.range::<u64>(..)?),
                // Nothing was revoked in it.
                Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut tokens = lists.into_iter().flatten().filter_map(|entry| {
            let still = || -> Result<Option<String>> {
                let token = entry?.1;
                Ok(revoked.get(token.value())?.map(|_| token.value().to_owned()))
            };
            still().transpose()
        });
        Ok(take(&mut tokens))
    }

    /// Begins some changes that become durable together. Others that want to change something wait.
    pub(crate) fn change(&self) -> Result<Change> {
        Ok(Change(self.database.begin_write()?))
    }

    fn read<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<ReadOnlyTable<K, V>> {
        Ok(self.database.begin_read()?.open_table(table)?)
    }

    fn fact(&self, name: &str) -> Result<u64> {
        Ok(self.read(FACTS)?.get(name)?.map_or(0, |fact| fact.value()))
    }
}

/// Changes of the store that are not yet seen by others, nor durable.
pub(crate) struct Change(WriteTransaction);

impl Change {
    pub(crate) fn tokens(&self) -> Result<Tokens<'_>> {
        let epoch = self.0.open_table(FACTS)?.get(EPOCH)?.map_or(0, |epoch| epoch.value());
        let (revoked, recent) = (self.0.open_table(REVOKED)?, self.0.open_table(table(&list(epoch)))?);
        Ok(Tokens { revoked, recent })
    }

    /// Makes the changes durable, and only then seen.
    pub(crate) fn commit(self) -> Result<()> {
        Ok(self.0.commit()?)
    }
}

/// The tables of a [`Change`].
pub(crate) struct Tokens<'a> {
    revoked: Table<'a, &'static str, ()>,
    /// By number, from 0 on.
    recent: Table<'a, u64, &'static str>,
}

impl Tokens<'_> {
    pub(crate) fn contains(&self, token: &str) -> Result<bool> {
        Ok(self.revoked.get(token)?.is_some())
    }

    /// The token must not be in.
    pub(crate) fn insert(&mut self, token: &str) -> Result<()> {
        self.revoked.insert(token, ())?;
        self.recent.insert(self.recent.len()?, token)?;
        Ok(())
    }

    /// Whether the token was in.
    pub(crate) fn remove(&mut self, token: &str) -> Result<bool> {
        Ok(self.revoked.remove(token)?.is_some())
    }
}
