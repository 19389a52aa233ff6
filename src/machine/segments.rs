//! A list of words that grows in place while other threads use it: no word ever moves.
//!
//! It consists of segments. The first has a power of two of words, and each further one has as many as all before it. So
//! the highest bit of an index names the segment. The table of segments has, for each highest bit, where the word with the
//! index 0 would be if it were in that segment too.
//!
//! # Readers
//! A segment is allocated, then its pointer is published, and it is freed when the list is dropped, which no reader
//! outlives. So a reader that finds a pointer may use each word behind it, however late it is.
//!
//! # Memory that goes back to the system
//! A list never becomes shorter. But its user may say that no thread will change the words from an index on, until it is
//! extended again. Then the system may take the whole pages behind that index back. A reader that is late reads zeros
//! there, or what was there before: for it, that is like a store of zeros by another thread.
//!
//! Only a *large* segment gives pages back. An allocator gets it from the system by itself, so its pages are not used before
//! its words are. A smaller one is between other allocations, and most of its pages would be shared with those.
//!
//! # What counts as held
//! A small segment counts as a whole as soon as it is allocated. Of a large one, the words in use count, and two pages: it
//! need not begin or end where a page does, so the first and the last of those that went back may be needed in part.

#![allow(unsafe_code, reason = "references to the words of a segment; each block has its SAFETY note")]

use core::ptr::{null_mut, slice_from_raw_parts_mut};

use crate::machine::memory::{Pages, boxed_slice, release, zeroed_on};
use crate::machine::system::page_size;
use crate::sync::sizes::{INDEX_BITS, LARGE_SEGMENT};
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct Segments {
    /// By the highest bit of an index: where index 0 would be in that segment. Null if there is no such segment.
    bases: Box<[AtomicPtr<AtomicU64>; INDEX_BITS]>,
    first_bits: u32,
}

impl Segments {
    pub(crate) const OWN_MEMORY: usize = INDEX_BITS * size_of::<AtomicPtr<AtomicU64>>();

    /// A list without any segment. The first one will have `1 << first_bits` words.
    pub(crate) fn new(first_bits: u32) -> Option<Self> {
        let bases = boxed_slice(INDEX_BITS, || AtomicPtr::new(null_mut()))?.try_into().ok()?;
        Some(Self { bases, first_bits })
    }

