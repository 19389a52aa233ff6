//! PURE: lookups in the words of a growing table, at the size that it had.

use crate::filter::view::words::{ViewTable, Words};
use crate::lookup::batch::{BLOCK, Block, BlockLookup, Hashes, LookupBatch};
use crate::lookup::pairs::Pairs;
use crate::lookup::places::BlockOfPlaces;
use crate::lookup::source::Source as _;
use crate::machine::arch::VectorUnit;
use crate::word::bucket::Bucket;
use crate::word::classes::{Classes, Rows, State, both};
use crate::word::geometry::mixed;
use crate::word::layout::{Encoding, Layout, by_encoding};
use crate::word::layouts::{BothLayouts, Layouts};

/// A table without its words.
#[allow(unreachable_pub, reason = "a public trait that nobody can name has it")]
#[derive(Debug)]
pub struct Growing {
    classes: Classes,
    state: State,
    rows: Rows,
}

impl Growing {
    /// A table of this many buckets, or `None` if there is no memory for a decode table.
    pub(super) fn new(classes: Classes, encoding: Option<Encoding>, buckets: usize) -> Option<Self> {
        let state = State::of_buckets(buckets);
        let rows = Layouts::new(classes, encoding, state.depths())?.rows(state.level(), state.split() > 0);
        Some(Self { classes, state, rows })
    }
}

/// How the buckets of a batch are read and compared with what their slots would store.
trait Compare: Copy {
    fn set(self, pairs: &mut Pairs, nth: usize, pair: [Bucket; 2]);

    fn find(self, pairs: &Pairs, state: State, places: &BlockOfPlaces, answers: &mut [bool; BLOCK]);
}

/// All buckets have this layout.
#[derive(Clone, Copy)]
struct OneLayout<L>(L);

impl<L: Layout> Compare for OneLayout<L> {
    #[inline(always)]
    fn set(self, pairs: &mut Pairs, nth: usize, [first, second]: [Bucket; 2]) {
        pairs.set(self.0, nth, first, second);
    }

    #[inline(always)]
    fn find(self, pairs: &Pairs, _: State, places: &BlockOfPlaces, answers: &mut [bool; BLOCK]) {
        pairs.find_stored(self.0, &places.stored, answers);
    }
}

/// Buckets that are split have another layout.
impl Compare for BothLayouts {
    #[inline(always)]
    fn set(self, pairs: &mut Pairs, nth: usize, pair: [Bucket; 2]) {
        pairs.set_encoded(nth, pair);
    }

    #[inline(always)]
    fn find(self, pairs: &Pairs, state: State, places: &BlockOfPlaces, answers: &mut [bool; BLOCK]) {
        let are_split = places.are_split(state);
        for (nth, answer) in answers.iter_mut().enumerate() {
            let are_split = both([0, 1], |side| are_split[side][nth]);
            let stored = both([0, 1], |side| places.stored[side][nth]);
            *answer = self.either_holds_each(pairs.buckets(nth), are_split, stored);
        }
    }
}

impl ViewTable for Growing {
    fn contains(&self, words: Words<'_>, hash: u64) -> bool {
        let (state, class) = (self.state, self.classes.of(mixed(hash)));
        let places = both(class.sides, |side| state.place(side));
        let stored = self.classes.stored_at(class, state, places);
        let pair = both(places, |place| words.load(place.number));
        let are_split = both(places, |place| place.depth != state.level());
        BothLayouts::of_rows(self.rows).either_holds_each(pair, are_split, stored)
    }

    fn contains_batch(&self, words: Words<'_>, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let (&Self { classes, state, rows }, unit) = (self, VectorUnit::widest());
        if rows.whole() != rows.split() {
            let lookup = GrowingLookup { classes, state, compare: BothLayouts::of_rows(rows), words };
            return unit.run(LookupBatch { lookup, hashes, answers });
        }
        by_encoding!(*Layouts::in_row(rows.of(false)).data(), layout => {
            let lookup = GrowingLookup { classes, state, compare: OneLayout(layout), words };
            unit.run(LookupBatch { lookup, hashes, answers });
        });
    }
}

/// The lookups of a batch.
struct GrowingLookup<'a, C> {
    classes: Classes,
    state: State,
    compare: C,
    words: Words<'a>,
}

impl<C: Compare> BlockLookup for GrowingLookup<'_, C> {
    type Prepared = BlockOfPlaces;

    type Answer = bool;

    const ABSENT: bool = false;

    #[inline(always)]
    fn prepare(&self, _: VectorUnit, hashes: &[u64; BLOCK], places: &mut BlockOfPlaces) {
        for (nth, &hash) in hashes.iter().enumerate() {
            places.set(nth, self.classes, self.state, self.classes.of(mixed(hash)));
        }
    }

    #[inline(always)]
    fn prefetch(&self, places: &BlockOfPlaces) {
        places.numbers.as_flattened().iter().for_each(|&number| self.words.prefetch(number as usize));
    }

    #[inline(always)]
    fn look_up(&mut self, block: Block<'_, BlockOfPlaces>, coming: &BlockOfPlaces, answers: &mut [bool; BLOCK]) {
        let (is_far, places, mut pairs) = (self.words.is_far(), block.prepared, Pairs::NONE);
        for nth in 0..BLOCK {
            if is_far {
                coming.numbers.iter().for_each(|of_side| self.words.prefetch(of_side[nth] as usize));
            }
            let pair = both([0, 1], |side| self.words.load(places.numbers[side][nth] as usize));
            self.compare.set(&mut pairs, nth, pair);
        }
        self.compare.find(&pairs, self.state, places, answers);
    }
}
