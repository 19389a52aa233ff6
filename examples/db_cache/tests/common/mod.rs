//! What the tests share: a check that filter and store are in step, and a store that can be stopped at each step.
#![allow(dead_code)] // Each test file uses a part of it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, anyhow};
use db_cache::{Cache, Change, Logged, RedbStore, State, Store, WriteError};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use redb::{Database, TableDefinition, backends::InMemoryBackend};

/// Asserts that the filter has each key of the store, and as many copies as there are keys.
#[track_caller]
pub(crate) fn assert_in_step(cache: &Cache) {
    assert_eq!(lacking(cache), 0, "the filter lacks keys");
    assert_eq!(cache.filter().len() as u64, cache.store.state().unwrap().keys, "copies and keys");
}

/// How many keys of the store the filter lacks.
pub(crate) fn lacking(cache: &Cache) -> u64 {
    let (filter, mut lacking) = (cache.filter(), 0);
    let mut look = |key: &[u8]| {
        lacking += u64::from(!filter.contains(key));
        Ok(())
    };
    cache.store.for_each_key(&mut look).unwrap();
    lacking
}

/// Random puts and deletes of 40 keys, one at a time.
pub(crate) fn change(cache: &Cache, changes: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..changes {
        let key = [random.random_range(0..40)];
        let value = random.random_bool(0.6).then_some(&b"value"[..]);
        cache.apply(&[(&key, value)]).unwrap();
    }
}

/// Keys and values, or no values to delete the keys.
pub(crate) type Owned = (Vec<u8>, Option<Vec<u8>>);

pub(crate) fn apply(cache: &Cache, changes: &[Owned]) -> Result<(usize, usize), WriteError> {
    cache.apply(&changes.iter().map(|(key, value)| (&key[..], value.as_deref())).collect::<Vec<Change<'_>>>())
}

pub(crate) fn put_all(cache: &Cache, numbers: std::ops::Range<u32>) -> Result<(usize, usize), WriteError> {
    apply(cache, &numbers.map(|number| (number.to_le_bytes().to_vec(), Some(vec![]))).collect::<Vec<_>>())
}

/// A redb in memory that counts its reads, and calls a hook at each step. The hook can look, write, fail or panic.
pub(crate) struct TestStore {
    redb: RedbStore,
    pub(crate) reads: AtomicU64,
    hook: Mutex<Hook>,
}

type Hook = Arc<dyn Fn(&str) -> Result<(), WriteError> + Send + Sync>;
pub(crate) type Failure = fn(anyhow::Error) -> WriteError;

impl TestStore {
    pub(crate) fn new() -> Arc<Self> {
        Self::with_hash_key([1; 16])
    }

    /// A store draws the key of its hash at random. This one has it already, so that in each run the same keys look alike.
    pub(crate) fn with_hash_key(key: [u8; 16]) -> Arc<Self> {
        const HASH_KEY: TableDefinition<'_, (), [u8; 16]> = TableDefinition::new("hash key");
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(HASH_KEY).unwrap().insert((), key).unwrap();
        transaction.commit().unwrap();
        let redb = RedbStore::new(database).unwrap();
        assert_eq!(redb.state().unwrap().hash_key, key);
        Arc::new(Self { redb, reads: AtomicU64::new(0), hook: Mutex::new(Arc::new(|_| Ok(()))) })
    }

    pub(crate) fn open(self: &Arc<Self>, snapshot: &Path, capacity: usize) -> Arc<Cache> {
        Arc::new(Cache::open(self.clone(), snapshot, capacity).unwrap())
    }

    pub(crate) fn hook(&self, hook: impl Fn(&str) -> Result<(), WriteError> + Send + Sync + 'static) {
        *self.hook.lock() = Arc::new(hook);
    }

    /// Fails at this step, until there is another hook.
    pub(crate) fn fail(&self, step: &'static str, error: Failure) {
        self.hook(move |at| if at == step { Err(error(anyhow!("as told"))) } else { Ok(()) });
    }

    fn at(&self, at: &str) -> Result<(), WriteError> {
        let hook = self.hook.lock().clone();
        hook(at)
    }
}

impl Store for TestStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.redb.get(key)
    }

    fn apply(&self, changes: &[Change<'_>], added: &[&[u8]], removed: &[&[u8]]) -> Result<(), WriteError> {
        self.at("before apply")?;
        self.redb.apply(changes, added, removed)?;
        self.at("after apply")
    }

    fn for_each_key(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.redb.for_each_key(visit)
    }

    fn for_each_logged(&self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> Result<()>) -> Result<()> {
        self.redb.for_each_logged(after, visit)
    }

    fn state(&self) -> Result<State> {
        self.redb.state()
    }

    fn announce(&self, id: u64, sequence: u64) -> Result<()> {
        self.at("before announce")?;
        self.redb.announce(id, sequence)?;
        Ok(self.at("after announce")?)
    }

    fn settle(&self, id: u64) -> Result<()> {
        self.at("before settle")?;
        self.redb.settle(id)
    }
}
