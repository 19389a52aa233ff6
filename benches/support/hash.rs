//! The hash function of all subjects.

use std::hash::{BuildHasher, Hasher};

use ahash::{AHasher, RandomState};

/// The keys of every subject's hash function.
pub(crate) const HASH: RandomState =
    RandomState::with_seeds(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89);

/// `ahash` with these keys, for crates that take a type of hasher and make one with `default` for each hash.
///
/// `AHasher::default` would look up keys that were made at run time. Here they are constants, which is faster.
#[derive(Clone)]
pub(crate) struct KeyedHasher(AHasher);

impl Default for KeyedHasher {
    #[inline]
    fn default() -> Self {
        Self(HASH.build_hasher())
    }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.0.write_u64(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.0.write_usize(word);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}
