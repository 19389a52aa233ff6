//! Snapshot and log, and every way in which they can be unusable. The filter has each key once, whatever happens.

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{fs, thread};

use concurrent_cuckoo_filter::StableHashBuilder;
use db_cache::cache::{FALSE_POSITIVE_RATE, SCHEMA};
use db_cache::{Cache, Filter, RedbStore, Store, WriteError};
use tempfile::TempDir;

use crate::common::{TestStore, assert_in_step, change};

/// A store with some keys, and the file of its snapshot.
fn saved() -> (TempDir, PathBuf, Arc<TestStore>) {
    let (directory, store) = (tempfile::tempdir().unwrap(), TestStore::new());
    let path = directory.path().join("filter");
    let cache = store.open(&path, 1000);
    change(&cache, 100, 1);
    cache.snapshot().unwrap();
    (directory, path, store)
}

fn sequence(store: &TestStore) -> u64 {
    store.state().unwrap().sequence
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
fn writers_of_the_same_keys_leave_one_copy_each_and_snapshots_meanwhile_are_exact() {
    let (_directory, path, store) = saved();
    for _ in 0..10 {
        let (cache, done) = (&store.open(&path, 1000), &AtomicBool::new(false));
        thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    (0..).take_while(|_| !done.load(Relaxed)).for_each(|n| change(cache, 20, 3 * n + thread))
                });
            }
            (0..3).for_each(|_| cache.snapshot().unwrap());
            done.store(true, Relaxed);
        });
        assert_in_step(cache);
        let reopened = store.open(&path, 1000);
        assert!(*reopened.restored.as_ref().expect("a snapshot") < sequence(&store));
        assert_in_step(&reopened);
    }
}

/// Writers do not wait for a snapshot that has begun, and their changes are not in it.
#[test]
fn what_is_written_during_a_snapshot_comes_from_the_log() {
    let (_directory, path, store) = saved();
    let cache = store.open(&path, 1000);
    let (writer, before) = (Arc::downgrade(&cache), sequence(&store));
    store.hook(move |at| {
        if at == "after announce" {
            change(&writer.upgrade().expect("a cache"), 100, 2);
        }
        Ok(())
    });
    cache.snapshot().unwrap();
    let entries = sequence(&store) - before;
    assert!(entries > 0, "nothing was written during the snapshot");
    assert_replayed(&store.open(&path, 1000), entries);
}

/// Wherever the making of a snapshot ends, there is a usable one.
#[test]
fn a_snapshot_that_is_not_finished_leaves_one_that_can_be_used() {
    for step in ["before announce", "after announce", "before settle"] {
        let (_directory, path, store) = saved();
        let (cache, first) = (store.open(&path, 1000), sequence(&store));
        change(&cache, 100, 2);
        store.fail(step, WriteError::NotApplied);
        cache.snapshot().expect_err("the store fails");
        let second = sequence(&store);
        store.hook(|_| Ok(()));
        change(&cache, 100, 3);
        let reopened = store.open(&path, 1000);
        assert_replayed(&reopened, sequence(&store) - if step == "before settle" { second } else { first });
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
    // Cut anywhere, altered anywhere, with bytes after it, or not there.
    for place in (0..good.len()).step_by(61).chain(0..128) {
        fs::write(&path, &good[..place]).unwrap();
        reopen("");
        let mut altered = good.clone();
        altered[place] ^= 1 << (place % 8);
        fs::write(&path, altered).unwrap();
        reopen("");
    }
    fs::write(&path, [&good[..], &[0]].concat()).unwrap();
    reopen("");
    fs::remove_file(&path).unwrap();
    reopen("there is no snapshot");
    fs::write(&path, &good).unwrap();
    assert_replayed(&store.open(&path, 1000), 0);
    assert_scanned(&store.open(&path, 100_000), "too small");
    assert_scanned(&TestStore::with_hash_key([2; 16]).open(&path, 1000), "another hasher");
}

/// Complete snapshots that the cache did not make, or that the log does not fit.
#[test]
fn a_snapshot_that_is_not_of_this_store_is_refused() {
    let (_directory, path, store) = saved();
    let reopen = |because| assert_scanned(&store.open(&path, 1000), because);
    let (cache, sequence) = (store.open(&path, 1000), sequence(&store));
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
fn a_snapshot_newer_than_a_database_put_back_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let [database, copy, filter] = ["database", "copy", "filter"].map(|name| directory.path().join(name));
    let open =
        |database: &Path| Cache::open(Arc::new(RedbStore::open(database, 1 << 20).unwrap()), &filter, 1000).unwrap();
    let cache = open(&database);
    cache.put(b"old", b"").unwrap();
    cache.snapshot().unwrap();
    drop(cache);
    fs::copy(&database, &copy).unwrap();

    let cache = open(&database);
    cache.put(b"lost", b"").unwrap();
    cache.snapshot().unwrap();

    let cache = open(&copy);
    assert_scanned(&cache, "not of its past");
    cache.put(b"new", b"").unwrap();
    drop(cache);
    let cache = open(&copy);
    assert_scanned(&cache, "not of its past");
    assert!(cache.get(b"new").unwrap().is_some() && cache.get(b"lost").unwrap().is_none());
}
