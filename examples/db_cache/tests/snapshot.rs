//! Snapshot and log, and every way in which they can be unusable. The filter has each key once, whatever happens.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use concurrent_cuckoo_filter::LoadError;
use db_cache::{Cache, Filter, MemoryStore, Opened, Options, RebuildReason, RedbStore, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;

use crate::common::{Fault, TestStore, assert_in_step};

fn directory() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("filter");
    (directory, path)
}

fn open<S: Store>(store: S, path: &Path) -> Cache<S> {
    Cache::open(store, Options::new(1000).snapshot(path)).expect("a cache")
}

/// Random puts and deletes, one at a time.
fn change<S: Store>(cache: &Cache<S>, changes: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    for _ in 0..changes {
        let key = random.random_range(0..200u32).to_le_bytes();
        if random.random_bool(0.6) {
            cache.put(&key, b"value").expect("room");
        } else {
            cache.delete(&key).expect("no failure");
        }
    }
}

#[track_caller]
fn assert_replayed<S: Store>(cache: &Cache<S>, entries: u64) {
    assert!(
        matches!(cache.opened(), Opened::FromSnapshot { replayed, .. } if *replayed == entries),
        "{}",
        cache.opened()
    );
    assert_in_step(cache);
}

#[track_caller]
fn assert_rebuilt<S: Store>(cache: &Cache<S>, expected: fn(&RebuildReason) -> bool) {
    match cache.opened() {
        Opened::Rebuilt { reason, .. } => assert!(expected(reason), "{reason:?}"),
        other => panic!("{other}"),
    }
    assert_in_step(cache);
}

#[test]
fn a_snapshot_and_the_log_come_to_what_the_store_has() {
    let (_directory, path) = directory();
    let mut store = TestStore::new();
    for round in 0..5 {
        let cache = open(store, &path);
        if round > 0 {
            // All entries since the snapshot, and none before it.
            let sequence = cache.store().inner.sequence().expect("a number");
            let Opened::FromSnapshot { replayed, .. } = *cache.opened() else { panic!("{}", cache.opened()) };
            assert!(replayed > 0 && replayed < sequence, "{replayed} of {sequence}");
        }
        assert_in_step(&cache);
        change(&cache, 100, round);
        cache.snapshot().expect("a snapshot");
        change(&cache, 100, 100 + round);
        // No snapshot at the end, as after a crash.
        store = cache.into_store();
    }
}

#[test]
fn a_snapshot_taken_while_others_write_is_exact() {
    let (_directory, path) = directory();
    for round in 0..10 {
        let cache = open(TestStore::new(), &path);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..3 {
                let (cache, done) = (&cache, &done);
                scope.spawn(move || {
                    let mut seed = 1000 * round + 100 * thread;
                    while !done.load(Ordering::Relaxed) {
                        change(cache, 20, seed);
                        seed += 1;
                    }
                });
            }
            for _ in 0..5 {
                cache.snapshot().expect("a snapshot");
            }
            done.store(true, Ordering::Relaxed);
        });
        let reopened = open(cache.into_store(), &path);
        assert!(matches!(reopened.opened(), Opened::FromSnapshot { .. }), "{}", reopened.opened());
        assert_in_step(&reopened);
    }
}

/// Writers do not wait for a snapshot that has begun, and their changes are not in it.
#[test]
fn what_is_written_during_a_snapshot_comes_from_the_log() {
    let (_directory, path) = directory();
    let store = TestStore::new();
    let cache = Arc::new(open(Arc::clone(&store), &path));
    change(&cache, 100, 1);
    let before = store.inner.sequence().expect("a number");
    let weak = Arc::downgrade(&cache);
    store.after_announcement(move || change(&weak.upgrade().expect("a cache"), 100, 2));
    cache.snapshot().expect("a snapshot");
    let after = store.inner.sequence().expect("a number");
    assert!(after > before, "nothing was written during the snapshot");
    assert_in_step(&cache);
    drop(cache);
    assert_replayed(&open(store, &path), after - before);
}

