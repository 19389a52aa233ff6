//! Processes that are killed, and start again from a snapshot and a log: `ci/nightly restarts`. Each restart must accept all
//! that was acknowledged before, although the filter was full, and other threads come in another order.
//!
//! The log is as the page `beyond_one_process` says: an insert is appended after the filter has accepted it and before it is
//! acknowledged, a removal before it is carried out. A save takes its position in the log between two changes.
#![cfg(all(feature = "snapshot", feature = "stable-hash", unix))]

use std::collections::HashSet;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter, GrowableCuckooFilter, Loader,
    RecentCuckooFilter, StableHashBuilder, Tick, WhenFull,
};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

const THREADS: usize = 4;
const LIMIT: usize = 40_000;
/// How many of the last keys a filter of recent ones holds.
const LAST: u64 = 2000;
/// The program's arguments, in its environment: the kind of its filter, its folder, and its seed.
const KIND: &str = "CCF_RESTARTS_KIND";
const KINDS: [&str; 7] = ["max_capacity", "memory_limit", "fixed", "maplet", "expiring", "recent", "limiter"];

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key([7; 16])
}

/// Saves the filter with this position in the log, to this file.
type Saves = dyn Fn(u64, &Path) + Sync;

/// What the program asks of a filter of any type.
struct Subject {
    /// Whether the program may insert while its other threads do. A growable filter says so itself.
    has_room: Box<dyn Fn() -> bool + Sync>,
    /// `None` if the filter refuses the key.
    insert: Box<dyn Fn(u64) -> Option<()> + Sync>,
    remove: Box<dyn Fn(u64) -> bool + Sync>,
    contains: Box<dyn Fn(u64) -> bool + Sync>,
    len: Box<dyn Fn() -> usize + Sync>,
    save: Box<Saves>,
    position: u64,
}

/// The program's filter, loaded from its snapshot if there is one.
fn open(kind: &str, snapshot: &Path) -> Subject {
    macro_rules! subject {
        ($Filter:ident, $new:expr, $filter:ident, $key:ident: $has_room:expr, $insert:expr, $remove:expr) => {
            subject!($Filter, $new, $filter, $key: $has_room, $insert, $remove, $filter.contains(&$key))
        };
        ($Filter:ident, $new:expr, $filter:ident, $key:ident: $has_room:expr, $insert:expr, $remove:expr, $contains:expr) => {{
            let loader = Loader::<$Filter<u64, _>, _>::new(hasher(), LIMIT);
            let (filter, position) = if snapshot.exists() {
                let loaded = loader.load_from_path(snapshot).expect("the snapshot is valid");
                (loaded.filter, loaded.position.expect("each save has one"))
            } else {
                ($new, 0)
            };
            let filter: &'static $Filter<u64, StableHashBuilder> = Box::leak(Box::new(filter));
            let $filter = filter;
            Subject {
                has_room: Box::new(move || $has_room),
                insert: Box::new(move |$key| $insert),
                remove: Box::new(move |$key| $remove),
                contains: Box::new(move |$key| $contains),
                len: Box::new(move || filter.len()),
                save: Box::new(move |at, path| filter.begin_save().unwrap().position(at).write_to_path(path).unwrap()),
                position,
            }
        }};
    }
    let end = Tick::new(9);
    match kind {
        "fixed" => {
            subject!(ConcurrentCuckooFilter, ConcurrentCuckooFilter::with_capacity_and_hasher(3000, hasher()), filter, key:
            filter.len() + THREADS <= filter.capacity(), filter.insert(&key).ok().map(drop), filter.remove(&key))
        }
        "maplet" => {
            subject!(CuckooMaplet, CuckooMaplet::builder_with_hasher(hasher()).capacity(2000).value_bits(4).build().unwrap(), filter, key:
            filter.len() + THREADS <= filter.capacity(), filter.insert(&key, key as u16 & 15).ok().map(drop), filter.remove(&key, key as u16 & 15))
        }
        "expiring" => subject!(ExpiringCuckooFilter, {
                let filter = ExpiringCuckooFilter::builder_with_hasher(hasher()).capacity(2000).lifetime_in_ticks(10).build().unwrap();
                filter.advance_to(Tick::new(1));
                filter
            }, filter, key:
            filter.len() + THREADS <= filter.capacity(), filter.insert_until(&key, end).ok().map(drop), filter.remove_expiring_at(&key, end)),
        "recent" => {
            subject!(RecentCuckooFilter, RecentCuckooFilter::builder_with_hasher(hasher()).last(LAST as usize).build().unwrap(), filter, key:
            true, { filter.insert_or_renew(&key); Some(()) }, filter.remove(&key))
        }
        "max_capacity" => {
            subject!(GrowableCuckooFilter, GrowableCuckooFilter::builder_with_hasher(hasher()).capacity(0).max_capacity(3000).memory_limit(LIMIT).build().unwrap(), filter, key:
            true, filter.insert(&key).ok(), filter.remove(&key))
        }
        "memory_limit" => {
            subject!(GrowableCuckooFilter, GrowableCuckooFilter::builder_with_hasher(hasher()).capacity(0).memory_limit(LIMIT).build().unwrap(), filter, key:
            true, filter.insert(&key).ok(), filter.remove(&key))
        }
        // One request of a key is what the limiter has to remember. (It is repaid in a day.)
        "limiter" => subject!(CuckooRateLimiter, {
                let builder = CuckooRateLimiter::builder_with_hasher(hasher()).allow(1, Duration::from_secs(86_400));
                builder.capacity(2000).when_full(WhenFull::Refuse).false_positive_rate(1.6e-8).build().unwrap()
            }, filter, key:
            filter.len() + THREADS <= filter.capacity(), filter.check(&key).ok(), filter.remove(&key), filter.peek(&key).remaining == 0),
        _ => unreachable!("{kind}"),
    }
}

