//! Readers, a writer, flushes and compactions at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::{exact, scratch, small};
use crate::fault::{Fault, Faults};
use crate::options::Strategy;
use crate::store::{Looks, Store};

/// Keys that are put once.
const PERMANENT: u64 = 400;
/// Keys whose values rise.
const RISING: usize = 40;
/// Keys that are put and deleted once, at the start.
const DELETED: u64 = 60;
const READERS: u64 = 2;

fn name(kind: &str, number: u64) -> Vec<u8> {
    format!("{kind} {number}").into_bytes()
}

/// The counts of one run.
#[derive(Debug, Default)]
struct Seen {
    gets: u64,
    looks: Looks,
    compactions: u64,
    /// The first wrong answer.
    wrong: Option<String>,
}

/// The hammer ends after this time at the latest.
const MOST: Duration = Duration::from_secs(30);

/// Lets all threads work until an answer is wrong, or until there were this many compactions and this many gets
/// that began again.
fn hammer(strategy: Strategy, faults: Faults, compactions: u64, again: u64) -> Seen {
    let directory = scratch();
    let store = Store::open_with(directory.path(), small(strategy), faults).unwrap();
    for number in 0..DELETED {
        store.put(&name("deleted", number), b"value").unwrap();
    }
    for number in 0..PERMANENT {
        store.put(&name("permanent", number), &number.to_le_bytes()).unwrap();
        if number % 50 == 0 {
            store.flush().unwrap();
        }
    }
    for number in 0..DELETED {
        store.delete(&name("deleted", number)).unwrap();
    }
    let committed: Vec<AtomicU64> = (0..RISING).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let end = Instant::now() + MOST;
    let ended = || stop.load(Ordering::Relaxed) || Instant::now() > end;
    let begun_again = AtomicU64::new(0);
    let mut seen = Seen::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 1.. {
                for (number, committed) in committed.iter().enumerate() {
                    store.put(&name("rising", number as u64), &u64::to_le_bytes(turn)).unwrap();
                    committed.store(turn, Ordering::Release);
                }
                if ended() {
                    return;
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let maintenance = scope.spawn(|| {
            let mut random = SmallRng::seed_from_u64(1);
            let mut compacted = 0;
            while !ended() && (compacted < compactions || begun_again.load(Ordering::Relaxed) < again) {
                store.flush().unwrap();
                let segments = store.segments().len();
                let length = random.random_range(1..=segments.min(4));
                let start = random.random_range(0..=segments - length);
                compacted += u64::from(store.compact(start..start + length).unwrap());
            }
            stop.store(true, Ordering::Relaxed);
            compacted
        });
        let readers: Vec<_> = (0..READERS)
            .map(|seed| {
                let (store, stop, committed, ended, begun_again) = (&store, &stop, &committed, &ended, &begun_again);
                scope.spawn(move || {
                    let mut seen = Seen::default();
                    let mut random = SmallRng::seed_from_u64(seed);
                    while !ended() {
                        begun_again.fetch_max(seen.looks.again, Ordering::Relaxed);
                        for _ in 0..200 {
                            seen.gets += 1;
                            seen.wrong = read(store, committed, &mut random, &mut seen.looks).err();
                            if seen.wrong.is_some() {
                                stop.store(true, Ordering::Relaxed);
                                return seen;
                            }
                        }
                    }
                    seen
                })
            })
            .collect();
        for reader in readers {
            let one = reader.join().unwrap();
            seen.gets += one.gets;
            seen.looks.again += one.looks.again;
            seen.wrong = seen.wrong.take().or(one.wrong);
        }
        seen.compactions = maintenance.join().unwrap_or(0);
    });
    seen
}

/// One get of a random key.
fn read(store: &Store, committed: &[AtomicU64], random: &mut SmallRng, looks: &mut Looks) -> Result<(), String> {
    let mut get = |key: &[u8]| store.get_counting(key, looks).unwrap();
    match random.random_range(0..10) {
        0..6 => {
            let number = random.random_range(0..PERMANENT);
            let value = get(&name("permanent", number));
            if value.as_deref() != Some(&number.to_le_bytes()) {
                return Err(format!("permanent key {number}: {value:?}"));
            }
        }
        6..9 => {
            let number = random.random_range(0..committed.len());
            let least = committed[number].load(Ordering::Acquire);
            let value =
                get(&name("rising", number as u64)).map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()));
            if value < least {
                return Err(format!("rising key {number}: {value} after {least}"));
            }
        }
        _ => {
            let number = random.random_range(0..DELETED);
            if get(&name("deleted", number)).is_some() {
                return Err(format!("deleted key {number}"));
            }
        }
    }
    Ok(())
}

#[test]
fn no_get_misses_a_key_while_segments_are_flushed_and_compacted() {
    for (strategy, again) in
        [(Strategy::Maplet, 3), (exact(10, &Arc::default()), 3), (Strategy::FilterEach, 0), (Strategy::Engine, 0)]
    {
        let seen = hammer(strategy.clone(), Faults::default(), 200, again);
        assert_eq!(seen.wrong, None, "{strategy:?}: {seen:?}");
        assert!(seen.gets > 1000 && seen.compactions >= 200, "{strategy:?}: {seen:?}");
        assert_eq!(seen.looks.again > 0, again > 0, "{strategy:?}: {seen:?}");
    }
}

#[test]
fn readers_notice_a_compaction_in_the_wrong_order() {
    let seen = hammer(exact(0, &Arc::default()), Faults::only(Fault::ReplaceBeforePublish), u64::MAX, 0);
    // A get misses a key that has been there all the time. The first missed key is a permanent one or a rising one.
    // The missing value of a rising key reads as 0.
    let missed = |wrong: &String| {
        (wrong.starts_with("permanent key") && wrong.ends_with(": None"))
            || (wrong.starts_with("rising key") && wrong.contains(": 0 after"))
    };
    assert!(seen.wrong.as_ref().is_some_and(missed), "{seen:?}");
}
