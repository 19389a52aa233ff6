//! Inserts that fail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{Hashed, InsertError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::ours::{Fixed, default_5x14, growable};
use crate::times::Times;

/// How full the table is otherwise. The other threads always find room.
const LOAD: f64 = 0.5;

/// How many keys of its own a writer has in the table.
const HELD: usize = 64;

/// How many inserts are timed at most.
const MOST: u64 = 100_000;

fn insert(filter: &Fixed, hash: u64) -> Result<(), InsertError> {
    filter.by_hash().insert(Hashed(hash))
}

/// The times of inserts of an absent key, one after the other, while this many other threads insert and remove. Copies of
/// another key fill both its buckets.
///
/// No copy in these two buckets can be anywhere else. So a search ends at once. What takes time is making sure that there
/// was no room, while other threads take copies out all over the table.
pub(crate) fn beside_writers(bytes: usize, writers: usize, time: Duration) -> Times {
    eprintln!("beside {writers} writers");
    let filter = default_5x14(bytes);
    while insert(&filter, 0x1234_5678_9abc_def0).is_ok() {}
    let mut random = SmallRng::seed_from_u64(1);
    // Two buckets are full, so only a key with no other bucket fails for lack of room.
    let absent = loop {
        let hash = random.random();
        match insert(&filter, hash) {
            Ok(()) => assert!(filter.by_hash().remove(Hashed(hash)), "it was just inserted"),
            Err(InsertError::Full { .. }) => break hash,
            Err(_) => {} // it looks like the first key
        }
    };
    while filter.stats().load_factor < LOAD {
        _ = insert(&filter, random.random()); // it fails if it has the same two buckets
    }
    let (filter, ended, mut times) = (&filter, &AtomicBool::new(false), Times::default());
    thread::scope(|scope| {
        (0..writers as u64).for_each(|writer| _ = scope.spawn(move || write(filter, writer, ended)));
        let begin = Instant::now();
        while times.count() < MOST && begin.elapsed() < time {
            let answer = times.time(|| insert(filter, absent));
            assert!(matches!(answer, Err(InsertError::Full { .. })), "there is no room, and nothing else is wrong");
        }
        ended.store(true, Ordering::Relaxed);
    });
    times
}

fn write(filter: &Fixed, writer: u64, ended: &AtomicBool) {
    let mut random = SmallRng::seed_from_u64(writer << 32 | 1);
    let mut held = [None; HELD];
    while !ended.load(Ordering::Relaxed) {
        for place in &mut held {
            place.iter().for_each(|&hash| assert!(filter.by_hash().remove(Hashed(hash)), "it was inserted"));
            let hash = random.random();
            *place = insert(filter, hash).is_ok().then_some(hash);
        }
    }
}

/// The times of inserts into a table in which 30 in a row have failed. Nearly all of them fail.
pub(crate) fn in_a_full_table(bytes: usize, time: Duration) -> Times {
    let filter = default_5x14(bytes);
    where_most_fail(|hash| insert(&filter, hash).is_ok(), time)
}

/// The times of inserts into a filter that may grow no further, and holds as many keys as it may. All of them fail.
pub(crate) fn at_the_largest_size(bytes: usize, time: Duration) -> Times {
    let filter = growable().max_capacity(default_5x14(bytes).capacity()).build().expect("a valid filter");
    where_most_fail(|hash| filter.by_hash().insert(Hashed(hash)).is_ok(), time)
}

fn where_most_fail(insert: impl Fn(u64) -> bool, time: Duration) -> Times {
    let (mut random, mut failed_in_a_row) = (SmallRng::seed_from_u64(7), 0);
    while failed_in_a_row < 30 {
        failed_in_a_row = if insert(random.random()) { 0 } else { failed_in_a_row + 1 };
    }
    let (begin, mut times) = (Instant::now(), Times::default());
    while times.count() < MOST && begin.elapsed() < time {
        let hash = random.random();
        _ = times.time(|| insert(hash));
    }
    times
}