/// A key whose insert begins when the log has so many entries. Its lowest bit is 0.
fn key_begun_at(len: u64, random: u64) -> u64 {
    len << 32 | random >> 32 & !1
}

fn begun_at(key: u64) -> u64 {
    key >> 32
}

/// An entry of the log is a key, and whether it was removed in the lowest bit.
fn entries(log: &Path) -> Vec<u64> {
    let bytes = fs::read(log).unwrap_or_default();
    bytes.chunks_exact(8).map(|entry| u64::from_le_bytes(entry.try_into().unwrap())).collect()
}

/// One life of the program, which ends when it is killed. It prints a line when it has started, and one when it is full.
#[test]
#[ignore = "the program that the other test starts"]
fn life() {
    let Ok(kind) = env::var(KIND) else { return };
    let argument = |name: &str| env::var(format!("{KIND}_{name}")).unwrap();
    let (folder, seed) = (argument("FOLDER"), argument("SEED").parse::<u64>().unwrap());
    let (snapshot, path) = (Path::new(&folder).join("snapshot"), Path::new(&folder).join("log"));
    let filter = &open(&kind, &snapshot);
    let log = entries(&path);
    // What the last life was writing when it was killed was not acknowledged.
    let file = OpenOptions::new().create(true).append(true).open(&path).unwrap();
    file.set_len(8 * log.len() as u64).unwrap();
    let present = log.iter().fold(HashSet::new(), |mut present, entry| {
        if entry & 1 == 0 {
            present.insert(*entry)
        } else {
            present.remove(&(entry - 1))
        };
        present
    });
    let keeps_all = kind != "recent";
    replay(filter, &log[filter.position as usize..], keeps_all, seed);
    let missing = present.iter().filter(|&&key| !(filter.contains)(key));
    if keeps_all {
        assert_eq!(missing.count(), 0, "{kind}, seed {seed}: a key is missing");
        assert_eq!((filter.len)(), present.len(), "{kind}, seed {seed}");
    } else {
        // The order of the log is not that of the inserts: a thread may be preempted after its insert, while others log
        // thousands. But what came after a key was logged after its insert began.
        let after = |key: u64| log.len() as u64 - begun_at(key);
        let least = missing.map(|&key| after(key)).min();
        assert!(least.is_none_or(|after| after > LAST), "{kind}, seed {seed}: {least:?} came after a missing key");
    }
    println!("\nstarted with {}", present.len());

    let mut own: Vec<Vec<u64>> = vec![Vec::new(); THREADS];
    let mut present: Vec<u64> = present.into_iter().collect();
    present.sort_unstable();
    present.into_iter().enumerate().for_each(|(nth, key)| own[nth % THREADS].push(key));
    let log = &Mutex::new((file, log.len() as u64));
    let append = |entry: u64| {
        let mut log = log.lock().unwrap();
        (&log.0).write_all(&entry.to_le_bytes()).unwrap();
        log.1 += 1;
        log.1
    };
    // A save begins between two changes.
    let changes = &RwLock::new(());
    thread::scope(|scope| {
        for (nth, mut own) in own.into_iter().enumerate() {
            let (append, snapshot) = (&append, &snapshot);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed << 8 | nth as u64);
                for number in 1.. {
                    let change = changes.read().unwrap();
                    let key = key_begun_at(log.lock().unwrap().1, random.random());
                    let inserted = if (filter.has_room)() { (filter.insert)(key) } else { None };
                    if inserted.is_some() {
                        append(key);
                        own.push(key);
                    }
                    if inserted.is_none() || (!keeps_all && number % 400 == 0) {
                        if number % 100 < 50 {
                            println!("full");
                        }
                        // Which recent keys are still there is not known, so none is removed.
                        for _ in 0..random.random_range(1..20).min(if keeps_all { own.len() } else { 0 }) {
                            let key = own.swap_remove(random.random_range(0..own.len()));
                            append(key + 1);
                            assert!((filter.remove)(key));
                        }
                    }
                    drop(change);
                    if random.random_ratio(1, 2000) {
                        let _all = changes.write().unwrap();
                        (filter.save)(log.lock().unwrap().1, snapshot);
                    }
                }
            });
        }
    });
}

