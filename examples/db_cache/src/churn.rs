//! Writes until it is killed. Says on standard output what it is about to do and what has been committed.
//!
//! Each line is written in one write:
//!
//! - `THREAD try CHANGE;CHANGE;…`, before the changes are made, each `put KEY VALUE` or `delete KEY`;
//! - `THREAD done`, when the last changes of this thread have been committed;
//! - `snapshot`, when a snapshot has been stored.
//!
//! Each thread has keys of its own, whose state follows from its lines. All threads share some more keys, for which
//! they race.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use db_cache::{Cache, Change, RedbStore};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::arguments::Churn;
use crate::failure::Failure;

const OWN_KEYS: u32 = 300;
const SHARED_KEYS: u32 = 50;
const MOST_CHANGES: usize = 12;

pub(crate) fn run(cache: &Cache<RedbStore>, arguments: &Churn) -> Result<(), Failure> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for number in 0..arguments.threads {
            let random = SmallRng::seed_from_u64(arguments.seed.wrapping_mul(1000).wrapping_add(number as u64));
            let spawned = thread::Builder::new().spawn_scoped(scope, move || write(cache, number, random));
            threads.push(spawned.map_err(Failure::Threads)?);
        }
        loop {
            cache.snapshot()?;
            say("snapshot\n")?;
            thread::sleep(Duration::from_millis(arguments.snapshot_every));
            if let Some(ended) = threads.iter().position(|thread| thread.is_finished()) {
                let ended = threads.swap_remove(ended).join();
                return ended.unwrap_or_else(|_| Err(Failure::Wrong("a thread has panicked".into())));
            }
        }
    })
}

fn write(cache: &Cache<RedbStore>, thread: usize, mut random: SmallRng) -> Result<(), Failure> {
    loop {
        let changes: Vec<(String, Option<String>)> = (0..random.random_range(1..=MOST_CHANGES))
            .map(|_| {
                let key = if random.random_ratio(4, 5) {
                    format!("{thread}-{}", random.random_range(0..OWN_KEYS))
                } else {
                    format!("shared-{}", random.random_range(0..SHARED_KEYS))
                };
                let value = random.random_ratio(3, 5).then(|| random.random::<u32>().to_string());
                (key, value)
            })
            .collect();
        let mut line = format!("{thread} try ");
        for (key, value) in &changes {
            let _ = match value {
                Some(value) => write!(line, "put {key} {value};"),
                None => write!(line, "delete {key};"),
            };
        }
        line.push('\n');
        say(&line)?;
        let changes: Vec<Change<'_>> = changes
            .iter()
            .map(|(key, value)| {
                let key = key.as_bytes();
                match value {
                    Some(value) => Change::Put { key, value: value.as_bytes() },
                    None => Change::Delete { key },
                }
            })
            .collect();
        cache.apply(&changes)?;
        say(&format!("{thread} done\n"))?;
    }
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    Ok(out.flush()?)
}