    /// The word with this index, if its segment is there.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&AtomicU64> {
        // The index 0 is in the first segment, like 1.
        let bit = (index | 1).ilog2() as usize;
        // Acquire, with `extend`: the zeros of the segment come first.
        let base = self.bases[bit].load(Ordering::Acquire);
        // The base is that of the segment of all indices with this highest bit, or of the first one, which has all indices
        // below its length (`extend`). So the word is in it.
        let word = base.wrapping_add(index as usize);
        // SAFETY: a segment is freed when the list is dropped, and not before. Its words are only used as atomics.
        (!base.is_null()).then(|| unsafe { &*word })
    }

    /// The memory of the next segment, if the list has none yet for `len` words. The error is the number of bytes that could
    /// not be allocated.
    pub(crate) fn next_segment(&self, pages: Pages, len: usize) -> Result<Option<Box<[AtomicU64]>>, usize> {
        let mut needed = segments(self.first_bits).take_while(|&(start, _)| start < len);
        let Some((_, words)) = needed.find(|&(start, _)| !self.has(start)) else { return Ok(None) };
        zeroed_on(pages, words).map(Some).ok_or(words.saturating_mul(size_of::<u64>()))
    }

    /// Makes sure that the list has `len` words, with the memory of its [`next_segment`](Self::next_segment) if it needs one.
    /// A new word is 0. Returns whether it has so many. It allocates and frees nothing. Only one thread at a time calls this.
    pub(crate) fn extend(&self, len: usize, next: &mut Option<Box<[AtomicU64]>>) -> bool {
        for (start, words) in segments(self.first_bits).take_while(|&(start, _)| start < len) {
            if self.segment(start, words).is_some() {
                continue;
            }
            let Some(segment) = next.take_if(|segment| segment.len() == words) else { return false };
            let base = Box::into_raw(segment).cast::<AtomicU64>().wrapping_sub(start);
            // The first segment has all indices below its length.
            let first = if start == 0 { 0 } else { start.ilog2() };
            for bit in first..((start + (words - 1)) | 1).ilog2() + 1 {
                // Release, with `get`.
                self.bases[bit as usize].store(base, Ordering::Release);
            }
        }
        true
    }

    /// Whether there is a segment with this first word.
    pub(crate) fn has(&self, start: usize) -> bool {
        self.segment(start, 0).is_some()
    }

    /// Returns the memory of the words from this index on to the system, as far as possible: each becomes 0, or stays as it
    /// is. No thread may change any of them meanwhile. Returns whether all whole pages of large segments went back.
    pub(crate) fn release(&self, from: usize) -> bool {
        let mut released = true;
        for (start, words) in segments(self.first_bits).filter(|&(_, words)| is_large(words)) {
            if let Some(segment) = self.segment(start, words)
                && from.saturating_sub(start) < words
            {
                // SAFETY: it has that many words from its first one on, all of them initialized. It is freed when the list is
                // dropped, and not before.
                let segment = unsafe { &*segment };
                released &= release(&segment[from.saturating_sub(start)..]);
            }
        }
        released
    }

    /// The segment of so many words, of which the first has this index, if it is there. The pointer is to all of them,
    /// because a reference to one of them would have the provenance of that one alone.
    fn segment(&self, start: usize, words: usize) -> Option<*mut [AtomicU64]> {
        // Relaxed: a caller has allocated all segments, or has the list alone, or only asks whether there is one.
        let base = self.bases[(start | 1).ilog2() as usize].load(Ordering::Relaxed);
        (!base.is_null()).then(|| slice_from_raw_parts_mut(base.wrapping_add(start), words))
    }

    /// How many bytes the words take up when those below `in_use` are in use, and their segments allocated.
    pub(crate) fn held(&self, in_use: usize) -> usize {
        bytes(self.first_bits, in_use, |start| self.has(start))
    }

    /// [`held`](Self::held) by a new list.
    pub(crate) fn held_by_new(first_bits: u32, in_use: usize) -> usize {
        bytes(first_bits, in_use, |_| false)
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        for (start, words) in segments(self.first_bits) {
            if let Some(segment) = self.segment(start, words) {
                // SAFETY: `extend` has made a box of just these words into a pointer, and no thread uses the list any more.
                // The loop does not come back to them.
                drop(unsafe { Box::from_raw(segment) });
            }
        }
    }
}

/// The segments of a list: for each, the index of its first word, and the number of its words.
fn segments(first_bits: u32) -> impl Iterator<Item = (usize, usize)> {
    let further = (first_bits..INDEX_BITS as u32).map(|bits| (1 << bits, 1 << bits));
    [(0, 1 << first_bits)].into_iter().chain(further)
}

fn is_large(words: usize) -> bool {
    words >= LARGE_SEGMENT / size_of::<u64>()
}

/// How many bytes the segments take up that have words below `in_use`, or that are there.
fn bytes(first_bits: u32, in_use: usize, is_there: impl Fn(usize) -> bool) -> usize {
    let page = page_size().unwrap_or(4096);
    let of = |(start, words): (usize, usize)| {
        let all = words.saturating_mul(size_of::<u64>());
        let used = in_use.saturating_sub(start).min(words).saturating_mul(size_of::<u64>());
        if is_large(words) { all.min(used.saturating_add(2 * page)) } else { all }
    };
    let all = segments(first_bits).filter(|&(start, _)| start < in_use || is_there(start));
    all.map(of).fold(0, usize::saturating_add)
}