/// Applies the log: its inserts in `any_order`, by several threads, up to each removal. (Which keys are recent depends on the order.)
fn replay(filter: &Subject, log: &[u64], any_order: bool, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let insert = |keys: &mut Vec<u64>, random: &mut SmallRng| {
        if any_order {
            keys.shuffle(random);
        }
        let all = |key: &u64| (filter.insert)(*key).unwrap_or_else(|| panic!("seed {seed}: {key} is refused again"));
        if keys.len() < 100 || !any_order {
            keys.iter().for_each(all);
        } else {
            thread::scope(|scope| {
                keys.chunks(keys.len().div_ceil(THREADS))
                    .for_each(|part| _ = scope.spawn(|| part.iter().for_each(all)));
            });
        }
        keys.clear();
    };
    let mut keys = Vec::new();
    for &entry in log {
        if entry & 1 == 0 {
            keys.push(entry);
        } else {
            insert(&mut keys, &mut random);
            (filter.remove)(entry - 1);
        }
    }
    insert(&mut keys, &mut random);
}

#[test]
#[ignore = "minutes; ci/nightly runs it"]
fn a_thousand_restarts_accept_what_was_acknowledged() {
    let lives = env::var("CCF_RESTARTS").map_or(1000, |lives| lives.parse::<u64>().expect("CCF_RESTARTS is a number"));
    let base = env::temp_dir().join(format!("restarts-{}", std::process::id()));
    for (nth, kind) in KINDS.into_iter().enumerate() {
        let folder = base.join(kind);
        fs::create_dir_all(&folder).unwrap();
        let mut most = 0;
        for seed in (0..lives).filter(|seed| seed % KINDS.len() as u64 == nth as u64) {
            let mut random = SmallRng::seed_from_u64(seed);
            let mut child = Command::new(env::current_exe().unwrap())
                .args(["--exact", "life", "--ignored", "--nocapture", "--test-threads=1"])
                .env(KIND, kind)
                .env(format!("{KIND}_FOLDER"), &folder)
                .env(format!("{KIND}_SEED"), seed.to_string())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let waits_for = if random.random_ratio(1, 4) { "started" } else { "full" };
            let mut seen = lines.inspect(|line| {
                if let Some(held) = line.strip_prefix("started with ") {
                    most = most.max(held.parse::<usize>().unwrap());
                }
            });
            assert!(seen.any(|line| line.starts_with(waits_for)), "{kind}, seed {seed}: it ended by itself");
            // The kill comes at some moment: this test is about all of them.
            thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        println!("{kind}: up to {most} keys");
    }
    fs::remove_dir_all(base).unwrap();
}
