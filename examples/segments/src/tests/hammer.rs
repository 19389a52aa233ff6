//! Readers, a writer, flushes and compactions at the same time.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{is_exact, small};
use crate::maintenance::Compaction;
use crate::store::{Store, Strategy};

/// All keys. Those from `PRESENT` on are deleted at the start, and the values of those below `RISING` rise.
const KEYS: usize = 460;
const PRESENT: usize = 400;
const RISING: usize = 40;

/// Two threads get at most this many keys each, until an answer is wrong, while others put, flush and compact. Returns
/// a key with a wrong answer. `compact` can wait until the two have got each key, most likely.
fn hammer(strategy: Strategy, gets: usize, compact: impl Fn(&Store, Range<usize>, &dyn Fn()) + Sync) -> Option<usize> {
    let store = Store::new(small(strategy)).unwrap();
    let put = |key: usize, value: u64| store.put(&key.to_be_bytes(), &value.to_be_bytes());
    for key in 0..KEYS {
        put(key, 0);
        if key % 50 == 0 {
            store.flush().unwrap();
        }
    }
    (PRESENT..KEYS).for_each(|key| store.delete(&key.to_be_bytes()));
    let least: Vec<_> = (0..PRESENT).map(|_| AtomicU64::new(0)).collect();
    let is_wrong = |key: &usize| {
        let least = least.get(*key).map(|least| least.load(Ordering::Acquire));
        let value = store.get(&key.to_be_bytes()).map(|value| u64::from_be_bytes((*value).try_into().unwrap()));
        // No value is less than any value.
        value < least || value.is_some() != least.is_some()
    };
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let stopped = || stop.load(Ordering::Relaxed);
    let all_are_got = || {
        let end = done.load(Ordering::Relaxed) + 20 * KEYS;
        while done.load(Ordering::Relaxed) < end && !stopped() {
            thread::yield_now();
        }
    };
    let wrong = thread::scope(|scope| {
        scope.spawn(|| {
            for value in (1..).take_while(|_| !stopped()) {
                for (key, least) in least[..RISING].iter().enumerate() {
                    put(key, value);
                    least.store(value, Ordering::Release);
                }
                thread::yield_now();
            }
        });
        scope.spawn(|| {
            let mut random = SmallRng::seed_from_u64(0);
            for _ in (0..).take_while(|compactions| !stopped() || *compactions < 100) {
                if store.flush().is_err() {
                    store.compact(0..6).unwrap();
                }
                let segments = store.segments().len();
                let length = random.random_range(1..=segments.min(4));
                let start = random.random_range(0..=segments - length);
                compact(&store, start..start + length, &all_are_got);
            }
        });
        let readers = [1, 2].map(|seed| {
            let (is_wrong, stopped, stop, done) = (&is_wrong, &stopped, &stop, &done);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                let mut keys = (0..gets).take_while(|_| !stopped()).map(|_| random.random_range(0..KEYS));
                let is_wrong = |key: &usize| {
                    done.fetch_add(1, Ordering::Relaxed);
                    is_wrong(key)
                };
                keys.find(is_wrong).inspect(|_| stop.store(true, Ordering::Relaxed))
            })
        });
        let wrong = readers.map(|reader| reader.join());
        stop.store(true, Ordering::Relaxed);
        wrong.into_iter().find_map(|wrong| wrong.unwrap())
    });
    store.flush().unwrap();
    assert!(wrong.is_some() || is_exact(&store));
    wrong
}

#[test]
fn no_get_misses_a_key_while_segments_are_flushed_and_compacted() {
    for strategy in [Strategy::Maplet, Strategy::FilterEach] {
        assert_eq!(
            hammer(strategy, 200_000, |store, run, _| assert!(store.compact(run).unwrap())),
            None,
            "{strategy:?}"
        );
    }
}

#[test]
fn readers_notice_a_compaction_in_the_wrong_order() {
    let wrong = hammer(Strategy::Maplet, 10_000_000, |store, run, all_are_got| {
        let compaction = Compaction::write(store, run).unwrap();
        compaction.move_pairs(all_are_got);
        compaction.list_beside_inputs(&|| ());
        compaction.unlist_inputs(&|| ());
        compaction.remove_pairs(&|| ());
    });
    assert!(wrong.is_some_and(|key| key < PRESENT), "{wrong:?}");
}
