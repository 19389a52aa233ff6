//! Helpers for several tests: keys and hashers that the filter must handle, and every layout.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::error::Error;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding};

/// A key that hashes itself as one number: with [`Identity`], its hash is that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw(pub u64);

impl Hash for Raw {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

/// The weakest hasher: a number is its own hash.
#[derive(Debug, Default)]
pub struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    /// Keys are written as one u64. Only the fixed key by which snapshots recognize a hasher is written as bytes.
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, &byte| hash.rotate_left(8) ^ u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// The default hasher, but with keys that follow from a seed. With random keys, as in a new `DefaultHashBuilder`, other
/// keys look alike in each run, and a test that counts false positives or expects none fails now and then.
pub type Seeded = ahash::RandomState;

pub fn seeded(seed: u64) -> Seeded {
    Seeded::with_seeds(seed, seed ^ 1, seed ^ 2, seed ^ 3)
}

/// The message of an error and those of its sources. None contains a later one, so a log of all of them says nothing twice.
pub fn chain(error: &(dyn Error + 'static)) -> Vec<String> {
    let messages: Vec<_> =
        std::iter::successors(Some(error), |&error| error.source()).map(|error| error.to_string()).collect();
    for (nth, message) in messages.iter().enumerate() {
        let repeated = messages[nth + 1..].iter().find(|later| message.contains(&**later));
        assert_eq!(repeated, None, "it is in {message:?} already");
    }
    messages
}

/// Tells other threads to end when this one ends, even by a check that has failed.
#[derive(Debug)]
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a count is within five standard deviations of the expected count of rare, independent events.
pub fn plausible(count: f64, expected: f64) -> bool {
    (count - expected).abs() <= 5.0 * expected.sqrt() + 5.0
}

/// Keys whose hashes the tests choose, so that tests can make keys that the filter cannot tell apart.
pub type Filter = ConcurrentCuckooFilter<Raw, BuildHasherDefault<Identity>>;

pub fn build(capacity: u64, encoding: Encoding, rate: f64) -> Filter {
    let builder = ConcurrentCuckooFilter::<Raw>::builder().capacity(capacity as usize).false_positive_rate(rate);
    builder.encoding(encoding).hasher(BuildHasherDefault::default()).build().unwrap()
}

/// What [`scattered`] adds to a number.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of this number, whose hash looks random. No two numbers have the same.
pub fn scattered(number: u64) -> Raw {
    let x = number.wrapping_add(GOLDEN);
    let x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    Raw(x ^ (x >> 32))
}

/// This many keys with random hashes, starting with number `first`. No two are the same.
pub fn hashes(first: usize, count: usize) -> impl Iterator<Item = Raw> {
    (first..first + count).map(|number| scattered(number as u64))
}

/// An encoding and a rate, and the slots and fingerprint bits that they lead to.
pub type Layout = (Encoding, f64, usize, u32);

/// Each of the thirteen layouts.
pub const LAYOUTS: [Layout; 13] = [
    (Encoding::Plain, 0.07, 8, 8),
    (Encoding::Plain, 0.03, 7, 9),
    (Encoding::Plain, 0.012, 6, 10),
    (Encoding::SemiSorted, 0.003, 6, 12),
    (Encoding::Plain, 0.0025, 5, 12),
    (Encoding::SemiSorted, 0.001, 5, 14),
    (Encoding::Plain, 0.000125, 4, 16),
    (Encoding::SemiSorted, 0.0001, 4, 17),
    (Encoding::Plain, 3e-6, 3, 21),
    (Encoding::SemiSorted, 2e-6, 3, 22),
    (Encoding::Plain, 1e-9, 2, 32),
    (Encoding::SemiSorted, 0.035, 8, 9),
    (Encoding::SemiSorted, 0.015, 7, 10),
];

/// Value bits and a rate, and the slots and fingerprint bits that they lead to in a maplet.
pub type MapletLayout = (u32, f64, usize, u32);

/// Each of the five layouts of a maplet, once with the most value bits that it has room for, and once with fewer.
pub const MAPLET_LAYOUTS: [MapletLayout; 10] = [
    (1, 0.01, 6, 11),
    (5, 0.2, 6, 7),
    (4, 0.011, 5, 10),
    (7, 0.2, 5, 7),
    (4, 0.001, 4, 13),
    (10, 0.2, 4, 7),
    (8, 0.001, 3, 14),
    (15, 0.2, 3, 7),
    (1, 1e-8, 2, 31),
    (16, 0.001, 2, 16),
];
