//! The exact list of revoked tokens, on disk. It confirms or denies the filter's positive answers.
//!
//! The store knows until when each token is revoked, in seconds since 1970, and which to forget next.
//!
//! Each snapshot of the filter begins a new *epoch*. Besides the tokens, the store keeps lists of those that were
//! revoked in the epochs since the last snapshot. They are added to the snapshot when it is loaded.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::{
    Database, ReadOnlyTable, ReadableTable, ReadableTableMetadata, Table, TableDefinition, TableError, WriteTransaction,
};

/// The tokens, each with the time until which it is revoked.
const REVOKED: TableDefinition<'_, &str, u64> = TableDefinition::new("revoked");
/// The same in the order of these times. So expired tokens are found without reading the others.
const BY_EXPIRY: TableDefinition<'_, (u64, &str), ()> = TableDefinition::new("by expiry");
const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");

/// Drawn when the store is made, so that a snapshot of another store is recognized.
const ID: &str = "id";
/// The current epoch.
const EPOCH: &str = "epoch";
/// The oldest epoch whose list still exists.
const OLDEST: &str = "oldest";

/// Since when request identifiers have been recorded without a gap, in seconds since 1970.
const IDS_KNOWN_SINCE: &str = "request identifiers known since";
/// 1 if the server has ended well and has not started again.
const ENDED_WELL: &str = "ended well";

/// The tokens that were revoked in an epoch, in order. Some of them may have been reinstated since.
///
/// Each epoch has a table of its own, because dropping a table is one step, and removing a million entries is not.
fn list(epoch: u64) -> String {
    format!("revoked in epoch {epoch}")
}

fn table(name: &str) -> TableDefinition<'_, u64, &'static str> {
    TableDefinition::new(name)
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// An error of the database. Boxed, because most results that are passed around are not errors.
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

/// The errors of the database's operations.
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
    forgotten: AtomicU64,
}

impl Store {
    /// Opens the store, or makes an empty one.
    pub(crate) fn open(path: &Path, cache: usize, delay: Duration) -> Result<Self> {
        let database = Database::builder().set_cache_size(cache).create(path)?;
        let transaction = database.begin_write()?;
        let id = {
            transaction.open_table(REVOKED)?;
            transaction.open_table(BY_EXPIRY)?;
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
        Ok(Self { database, id, delay, questions: AtomicU64::new(0), forgotten: AtomicU64::new(0) })
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The current epoch.
    pub(crate) fn epoch(&self) -> Result<u64> {
        self.fact(EPOCH)
    }

    /// The oldest epoch whose revocations are still listed.
    pub(crate) fn oldest(&self) -> Result<u64> {
        self.fact(OLDEST)
    }

    /// Begins a new epoch and returns it. What was revoked in earlier epochs is durable, and in the filter.
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

    /// Forgets what was revoked in the epochs before this one. A snapshot has that now.
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

    /// How often [`revoked_until`](Self::revoked_until) was asked.
    pub(crate) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// How many expired tokens were forgotten since the store was opened.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    pub(crate) fn count_forgotten(&self, tokens: usize) {
        self.forgotten.fetch_add(tokens as u64, Ordering::Relaxed);
    }

    /// Until when the token is revoked, which may be over. `None` if it is not revoked, or was forgotten.
    ///
    /// The read is not moved to another thread. Most of it comes from the store's cache, where the move would cost
    /// more than the read. A store that often reads from a slow disk would need `spawn_blocking`.
    pub(crate) async fn revoked_until(&self, token: &str) -> Result<Option<u64>> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
        Ok(self.read(REVOKED)?.get(token)?.map(|until| until.value()))
    }

