//! The words of a growing table. No word ever moves, and other threads use the list while it grows.
//!
//! The first ones are in segments of the heap, until they fill a page. All further ones are in a range of addresses, if
//! the system has one for them (`range.rs`), and in segments otherwise (`segments.rs`). So a small filter takes some hundred bytes
//! and no mapping of its own. In a large one nearly every word is at one address plus its index. A list that begins with a
//! page or more is in the range from its first word on.
//!
//! The range takes no more memory than the segment that would come instead: that would fill a page at least.
//!
//! # Orderings
//! A thread that needs a word in the range has read `first_in_range` after it was stored, or finds no such word in the segments.
//! `base` is stored before it, and read after it.
#![allow(unsafe_code, reason = "a reference to a word of the range; it has its SAFETY note")]

use core::ptr::null_mut;
use std::sync::OnceLock;

use crate::machine::memory::Pages;
use crate::machine::range::Range;
use crate::machine::segments::Segments;
use crate::sync::{AtomicPtr, AtomicU64, Ordering};

/// What is decided about a list: its length at first, its largest length, and the kind of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) first: usize,
    pub(crate) largest: usize,
    pub(crate) pages: Pages,
}

impl Sizes {
    /// How many words come before those in the range, and how many addresses that has. `None` if no range could have any.
    fn parts(self) -> Option<(usize, usize)> {
        let page = Range::words_of_page()?;
        let before = if self.first >= page { 0 } else { page };
        let all = self.largest.checked_next_power_of_two()?;
        (all > before).then(|| (before, all - before))
    }

    fn first_bits(self) -> u32 {
        self.first.ilog2()
    }
}

#[derive(Debug)]
pub(crate) struct Words {
    /// The index of the first word in the range. As long as there is no range, it is above every index.
    first_in_range: AtomicU64,
    /// Where the word with the index 0 would be if it were in the range.
    base: AtomicPtr<AtomicU64>,
    segments: Segments,
    range: OnceLock<Range>,
}

impl Words {
    pub(crate) const OWN_MEMORY: usize = Segments::OWN_MEMORY;

    /// A list of `len` zeros. The error is the number of bytes that could not be allocated.
    pub(crate) fn new(sizes: Sizes, len: usize) -> Result<Self, usize> {
        let words = Self {
            first_in_range: AtomicU64::new(u64::MAX),
            base: AtomicPtr::new(null_mut()),
            segments: Segments::new(sizes.first_bits()).ok_or(Segments::OWN_MEMORY)?,
            range: OnceLock::new(),
        };
        let mut next = None;
        while !words.extend(sizes, len, &mut next)? {
            next = words.next_segment(sizes, len)?;
        }
        Ok(words)
    }

