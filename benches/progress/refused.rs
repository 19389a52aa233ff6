//! Inserts that are refused, of a key whose two buckets are filled by copies of it and of a second key.
//!
//! No copy in these two buckets can be anywhere else. So a search ends at once. What takes time is making sure that
//! there was no room, while other threads take copies out all over the table. In a table that is full everywhere, the
//! searches themselves take time: [`Full`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError};

use crate::support::clock::Times;
use crate::support::keys::Random;
use crate::support::ours;

type Filter = ConcurrentCuckooFilter<u64, RandomState>;

/// How full the table is otherwise. The other threads always find room.
const LOAD: f64 = 0.5;

/// How many keys of its own a writer has in the table.
const HELD: usize = 64;

pub(crate) struct Refused {
    filter: Filter,
    /// The hash of a key that is refused.
    hash: u64,
}

impl Refused {
    pub(crate) fn new(bytes: usize) -> Self {
        let filter = empty(bytes);
        let (hash, other) = colliding(&filter);
        let room = 2 * filter.slots_per_bucket();
        for nth in 0..room {
            let hash = if nth % 2 == 0 { hash } else { other };
            filter.insert_hash(hash).expect("so many copies fill both buckets");
        }
        let mut random = Random(7);
        while filter.len() < (filter.slots() as f64 * LOAD) as usize {
            // It is refused if it has the same two buckets.
            _ = filter.insert_hash(random.next());
        }
        Self { filter, hash }
    }

    /// The times of the refused inserts, one after the other, while this many other threads insert and remove.
    pub(crate) fn run(&self, writers: u64, most: u64, time: Duration) -> Times {
        let ended = &AtomicBool::new(false);
        let mut times = Times::default();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..writers).map(|writer| scope.spawn(move || self.write(writer, ended))).collect();
            let begin = Instant::now();
            while times.count() < most && begin.elapsed() < time {
                let refused = times.time(|| self.filter.insert_hash(self.hash));
                assert!(matches!(refused, Err(InsertError::Full { .. })), "{refused:?}");
            }
            ended.store(true, Ordering::Relaxed);
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        });
        times
    }

    fn write(&self, writer: u64, ended: &AtomicBool) {
        let mut random = Random(writer << 32 | 1);
        let mut held = [None; HELD];
        while !ended.load(Ordering::Relaxed) {
            for place in &mut held {
                place.iter().for_each(|&hash| assert!(self.filter.remove_hash(hash), "it was inserted"));
                let hash = random.next();
                *place = self.filter.insert_hash(hash).is_ok().then_some(hash);
            }
        }
        held.into_iter().flatten().for_each(|hash| assert!(self.filter.remove_hash(hash), "it was inserted"));
    }
}

/// A table that is filled until it refuses nearly every key, and one thread.
pub(crate) struct Full {
    filter: Filter,
    random: Random,
}

impl Full {
    pub(crate) fn new(bytes: usize) -> Self {
        let filter = empty(bytes);
        let mut random = Random(7);
        let mut refused_in_a_row = 0;
        while refused_in_a_row < 30 {
            refused_in_a_row = if filter.insert_hash(random.next()).is_ok() { 0 } else { refused_in_a_row + 1 };
        }
        Self { filter, random }
    }

    /// The times of further inserts. Nearly all of them are refused.
    pub(crate) fn run(&mut self, most: u64, time: Duration) -> Times {
        let mut times = Times::default();
        let begin = Instant::now();
        while times.count() < most && begin.elapsed() < time {
            let hash = self.random.next();
            _ = times.time(|| self.filter.insert_hash(hash));
        }
        times
    }
}

/// An empty filter in the default layout, with a table of about this size.
fn empty(bytes: usize) -> Filter {
    ours::of_size(bytes, 5, |capacity| ours::builder().capacity(capacity).build().expect("a valid filter"))
}

/// The hashes of two keys that the filter, which is empty, distinguishes but puts into the same two buckets.
fn colliding(filter: &Filter) -> (u64, u64) {
    let hash = 0x1234_5678_9abc_def0;
    let copies = (0..).take_while(|_| filter.insert_hash(hash).is_ok()).count();
    let mut random = Random(1);
    // The two buckets are full. Only keys with no other bucket are refused.
    let other = loop {
        let other = random.next();
        match filter.insert_hash(other) {
            Ok(()) => assert!(filter.remove_hash(other), "it was just inserted"),
            Err(InsertError::Full { .. }) => break other,
            // It looks like the first key.
            Err(_) => {}
        }
    };
    (0..copies).for_each(|_| assert!(filter.remove_hash(hash), "so many were inserted"));
    (hash, other)
}
