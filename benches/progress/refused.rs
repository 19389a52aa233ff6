//! Inserts that are refused, of an absent key whose two buckets are filled by copies of two other keys.
//!
//! No copy in these two buckets can be anywhere else. So a search ends at once. What takes time is making sure that
//! there was no room, while other threads take copies out all over the table. In a table that is full everywhere, the
//! searches themselves take time: [`Full`].

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter, GrowableInsertError, Hashed};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::support::clock::Times;
use crate::support::hash::HASH;
use crate::support::ours;

type Filter = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;

/// How full the table is otherwise. The other threads always find room.
const LOAD: f64 = 0.5;

/// How many keys of its own a writer has in the table.
const HELD: usize = 64;

/// A filter that keys can be removed from.
pub(crate) trait Removable: Sync {
    fn load(&self) -> f64;
    fn insert(&self, hash: u64) -> Result<(), GrowableInsertError>;
    fn remove(&self, hash: u64) -> bool;
}

macro_rules! removable {
    ($($Filter:ty),+) => {$(
        impl Removable for $Filter {
            fn load(&self) -> f64 {
                self.stats().load_factor
            }

            fn insert(&self, hash: u64) -> Result<(), GrowableInsertError> {
                self.by_hash().insert(Hashed(hash)).map_err(Into::into)
            }

            fn remove(&self, hash: u64) -> bool {
                self.by_hash().remove(Hashed(hash))
            }
        }
    )+};
}
removable!(Filter, Growable);

/// An insert of a key. Returns whether it was refused because there was no room.
pub(crate) type Insert<F> = fn(&F, hash: u64) -> bool;

fn no_room(error: &GrowableInsertError) -> bool {
    matches!(error, GrowableInsertError::Full { .. } | GrowableInsertError::MemoryLimit { .. })
}

fn for_want_of_room<T>(answer: Result<T, impl Into<GrowableInsertError>>) -> bool {
    answer.is_err_and(|error| no_room(&error.into()))
}

/// What a filter has of inserts.
pub(crate) const INSERTS: [(&str, Insert<Filter>); 3] = [
    ("`insert`", |filter, hash| for_want_of_room(filter.by_hash().insert(Hashed(hash)))),
    ("`insert_if_absent`", |filter, hash| for_want_of_room(filter.by_hash().insert_if_absent(Hashed(hash)))),
    ("a batch of one key", |filter, hash| {
        filter.by_hash().insert_batch([Hashed(hash)]).is_err_and(|refused| no_room(&refused.error.into()))
    }),
];

pub(crate) const GROWABLE_INSERTS: [(&str, Insert<Growable>); 2] = [
    ("`insert` into a growable filter", |filter, hash| for_want_of_room(filter.by_hash().insert(Hashed(hash)))),
    ("`insert_if_absent`, growable", |filter, hash| for_want_of_room(filter.by_hash().insert_if_absent(Hashed(hash)))),
];

pub(crate) struct Refused<F> {
    filter: F,
    /// The hash of a key that is absent, and is refused.
    hash: u64,
}

impl Refused<Filter> {
    pub(crate) fn new(bytes: usize) -> Self {
        Self::of(empty(bytes))
    }
}

impl Refused<Growable> {
    /// With the capacity of the other filter's table, and no memory for another table.
    pub(crate) fn growable(bytes: usize) -> Self {
        let builder = GrowableCuckooFilter::builder().hasher(HASH).capacity(empty(bytes).capacity());
        let memory = builder.clone().build().expect("a valid filter").stats().memory_usage;
        Self::of(builder.memory_limit(memory).build().expect("a valid filter"))
    }
}

impl<F: Removable> Refused<F> {
    fn of(filter: F) -> Self {
        let [hash, others @ ..] = colliding(&filter);
        let mut others = others.into_iter().cycle();
        while filter.insert(others.next().expect("a cycle")).is_ok() {}
        let mut random = SmallRng::seed_from_u64(7);
        while filter.load() < LOAD {
            // It is refused if it has the same two buckets.
            _ = filter.insert(random.random());
        }
        Self { filter, hash }
    }

    /// The times of the refused inserts, one after the other, while this many other threads insert and remove.
    pub(crate) fn run(&self, insert: Insert<F>, writers: u64, most: u64, time: Duration) -> Times {
        let ended = &AtomicBool::new(false);
        let mut times = Times::default();
        thread::scope(|scope| {
            let writers: Vec<_> = (0..writers).map(|writer| scope.spawn(move || self.write(writer, ended))).collect();
            let begin = Instant::now();
            while times.count() < most && begin.elapsed() < time {
                let is_refused = times.time(|| insert(&self.filter, self.hash));
                assert!(is_refused, "there is no room, and nothing else is wrong");
            }
            ended.store(true, Ordering::Relaxed);
            writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        });
        times
    }

    fn write(&self, writer: u64, ended: &AtomicBool) {
        let mut random = SmallRng::seed_from_u64(writer << 32 | 1);
        let mut held = [None; HELD];
        while !ended.load(Ordering::Relaxed) {
            for place in &mut held {
                place.iter().for_each(|&hash| assert!(self.filter.remove(hash), "it was inserted"));
                let hash = random.random();
                *place = self.filter.insert(hash).is_ok().then_some(hash);
            }
        }
        held.into_iter().flatten().for_each(|hash| assert!(self.filter.remove(hash), "it was inserted"));
    }
}

/// A table that is filled until it refuses nearly every key, and one thread.
pub(crate) struct Full {
    filter: Filter,
    random: SmallRng,
}

impl Full {
    pub(crate) fn new(bytes: usize) -> Self {
        let filter = empty(bytes);
        let mut random = SmallRng::seed_from_u64(7);
        let mut refused_in_a_row = 0;
        while refused_in_a_row < 30 {
            refused_in_a_row =
                if filter.by_hash().insert(Hashed(random.random())).is_ok() { 0 } else { refused_in_a_row + 1 };
        }
        Self { filter, random }
    }

    /// The times of further inserts. Nearly all of them are refused.
    pub(crate) fn run(&mut self, most: u64, time: Duration) -> Times {
        let mut times = Times::default();
        let begin = Instant::now();
        while times.count() < most && begin.elapsed() < time {
            let hash = self.random.random();
            _ = times.time(|| self.filter.by_hash().insert(Hashed(hash)));
        }
        times
    }
}

/// An empty filter in the default layout, with a table of about this size.
fn empty(bytes: usize) -> Filter {
    ours::of_size(bytes, 5, |capacity| ours::builder().capacity(capacity).build().expect("a valid filter"))
}

/// The hashes of three keys that the filter, which is empty, distinguishes but puts into the same two buckets.
fn colliding(filter: &impl Removable) -> [u64; 3] {
    let hash = 0x1234_5678_9abc_def0;
    let copies = (0..).take_while(|_| filter.insert(hash).is_ok()).count();
    let mut random = SmallRng::seed_from_u64(1);
    // The two buckets are full. Only keys with no other bucket are refused.
    let mut other_than = |known: Option<u64>| loop {
        let other = random.random();
        match filter.insert(other) {
            Ok(()) => assert!(filter.remove(other), "it was just inserted"),
            Err(error) if no_room(&error) && known != Some(other) => break other,
            // It looks like the first key.
            Err(_) => {}
        }
    };
    let second = other_than(None);
    let third = other_than(Some(second));
    (0..copies).for_each(|_| assert!(filter.remove(hash), "so many were inserted"));
    [hash, second, third]
}
