//! Filter and store in step: with several threads, when the filter is full, and when the store fails.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use db_cache::{Cache, Store, WriteError};
use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::common::{Failure, Owned, TestStore, apply, assert_in_step, change, lacking, put_all};

const KEY: &[u8] = b"key";

/// An empty store and its cache. There is no snapshot at that place, and none can be written there.
fn new(capacity: usize) -> (Arc<TestStore>, Arc<Cache>) {
    let store = TestStore::new();
    let cache = store.open(Path::new("/no such directory/filter"), capacity);
    (store, cache)
}

/// Counts the keys that the filter lacks right before and right after each commit.
fn watch(store: &TestStore, cache: &Arc<Cache>) -> Arc<AtomicU64> {
    let missing = Arc::new(AtomicU64::new(0));
    let (watched, count) = (Arc::downgrade(cache), missing.clone());
    store.hook(move |_| {
        count.fetch_add(lacking(&watched.upgrade().expect("a cache")), Relaxed);
        Ok(())
    });
    missing
}

#[test]
fn around_each_commit_the_filter_has_every_key() {
    let (store, cache) = new(100);
    let missing = watch(&store, &cache);
    change(&cache, 500, 1);
    assert!(store.state().unwrap().sequence > 100);
    assert_eq!(missing.load(Relaxed), 0);
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
    let (_, cache) = new(100);
    let mut random = SmallRng::seed_from_u64(1);
    let mut model = BTreeMap::new();
    for _ in 0..500 {
        let mut change = || (vec![random.random_range(0..40)], random.random_bool(0.5).then(|| vec![random.random()]));
        let changes: Vec<Owned> = (0..7).map(|_| change()).collect();
        let before = model.clone();
        for (key, value) in changes.clone() {
            match value {
                Some(value) => drop(model.insert(key, value)),
                None => drop(model.remove(&key)),
            }
        }
        let added = model.keys().filter(|&key| !before.contains_key(key)).count();
        let removed = before.keys().filter(|&key| !model.contains_key(key)).count();
        assert_eq!(apply(&cache, &changes).unwrap(), (added, removed));
        (0..40).for_each(|key| assert_eq!(cache.get(&[key]).unwrap(), model.get(&[key][..]).cloned()));
    }
    assert_in_step(&cache);
}

#[test]
fn a_rebuild_during_writes_misses_none() {
    let (_, cache) = new(100);
    for seed in 0..100 {
        thread::scope(|scope| {
            scope.spawn(|| change(&cache, 20, seed));
            (0..3).for_each(|_| cache.rebuild(100).unwrap());
        });
        assert_in_step(&cache);
    }
}

#[test]
fn absent_keys_do_not_reach_the_store() {
    let (store, cache) = new(5000);
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
fn a_full_filter_refuses_a_put_that_then_has_not_happened() {
    let (store, cache) = new(10);
    // Batches, the last of which fits in part.
    let full = (0..).find_map(|batch| put_all(&cache, 7 * batch..7 * batch + 7).err());
    assert!(matches!(full, Some(WriteError::Full(_))), "{full:?}");
    assert_eq!(store.state().unwrap().keys % 7, 0);
    assert_in_step(&cache);
    cache.rebuild(20).unwrap();
    assert!(cache.put(KEY, b"").unwrap());
    assert_in_step(&cache);
}

/// A write that the store refuses leaves nothing in the filter. If nobody knows the outcome, writes wait for a rebuild.
#[test]
fn after_a_failed_write_reads_are_right() {
    let errors: [(&str, Failure); 4] = [
        ("before apply", WriteError::NotApplied),
        ("before apply", WriteError::Unknown),
        ("after apply", WriteError::Unknown),
        ("after apply", |_| panic!("as told")),
    ];
    for (number, (step, error)) in errors.into_iter().enumerate() {
        let (store, cache) = new(100);
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

#[test]
fn the_program_prints_a_table() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_db-cache"));
    let output = program.args(["--keys", "3000", "--seconds", "0"]).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert!(table.contains("| 512 MiB | present |"), "{table}");
}
