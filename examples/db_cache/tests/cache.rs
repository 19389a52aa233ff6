//! Filter and store in step: with several threads, when the filter is full, when the store fails, and across snapshots.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{fs, thread};

use anyhow::{Result, anyhow};
use concurrent_cuckoo_filter::StableHashBuilder;
use db_cache::cache::{FALSE_POSITIVE_RATE, SCHEMA};
use db_cache::{Cache, Change, Filter, Logged, RedbStore, State, Store, WriteError};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use redb::{Database, TableDefinition, backends::InMemoryBackend};
use tempfile::TempDir;

const KEY: &[u8] = b"key";
const NOWHERE: &str = "/no such directory/filter";

/// A redb in memory that counts its reads, and calls a hook at each step. The hook can look, write, fail or panic.
struct TestStore {
    redb: RedbStore,
    reads: AtomicU64,
    hook: Mutex<Hook>,
}

type Hook = Arc<dyn Fn(&str) -> Result<(), WriteError> + Send + Sync>;
type Failure = fn(anyhow::Error) -> WriteError;

impl TestStore {
    /// A store draws the key of its hash at random. This one has it already, so that in each run the same keys look alike.
    fn new(hash_key: u8) -> Arc<Self> {
        const HASH_KEY: TableDefinition<'_, (), [u8; 16]> = TableDefinition::new("hash key");
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(HASH_KEY).unwrap().insert((), [hash_key; 16]).unwrap();
        transaction.commit().unwrap();
        let redb = RedbStore::new(database).unwrap();
        Arc::new(Self { redb, reads: AtomicU64::new(0), hook: Mutex::new(Arc::new(|_| Ok(()))) })
    }

    fn open(self: &Arc<Self>, snapshot: impl AsRef<Path>, capacity: usize) -> Arc<Cache> {
        Arc::new(Cache::open(self.clone(), snapshot.as_ref(), capacity).unwrap())
    }

    fn hook(&self, hook: impl Fn(&str) -> Result<(), WriteError> + Send + Sync + 'static) {
        *self.hook.lock() = Arc::new(hook);
    }

    /// Fails at this step, until there is another hook.
    fn fail(&self, step: &'static str, error: Failure) {
        self.hook(move |at| if at == step { Err(error(anyhow!("as told"))) } else { Ok(()) });
    }

    fn at(&self, at: &str) -> Result<(), WriteError> {
        let hook = self.hook.lock().clone();
        hook(at)
    }

    fn sequence(&self) -> u64 {
        self.state().unwrap().sequence
    }
}

impl Store for TestStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.reads.fetch_add(1, Relaxed);
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

/// How many keys of the store the filter lacks.
fn lacking(cache: &Cache) -> u64 {
    let (filter, mut lacking) = (cache.filter(), 0);
    let mut look = |key: &[u8]| {
        lacking += u64::from(!filter.contains(key));
        Ok(())
    };
    cache.store.for_each_key(&mut look).unwrap();
    lacking
}

/// Asserts that the filter has each key of the store, and as many copies as there are keys.
#[track_caller]
fn assert_in_step(cache: &Cache) {
    assert_eq!(lacking(cache), 0, "the filter lacks keys");
    assert_eq!(cache.filter().len() as u64, cache.store.state().unwrap().keys, "copies and keys");
}

/// Random puts and deletes of 40 keys, one at a time.
fn change(cache: &Cache, changes: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..changes {
        cache.apply(&[(&[random.random_range(0..40)], random.random_bool(0.6).then_some(b"value"))]).unwrap();
    }
}

fn put_all(cache: &Cache, numbers: std::ops::Range<u32>) -> Result<(usize, usize), WriteError> {
    let keys: Vec<_> = numbers.map(u32::to_le_bytes).collect();
    cache.apply(&keys.iter().map(|key| (&key[..], Some(&b""[..]))).collect::<Vec<_>>())
}

