//! `cargo run --release -p db-cache`: gets of absent and present keys, with and without the filter.
//!
//! Both sides read from the same open database, through the same page cache. They take turns, and each ratio compares
//! two runs that follow each other. So other work of the machine affects both.

use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Parser;
use db_cache::{Cache, Change, RedbStore};
use example_support::machine::hardware_threads;
use example_support::option_values::{seconds_up_to, whole_number_in};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Compares gets of a database (redb) with and without a cuckoo filter in front of it.
#[derive(Debug, Parser)]
struct Arguments {
    /// How many keys the database has
    #[arg(long, default_value = "300_000", value_parser = whole_number_in(1..=1_000_000_000))]
    keys: usize,
    /// How long each of the 40 runs takes, in seconds
    #[arg(long, default_value = "0.3", value_parser = seconds_up_to(60.0))]
    seconds: Duration,
}

type Key = [u8; 16];
const VALUE: [u8; 100] = [b'v'; 100];
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bench.redb");
    let open = |mib: usize| {
        let store = RedbStore::open(&path, mib << 20)?;
        Cache::open(Arc::new(store), directory.path().join("bench.filter"), arguments.keys)
    };
    let mut random = SmallRng::seed_from_u64(getrandom::u64()?);
    let keys: Vec<Key> = (0..arguments.keys).map(|_| random.random()).collect();
    let cache = open(512)?;
    for some in keys.chunks(100_000) {
        cache.apply(&some.iter().map(|key| (&key[..], Some(&VALUE[..]))).collect::<Vec<Change<'_>>>())?;
    }
    cache.snapshot()?;
    let (filter, mib) = (cache.filter(), fs::metadata(&path)?.len() >> 20);
    drop(cache);
    let (kib, bits) = (filter.memory_usage() >> 10, filter.memory_usage() as f64 * 8.0 / keys.len() as f64);
    println!("{} keys in a file of {mib} MiB; a filter of {kib} KiB, {bits:.1} bits a key", keys.len());
    println!("thousand gets a second, on {} threads:\n", hardware_threads());
    println!("| redb's cache | keys | without filter | with filter | ratio (min to max) |\n|---|---|---|---|---|");
    let mut observed = 0.0;
    // Less cache than the database of the defaults, and more.
    for mib in [16, 512] {
        let cache = open(mib)?;
        // So that redb's cache is as full as it will get.
        keys.iter().try_for_each(|key| cache.store().get(key).map(drop))?;
        for (name, present) in [("absent", None), ("present", Some(&keys[..]))] {
            let mut rounds = [[0.0; 3]; ROUNDS];
            for round in &mut rounds {
                let without = thousand_gets(&|key| cache.store().get(key), present, arguments.seconds)?;
                let with = thousand_gets(&|key| cache.get(key), present, arguments.seconds)?;
                *round = [without, with, with / without];
            }
            let [without, with, ratio] = [0, 1, 2].map(|column| {
                let mut column = rounds.map(|round| round[column]);
                column.sort_by(f64::total_cmp);
                column
            });
            let [min, _, median, _, max] = ratio;
            println!(
                "| {mib} MiB | {name} | {:.0} | {:.0} | {median:.2} ({min:.2} to {max:.2}) |",
                without[2], with[2]
            );
        }
        observed = cache.filter().stats().observed_false_positive_rate().unwrap_or(0.0) * 100.0;
    }
    let expected = filter.false_positive_rate() * 100.0;
    println!("\nfalse positives: {observed:.4} % observed, {expected:.4} % expected; no answer was wrong");
    Ok(())
}

/// How many thousand gets of present keys, or of absent ones, all threads make in a second.
fn thousand_gets(
    get: &(dyn Fn(&[u8]) -> Result<Option<Vec<u8>>> + Sync),
    present: Option<&[Key]>,
    length: Duration,
) -> Result<f64> {
    let begin = Instant::now();
    let read = || -> Result<usize> {
        let (mut random, mut gets) = (SmallRng::seed_from_u64(getrandom::u64()?), 0);
        loop {
            let key = if let Some(keys) = present { keys[random.random_range(0..keys.len())] } else { random.random() };
            ensure!(get(&key)?.is_some() == present.is_some(), "a wrong answer: {key:?}");
            gets += 1;
            if gets % 64 == 0 && begin.elapsed() >= length {
                return Ok(gets);
            }
        }
    };
    let gets: Result<Vec<usize>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..hardware_threads()).map(|_| scope.spawn(read)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    Ok(gets?.iter().sum::<usize>() as f64 / begin.elapsed().as_secs_f64() / 1e3)
}
