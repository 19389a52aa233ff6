//! The timed loops. Each is compiled for one system alone.

use std::ops::Range;
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use super::support::filled::Sample;
use super::support::keys::{Shuffled, key};

/// Operations, and their answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) sample: Sample,
    /// Changes that did not succeed, or present keys that were not found.
    pub(crate) failures: u64,
    /// Absent keys that were found, and how many were looked up.
    pub(crate) positives: (u64, u64),
}

/// Lookups, of which `share` of 256 are of present keys.
#[derive(Clone, Debug)]
pub(crate) struct LookupMix {
    pub(crate) present: Range<u64>,
    pub(crate) absent: u64,
    pub(crate) share: u64,
    pub(crate) count: u64,
}

/// A system with its type hidden. Each call is one timed loop.
pub(crate) trait Timed {
    fn insert(&mut self, keys: Range<u64>) -> Turn;
    fn remove(&mut self, keys: Range<u64>) -> Turn;
    fn look_up(&self, lookups: &LookupMix) -> Turn;
}

/// A system whose type is known, and how it inserts, looks up and removes a key. Changes return whether they succeeded.
pub(crate) struct System<F, I, C, R> {
    pub(crate) filter: F,
    pub(crate) insert: I,
    pub(crate) contains: C,
    pub(crate) remove: R,
}

impl<F, I, C, R> Timed for System<F, I, C, R>
where
    I: Fn(&mut F, u64) -> bool,
    C: Fn(&F, u64) -> bool,
    R: Fn(&mut F, u64) -> bool,
{
    #[inline(never)]
    fn insert(&mut self, keys: Range<u64>) -> Turn {
        change(keys, |key| (self.insert)(&mut self.filter, key))
    }

    #[inline(never)]
    fn remove(&mut self, keys: Range<u64>) -> Turn {
        change(keys, |key| (self.remove)(&mut self.filter, key))
    }

    /// Present keys are not looked up in the order of their insertion. A random number decides which lookup is of a
    /// present key, so that the processor cannot predict it.
    #[inline(never)]
    fn look_up(&self, lookups: &LookupMix) -> Turn {
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
                let found = u64::from((self.contains)(&self.filter, key(indices[present as usize])));
                misses += 1 - present;
                missed += present & (1 - found);
                positives += found & (1 - present);
            }
        }
        let sample = Sample { operations: count, time: start.elapsed() };
        Turn { sample, failures: missed, positives: (positives, misses) }
    }
}

#[inline(always)]
fn change(keys: Range<u64>, mut change: impl FnMut(u64) -> bool) -> Turn {
    let start = Instant::now();
    let operations = keys.end - keys.start;
    let done: u64 = keys.map(|index| u64::from(change(key(index)))).sum();
    Turn { sample: Sample { operations, time: start.elapsed() }, failures: operations - done, positives: (0, 0) }
}
