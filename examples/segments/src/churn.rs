//! Writes, flushes and compacts until it is killed. Reports on standard output what it is about to do and what has
//! been done.
//!
//! Each report is one line, in one write:
//!
//! - `THREAD try put KEY VALUE` or `THREAD try delete KEY`, before the change is made;
//! - `THREAD done`, when it has been committed;
//! - `flushed`, `compacted`, `saved`.
//!
//! Each thread has keys of its own, so its lines are enough to know what became of them.

use std::io::{self, Write};
use std::thread;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use segments::{Options, Store};

use crate::arguments::Churn;
use crate::failure::Failure;

const KEYS: u32 = 400;

/// Few keys in memory and few segments, so that there is always something to do.
pub(crate) fn options(options: Options) -> Options {
    Options { most_segments: 8, merge: 3, memtable_keys: 20, capacity: 2000, ..options }
}

pub(crate) fn run(store: &Store, arguments: &Churn) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..arguments.threads {
            let random = SmallRng::seed_from_u64(arguments.seed.wrapping_mul(1000).wrapping_add(number as u64));
            let spawned = thread::Builder::new().spawn_scoped(scope, move || write(store, number, random));
            threads.push(spawned.map_err(Failure::Threads)?);
        }
        let mut random = SmallRng::seed_from_u64(arguments.seed);
        loop {
            if store.flush()? {
                say("flushed\n")?;
            }
            let segments = store.segments().len();
            let length = random.random_range(0..=segments.min(4));
            let start = random.random_range(0..=segments - length);
            if random.random_ratio(1, 2) && store.compact(start..start + length)? {
                say("compacted\n")?;
            }
            if random.random_ratio(1, 4) && store.save()? {
                say("saved\n")?;
            }
            if let Some(ended) = threads.iter().position(|thread| thread.is_finished()) {
                let ended = threads.swap_remove(ended).join();
                return ended.unwrap_or_else(|_| Err(Failure::Wrong("a thread has panicked".into())));
            }
        }
    })
}

fn write(store: &Store, thread: usize, mut random: SmallRng) -> Result<(), Failure> {
    loop {
        let key = format!("{thread}-{}", random.random_range(0..KEYS));
        if random.random_ratio(2, 3) {
            let value = random.random::<u32>().to_string();
            say(&format!("{thread} try put {key} {value}\n"))?;
            store.put(key.as_bytes(), value.as_bytes())?;
        } else {
            say(&format!("{thread} try delete {key}\n"))?;
            store.delete(key.as_bytes())?;
        }
        say(&format!("{thread} done\n"))?;
    }
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}
