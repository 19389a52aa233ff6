//! A list of words that grows in place while other threads use it: no word ever moves.
//!
//! It consists of segments. The first has a power of two of words, and each further one has as many as all before it. So
//! the highest bit of an index names the segment. The table of segments has, for each highest bit, where the word with the
//! index 0 would be if it were in that segment too.

use crate::machine::memory::Pages;

pub(crate) use imp::Segments;

#[cfg(not(ccf_model))]
mod imp {
    #![allow(unsafe_code, reason = "a reference to a word of a segment; each block has its SAFETY note")]

    use core::ptr::null_mut;
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::Pages;
    use crate::machine::memory::{boxed_slice, zeroed_on};
    use crate::sync::AtomicU64;

    const MOST: usize = u32::BITS as usize;

    #[derive(Debug)]
    pub(crate) struct Segments {
        /// By the highest bit of an index: where index 0 would be in that segment. Null if there is no such segment.
        bases: Box<[AtomicPtr<AtomicU64>; MOST]>,
        first_bits: u32,
    }

    impl Segments {
        pub(crate) const OWN_MEMORY: usize = MOST * size_of::<AtomicPtr<AtomicU64>>();

        /// A list of `1 << first_bits` zeros, or `None` if the allocation fails.
        pub(crate) fn new(pages: Pages, first_bits: u32) -> Option<Self> {
            let bases = boxed_slice(MOST, || AtomicPtr::new(null_mut()))?.try_into().ok()?;
            let segments = Self { bases, first_bits };
            let first = Box::into_raw(zeroed_on(pages, 1 << first_bits)?).cast::<AtomicU64>();
            for base in &segments.bases[..(first_bits as usize).max(1)] {
                base.store(first, Ordering::Release);
            }
            Some(segments)
        }

        #[inline(always)]
        pub(crate) fn get(&self, index: u32) -> Option<&AtomicU64> {
            // SAFETY: a segment is freed when the list is dropped, and not before. Its words are only used as atomics.
            self.word(index).map(|word| unsafe { &*word })
        }

        /// A pointer to this word, with the provenance of its whole segment.
        #[inline(always)]
        fn word(&self, index: u32) -> Option<*mut AtomicU64> {
            // The index 0 is in the first segment, like 1.
            let bit = (index | 1).ilog2() as usize;
            // SAFETY: a bit of a `u32` is below 32, which is the length.
            let base = unsafe { self.bases.get_unchecked(bit) };
            // Acquire, with `lengthen`: the zeros of the segment come first.
            let base = base.load(Ordering::Acquire);
            // The base is that of the segment of all indices with this highest bit (`lengthen`), or of the first one, which
            // has all indices below `1 << first_bits` (`new`). So the word is in it.
            (!base.is_null()).then(|| base.wrapping_add(index as usize))
        }

        /// Allocates the words with the indices from `1 << bits` up to twice that, as zeros, unless they exist. Returns
        /// whether they are: `false` if the allocation fails. Only one thread at a time calls this.
        pub(crate) fn lengthen(&self, pages: Pages, bits: u32) -> bool {
            let base = &self.bases[bits as usize];
            if base.load(Ordering::Relaxed).is_null() {
                let Some(segment) = zeroed_on(pages, 1 << bits) else { return false };
                let start = Box::into_raw(segment).cast::<AtomicU64>();
                // Release, with `get`.
                base.store(start.wrapping_sub(1 << bits), Ordering::Release);
            }
            true
        }

        /// The segments, each with the index of its first word.
        fn all(&self) -> impl Iterator<Item = (usize, *mut [AtomicU64])> {
            let further = (self.first_bits..u32::BITS).map(|bit| (1 << bit, 1 << bit));
            [(0, 1 << self.first_bits)].into_iter().chain(further).filter_map(|(start, len)| {
                // Not by a reference, whose provenance is one word.
                Some((start, core::ptr::slice_from_raw_parts_mut(self.word(start as u32)?, len)))
            })
        }

        /// Returns the memory of the words from this index on to the system, as far as possible. They may become zeros,
        /// or stay as they are. Returns whether it was possible.
        pub(crate) fn release(&self, from: usize) -> bool {
            let mut released = true;
            for (start, words) in self.all() {
                // SAFETY: a segment has that many words from its first one on, all of them initialized. It is freed
                // when the list is dropped, and not before.
                let words = unsafe { &*words };
                if start + words.len() > from {
                    released &= crate::machine::system::release(&words[from.saturating_sub(start)..]);
                }
            }
            released
        }
    }

    impl Drop for Segments {
        fn drop(&mut self) {
            for (_, words) in self.all() {
                // SAFETY: `new` and `lengthen` have made a box of just these words into a pointer, and no thread uses
                // the list any more. The iterator does not come back to them.
                drop(unsafe { Box::from_raw(words) });
            }
        }
    }
}

/// In models: all words that there can be, at once.
#[cfg(ccf_model)]
mod imp {
    use super::Pages;
    use crate::sync::AtomicU64;

    #[derive(Debug)]
    pub(crate) struct Segments {
        words: Box<[AtomicU64]>,
    }

    impl Segments {
        const LEN: usize = 8;
        pub(crate) const OWN_MEMORY: usize = 0;

        pub(crate) fn new(_: Pages, _: u32) -> Option<Self> {
            Some(Self { words: (0..Self::LEN).map(|_| AtomicU64::new(0)).collect() })
        }

        pub(crate) fn get(&self, index: u32) -> Option<&AtomicU64> {
            self.words.get(index as usize)
        }

        pub(crate) fn lengthen(&self, _: Pages, bits: u32) -> bool {
            2 << bits <= Self::LEN
        }

        pub(crate) fn release(&self, _: usize) -> bool {
            true
        }
    }
}
