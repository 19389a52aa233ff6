//! PURE: where a batch of lookups finds the keys of a block in a table that grows, or in a view of one.

use crate::lookup::batch::BLOCK;
use crate::word::classes::{Class, Classes, Place, State, both};

/// The places of a block's classes in one state of the table, by side, and what slots store of the classes there.
#[derive(Clone, Copy)]
pub(crate) struct BlockOfPlaces {
    pub(crate) numbers: [[u32; BLOCK]; 2],
    pub(crate) stored: [[u32; BLOCK]; 2],
}

/// Zeros, to be overwritten.
impl Default for BlockOfPlaces {
    fn default() -> Self {
        Self { numbers: [[0; BLOCK]; 2], stored: [[0; BLOCK]; 2] }
    }
}

impl BlockOfPlaces {
    #[inline(always)]
    pub(crate) fn set(&mut self, nth: usize, classes: Classes, state: State, class: Class) {
        for side in 0..2 {
            let Place { number, depth } = state.place(class.sides[side]);
            self.numbers[side][nth] = number as u32;
            self.stored[side][nth] = classes.stored(class, depth);
        }
    }

    /// Which of the buckets are split in that state, by side. A loop of its own, which is vectorized.
    #[inline(always)]
    pub(crate) fn are_split(&self, state: State) -> [[bool; BLOCK]; 2] {
        both([&self.numbers[0], &self.numbers[1]], |numbers| {
            let mut are_split = [false; BLOCK];
            for (is_split, &number) in are_split.iter_mut().zip(numbers) {
                *is_split = state.is_split(number);
            }
            are_split
        })
    }
}
