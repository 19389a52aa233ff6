//! Tests that look inside the store.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::maintenance::Step;
use crate::store::Store;

const KEYS: u32 = 120;

/// A small store with many segments and many false positives.
fn small() -> Store {
    Store::with(0.06, 12, 200).unwrap()
}

/// Whether the maplet has one pair for each key, with the slot of the newest segment that has it, and no others. The
/// store has no sealed memtable.
fn is_exact(store: &Store) -> bool {
    let before = store.list.load_full();
    store.build_maplet(before.maplet.capacity()).unwrap();
    let built = store.list.load().maplet.digest().unwrap();
    store.list.store(before.clone());
    before.maplet.digest().unwrap() == built
}

/// All ways to take some of so many steps, each at most once.
fn arrangements(steps: usize) -> Vec<Vec<usize>> {
    let (mut all, mut next) = (vec![vec![]], 0);
    while let Some(order) = all.get(next).cloned() {
        all.extend((0..steps).filter(|step| !order.contains(step)).map(|step| [&order[..], &[step]].concat()));
        next += 1;
    }
    all
}

/// Six groups of four keys that the maplet of a small store can't tell apart.
fn look_alikes() -> Vec<[u8; 4]> {
    let maplet = Arc::clone(&small().list.load().maplet);
    let (mut numbers, mut keys) = ((0_u32..).map(u32::to_be_bytes), Vec::new());
    while keys.len() < 24 {
        let first = numbers.next().unwrap();
        maplet.insert(&first[..], 0).unwrap();
        keys.push(first);
        keys.extend(numbers.by_ref().filter(|key| maplet.contains(&key[..])).take(3));
        maplet.remove(&first[..], 0);
    }
    keys
}

/// Puts, deletes, flushes and compacts by these steps, and gets each key after each change. Says what is wrong first.
fn check(keys: &[[u8; 4]], order_of_flush: &[usize], order_of_compaction: &[usize]) -> Result<(), &'static str> {
    let (store, mut model, mut random) = (small(), BTreeMap::new(), SmallRng::seed_from_u64(0));
    let take = |steps: &[Step], order: &[usize], model: &BTreeMap<[u8; 4], Option<u8>>| {
        let wrong = Cell::new(false);
        let right = |(key, value): (&[u8; 4], &Option<u8>)| store.get(key).map(|value| value[0]) == *value;
        let changed = || wrong.set(wrong.get() || !model.iter().all(right));
        order.iter().for_each(|step| store.take(&steps[*step], changed).unwrap());
        if wrong.get() { Err("a get") } else { Ok(()) }
    };
    for turn in 0..100_u8 {
        for key in keys.iter().copied() {
            if random.random() {
                let value = random.random_ratio(1, 2).then_some(turn);
                value.map_or_else(|| store.delete(&key), |value| store.put(&key, &[value]));
                model.insert(key, value);
            }
        }
        store.seal();
        let before = store.segments().len();
        take(&store.steps_of_flush(), order_of_flush, &model)?;
        if store.segments().len() == before || !is_exact(&store) {
            return Err("the flush is not complete");
        }
        let segments = store.segments().len();
        if segments > 3 {
            let length = random.random_range(1..=3);
            let start = random.random_range(0..=segments - length);
            let inputs = store.list.load().segments[start..start + length].to_vec();
            take(&store.steps_of_compaction(start..start + length), order_of_compaction, &model)?;
            let listed = |input| store.list.load().segments.iter().any(|segment| Arc::ptr_eq(segment, input));
            if inputs.iter().any(listed) || !is_exact(&store) {
                return Err("the compaction is not complete");
            }
        }
    }
    store.compact(0..store.segments().len()).unwrap();
    let present = model.values().filter(|value| value.is_some()).count();
    if store.segments() != [present] || !is_exact(&store) {
        return Err("a deletion is left");
    }
    Ok(())
}

#[test]
fn each_key_is_right_between_any_two_changes_and_any_other_order_is_noticed() {
    let keys = look_alikes();
    for order in arrangements(4) {
        let result = check(&keys, &[0, 1, 2], &order);
        assert_eq!(result.is_ok(), order == [0, 1, 2, 3], "{order:?}: {result:?}");
        // If no step is left out, a get returns a wrong answer.
        assert!(order.len() < 4 || result.is_ok() || result == Err("a get"), "{order:?}: {result:?}");
    }
    for order in arrangements(3) {
        // The pairs of new keys and of others may change in any order, before the list.
        assert_eq!(check(&keys, &order, &[0, 1, 2, 3]).is_ok(), order.len() == 3 && order[2] == 2, "{order:?}");
    }
}

/// A get that does not load the list again misses a key in this test, too.
#[test]
fn no_get_misses_a_key_while_segments_are_flushed_and_compacted() {
    let (store, done) = (small(), AtomicUsize::new(0));
    // A value is never less than what was put before the get.
    let put = |key: u32, value: u64| store.put(&key.to_be_bytes(), &value.to_be_bytes());
    let least: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    (0..KEYS).for_each(|key| put(key, 0));
    let read = |seed| {
        let mut random = SmallRng::seed_from_u64(seed);
        for key in (0..100_000).map(|_| random.random_range(0..KEYS)) {
            let least = least[key as usize].load(Ordering::Acquire);
            let value = store.get(&key.to_be_bytes()).map(|value| u64::from_be_bytes((*value).try_into().unwrap()));
            if value.is_none_or(|value| value < least) {
                return Err((key, value, least));
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let readers = [1, 2].map(|seed| {
            scope.spawn({
                let (read, done) = (&read, &done);
                move || {
                    let result = read(seed);
                    done.fetch_add(1, Ordering::Relaxed);
                    result
                }
            })
        });
        let mut random = SmallRng::seed_from_u64(0);
        for value in (1..).take_while(|_| done.load(Ordering::Relaxed) < 2) {
            for key in (0..40).map(|_| random.random_range(0..KEYS)) {
                put(key, value);
                least[key as usize].store(value, Ordering::Release);
            }
            if store.flush().is_err() {
                store.compact(0..6).unwrap();
            }
            let segments = store.segments().len();
            let start = random.random_range(0..segments);
            assert!(store.compact(start..(start + 4).min(segments)).unwrap());
        }
        readers.into_iter().for_each(|reader| assert_eq!(reader.join().unwrap(), Ok(())));
    });
    store.flush().unwrap();
    assert!(is_exact(&store));
}

#[test]
fn pairs_that_fail_are_undone_and_a_larger_maplet_is_built() {
    let store = Store::new(20).unwrap();
    store.put(b"first", b"value");
    store.flush().unwrap();
    let maplet = Arc::clone(&store.list.load().maplet);
    let keys: Vec<_> = (0..200_u32).map(u32::to_be_bytes).collect();
    keys.iter().for_each(|key| store.put(key, b"value"));
    store.seal();
    assert!(store.take(&store.steps_of_flush()[0], || ()).is_err());
    assert!(maplet.len() == 1 && is_exact(&store), "{}", maplet.len());
    // A compaction leaves alone what a flush has failed to write.
    assert!(store.compact(0..1).unwrap());
    assert!(store.flush().unwrap());
    let larger = Arc::clone(&store.list.load().maplet);
    assert!(larger.len() == 201 && larger.capacity() > maplet.capacity() && is_exact(&store), "{larger:?}");
    assert!(keys.iter().all(|key| store.get(key).is_some()));
}
