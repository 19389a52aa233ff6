//! Keys and hashers that the filter must cope with.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::hash::{Hash, Hasher};

/// A key that hashes itself as one number: with [`Identity`], its hash is that number.
#[derive(Clone, Copy, Debug)]
pub struct Raw(pub u64);

impl Hash for Raw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// The weakest of hashers: a number is its own hash.
#[derive(Debug, Default)]
pub struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are written as one u64")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Whether a count is within five standard deviations of what is expected of rare, independent events.
pub fn plausible(count: f64, expected: f64) -> bool {
    (count - expected).abs() <= 5.0 * expected.sqrt() + 5.0
}
