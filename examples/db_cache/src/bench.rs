//! Gets of present and absent keys, with the filter and directly from the store, interleaved; and the table.
//!
//! Both sides read from the same open database, through the same page cache and in the same order. Each get is a
//! transaction of its own on either side. Each of the four combinations runs once in each round, and each ratio
//! compares two runs of one round. So other work of the machine affects all of them.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::Encoding;
use db_cache::{Cache, Change, RedbStore, Store};
use example_support::machine::hardware_threads;
use indicatif::{BinaryBytes, HumanCount};

use crate::arguments::{Arguments, Bench};
use crate::bulk::{BATCH, bar};
use crate::database::open;
use crate::failure::Failure;

/// How many gets there are between two looks at the clock.
const STRIDE: usize = 64;
const KEY_BYTES: usize = 16;

/// The key of a number: the number mixed, which spreads keys over the whole tree, and the number itself. So all keys
/// differ.
fn key(number: usize) -> [u8; KEY_BYTES] {
    let number = number as u64;
    // The finalizer of SplitMix64, which is a bijection.
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Which keys a run reads, and through what.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Turn {
    present: bool,
    filter: bool,
}

/// The order of the runs in even rounds. Odd rounds have the reverse order.
const TURNS: [Turn; 4] = [
    Turn { present: false, filter: false },
    Turn { present: false, filter: true },
    Turn { present: true, filter: false },
    Turn { present: true, filter: true },
];

pub(crate) fn run(bench: &Bench, arguments: &Arguments) -> Result<(), Failure> {
    let temporary;
    let path = if let Some(path) = &arguments.path {
        if path.exists() {
            return Err(Failure::Argument(format!(
                "'{}' exists, and the bench makes a database of its own; give --path a file that does not exist",
                path.display()
            )));
        }
        path
    } else {
        temporary = tempfile::tempdir().map_err(Failure::Temporary)?;
        &temporary.path().join("bench.redb")
    };

    let capacity = arguments.capacity.unwrap_or(bench.keys);
    let largest = arguments.cache_mibs().iter().copied().max().unwrap_or(1);
    let cache = open(path, largest, capacity, arguments.rate)?;
    fill(&cache, bench)?;
    cache.snapshot()?;
    describe(&cache, bench, path)?;
    drop(cache);

    let mut missed = 0;
    for &mib in arguments.cache_mibs() {
        let cache = open(path, mib, capacity, arguments.rate)?;
        missed += compare(&cache, bench, mib, arguments.rate)?;
    }
    if missed > 0 {
        return Err(Failure::Wrong(format!("{} gets of present keys found nothing", HumanCount(missed))));
    }
    Ok(())
}

/// Puts all keys.
fn fill(cache: &Cache<RedbStore>, bench: &Bench) -> Result<(), Failure> {
    let bar = bar(bench.keys as u64, "{human_pos} of {human_len} keys");
    let value = vec![b'v'; bench.value_bytes];
    let mut begin = 0;
    while begin < bench.keys {
        let end = bench.keys.min(begin + BATCH);
        let keys: Vec<_> = (begin..end).map(key).collect();
        let changes: Vec<_> = keys.iter().map(|key| Change::Put { key, value: &value }).collect();
        cache.apply(&changes)?;
        bar.set_position(end as u64);
        begin = end;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Writes what is measured: the database, the filter and the machine.
fn describe(cache: &Cache<RedbStore>, bench: &Bench, path: &Path) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let keys = cache.store().len().map_err(Failure::Store)?;
    let size = fs::metadata(path)?.len();
    writeln!(
        out,
        "database   redb, {} keys of {KEY_BYTES} bytes with values of {} bytes; a file of {}",
        HumanCount(keys),
        bench.value_bytes,
        BinaryBytes(size)
    )?;
    let filter = cache.filter();
    let encoding = match filter.encoding() {
        Encoding::Plain => "plain".to_owned(),
        Encoding::SemiSorted => "semi-sorted".to_owned(),
        other => format!("{other:?}"),
    };
    writeln!(
        out,
        "filter     {encoding}, {} slots a bucket, {}-bit fingerprints; room for {} keys, {} in memory, \
         {:.1} bits a key",
        filter.slots_per_bucket(),
        filter.fingerprint_bits(),
        HumanCount(filter.capacity() as u64),
        BinaryBytes(filter.memory_usage() as u64),
        filter.memory_usage() as f64 * 8.0 / keys as f64
    )?;
    writeln!(out, "machine    hardware threads: {}; reading: {}", hardware_threads(), bench.threads())?;
    writeln!(out)?;
    writeln!(out, "thousand gets per second                     without filter  with filter  ratio (min to max)")?;
    Ok(out.flush()?)
}

/// Reads in interleaved runs, and writes the rows for one size of redb's cache. Returns how many answers were wrong.
fn compare(cache: &Cache<RedbStore>, bench: &Bench, mib: usize, rate: f64) -> Result<u64, Failure> {
    let threads = bench.threads();
    let mut speeds: [Vec<f64>; 4] = Default::default();
    let mut wrong = 0;
    // So that redb's cache is as full as it will get.
    for number in 0..bench.keys {
        cache.store().get(&key(number)).map_err(Failure::Store)?;
    }
    // The first round does not count.
    for round in 0..=bench.rounds {
        let mut order = [0, 1, 2, 3];
        if round % 2 == 1 {
            order.reverse();
        }
        for turn in order {
            let done = take(cache, bench, threads, TURNS[turn], round)?;
            wrong += done.wrong;
            if round > 0 {
                speeds[turn].push(done.gets as f64 / done.elapsed.as_secs_f64() / 1e3);
            }
        }
    }

    let mut out = io::stdout().lock();
    writeln!(out, "redb's cache {mib} MiB; filter {}", cache.opened())?;
    for (name, without) in [("absent keys", 0), ("present keys", 2)] {
        let [without, with] = [&speeds[without], &speeds[without + 1]];
        let ratios: Vec<f64> = with.iter().zip(without).map(|(with, without)| with / without).collect();
        writeln!(
            out,
            "  {name:<40} {:>16.1} {:>12.1}  {:.2} ({:.2} to {:.2})",
            median(without),
            median(with),
            median(&ratios),
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max)
        )?;
    }
    let stats = cache.stats();
    let observed = stats.observed_false_positive_rate();
    writeln!(
        out,
        "  false positives   {} % observed ({} of {}), {:.4} % expected, {} % asked for",
        observed.map_or_else(|| "none".into(), |rate| format!("{:.4}", rate * 100.0)),
        HumanCount(stats.false_positives_recorded),
        HumanCount(stats.false_positives_recorded + stats.negatives_recorded),
        cache.filter().false_positive_rate() * 100.0,
        rate * 100.0,
    )?;
    writeln!(out, "  misses            {}", HumanCount(wrong))?;
    out.flush()?;
    Ok(wrong)
}

/// The result of a run.
struct Done {
    gets: u64,
    elapsed: Duration,
    wrong: u64,
}

/// One run, of all threads.
fn take(cache: &Cache<RedbStore>, bench: &Bench, threads: usize, turn: Turn, round: usize) -> Result<Done, Failure> {
    let barrier = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for thread in 0..threads {
            let barrier = &barrier;
            readers.push(scope.spawn(move || {
                barrier.wait();
                read(cache, bench, turn, thread * bench.keys / threads + round * 7919)
            }));
        }
        let begin = Instant::now();
        barrier.wait();
        let mut done = Done { gets: 0, elapsed: Duration::ZERO, wrong: 0 };
        for reader in readers {
            let Ok(counts) = reader.join() else {
                return Err(Failure::Wrong("a reading thread has panicked".into()));
            };
            let (gets, wrong) = counts?;
            done.gets += gets;
            done.wrong += wrong;
        }
        done.elapsed = begin.elapsed();
        Ok(done)
    })
}

/// One run, of one thread: how many gets it made, and how many of their answers were wrong.
fn read(cache: &Cache<RedbStore>, bench: &Bench, turn: Turn, first: usize) -> Result<(u64, u64), Failure> {
    let (base, count) = if turn.present { (0, bench.keys) } else { (bench.keys, bench.absent) };
    let mut reader = cache.reader();
    let (mut gets, mut wrong) = (0, 0);
    let mut number = first % count;
    let begin = Instant::now();
    loop {
        for _ in 0..STRIDE {
            let key = key(base + number);
            let value =
                if turn.filter { reader.get(&key)? } else { cache.store().get(&key).map_err(Failure::Store)? };
            let right = if turn.present { Some(bench.value_bytes) } else { None };
            wrong += u64::from(value.map(|value| value.len()) != right);
            number += 1;
            if number == count {
                number = 0;
            }
        }
        gets += STRIDE as u64;
        if begin.elapsed() >= bench.seconds {
            return Ok((gets, wrong));
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
