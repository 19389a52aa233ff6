//! Filter and store in step: with several threads, when the filter is full, and when the store fails.

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use db_cache::{Applied, Cache, CacheError, Change, MemoryStore, Opened, Options, RedbStore, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Fault, TestStore, assert_in_step};

fn memory() -> Cache<MemoryStore> {
    Cache::open(MemoryStore::new().expect("random bytes"), Options::new(1000)).expect("a cache")
}

/// Compares the cache with a map under random changes, in batches that may change a key several times.
fn agrees_with_a_map<S: Store>(cache: &Cache<S>, batches: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for _ in 0..batches {
        let changes: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..random.random_range(0..8))
            .map(|_| {
                let key = random.random_range(0..40u8).to_string().into_bytes();
                (key, random.random_bool(0.5).then(|| random.random::<u32>().to_string().into_bytes()))
            })
            .collect();
        let before = model.clone();
        for (key, value) in &changes {
            match value {
                Some(value) => drop(model.insert(key.clone(), value.clone())),
                None => drop(model.remove(key)),
            }
        }
        let as_changes: Vec<Change<'_>> = changes
            .iter()
            .map(|(key, value)| match value {
                Some(value) => Change::Put { key, value },
                None => Change::Delete { key },
            })
            .collect();
        let expected = Applied {
            added: model.keys().filter(|&key| !before.contains_key(key)).count(),
            removed: before.keys().filter(|&key| !model.contains_key(key)).count(),
        };
        assert_eq!(cache.apply(&as_changes).expect("room"), expected);
        assert_eq!(cache.filter().len(), model.len());
        for key in 0..40u8 {
            let key = key.to_string().into_bytes();
            assert_eq!(cache.get(&key).expect("a get"), model.get(&key).cloned());
        }
    }
    assert_in_step(cache);
}

#[test]
fn changes_agree_with_a_map() {
    agrees_with_a_map(&memory(), 2000, 1);
    let directory = tempfile::tempdir().expect("a directory");
    let store = RedbStore::open(&directory.path().join("map.redb"), 1 << 20).expect("a database");
    agrees_with_a_map(&Cache::open(store, Options::new(1000)).expect("a cache"), 100, 2);
}