#[test]
fn around_each_commit_the_filter_has_every_key() {
    let store = TestStore::new(1);
    let cache = store.open(NOWHERE, 100);
    let (watched, missing) = (Arc::downgrade(&cache), Arc::new(AtomicU64::new(0)));
    let count = missing.clone();
    store.hook(move |_| {
        count.fetch_add(lacking(&watched.upgrade().expect("a cache")), Relaxed);
        Ok(())
    });
    change(&cache, 500, 1);
    assert_eq!((store.sequence() > 100, missing.load(Relaxed)), (true, 0));
    assert_in_step(&cache);

    // The controls: writes that exchange two steps, and two puts that have both found their key absent.
    store.apply(&[(KEY, Some(b"value"))], &[KEY], &[]).unwrap();
    cache.filter().insert(KEY).unwrap();
    assert_eq!(missing.swap(0, Relaxed), 1, "right after the commit that adds the key");
    cache.filter().remove(KEY);
    store.apply(&[(KEY, None)], &[], &[KEY]).unwrap();
    assert_eq!(missing.swap(0, Relaxed), 1, "right before the commit that removes the key");
    cache.put(KEY, b"value").unwrap();
    cache.filter().insert(KEY).unwrap();
    catch_unwind(AssertUnwindSafe(|| assert_in_step(&cache))).expect_err("two copies of one key");
}

/// Batches that may change a key several times.
#[test]
fn changes_agree_with_a_map() {
    let (cache, mut model) = (TestStore::new(1).open(NOWHERE, 100), BTreeMap::new());
    let mut random = SmallRng::seed_from_u64(1);
    for _ in 0..500 {
        let mut change = |_| ([random.random_range(0..40)], random.random_bool(0.5).then(|| [random.random()]));
        let changes: [([u8; 1], Option<[u8; 1]>); 7] = std::array::from_fn(&mut change);
        let before = model.clone();
        for (key, value) in changes {
            match value {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
        }
        let added = model.keys().filter(|key| !before.contains_key(*key)).count();
        let removed = before.keys().filter(|key| !model.contains_key(*key)).count();
        let changes = changes.each_ref().map(|(key, value)| (&key[..], value.as_ref().map(|value| &value[..])));
        assert_eq!(cache.apply(&changes).unwrap(), (added, removed));
        let value = |key| model.get(&[key]).map(|value| value.to_vec());
        (0..40).for_each(|key| assert_eq!(cache.get(&[key]).unwrap(), value(key)));
    }
    assert_in_step(&cache);
}

#[test]
fn absent_keys_do_not_reach_the_store() {
    let store = TestStore::new(1);
    let cache = store.open(NOWHERE, 5000);
    put_all(&cache, 0..5000).unwrap();
    // A put did not ask the store whether its key was new, except for false positives.
    assert!(store.reads.swap(0, Relaxed) < 100);
    assert!((5000..105_000u32).all(|key| cache.get(&key.to_le_bytes()).unwrap().is_none()));
    let stats = cache.filter().stats();
    assert_eq!(stats.false_positives_recorded, store.reads.load(Relaxed));
    assert_eq!(stats.false_positives_recorded + stats.negatives_recorded, 100_000);
    assert!(stats.observed_false_positive_rate() < Some(0.002), "{stats:?}");

    // A key that looks like one of the store does not take its copy.
    let look_alike = (5000..).map(u32::to_le_bytes).find(|key| cache.filter().contains(key)).unwrap();
    assert!(!cache.delete(&look_alike).unwrap());
    assert!(cache.put(&look_alike, b"").unwrap());
    assert_in_step(&cache);
    // There is room for a quarter more keys than there are, whatever is asked for.
    cache.rebuild(1).unwrap();
    assert!(cache.filter().capacity() > 6250);
    store.hook(|_| panic!("a commit of nothing"));
    assert!(!cache.delete(KEY).unwrap());
}

#[test]
fn a_full_filter_fails_a_put_that_then_has_not_happened() {
    let store = TestStore::new(1);
    let cache = store.open(NOWHERE, 10);
    // Batches, the last of which fits in part.
    let full = (0..).find_map(|batch| put_all(&cache, 7 * batch..7 * batch + 7).err());
    assert!(matches!(full, Some(WriteError::Full(_))), "{full:?}");
    assert_eq!(store.state().unwrap().keys % 7, 0);
    assert_in_step(&cache);
    cache.rebuild(20).unwrap();
    assert!(cache.put(KEY, b"").unwrap());
    assert_in_step(&cache);
}

/// A write that fails in the store leaves nothing in the filter. If nobody knows the outcome, writes wait for a rebuild.
#[test]
fn after_a_failed_write_reads_are_right() {
    let errors: [(&str, Failure); 4] = [
        ("before apply", WriteError::NotApplied),
        ("before apply", WriteError::Unknown),
        ("after apply", WriteError::Unknown),
        ("after apply", |_| panic!("as told")),
    ];
    for (number, (step, error)) in errors.into_iter().enumerate() {
        let store = TestStore::new(1);
        let cache = store.open(NOWHERE, 100);
        cache.apply(&[(b"old", Some(b"1")), (b"other", Some(b"1"))]).unwrap();
        store.fail(step, error);
        let write = || cache.apply(&[(b"new", Some(b"")), (b"old", None)]).unwrap_err();
        assert_eq!(catch_unwind(AssertUnwindSafe(write)).is_ok(), number < 3);
        store.hook(|_| Ok(()));
        for (key, present) in [("new", number > 1), ("old", number < 2), ("other", true)] {
            assert_eq!(cache.get(key.as_bytes()).unwrap().is_some(), present, "{key}");
        }
        if number > 0 {
            assert!(matches!(cache.put(KEY, b""), Err(WriteError::OutOfStep)));
            assert!(cache.snapshot().unwrap_err().is::<WriteError>());
            cache.rebuild(100).unwrap();
        }
        assert_in_step(&cache);
        assert!(cache.put(KEY, b"").unwrap());
    }
}

/// A store with some keys, and the file of its snapshot.
fn saved() -> (TempDir, PathBuf, Arc<TestStore>) {
    let (directory, store) = (tempfile::tempdir().unwrap(), TestStore::new(1));
    let path = directory.path().join("filter");
    let cache = store.open(&path, 1000);
    change(&cache, 100, 1);
    cache.snapshot().unwrap();
    (directory, path, store)
}

fn assert_replayed(cache: &Cache, entries: u64) {
    assert_eq!(*cache.restored.as_ref().expect("a snapshot"), entries);
    assert_in_step(cache);
}

fn assert_scanned(cache: &Cache, because: &str) {
    let reason = format!("{:#}", cache.restored.as_ref().expect_err("a scan"));
    assert!(reason.contains(because), "{reason}");
    assert_in_step(cache);
}

#[test]
fn writers_of_the_same_keys_leave_one_copy_each_also_beside_snapshots_and_rebuilds() {
    let (_directory, path, store) = saved();
    for round in 0..20 {
        let (cache, done) = (&store.open(&path, 1000), &AtomicBool::new(false));
        thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    (0..).take_while(|_| !done.load(Relaxed)).for_each(|n| change(cache, 20, 3 * n + thread))
                });
            }
            (0..3).for_each(|_| if round % 2 == 0 { cache.snapshot() } else { cache.rebuild(1000) }.unwrap());
            done.store(true, Relaxed);
        });
        assert_in_step(cache);
        let reopened = store.open(&path, 1000);
        assert!(*reopened.restored.as_ref().expect("a snapshot") < store.sequence());
        assert_in_step(&reopened);
    }
}

