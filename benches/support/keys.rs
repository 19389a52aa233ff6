//! The keys, and the orders in which they are used.
//!
//! A table of 192 MB holds a hundred million items. An array of their keys would be four times as large as the
//! table, and would compete with it for the memory's bandwidth. So a key is computed from its number, in one
//! multiplication. The generator is part of what is timed, for every subject alike, and an expensive one would
//! bring all ratios closer to 1.

use std::ops::Range;

use rand::Rng;
use rand::rngs::SmallRng;

/// The key of number `index`. Different numbers have different keys.
#[inline(always)]
pub(crate) fn key(index: u64) -> u64 {
    index.wrapping_mul(0xd134_2543_de82_ef95)
}

/// The first number of the keys that are never inserted.
pub(crate) const ABSENT: u64 = 1 << 40;

/// Cycles through a range of numbers, in an order that is not the order of insertion.
///
/// Each number is followed by the one that is about a thousand behind it. So the end of the range comes seldom, and
/// a step costs an addition and a branch that is predicted. That is nearly as little as counting up, which the
/// lookups of absent keys do.
#[derive(Clone, Debug)]
pub(crate) struct Shuffled {
    start: u64,
    len: u64,
    step: u64,
    at: u64,
}

impl Shuffled {
    /// `turn` is the share of the range to skip at first, for threads that start at different places.
    pub(crate) fn new(range: Range<u64>, turn: f64) -> Self {
        let len = range.end - range.start;
        assert!(len > 0, "no key to look up");
        // Primes. Any that does not divide the length comes to all numbers.
        let step = [1009, 1013, 1019].into_iter().find(|step| !len.is_multiple_of(*step)).expect("a length below 10⁹");
        Self { start: range.start, len, step, at: (len as f64 * turn) as u64 % len }
    }

    #[inline(always)]
    pub(crate) fn next(&mut self) -> u64 {
        let mut at = self.at + self.step;
        if at >= self.len {
            at = wrapped(at, self.len);
        }
        self.at = at;
        self.start + at
    }
}

/// Not inlined. Otherwise the branch could become a conditional move, for which every step has to wait.
#[cold]
#[inline(never)]
fn wrapped(at: u64, len: u64) -> u64 {
    at % len
}

/// This many keys with random numbers from the range.
pub(crate) fn drawn(random: &mut SmallRng, numbers: Range<u64>, count: u64) -> Vec<u64> {
    (0..count).map(|_| key(random.random_range(numbers.clone()))).collect()
}
