use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::maplet;
use crate::support::Ends;

/// How often each thread of a race does its part, at least. The race goes on until all have done so.
const ROUNDS: u64 = if cfg!(miri) { 3 } else { 1000 };

/// Keys with two values each: one that stays, and one that is replaced all the time.
///
/// A thread changes each key's second value from `v` to `v + 1`, again and again. Each lookup must find the value that
/// stays, and another one.
#[test]
fn values_that_change_all_the_time_hide_no_value_that_stays() {
    for (bits, rate) in [(4, 0.06), (4, 0.011), (8, 0.05), (12, 0.01), (16, 0.001)] {
        let maplet = maplet(600, bits, rate);
        let most = (1u32 << bits) - 1;
        // 0 stays. The other values wrap around to 1.
        let next = |value: u16| if u32::from(value) == most { 1 } else { value + 1 };
        let keys: Vec<u64> = (0..maplet.capacity() as u64 / 4).collect();
        for key in &keys {
            maplet.insert(key, 0).expect("there is room");
            maplet.insert(key, 1).expect("there is room");
        }
        let (done, replaced, filled) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let last = thread::scope(|threads| {
            let replacer = threads.spawn(|| {
                let _ends = Ends(&done);
                let mut value = 1;
                while !done.load(Ordering::Relaxed) {
                    for key in &keys {
                        assert_eq!(maplet.replace(key, value, next(value)), Ok(true), "its value was there");
                    }
                    value = next(value);
                    replaced.fetch_add(1, Ordering::Relaxed);
                }
                value
            });
            threads.spawn(|| {
                // Other keys come and go, so that the table is sometimes full, and items are relocated.
                let _ends = Ends(&done);
                let mut others = Vec::new();
                let mut other = 1 << 40;
                while !done.load(Ordering::Relaxed) {
                    while maplet.insert(&other, 0).is_ok() {
                        others.push(other);
                        other += 1;
                    }
                    others.drain(..others.len() / 2).for_each(|other| assert!(maplet.remove(&other, 0)));
                    filled.fetch_add(1, Ordering::Relaxed);
                }
                others.iter().for_each(|other| assert!(maplet.remove(other, 0)));
            });
            let (maplet, keys, done, replaced, filled) = (&maplet, &keys, &done, &replaced, &filled);
            let readers = [false, true].map(|batched| {
                threads.spawn(move || {
                    let check = |values: concurrent_cuckoo_filter::Values| {
                        assert!(values.contains(0), "a value that stays was missed");
                        assert!(values.len() > 1, "a value that is replaced was missed");
                    };
                    let others_lag = || {
                        [(replaced, ROUNDS), (filled, 3)]
                            .iter()
                            .any(|(done, least)| done.load(Ordering::Relaxed) < *least)
                    };
                    let mut rounds = 0;
                    while (rounds < ROUNDS || others_lag()) && !done.load(Ordering::Relaxed) {
                        rounds += 1;
                        if batched {
                            let mut found = Vec::new();
                            maplet.values_batch(keys, &mut found);
                            found.into_iter().for_each(check);
                        } else {
                            keys.iter().for_each(|key| check(maplet.values(key)));
                        }
                    }
                })
            });
            let ended = readers.map(|reader| reader.join());
            done.store(true, Ordering::Relaxed);
            ended.into_iter().for_each(|ended| ended.expect("no value was missed"));
            replacer.join().expect("no thread fails")
        });
        keys.iter().for_each(|key| assert!(maplet.remove(key, last) && maplet.remove(key, 0)));
        assert!(maplet.is_empty(), "{maplet:?}: what was removed was there, and nothing else is");
        assert!(maplet.stats().relocations > 0, "{maplet:?}: items were moved");
    }
}

/// Of all threads that add a value to a key without one, exactly one adds it. All other calls return that value.
#[test]
fn of_all_that_race_to_own_a_key_one_does_and_all_know() {
    const THREADS: u16 = 4;
    // They begin each round together. In a round, those behind only look up, and so come up with the first one.
    const ROUND: u64 = if cfg!(miri) { 10 } else { 2000 };
    const KEYS: u64 = ROUND * if cfg!(miri) { 2 } else { 100 };
    let maplet = maplet(KEYS as usize, 16, 0.001);
    let start = Barrier::new(THREADS.into());
    let told: Vec<Vec<Option<u16>>> = thread::scope(|threads| {
        let race = |own: u16| {
            let (maplet, start) = (&maplet, &start);
            move || {
                let owner = |key| {
                    if key % ROUND == 0 {
                        start.wait();
                    }
                    let found = maplet.insert_if_absent(&key, own).expect("there is room");
                    // A look-alike's value may also be returned. Then there are two values.
                    (found.len() <= 1).then(|| found.into_iter().next().unwrap_or(own))
                };
                (0..KEYS).map(owner).collect()
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|own| threads.spawn(race(own))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    });
    for key in 0..KEYS as usize {
        let owners: Vec<u16> = told.iter().filter_map(|told| told[key]).collect();
        assert!(owners.windows(2).all(|two| two[0] == two[1]), "key {key} has several owners: {owners:?}");
    }
    assert!(maplet.len() as u64 <= KEYS);
}

/// Two threads replace one value of a key again and again. Of two threads that replace the same value, exactly one
/// succeeds.
#[test]
fn a_value_is_replaced_once() {
    let maplet = maplet(100, 8, 0.001);
    maplet.insert(&1, 0).expect("there is room");
    let done = AtomicU64::new(0);
    let start = Barrier::new(2);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                start.wait();
                for _ in 0..200 * ROUNDS {
                    let values = maplet.values(&1);
                    assert_eq!(values.len(), 1, "the old one or the new one");
                    let old = values.into_iter().next().expect("there is one");
                    if maplet.replace(&1, old, (old + 1) % 256).expect("it has few bits") {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!((maplet.len(), maplet.values(&1).len()), (1, 1));
    let expected = (done.load(Ordering::Relaxed) % 256) as u16;
    assert!(maplet.values(&1).contains(expected), "each replacement has counted once");
}