#[test]
fn writers_of_the_same_keys_leave_one_copy_each() {
    let cache = memory();
    let (added, removed) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..4 {
            let (cache, added, removed) = (&cache, &added, &removed);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                for _ in 0..20_000 {
                    let key = [random.random_range(0..4u8)];
                    if random.random_bool(0.5) {
                        added.fetch_add(u64::from(cache.put(&key, b"value").expect("room")), Ordering::Relaxed);
                    } else {
                        removed.fetch_add(u64::from(cache.delete(&key).expect("no failure")), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_in_step(&cache);
    assert_eq!(added.into_inner() - removed.into_inner(), cache.filter().len() as u64);
}

/// At the moment of a commit, and so at any other moment, the filter has all that is in the store.
#[test]
fn at_each_commit_the_filter_has_every_key() {
    let store = TestStore::new();
    let cache = Arc::new(Cache::open(Arc::clone(&store), Options::new(1000)).expect("a cache"));
    let weak: Weak<Cache<Arc<TestStore>>> = Arc::downgrade(&cache);
    let commits = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&commits);
    store.after_commit(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let cache = weak.upgrade().expect("a cache");
        cache
            .store()
            .inner
            .for_each_key(&mut |key| {
                assert!(cache.filter().contains_hash(cache.filter().hasher().hash_bytes(key)), "it lacks {key:?}");
            })
            .expect("a scan");
    });
    let mut random = SmallRng::seed_from_u64(3);
    for _ in 0..500 {
        let key = [random.random_range(0..20u8)];
        if random.random_bool(0.5) {
            cache.put(&key, b"value").expect("room");
        } else {
            cache.delete(&key).expect("no failure");
        }
    }
    assert!(commits.load(Ordering::Relaxed) > 100);
    assert_in_step(&cache);
}

#[test]
fn a_get_after_a_put_finds_it() {
    let cache = Cache::open(MemoryStore::new().expect("random bytes"), Options::new(30_000)).expect("a cache");
    let (put, done) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = cache.reader();
                while !done.load(Ordering::Relaxed) {
                    let last = put.load(Ordering::Acquire);
                    if last > 0 {
                        let value = reader.get(&last.to_le_bytes()).expect("a get");
                        assert_eq!(value.as_deref(), Some(&b"value"[..]), "key {last}");
                    }
                }
            });
        }
        for key in 1..=20_000u64 {
            cache.put(&key.to_le_bytes(), b"value").expect("room");
            put.store(key, Ordering::Release);
            // The filter is exchanged meanwhile too.
            if key % 5000 == 0 {
                cache.rebuild(30_000).expect("room");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_in_step(&cache);
}

#[test]
fn absent_keys_do_not_reach_the_store() {
    let store = TestStore::new();
    let cache = Cache::open(Arc::clone(&store), Options::new(20_000)).expect("a cache");
    for key in 0..20_000u32 {
        cache.put(&key.to_le_bytes(), b"").expect("room");
    }
    // The puts did not even ask the store whether a key was new, except for false positives.
    let puts = store.reads.swap(0, Ordering::Relaxed);
    assert!(puts < 100, "{puts}");

    let mut reader = cache.reader();
    for key in 20_000..220_000u32 {
        assert_eq!(reader.get(&key.to_le_bytes()).expect("a get"), None);
    }
    drop(reader);
    let stats = cache.stats();
    assert_eq!(stats.false_positives_recorded, store.reads.load(Ordering::Relaxed));
    assert_eq!(stats.false_positives_recorded + stats.negatives_recorded, 200_000);
    let observed = stats.observed_false_positive_rate().expect("lookups");
    assert!((0.5..2.0).contains(&(observed / stats.false_positive_rate)), "{stats:?}");

    // Deletes of absent keys cost no transaction.
    store.after_commit(|| panic!("a commit of nothing"));
    let absent: Vec<[u8; 4]> = (20_000..20_100u32).map(u32::to_le_bytes).collect();
    let deletes: Vec<Change<'_>> = absent.iter().map(|key| Change::Delete { key }).collect();
    assert_eq!(cache.apply(&deletes).expect("no failure"), Applied { added: 0, removed: 0 });
}

#[test]
fn a_full_filter_refuses_a_put_that_then_has_not_happened() {
    let cache = Cache::open(MemoryStore::new().expect("random bytes"), Options::new(10)).expect("a cache");
    let mut number = 0u32;
    let full = loop {
        // A batch, some of which would still fit.
        let keys: Vec<[u8; 4]> = (number..number + 7).map(u32::to_le_bytes).collect();
        let changes: Vec<Change<'_>> = keys.iter().map(|key| Change::Put { key, value: b"" }).collect();
        match cache.apply(&changes) {
            Ok(_) => number += 7,
            Err(full) => break full,
        }
    };
    assert!(matches!(full, CacheError::Full(_)), "{full:?}");
    assert!(full.to_string().contains("nothing was written") && full.to_string().contains("larger"), "{full}");
    assert_eq!(cache.store().len(), Ok(u64::from(number)));
    assert_in_step(&cache);

    cache.rebuild(1000).expect("memory");
    assert_in_step(&cache);
    assert!(cache.put(b"one more", b"").expect("room"));
    assert_in_step(&cache);

    // A filter that is asked to be too small gets room for the keys that there are.
    let cache = Cache::open(cache.into_store(), Options::new(1)).expect("a cache");
    assert!(matches!(cache.opened(), Opened::Rebuilt { .. }));
    assert_in_step(&cache);
}

#[test]
fn a_write_that_the_store_refuses_leaves_nothing_in_the_filter() {
    let store = TestStore::new();
    let cache = Cache::open(Arc::clone(&store), Options::new(100)).expect("a cache");
    cache.put(b"old", b"1").expect("room");
    store.fail(Fault::NotApplied);
    let changes = [
        Change::Put { key: b"new", value: b"" },
        Change::Put { key: b"newer", value: b"" },
        Change::Delete { key: b"old" },
    ];
    let error = cache.apply(&changes).expect_err("the store fails");
    assert!(matches!(error, CacheError::Store(_)), "{error:?}");
    assert_in_step(&cache);
    assert_eq!(cache.apply(&changes).expect("room"), Applied { added: 2, removed: 1 });
    assert_in_step(&cache);
}

#[test]
fn after_a_commit_of_unknown_outcome_reads_are_right_and_writes_wait_for_a_rebuild() {
    for (fault, applied) in
        [(Fault::UnknownAndApplied, true), (Fault::UnknownAndNotApplied, false), (Fault::Panic, true)]
    {
        let store = TestStore::new();
        let directory = tempfile::tempdir().expect("a directory");
        let options = Options::new(100).snapshot(directory.path().join("filter"));
        let cache = Cache::open(Arc::clone(&store), options).expect("a cache");
        cache.put(b"old", b"1").expect("room");
        cache.put(b"other", b"1").expect("room");

        store.fail(fault);
        let changes = [Change::Put { key: b"new", value: b"" }, Change::Delete { key: b"old" }];
        if fault == Fault::Panic {
            catch_unwind(AssertUnwindSafe(|| cache.apply(&changes))).expect_err("a panic");
        } else {
            let error = cache.apply(&changes).expect_err("the store fails");
            assert!(matches!(error, CacheError::Unknown(_)), "{error:?}");
        }
        assert_eq!(cache.get(b"new").expect("a get").is_some(), applied);
        assert_eq!(cache.get(b"old").expect("a get").is_some(), !applied);
        assert!(cache.get(b"other").expect("a get").is_some());
        assert!(matches!(cache.put(b"more", b""), Err(CacheError::OutOfStep)));
        assert!(matches!(cache.snapshot(), Err(CacheError::OutOfStep)));
        assert_eq!(store.inner.get(b"more"), Ok(None));

        cache.rebuild(100).expect("memory");
        assert_in_step(&cache);
        assert!(cache.put(b"more", b"").expect("room"));
        assert_in_step(&cache);
    }
}

/// A reference to a cache can go to other threads, whatever the store.
#[test]
fn caches_are_shared() {
    static CACHE: OnceLock<Cache<MemoryStore>> = OnceLock::new();
    let cache = CACHE.get_or_init(memory);
    thread::spawn(|| cache.put(b"key", b"value").expect("room")).join().expect("no panic");
    assert!(cache.get(b"key").expect("a get").is_some());
}
