//! PURE: lookups in the words of a growing table, at the size that it had.

use core::hint::select_unpredictable;

use crate::machine::arch::{VectorUnit, Vectorized};
use crate::plan::batch::{BLOCK, Coming, Hashes, Window};
use crate::view::words::{ViewTable, Words};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::classes::{Classes, Place, State};
use crate::word::geometry::mixed;
use crate::word::layout::{Encoding, Layout};
use crate::word::layouts::{DynLayout, Encoded, Layouts};

/// A table without its words.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Debug)]
pub struct Growing {
    classes: Classes,
    state: State,
    layouts: Layouts,
}

impl Growing {
    /// A table of this many buckets, or `None` if there is no memory for a decode table.
    pub(super) fn new(classes: Classes, encoding: Option<Encoding>, buckets: usize) -> Option<Self> {
        let state = State::of_buckets(buckets);
        Some(Self { classes, state, layouts: Layouts::new(classes, encoding, state.level())? })
    }

    /// The comparison for buckets of two layouts.
    fn two_layouts(&self) -> TwoLayouts {
        let level = self.state.level();
        let [whole, split] = [level, level + 1].map(|depth| self.layouts.at(depth));
        TwoLayouts { level, whole, split }
    }
}

/// How the bucket of a side is compared with what a slot would store there.
trait Compare: Copy {
    /// What the decode table has for a bucket, if that is asked for together with the bucket.
    fn folded(self, bucket: Bucket) -> u32;

    /// Not 0 if the bucket, which is at this depth, holds it.
    fn matches(self, bucket: Bucket, folded: u32, depth: u32, stored: u32) -> u64;
}

/// All buckets have this layout.
#[derive(Clone, Copy)]
struct OneLayout<L>(L);

impl<L: Layout> Compare for OneLayout<L> {
    #[inline(always)]
    fn folded(self, bucket: Bucket) -> u32 {
        self.0.folded(bucket)
    }

    #[inline(always)]
    fn matches(self, bucket: Bucket, folded: u32, _: u32, stored: u32) -> u64 {
        self.0.lanes_equal(bucket, folded, self.0.pattern(stored))
    }
}

/// Buckets that are split have another layout.
#[derive(Clone, Copy)]
struct TwoLayouts {
    level: u32,
    whole: &'static DynLayout,
    split: &'static DynLayout,
}

impl Compare for TwoLayouts {
    #[inline(always)]
    fn folded(self, _: Bucket) -> u32 {
        0
    }

    #[inline(always)]
    fn matches(self, bucket: Bucket, _: u32, depth: u32, stored: u32) -> u64 {
        // Without a branch on random bits.
        select_unpredictable(depth != self.level, &self.split, &self.whole).matches(bucket, stored)
    }
}

impl ViewTable for Growing {
    fn contains(&self, words: Words<'_>, hash: u64) -> bool {
        let class = self.classes.of(mixed(hash));
        let places = class.sides.map(|side| self.state.place(side));
        let stored = self.classes.stored_at(class, self.state, places);
        let compare = self.two_layouts();
        let of = |side: usize| compare.matches(words.get(places[side].number), 0, places[side].depth, stored[side]);
        of(0) | of(1) != 0
    }

    fn contains_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let (&Self { classes, state, ref layouts }, unit) = (self, VectorUnit::widest());
        let rows = layouts.rows(state.level(), state.split() > 0);
        if rows.whole() != rows.split() {
            return unit.run(GrowingBatch { classes, state, compare: self.two_layouts(), words, hashes, answers });
        }
        match layouts.at(state.level()).encoded() {
            Encoded::Plain(&layout) => {
                unit.run(GrowingBatch { classes, state, compare: OneLayout(layout), words, hashes, answers });
            }
            Encoded::SemiSorted(&layout) => {
                unit.run(GrowingBatch { classes, state, compare: OneLayout(layout), words, hashes, answers });
            }
        }
    }
}

/// A batch, all of which is compiled for each vector unit.
struct GrowingBatch<'a, C> {
    classes: Classes,
    state: State,
    compare: C,
    words: Words<'a>,
    hashes: Hashes<'a>,
    answers: &'a mut dyn FnMut(&[bool]),
}

/// Where the sides of a block's classes are, and what their slots store.
#[derive(Clone, Copy, Default)]
struct BlockOfSides {
    numbers: [[u32; BLOCK]; 2],
    depths: [[u32; BLOCK]; 2],
    stored: [[u32; BLOCK]; 2],
}

impl<C: Compare> Vectorized for GrowingBatch<'_, C> {
    #[inline(always)]
    fn run(self) {
        let Self { classes, state, compare, words, hashes, answers } = self;
        let is_far = words.are_far();
        let mut window = Window::<BlockOfSides>::new(hashes);
        loop {
            while let Some(Coming { hashes, prepared: sides, is_first, .. }) = window.coming() {
                for (nth, &hash) in hashes.iter().enumerate() {
                    let class = classes.of(mixed(hash));
                    for side in 0..2 {
                        let Place { number, depth } = state.place(class.sides[side]);
                        sides.numbers[side][nth] = number as u32;
                        sides.depths[side][nth] = depth;
                        sides.stored[side][nth] = classes.stored(class, depth);
                    }
                }
                if is_first {
                    sides.numbers.as_flattened().iter().for_each(|&number| words.prefetch(number as usize));
                }
            }
            let Some((block, coming)) = window.next() else { return };
            let (mut buckets, mut folded) = ([[Bucket::default(); BLOCK]; 2], [[0; BLOCK]; 2]);
            let sides = block.prepared;
            for nth in 0..BLOCK {
                for side in 0..2 {
                    if is_far {
                        words.prefetch(coming.numbers[side][nth] as usize);
                    }
                    let bucket = words.get(sides.numbers[side][nth] as usize);
                    (buckets[side][nth], folded[side][nth]) = (bucket, compare.folded(bucket));
                }
            }
            let mut of_block = [false; BLOCK];
            for (nth, answer) in of_block.iter_mut().enumerate() {
                let of = |side: usize| {
                    let (depth, stored) = (sides.depths[side][nth], sides.stored[side][nth]);
                    compare.matches(buckets[side][nth], folded[side][nth], depth, stored)
                };
                *answer = of(0) | of(1) != 0;
            }
            answers(&of_block[..block.len]);
        }
    }
}
