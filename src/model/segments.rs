//! In models, `machine/segments.rs` is this: all words that there can be, at once. (Zeroed memory is no list of loom's atomics.)

use crate::machine::memory::Pages;
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