/// Writers do not wait for a snapshot that has begun, and their changes are not in it.
#[test]
fn what_is_written_during_a_snapshot_comes_from_the_log() {
    let (_directory, path, store) = saved();
    let cache = store.open(&path, 1000);
    let (writer, before) = (Arc::downgrade(&cache), store.sequence());
    store.hook(move |at| {
        if at == "after announce" {
            change(&writer.upgrade().expect("a cache"), 100, 2);
        }
        Ok(())
    });
    cache.snapshot().unwrap();
    assert!(store.sequence() > before, "nothing was written during the snapshot");
    assert_replayed(&store.open(&path, 1000), store.sequence() - before);
}

/// Wherever the making of a snapshot ends, there is a usable one.
#[test]
fn a_snapshot_that_is_not_finished_leaves_one_that_can_be_used() {
    for step in ["before announce", "after announce", "before settle"] {
        let (_directory, path, store) = saved();
        let (cache, first) = (store.open(&path, 1000), store.sequence());
        change(&cache, 100, 2);
        store.fail(step, WriteError::NotApplied);
        cache.snapshot().expect_err("the store fails");
        let second = store.sequence();
        store.hook(|_| Ok(()));
        change(&cache, 100, 3);
        let reopened = store.open(&path, 1000);
        assert_replayed(&reopened, store.sequence() - if step == "before settle" { second } else { first });
        // The next snapshot is usable too.
        reopened.snapshot().unwrap();
        assert_eq!(store.state().unwrap().snapshots.len(), 1);
        assert_replayed(&store.open(&path, 1000), 0);
    }
}