    /// The word with this index, if it is there. A list that has a range must have been extended to more than the index, as far
    /// as the caller can see: it has read a size of the table with that many words, perhaps a former one.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&AtomicU64> {
        // Acquire, with `extend`: the base is that of the range.
        if u64::from(index) < self.first_in_range.load(Ordering::Acquire) {
            return self.segments.get(index);
        }
        // SAFETY: the base was read after the index of the first word in the range, and this index is not below that.
        Some(unsafe { in_range(self.base(), index) })
    }

    /// What `read` returns for each of two words, the first one first, if both are there ([`get`](Self::get)). In nearly all
    /// lookups in a large table, both are in the range.
    #[inline(always)]
    pub(crate) fn read_pair<R>(&self, indices: [u32; 2], read: impl Fn(&AtomicU64) -> R) -> Option<[R; 2]> {
        let [first, second] = indices;
        // Acquire, as in `get`.
        let in_range_from = self.first_in_range.load(Ordering::Acquire);
        let (first, second) = if u64::from(first) < in_range_from || u64::from(second) < in_range_from {
            (self.get(first)?, self.get(second)?)
        } else {
            let base = self.base();
            // SAFETY: as in `get`, for both.
            unsafe { (in_range(base, first), in_range(base, second)) }
        };
        Some([read(first), read(second)])
    }

    /// Where the word with the index 0 would be if it were in the range.
    #[inline(always)]
    fn base(&self) -> *mut AtomicU64 {
        // Relaxed: a caller has read `first_in_range`, before which it was stored.
        let base = self.base.load(Ordering::Relaxed);
        debug_assert!(!base.is_null(), "the range is published before its base");
        base
    }

    /// The memory that the list takes from the allocator next, after [`extend`](Self::extend) has found that it needs some to
    /// have `len` words. The error is the number of bytes that could not be allocated.
    pub(crate) fn next_segment(&self, sizes: Sizes, len: usize) -> Result<Option<Box<[AtomicU64]>>, usize> {
        let in_segments = match (self.range.get(), sizes.parts()) {
            (Some(_), Some((before, _))) => len.min(before),
            _ => len,
        };
        self.segments.next_segment(sizes.pages, in_segments)
    }

    /// Makes sure that the list has `len` words, with the memory of its [`next_segment`](Self::next_segment) if it needs one. A
    /// new word is 0, or what it was when it was [released](Self::release). Returns whether it has so many. The error is the
    /// number of bytes that the system denied. It calls no allocator. Only one thread at a time calls this.
    pub(crate) fn extend(&self, sizes: Sizes, len: usize, next: &mut Option<Box<[AtomicU64]>>) -> Result<bool, usize> {
        match self.range_for(sizes, len) {
            Some((range, before)) => {
                if !self.segments.extend(before, next) {
                    return Ok(false);
                }
                range.extend(sizes.pages, len - before)?;
                // Only once: each lookup reads this cache line. (Relaxed, here and below: only this thread stores them.)
                if self.first_in_range.load(Ordering::Relaxed) != before as u64 {
                    self.base.store(range.start().wrapping_sub(before), Ordering::Relaxed);
                    // Release, with `get`: the base comes first.
                    self.first_in_range.store(before as u64, Ordering::Release);
                }
            }
            None => return Ok(self.segments.extend(len, next)),
        }
        Ok(true)
    }

    /// The range, if `len` words need one, and the number of words before it. Reserves it if there is none yet.
    fn range_for(&self, sizes: Sizes, len: usize) -> Option<(&Range, usize)> {
        let (before, all) = sizes.parts().filter(|&(before, _)| len > before)?;
        if self.range.get().is_none() {
            // A list that has gone on in segments stays there.
            let range = if self.segments.has(before) { None } else { Range::reserve(sizes.pages, all) };
            self.range.set(range?).expect("only one thread at a time extends the list");
        }
        Some((self.range.get()?, before))
    }

    /// Returns the memory of the words from this index on to the system, as far as possible: each becomes 0, or stays as it
    /// is. Until the list is extended again, no thread may change any of them. Returns whether all that can be given back was.
    /// Only one thread at a time calls this.
    pub(crate) fn release(&self, sizes: Sizes, from: usize) -> bool {
        match (self.range.get(), sizes.parts()) {
            (Some(range), Some((before, _))) => range.give_back(from.saturating_sub(before)),
            _ => self.segments.release(from),
        }
    }

    /// How many bytes the words take up when those below `in_use` are in use: the list was extended to that length, or will be,
    /// and what is beyond it was released.
    pub(crate) fn held(&self, sizes: Sizes, in_use: usize) -> usize {
        let Some((before, all)) = sizes.parts().filter(|&(before, _)| in_use > before) else {
            return self.segments.held(in_use);
        };
        match self.range.get() {
            Some(range) => self.segments.held(before) + range.held(sizes.pages, in_use - before),
            None if !self.segments.has(before) && Range::is_available(all) => {
                self.segments.held(before) + Range::held_by_new(sizes.pages, in_use - before)
            }
            None => self.segments.held(in_use),
        }
    }

    /// How many bytes the words of a new list of this length take up.
    pub(crate) fn held_by_new(sizes: Sizes, len: usize) -> usize {
        match sizes.parts() {
            Some((before, all)) if len > before && Range::is_available(all) => {
                Segments::held_by_new(sizes.first_bits(), before) + Range::held_by_new(sizes.pages, len - before)
            }
            _ => Segments::held_by_new(sizes.first_bits(), len),
        }
    }
}

/// A word in the range.
///
/// # Safety
/// The base was read after an Acquire load of `first_in_range`, which was not above the index.
#[inline(always)]
unsafe fn in_range<'a>(base: *mut AtomicU64, index: u32) -> &'a AtomicU64 {
    let word = base.wrapping_add(index as usize);
    // SAFETY: the list has been extended to more than the index (`get`), so the word is mapped and may be read (`range.rs`, *Why
    // no reader faults*). It is zero, or what was stored, and only used as an atomic.
    unsafe { &*word }
}
