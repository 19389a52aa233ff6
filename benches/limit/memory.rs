//! What memory allows: the limit of all lookups in two buckets.

use memmap2::{Mmap, MmapMut};

use super::lookups::Lookups;
use super::support::hash::HASH;

/// How far ahead the ring of limit (b) prefetches.
const RING: usize = 64;

/// Two words from two random cache lines.
pub(crate) struct Limit {
    table: Mmap,
    words: usize,
    ring: [(usize, usize); RING],
    at: usize,
}

impl Limit {
    pub(crate) fn new(bytes: usize, huge: bool) -> Self {
        let mut table = MmapMut::map_anon(bytes).expect("memory");
        #[cfg(target_os = "linux")]
        {
            use memmap2::Advice::{HugePage, NoHugePage};
            // A kernel without huge pages refuses this. Then there are none for ours either.
            let _ = table.advise(if huge { HugePage } else { NoHugePage });
        }
        // Not zeros: zero pages are shared by the system and never loaded.
        table.fill(1);
        let table = table.make_read_only().expect("it was writable");
        Self { table, words: bytes / 8, ring: [(0, 0); RING], at: 0 }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        let bytes = self.table[8 * index..].first_chunk().expect("an index below `words`");
        u64::from_le_bytes(*bytes)
    }

    #[inline(always)]
    fn places(&self, key: u64) -> (usize, usize) {
        let hash = HASH.hash_one(key);
        let place = |hash: u64| ((u128::from(hash) * self.words as u128) >> 64) as usize;
        (place(hash), place(hash.rotate_left(32)))
    }
}

impl Lookups for Limit {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        let loaded = |&key: &u64| {
            let (first, second) = self.places(key);
            usize::from(self.word(first) & self.word(second) != 0)
        };
        keys.iter().map(loaded).sum()
    }

    #[inline(never)]
    fn batched(&mut self, keys: &[u64]) -> Option<usize> {
        let mut found = 0;
        for &key in keys {
            let (first, second) = self.ring[self.at % RING];
            found += usize::from(self.word(first) & self.word(second) != 0);
            let (first, second) = self.places(key);
            prefetch(&self.table[8 * first]);
            prefetch(&self.table[8 * second]);
            self.ring[self.at % RING] = (first, second);
            self.at += 1;
        }
        Some(found)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "there is no safe prefetch yet")]
#[inline(always)]
fn prefetch(byte: &u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of every x86-64 processor, and a prefetch has no effect that a program can observe.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

/// Without a prefetch, (b) is the same as (a).
#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_byte: &u8) {}
