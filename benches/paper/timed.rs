//! The timed loops. Each is compiled for one system alone.

use std::ops::{AddAssign, Range};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use super::support::keys::{Shuffled, key};
use super::support::subject::Set;

/// A filter. Changes return whether they succeeded.
pub(crate) trait Filter {
    fn insert(&mut self, key: u64) -> bool;
    fn contains(&self, key: u64) -> bool;
    fn remove(&mut self, key: u64) -> bool;
}

impl<S: Set> Filter for S {
    #[inline(always)]
    fn insert(&mut self, key: u64) -> bool {
        S::insert(self, key)
    }

    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        S::contains(self, key)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> bool {
        S::remove(self, key)
    }
}

/// Operations, their total time, and their answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    pub(crate) operations: u64,
    pub(crate) time: Duration,
    /// Changes that did not succeed, or present keys that were not found.
    pub(crate) failures: u64,
    /// Absent keys that were found, and how many were looked up.
    pub(crate) positives: (u64, u64),
}

impl Turn {
    /// Millions of operations a second.
    pub(crate) fn mops(self) -> f64 {
        self.operations as f64 / self.time.as_secs_f64() / 1e6
    }
}

impl AddAssign for Turn {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.time += other.time;
    }
}

/// Lookups, of which `share` of 256 are of present keys.
#[derive(Clone, Debug)]
pub(crate) struct Lookups {
    pub(crate) present: Range<u64>,
    pub(crate) absent: u64,
    pub(crate) share: u64,
    pub(crate) count: u64,
}

/// A system with its type hidden. Each call is one timed loop.
pub(crate) trait Timed {
    fn insert(&mut self, keys: Range<u64>) -> Turn;
    fn remove(&mut self, keys: Range<u64>) -> Turn;
    fn look_up(&self, lookups: &Lookups) -> Turn;
}

/// A system whose type is known.
#[derive(Debug)]
pub(crate) struct System<F>(pub(crate) F);

impl<F: Filter> Timed for System<F> {
    #[inline(never)]
    fn insert(&mut self, keys: Range<u64>) -> Turn {
        change(keys, |key| self.0.insert(key))
    }

    #[inline(never)]
    fn remove(&mut self, keys: Range<u64>) -> Turn {
        change(keys, |key| self.0.remove(key))
    }

    /// Present keys are not looked up in the order of their insertion. A random number decides which lookup is of a
    /// present key, so that the processor cannot predict it.
    #[inline(never)]
    fn look_up(&self, lookups: &Lookups) -> Turn {
        let start = Instant::now();
        let count = lookups.count.next_multiple_of(8);
        let mut order = Shuffled::new(lookups.present.clone(), 0.0);
        let mut random = SmallRng::seed_from_u64(lookups.absent);
        let (mut misses, mut missed, mut positives) = (0, 0, 0);
        for block in 0..count / 8 {
            let coins = random.next_u64();
            for i in 0..8 {
                let present = u64::from((coins >> (8 * i)) & 0xff < lookups.share);
                // Both are computed, so that the choice needs no branch.
                let indices = [lookups.absent + block * 8 + i, order.next()];
                let found = u64::from(self.0.contains(key(indices[present as usize])));
                misses += 1 - present;
                missed += present & (1 - found);
                positives += found & (1 - present);
            }
        }
        Turn { operations: count, time: start.elapsed(), failures: missed, positives: (positives, misses) }
    }
}

#[inline(always)]
fn change(keys: Range<u64>, mut change: impl FnMut(u64) -> bool) -> Turn {
    let start = Instant::now();
    let operations = keys.end - keys.start;
    let done: u64 = keys.map(|index| u64::from(change(key(index)))).sum();
    Turn { operations, time: start.elapsed(), failures: operations - done, ..Turn::default() }
}
