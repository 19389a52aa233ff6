//! What memory and caches allow: any shared array.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hash::HASH;
use super::subject::{About, Built, Kind, Subject, TableSize, set};

/// Two words on two random cache lines, whose places come from the hash of the key, and nothing else. A lookup loads
/// both. A change also replaces one of them by compare-exchange, once: a race with another thread is lost.
///
/// That is the least that a table of two buckets must do, in memory of that size. What it gains by a second thread is the
/// machine's: a line that one core has changed must travel to the core that needs it next.
pub(crate) struct SharedArray(Vec<AtomicU64>);

impl SharedArray {
    /// Not zeros: zero pages are shared by the system and never loaded.
    pub(crate) fn new(bytes: usize) -> Self {
        Self((0..bytes / size_of::<u64>()).map(|_| AtomicU64::new(1)).collect())
    }

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

set!(
    SharedArray,
    |array, key| array.change(key),
    {
        let [first, second] = array.words(HASH.hash_one(key)).map(|word| word.load(Ordering::Relaxed));
        first & second != 0
    },
    array.change(key)
);

pub(crate) const ARRAY: Subject<SharedArray> = Subject {
    about: About { name: "array", about: "any shared array", kind: Kind::Array, removes: true },
    build: |table_bytes| {
        let set = SharedArray::new(table_bytes);
        // So many slots that there are as many operations here as in a filter.
        let size = TableSize::new(set.0.len() * 4, size_of_val(&*set.0));
        Built { set, size }
    },
};
