//! Filter and store in step: with several threads, when the filter is full, when the store fails, and across snapshots.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use db_cache::{Cache, Change, Logged, RedbStore, State, Store, WriteError};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use redb::{Database, TableDefinition, backends::InMemoryBackend};

const KEY: &[u8] = b"key";

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
    fn new() -> Arc<Self> {
        const HASH_KEY: TableDefinition<'_, (), [u8; 16]> = TableDefinition::new("hash key");
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(HASH_KEY).unwrap().insert((), [1; 16]).unwrap();
        transaction.commit().unwrap();
        let redb = RedbStore::new(database).unwrap();
        Arc::new(Self { redb, reads: AtomicU64::new(0), hook: Mutex::new(Arc::new(|_| Ok(()))) })
    }

    fn open(self: &Arc<Self>, capacity: usize) -> Arc<Cache> {
        Arc::new(Cache::open(self.clone(), capacity).unwrap())
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
        self.redb.state().unwrap().sequence
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
        let state = self.redb.state()?;
        self.at("after state")?;
        Ok(state)
    }

    fn snapshot(&self) -> Result<Option<Vec<u8>>> {
        self.redb.snapshot()
    }

    fn keep_snapshot(&self, snapshot: &[u8], sequence: u64) -> Result<()> {
        self.at("before snapshot")?;
        self.redb.keep_snapshot(snapshot, sequence)
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
    let store = TestStore::new();
    let cache = store.open(100);
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
    let (cache, mut model) = (TestStore::new().open(100), BTreeMap::new());
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
    let store = TestStore::new();
    let cache = store.open(5000);
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
    let store = TestStore::new();
    let cache = store.open(10);
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
        let store = TestStore::new();
        let cache = store.open(100);
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

/// A store with some keys and a snapshot.
fn saved() -> Arc<TestStore> {
    let store = TestStore::new();
    let cache = store.open(1000);
    change(&cache, 100, 1);
    cache.snapshot().unwrap();
    store
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
    let store = saved();
    for round in 0..20 {
        let (cache, done) = (&store.open(1000), &AtomicBool::new(false));
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
        let reopened = store.open(1000);
        assert!(*reopened.restored.as_ref().expect("a snapshot") < store.sequence());
        assert_in_step(&reopened);
    }
}

/// Writers do not wait for a snapshot that has begun, and their changes are not in it. If it is not kept, the one before
/// it is still there, with its log.
#[test]
fn what_is_written_after_a_snapshot_has_begun_comes_from_the_log() {
    for fails in [false, true] {
        let store = saved();
        let (cache, first) = (store.open(1000), store.sequence());
        change(&cache, 100, 2);
        let second = store.sequence();
        let [begun, done] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (begins, is_done) = (begun.clone(), done.clone());
        store.hook(move |at| {
            let wait = || thread::sleep(Duration::from_millis(1));
            match at {
                // Writers wait until the save has begun. If they did not, there would be time enough for them.
                "after state" => {
                    begins.store(true, Relaxed);
                    (0..50).take_while(|_| !is_done.load(Relaxed)).for_each(|_| wait());
                }
                "before snapshot" => {
                    (0..).take_while(|_| !is_done.load(Relaxed)).for_each(|_| wait());
                    return if fails { Err(WriteError::NotApplied(anyhow!("as told"))) } else { Ok(()) };
                }
                _ => {}
            }
            Ok(())
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                while !begun.load(Relaxed) {
                    thread::yield_now();
                }
                change(&cache, 100, 3);
                done.store(true, Relaxed);
            });
            assert_eq!(cache.snapshot().is_err(), fails);
        });
        assert!(store.sequence() > second, "nothing was written during the snapshot");
        store.hook(|_| Ok(()));
        assert_replayed(&store.open(1000), store.sequence() - if fails { first } else { second });
        cache.snapshot().unwrap();
        assert_replayed(&store.open(1000), 0);
    }
}

#[test]
fn whatever_is_wrong_with_the_snapshot_the_keys_are_scanned() {
    let store = saved();
    let reopen = |because| assert_scanned(&store.open(1000), because);
    let (cache, sequence) = (store.open(1000), store.sequence());
    let keep = |snapshot: &[u8]| store.keep_snapshot(snapshot, 0).unwrap();
    let good = store.snapshot().unwrap().unwrap();
    keep(&good[..good.len() / 2]);
    reopen("");
    let mut snapshot = Vec::new();
    cache.filter().begin_save().unwrap().write_to(&mut snapshot).unwrap();
    keep(&snapshot);
    reopen("no position");
    keep(&good);
    assert_replayed(&store.open(1000), 0);
    assert_scanned(&store.open(100_000), "too small");

    // The log lacks a change, does not fit, or has a gap.
    store.apply(&[(b"past the cache", Some(b""))], &[], &[]).unwrap();
    reopen("do not come to the keys");
    store.apply(&[(b"past the cache", None)], &[], &[b"past the cache"]).unwrap();
    reopen("does not fit the filter");
    store.apply(&[(KEY, Some(b""))], &[KEY], &[]).unwrap();
    store.keep_snapshot(&good, sequence + 2).unwrap();
    reopen("does not fit the filter");
}

#[test]
fn the_program_prints_a_table() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_db-cache"));
    let output = program.args(["--keys=3000", "--milliseconds=0"]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("| 512 MiB | present |"), "{table}");
}
