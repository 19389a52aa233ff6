//! What memory allows.

use super::hash::HASH;
use super::subject::{Kind, Subject};

/// Two words on two random cache lines, whose places come from the hash of the key, and nothing else.
pub(crate) struct Limit(Vec<u64>);

impl Limit {
    #[inline(always)]
    fn word(&self, hash: u64) -> u64 {
        self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize]
    }
}

impl Subject for Limit {
    const NAME: &'static str = "limit";
    const ABOUT: &'static str = "two random cache lines";
    const KIND: Kind = Kind::Limit;

    fn build(table_bytes: usize) -> Self {
        // Not zeros: zero pages are shared by the system and never loaded.
        Self(vec![1; table_bytes / size_of::<u64>()])
    }

    /// Chosen so that as many keys are looked up here as in a filter.
    fn slots(&self) -> u64 {
        self.0.len() as u64 * 4
    }

    fn fingerprint_bits(&self) -> u32 {
        0
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    fn insert(&self, _key: u64) -> bool {
        true
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        let hash = HASH.hash_one(key);
        self.word(hash) & self.word(hash.rotate_left(32)) != 0
    }

    fn remove(&self, _key: u64) -> bool {
        true
    }
}