/// Wherever the making of a snapshot ends, there is a usable one.
#[test]
fn a_snapshot_that_is_not_finished_leaves_one_that_can_be_used() {
    for fault in [Fault::Announce, Fault::AfterAnnounce, Fault::Settle] {
        let (_directory, path) = directory();
        let store = TestStore::new();
        let cache = open(Arc::clone(&store), &path);
        change(&cache, 100, 1);
        cache.snapshot().expect("a snapshot");
        let first = store.inner.sequence().expect("a number");
        change(&cache, 100, 2);
        store.fail(fault);
        cache.snapshot().expect_err("the store fails");
        let second = store.inner.sequence().expect("a number");
        change(&cache, 100, 3);
        let last = store.inner.sequence().expect("a number");
        drop(cache);
        let published = fault == Fault::Settle;
        let reopened = open(Arc::clone(&store), &path);
        assert_replayed(&reopened, last - if published { second } else { first });

        // The next snapshot is usable too.
        reopened.snapshot().expect("a snapshot");
        drop(reopened);
        assert_replayed(&open(Arc::clone(&store), &path), 0);
    }
}

#[test]
fn a_partial_file_that_is_left_over_does_no_harm() {
    let (directory, path) = directory();
    let cache = open(TestStore::new(), &path);
    change(&cache, 100, 1);
    cache.snapshot().expect("a snapshot");
    let partial = directory.path().join(".filter.0123456789abcdef.partial");
    fs::write(&partial, vec![7; 100_000]).expect("a file");
    let cache = open(cache.into_store(), &path);
    assert_replayed(&cache, 0);
    assert!(!partial.exists());
    cache.snapshot().expect("a snapshot");
    assert_replayed(&open(cache.into_store(), &path), 0);
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

#[test]
fn a_snapshot_that_cannot_be_written_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("no such directory").join("filter");
    let cache = open(TestStore::new(), &path);
    let error = cache.snapshot().expect_err("no such directory").to_string();
    assert!(error.contains("no such directory") && error.contains("can't be written"), "{error}");
    let cache = Cache::open(cache.into_store(), Options::new(10)).expect("a cache");
    let error = cache.snapshot().expect_err("no file").to_string();
    assert!(error.contains("Options::snapshot"), "{error}");
}

#[test]
fn whatever_is_wrong_with_the_file_the_keys_are_scanned() {
    let (_directory, path) = directory();
    let store = TestStore::new();
    let reopen = |expected| assert_rebuilt(&open(Arc::clone(&store), &path), expected);

    reopen(|reason| matches!(reason, RebuildReason::File(_)));
    let cache = open(Arc::clone(&store), &path);
    change(&cache, 300, 1);
    cache.snapshot().expect("a snapshot");
    change(&cache, 50, 2);
    drop(cache);
    let good = fs::read(&path).expect("a snapshot");

    // Cut anywhere, altered anywhere, or with bytes after it.
    for cut in (0..good.len()).step_by(97).chain(0..128) {
        fs::write(&path, &good[..cut]).expect("a file");
        reopen(|reason| matches!(reason, RebuildReason::Load(_)));
    }
    for byte in (0..good.len()).step_by(31).chain(0..128) {
        let mut altered = good.clone();
        altered[byte] ^= 1 << (byte % 8);
        fs::write(&path, altered).expect("a file");
        reopen(|reason| matches!(reason, RebuildReason::Load(_)));
    }
    let mut longer = good.clone();
    longer.push(0);
    fs::write(&path, longer).expect("a file");
    reopen(|reason| matches!(reason, RebuildReason::Load(LoadError::TrailingBytes { .. })));

    fs::write(&path, &good).expect("a file");
    let cache = open(Arc::clone(&store), &path);
    assert!(matches!(cache.opened(), Opened::FromSnapshot { .. }), "{}", cache.opened());
    assert_in_step(&cache);

    // A complete snapshot of the same filter that the cache did not make: without sequence or id, or with wrong ones.
    let filter = cache.filter();
    let save = || filter.begin_save().expect("memory");
    let sequence = store.inner.sequence().expect("a number");
    save().write_to_path(&path).expect("a file");
    reopen(|reason| matches!(reason, RebuildReason::Foreign));
    save().position(sequence).attachment([1; 7]).write_to_path(&path).expect("a file");
    reopen(|reason| matches!(reason, RebuildReason::Foreign));
    save().attachment([1; 8]).write_to_path(&path).expect("a file");
    reopen(|reason| matches!(reason, RebuildReason::Foreign));
    save().position(sequence).attachment([1; 8]).write_to_path(&path).expect("a file");
    reopen(|reason| matches!(reason, RebuildReason::Unannounced));
}

