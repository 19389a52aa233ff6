//! What models see of a growing table's words by themselves: any thread may ask for any of them, whatever it has read.

use crate::machine::memory::Pages;
use crate::machine::words::{self, Sizes};
use crate::sync::Ordering;

/// A list of eight words at most, and two at first.
#[derive(Debug)]
pub struct Words(words::Words);

const SIZES: Sizes = Sizes { first: 2, largest: 8, pages: Pages::Usual };

impl Words {
    pub fn new() -> Self {
        Self(words::Words::new(SIZES, 2).expect("a model has memory"))
    }

    /// Makes sure that there are so many words.
    pub fn extend(&self, len: usize) {
        let mut next = None;
        while !self.0.extend(SIZES, len, &mut next).expect("a model has memory") {
            next = self.0.next_segment(SIZES, len).expect("a model has memory");
        }
    }

    /// What a word holds, if it is there.
    pub fn get(&self, index: u32) -> Option<u64> {
        // Relaxed: it orders nothing that the list itself would not.
        self.0.get(index).map(|word| word.load(Ordering::Relaxed))
    }

    /// What two words hold, if both are there.
    pub fn pair(&self, indices: [u32; 2]) -> Option<[u64; 2]> {
        self.0.read_pair(indices, |word| word.load(Ordering::Relaxed))
    }

    pub fn set(&self, index: u32, value: u64) {
        self.0.get(index).expect("a model sets words that are there").store(value, Ordering::Relaxed);
    }

    /// Gives back the memory of the words from this index on.
    pub fn release(&self, from: usize) {
        assert!(self.0.release(SIZES, from), "a model gives back all that it can");
    }
}
