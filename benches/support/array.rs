//! What memory and caches allow: any shared array.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hash::HASH;
use super::subject::{Kind, Subject};

/// Two words on two random cache lines, whose places come from the hash of the key, and nothing else. A lookup loads
/// both. A change also replaces one of them by compare-exchange, once: a race with another thread is lost.
///
/// That is the least that a table of two buckets must do, in memory of that size. What it gains by a second thread is the
/// machine's: a line that one core has changed must travel to the core that needs it next.
pub(crate) struct SharedArray(Vec<AtomicU64>);

impl SharedArray {
    #[inline(always)]
    fn words(&self, hash: u64) -> [&AtomicU64; 2] {
        [hash, hash.rotate_left(32)].map(|hash| &self.0[((u128::from(hash) * self.0.len() as u128) >> 64) as usize])
    }

    /// Which of the two changes depends on what they hold, as in a filter.
    #[inline(always)]
    fn change(&self, key: u64) -> bool {
        let hash = HASH.hash_one(key);
        let words = self.words(hash);
        let seen = words.map(|word| word.load(Ordering::Relaxed));
        let nth = ((seen[0] ^ seen[1]) & 1) as usize;
        let new = seen[nth].wrapping_add(hash & 0xff);
        let _ = words[nth].compare_exchange(seen[nth], new, Ordering::SeqCst, Ordering::Relaxed);
        true
    }
}

impl Subject for SharedArray {
    const NAME: &'static str = "array";
    const ABOUT: &'static str = "any shared array";
    const KIND: Kind = Kind::Array;

    fn build(table_bytes: usize) -> Self {
        // Not zeros: zero pages are shared by the system and never loaded.
        Self((0..table_bytes / size_of::<u64>()).map(|_| AtomicU64::new(1)).collect())
    }

    /// Chosen so that there are as many operations here as in a filter.
    fn slots(&self) -> u64 {
        self.0.len() as u64 * 4
    }

    fn fingerprint_bits(&self) -> u32 {
        0
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.change(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        let [first, second] = self.words(HASH.hash_one(key)).map(|word| word.load(Ordering::Relaxed));
        first & second != 0
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.change(key)
    }
}