#[test]
fn whatever_is_wrong_with_the_file_the_keys_are_scanned() {
    let (_directory, path, store) = saved();
    let reopen = |because| assert_scanned(&store.open(&path, 1000), because);
    let good = fs::read(&path).unwrap();
    // Cut anywhere, altered anywhere, or not there.
    for place in (0..good.len()).step_by(61).chain(0..128) {
        fs::write(&path, &good[..place]).unwrap();
        reopen("");
        let mut altered = good.clone();
        altered[place] ^= 1 << (place % 8);
        fs::write(&path, altered).unwrap();
        reopen("");
    }
    fs::remove_file(&path).unwrap();
    reopen("there is no snapshot");
    fs::write(&path, &good).unwrap();
    assert_replayed(&store.open(&path, 1000), 0);
    assert_scanned(&store.open(&path, 100_000), "too small");
    assert_scanned(&TestStore::new(2).open(&path, 1000), "another hasher");
}

/// Complete snapshots that the cache did not make, or that the log does not fit.
#[test]
fn a_snapshot_that_is_not_of_this_store_is_rejected() {
    let (_directory, path, store) = saved();
    let reopen = |because| assert_scanned(&store.open(&path, 1000), because);
    let (cache, sequence) = (store.open(&path, 1000), store.sequence());
    let filter = cache.filter();
    let save = || filter.begin_save().unwrap();
    let id = [7; 8];
    save().position(sequence).write_to_path(&path).unwrap();
    reopen("no id");
    save().attachment(id).write_to_path(&path).unwrap();
    reopen("no position");
    save().attachment(id).position(sequence).write_to_path(&path).unwrap();
    reopen("not of this store");
    store.announce(u64::from_le_bytes(id), sequence).unwrap();
    assert_replayed(&store.open(&path, 1000), 0);
    for (schema, rate, because) in [("others", FALSE_POSITIVE_RATE, "others"), (SCHEMA, 0.01, "not exact enough")] {
        let hasher = StableHashBuilder::with_key(store.state().unwrap().hash_key);
        let builder = Filter::builder_with_hasher(hasher).capacity(1000).false_positive_rate(rate).schema(schema);
        let filter = builder.build().unwrap();
        filter.begin_save().unwrap().attachment(id).position(sequence).write_to_path(&path).unwrap();
        reopen(because);
    }

    // The log lacks a change, does not fit, or has a gap.
    cache.snapshot().unwrap();
    store.apply(&[(b"past the cache", Some(b""))], &[], &[]).unwrap();
    reopen("do not come to the keys");
    store.apply(&[(b"past the cache", None)], &[], &[b"past the cache"]).unwrap();
    reopen("does not fit the filter");
    store.announce(u64::from_le_bytes(id), 0).unwrap();
    save().attachment(id).position(0).write_to_path(&path).unwrap();
    reopen("no entry 1");
}

/// The database is restored from a copy, and the snapshot is not. After the same number of changes, its sequence
/// would fit.
#[test]
fn a_snapshot_newer_than_a_restored_database_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let [database, copy, filter] = ["database", "copy", "filter"].map(|name| directory.path().join(name));
    let open =
        |database: &Path| Cache::open(Arc::new(RedbStore::open(database, 1 << 20).unwrap()), &filter, 1000).unwrap();
    let put_and_save = |key: &[u8]| {
        let cache = open(&database);
        cache.put(key, b"").unwrap();
        cache.snapshot().unwrap();
    };
    put_and_save(b"old");
    fs::copy(&database, &copy).unwrap();
    put_and_save(b"lost");
    for _ in 0..2 {
        let cache = open(&copy);
        assert_scanned(&cache, "not of its past");
        cache.put(b"new", b"").unwrap();
        assert!(cache.get(b"lost").unwrap().is_none());
    }
    assert!(open(&copy).get(b"new").unwrap().is_some());
}

#[test]
fn the_program_prints_a_table() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_db-cache"));
    let output = program.args(["--keys=3000", "--milliseconds=0"]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("| 512 MiB | present |"), "{table}");
}
