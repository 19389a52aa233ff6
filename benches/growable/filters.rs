//! The filters that are compared, and how their lookups are timed.

use std::hint::black_box;

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::support::clock::own_time;
use crate::support::keys::{ABSENT, drawn};
use crate::support::ours::{BATCH, Growable, Ours, growable};

/// How many keys are timed at a time.
pub(crate) const SLICE: u64 = 20 * BATCH as u64;

/// An empty filter that has grown to three quarters of this many bytes. This many is its largest size, but for so many
/// doublings.
pub(crate) fn of_size(bytes: usize, doublings_left: u32) -> Growable {
    // Five slots a bucket at the largest size, of which about 96 % are its capacity.
    let most = (bytes / size_of::<u64>() * 5 * 96 / 100) << doublings_left;
    let filter = growable().capacity(0).max_capacity(most).build().expect("a valid filter");
    let at_first = filter.stats().memory_usage;
    while filter.stats().memory_usage - at_first < bytes * 3 / 4 {
        filter.reserve(filter.capacity() + 1).expect("there is memory");
    }
    filter
}

/// What is looked up, and how.
#[derive(Clone, Copy)]
pub(crate) struct Lookups {
    pub(crate) name: &'static str,
    pub(crate) hits: bool,
    pub(crate) batched: bool,
}

pub(crate) const LOOKUPS: [Lookups; 4] = [
    Lookups { name: "hit", hits: true, batched: false },
    Lookups { name: "miss", hits: false, batched: false },
    Lookups { name: "hit, batched", hits: true, batched: true },
    Lookups { name: "miss, batched", hits: false, batched: true },
];

impl Lookups {
    /// Nanoseconds a lookup, where the keys in the filter have the numbers below `len`. The seed decides which are looked
    /// up.
    pub(crate) fn time(self, filter: &impl Ours, len: u64, seed: u64) -> f64 {
        let numbers = if self.hits { 0..len } else { ABSENT..2 * ABSENT };
        let keys = drawn(&mut SmallRng::seed_from_u64(seed), numbers, SLICE);
        let start = own_time();
        let found = if self.batched { batched(filter, &keys) } else { single(filter, &keys) };
        let time = own_time() - start;
        assert!(if self.hits { found == SLICE } else { found < SLICE / 100 }, "{found} of {SLICE} found");
        time as f64 / SLICE as f64
    }
}

#[inline(never)]
fn single(filter: &impl Ours, keys: &[u64]) -> u64 {
    keys.iter().filter(|&&key| filter.contains(key)).count() as u64
}

#[inline(never)]
fn batched(filter: &impl Ours, keys: &[u64]) -> u64 {
    let mut found = Vec::with_capacity(keys.len());
    keys.chunks(BATCH).for_each(|keys| filter.contains_batch(keys, &mut found));
    black_box(&found).iter().filter(|&&found| found).count() as u64
}