    /// How many tokens there are: those that are revoked, and those that have expired and are not yet forgotten.
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.read(REVOKED)?.len()?)
    }

    /// How many tokens are revoked until this time or longer. Reads all of them.
    pub(crate) fn count_until(&self, time: u64) -> Result<u64> {
        let mut count = 0;
        for entry in self.read(BY_EXPIRY)?.range((time, "")..)? {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    /// Whether a token is revoked until a time before this one.
    pub(crate) fn has_expired_before(&self, time: u64) -> Result<bool> {
        Ok(self.read(BY_EXPIRY)?.first()?.is_some_and(|(entry, _)| entry.value().0 < time))
    }

    /// Passes on all tokens, each with the time until which it is revoked.
    pub(crate) fn for_all<R>(
        &self,
        take: impl FnOnce(&mut dyn Iterator<Item = Result<(String, u64)>>) -> R,
    ) -> Result<R> {
        let revoked = self.read(REVOKED)?;
        let mut tokens = revoked.iter()?.map(|entry| {
            let (token, until) = entry?;
            Ok((token.value().to_owned(), until.value()))
        });
        Ok(take(&mut tokens))
    }

    /// Passes on the tokens that were revoked in this epoch or a later one, and still are, as
    /// [`for_all`](Self::for_all) does. A token that was revoked twice in that time comes twice.
    pub(crate) fn for_recent<R>(
        &self,
        from: u64,
        take: impl FnOnce(&mut dyn Iterator<Item = Result<(String, u64)>>) -> R,
    ) -> Result<R> {
        let now = self.database.begin_read()?;
        let revoked = now.open_table(REVOKED)?;
        let mut lists = Vec::new();
        for epoch in from..=self.epoch()? {
            match now.open_table(table(&list(epoch))) {
                Ok(list) => lists.push(list.range::<u64>(..)?),
                // Nothing was revoked in this epoch.
                Err(TableError::TableDoesNotExist(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut tokens = lists.into_iter().flatten().filter_map(|entry| {
            let still = || -> Result<Option<(String, u64)>> {
                let token = entry?.1;
                Ok(revoked.get(token.value())?.map(|until| (token.value().to_owned(), until.value())))
            };
            still().transpose()
        });
        Ok(take(&mut tokens))
    }

    /// Since when request identifiers had been recorded without a gap when the server ended, in seconds since 1970.
    /// `None` if it did not end well, or never ran.
    pub(crate) fn ids_known_since(&self) -> Result<Option<u64>> {
        Ok(if self.fact(ENDED_WELL)? == 1 { Some(self.fact(IDS_KNOWN_SINCE)?) } else { None })
    }

    /// Call this when the server begins. If it ends before [`ended_well`](Self::ended_well), there is a gap.
    pub(crate) fn begin(&self, ids_known_since: u64) -> Result<()> {
        self.note(&[(IDS_KNOWN_SINCE, ids_known_since), (ENDED_WELL, 0)])
    }

    /// Call this when everything is saved.
    pub(crate) fn ended_well(&self) -> Result<()> {
        self.note(&[(ENDED_WELL, 1)])
    }

    /// Begins changes that become durable together. Other changes wait.
    pub(crate) fn change(&self) -> Result<Change> {
        Ok(Change(self.database.begin_write()?))
    }

    fn read<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<ReadOnlyTable<K, V>> {
        Ok(self.database.begin_read()?.open_table(table)?)
    }

    fn note(&self, facts: &[(&str, u64)]) -> Result<()> {
        let transaction = self.database.begin_write()?;
        for &(name, fact) in facts {
            transaction.open_table(FACTS)?.insert(name, fact)?;
        }
        Ok(transaction.commit()?)
    }

    fn fact(&self, name: &str) -> Result<u64> {
        Ok(self.read(FACTS)?.get(name)?.map_or(0, |fact| fact.value()))
    }
}

/// Changes of the store that are not yet visible to others, and not durable.
pub(crate) struct Change(WriteTransaction);

impl Change {
    pub(crate) fn tokens(&self) -> Result<Tokens<'_>> {
        let epoch = self.0.open_table(FACTS)?.get(EPOCH)?.map_or(0, |epoch| epoch.value());
        Ok(Tokens {
            revoked: self.0.open_table(REVOKED)?,
            by_expiry: self.0.open_table(BY_EXPIRY)?,
            recent: self.0.open_table(table(&list(epoch)))?,
        })
    }

    /// Makes the changes durable, and only then visible.
    pub(crate) fn commit(self) -> Result<()> {
        Ok(self.0.commit()?)
    }
}

/// The tables of a [`Change`].
pub(crate) struct Tokens<'a> {
    revoked: Table<'a, &'static str, u64>,
    by_expiry: Table<'a, (u64, &'static str), ()>,
    /// Numbered from 0 on.
    recent: Table<'a, u64, &'static str>,
}

impl Tokens<'_> {
    /// Until when the token is revoked, which may be over.
    pub(crate) fn revoked_until(&self, token: &str) -> Result<Option<u64>> {
        Ok(self.revoked.get(token)?.map(|until| until.value()))
    }

    /// Records that the token is revoked until this time. Returns until when it was revoked before.
    pub(crate) fn insert(&mut self, token: &str, until: u64) -> Result<Option<u64>> {
        let before = self.remove(token)?;
        self.revoked.insert(token, until)?;
        self.by_expiry.insert((until, token), ())?;
        self.recent.insert(self.recent.len()?, token)?;
        Ok(before)
    }

    /// Removes the token. Returns until when it was revoked, if it was in the store.
    pub(crate) fn remove(&mut self, token: &str) -> Result<Option<u64>> {
        let before = self.revoked.remove(token)?.map(|until| until.value());
        if let Some(until) = before {
            self.by_expiry.remove((until, token))?;
        }
        Ok(before)
    }

    /// Forgets tokens that are revoked until a time before this one, the oldest first, at most `most` of them.
    /// Returns how many.
    pub(crate) fn forget_before(&mut self, time: u64, most: usize) -> Result<usize> {
        let mut expired = Vec::new();
        for entry in self.by_expiry.range(..(time, ""))?.take(most) {
            let (key, _) = entry?;
            let (until, token) = key.value();
            expired.push((until, token.to_owned()));
        }
        for (until, token) in &expired {
            self.revoked.remove(token.as_str())?;
            self.by_expiry.remove((*until, token.as_str()))?;
        }
        Ok(expired.len())
    }
}