/// A snapshot of a filter with the same hash, but perhaps of other keys.
#[test]
fn a_snapshot_of_another_program_is_refused() {
    let (_directory, path) = directory();
    let cache = open(TestStore::new(), &path);
    let hasher = cache.filter().hasher().clone();
    Filter::with_capacity_and_hasher(2000, hasher).save_to_path(&path).expect("a file");
    assert_rebuilt(&open(cache.into_store(), &path), |reason| {
        matches!(reason, RebuildReason::Load(LoadError::OtherSchema { .. }))
    });
}

#[test]
fn a_snapshot_of_another_store_is_refused() {
    let (_directory, path) = directory();
    let cache = open(TestStore::new(), &path);
    change(&cache, 100, 1);
    cache.snapshot().expect("a snapshot");
    let other = open(TestStore::new(), &path);
    // Its hash has another key, which the probe in the snapshot shows.
    assert_rebuilt(&other, |reason| matches!(reason, RebuildReason::Load(_)));
}

#[test]
fn a_filter_too_small_for_what_is_asked_is_made_anew() {
    let (_directory, path) = directory();
    let store = TestStore::new();
    let cache = open(Arc::clone(&store), &path);
    change(&cache, 100, 1);
    cache.snapshot().expect("a snapshot");
    drop(cache);
    let mut options = Options::new(100_000).snapshot(&path);
    let larger = Cache::open(Arc::clone(&store), options.clone()).expect("a cache");
    assert_rebuilt(&larger, |reason| matches!(reason, RebuildReason::TooSmall));
    assert!(larger.filter().capacity() >= 100_000);
    options.capacity = 1000;
    options.false_positive_rate = 1e-6;
    let exacter = Cache::open(Arc::clone(&store), options).expect("a cache");
    assert_rebuilt(&exacter, |reason| matches!(reason, RebuildReason::TooSmall));
    assert!(exacter.filter().max_false_positive_rate() <= 1e-6);
}

/// The database is restored from a copy, and the snapshot is not. After the same number of changes, its sequence
/// would fit.
#[test]
fn a_snapshot_newer_than_a_database_put_back_is_refused() {
    let (directory, path) = directory();
    let (database, copy) = (directory.path().join("database"), directory.path().join("copy"));
    let open = || open(RedbStore::open(&database, 1 << 20).expect("a database"), &path);
    let cache = open();
    for key in 0..10u8 {
        cache.put(&[key], b"").expect("room");
    }
    cache.snapshot().expect("a snapshot");
    drop(cache);
    fs::copy(&database, &copy).expect("a copy");

    let cache = open();
    assert_replayed(&cache, 0);
    for key in 10..20u8 {
        cache.put(&[key], b"").expect("room");
    }
    cache.snapshot().expect("a snapshot");
    drop(cache);
    fs::copy(&copy, &database).expect("the copy back");

    let cache = open();
    assert_rebuilt(&cache, |reason| matches!(reason, RebuildReason::Unannounced));
    for key in 20..40u8 {
        cache.put(&[key], b"").expect("room");
    }
    drop(cache);
    let cache = open();
    assert_rebuilt(&cache, |reason| matches!(reason, RebuildReason::Unannounced));
    assert!(cache.get(&[30]).expect("a get").is_some() && cache.get(&[15]).expect("a get").is_none());
}

/// If a store has lost a part of its log, or was changed without its cache, the numbers show it.
#[test]
fn a_log_that_does_not_fit_is_found_out() {
    let (_directory, path) = directory();
    let cache = open(MemoryStore::new().expect("random bytes"), &path);
    change(&cache, 100, 1);
    cache.snapshot().expect("a snapshot");
    let store = cache.into_store();
    store.apply(&[db_cache::Change::Put { key: b"past the cache", value: b"" }], &[]).expect("no failure");
    let cache = open(store, &path);
    assert_rebuilt(&cache, |reason| matches!(reason, RebuildReason::Mismatch { .. }));
    assert!(cache.get(b"past the cache").expect("a get").is_some());
}
