//! `cargo run --release -p db-cache`: gets of absent and present keys, with and without the filter. Both sides read from
//! the same open database and take turns, so that other work of the machine affects both.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Result, ensure};
use clap::Parser;
use db_cache::{Cache, Change, RedbStore};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Compares gets of a database (redb) with and without a cuckoo filter in front of it.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many keys the database has
    #[arg(long, default_value_t = 300_000)]
    keys: usize,
    /// How many milliseconds each of the 40 runs takes
    #[arg(long, default_value_t = 300)]
    milliseconds: u64,
}

type Key = [u8; 16];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    ensure!(arguments.keys > 0, "--keys=0: give the database at least one key");
    let length = Duration::from_millis(arguments.milliseconds);
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.redb");
    let open = |mib: usize| {
        let store = RedbStore::open(&path, mib << 20)?;
        Cache::open(Arc::new(store), arguments.keys)
    };
    let mut random = SmallRng::seed_from_u64(getrandom::u64()?);
    let keys: Vec<Key> = (0..arguments.keys).map(|_| random.random()).collect();
    let cache = open(512)?;
    for some in keys.chunks(100_000) {
        cache.apply(&some.iter().map(|key| (&key[..], Some(&[b'v'; 100][..]))).collect::<Vec<Change<'_>>>())?;
    }
    cache.snapshot()?;
    let (filter, mib) = (cache.filter(), fs::metadata(&path)?.len() >> 20);
    drop(cache);
    let (kib, bits) = (filter.stats().memory_usage >> 10, filter.stats().memory_usage as f64 * 8.0 / keys.len() as f64);
    println!("{} keys in a file of {mib} MiB; a filter of {kib} KiB, {bits:.1} bits a key", keys.len());
    println!("thousand gets a second, on {} threads:\n", available_parallelism()?);
    println!("| redb's cache | keys | without filter | with filter | ratio (min to max) |\n|---|---|---|---|---|");
    // Less cache than the database of the defaults, and more.
    for mib in [16, 512] {
        let cache = open(mib)?;
        // So that redb's cache is as full as it will get.
        keys.iter().try_for_each(|key| cache.store.get(key).map(drop))?;
        for (name, present) in [("absent", None), ("present", Some(&keys[..]))] {
            let mut rounds = [[0.0; 3]; 5];
            for round in &mut rounds {
                let without = thousand_gets(&cache, false, present, length)?;
                let with = thousand_gets(&cache, true, present, length)?;
                *round = [without, with, with / without];
            }
            let [[_, _, without, _, _], [_, _, with, _, _], [min, _, ratio, _, max]] = [0, 1, 2].map(|column| {
                let mut column = rounds.map(|round| round[column]);
                column.sort_by(f64::total_cmp);
                column
            });
            println!("| {mib} MiB | {name} | {without:.0} | {with:.0} | {ratio:.2} ({min:.2} to {max:.2}) |");
        }
    }
    Ok(())
}

/// How many thousand gets of present keys, or of absent ones, all threads make in a second.
fn thousand_gets(cache: &Cache, with_filter: bool, present: Option<&[Key]>, length: Duration) -> Result<f64> {
    let begin = Instant::now();
    let read = || -> Result<usize> {
        let (mut random, mut gets) = (SmallRng::seed_from_u64(getrandom::u64()?), 0);
        loop {
            let key = if let Some(keys) = present { keys[random.random_range(0..keys.len())] } else { random.random() };
            let value = if with_filter { cache.get(&key)? } else { cache.store.get(&key)? };
            ensure!(value.is_some() == present.is_some(), "a wrong answer: {key:?}");
            gets += 1;
            if gets % 64 == 0 && begin.elapsed() >= length {
                return Ok(gets);
            }
        }
    };
    let gets: Result<Vec<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..available_parallelism()?.get()).map(|_| scope.spawn(read)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    Ok(gets?.iter().sum::<usize>() as f64 / begin.elapsed().as_secs_f64() / 1e3)
}
