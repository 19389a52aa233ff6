//! A model's memory: lists of its own atomics.

use core::ops::Range;

use crate::sync::{AtomicU64, Ordering};

/// A list of zeros. A model has memory.
pub(crate) fn zeroed(len: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..len).map(|_| AtomicU64::new(0)).collect())
}

/// Does what a thread sees that uses a word whose memory the system takes back.
pub(crate) fn release(list: &[AtomicU64]) -> bool {
    list.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    true
}

/// A range of addresses. A model has all of its words from the beginning.
#[derive(Debug)]
pub(crate) struct Reserved(Box<[AtomicU64]>);

impl Reserved {
    /// A model's pages are so small that a table has words before the range, and in it.
    pub(crate) fn words_of_page() -> Option<usize> {
        Some(4)
    }

    pub(crate) fn is_available(_: usize) -> bool {
        true
    }

    pub(crate) fn new(len: usize) -> Option<Self> {
        zeroed(len).map(Self)
    }

    pub(crate) fn start(&self) -> *mut AtomicU64 {
        self.0.as_ptr().cast_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn commit(&self, _: Range<usize>) -> bool {
        true
    }

    pub(crate) fn decommit(&self, words: Range<usize>) -> bool {
        release(&self.0[words])
    }

    pub(crate) fn prefer_huge_pages(&self) {}
}
