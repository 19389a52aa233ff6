//! PURE: lookups in a growing table. A single lookup is one optimistic read in one state of the table
//! ([`contains`](GrowingLookup::contains)). A lookup in a batch has the same steps in the same order, each for a block of keys.
//! `growth/mod.rs` proves that they are right while the table grows.

use crate::lookup::batch::{BLOCK, Block, BlockLookup, Hashes, LookupBatch};
use crate::lookup::pairs::Pairs;
use crate::lookup::places::BlockOfPlaces;
use crate::lookup::source::{GrowingSource, NEAR};
use crate::machine::arch::VectorUnit;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, Place, State, both};
use crate::word::layout::{Encoding, Layout, Shape, by_encoding, shapes};
use crate::word::layouts::{BothLayouts, Layouts, Row};

/// `$body` with `$layout` as the layout of all buckets; or `$two` with those of buckets that are not split and of buckets
/// that are; or `$any` for two that follow each other only if an encoding was asked for.
///
/// It has an arm for each row, and one for each row and that of its split buckets. Those that no table can have are constant
/// conditions that are false, so nothing is compiled for them.
macro_rules! by_rows {
    (@arms $rows:expr, $layout:ident => $body:expr, $whole:ident $split:ident => $two:expr, $any:expr;
        $($Encoding:ident $slots:literal $bits:literal,)*) => {
        match $rows {
            $(rows if const { Row::<{ row!($Encoding $slots) }>::IS_POSSIBLE }
                && rows == Row::<{ row!($Encoding $slots) }>::ALONE =>
            {
                let $layout = Layouts::in_const_row::<{ row!($Encoding $slots) }>();
                $body
            })*
            $(rows if const { Row::<{ row!($Encoding $slots) }>::CHANGES }
                && rows == Row::<{ row!($Encoding $slots) }>::WITH_SPLIT =>
            {
                let $whole = Layouts::in_const_row::<{ row!($Encoding $slots) }>();
                let $split = Layouts::in_const_row::<{ Row::<{ row!($Encoding $slots) }>::SPLIT }>();
                $two
            })*
            _ => $any,
        }
    };
    ($rows:expr, $layout:ident => $body:expr, $whole:ident $split:ident => $two:expr, $any:expr) => {
        shapes!(by_rows! { @arms $rows, $layout => $body, $whole $split => $two, $any; })
    };
}

/// The place of a shape among all.
macro_rules! row {
    ($Encoding:ident $slots:literal) => {
        Shape::row(Encoding::$Encoding, $slots)
    };
}

/// A growing table, as a lookup sees it.
#[derive(Clone, Copy)]
pub(crate) struct GrowingLookup<S>(pub(crate) S);

impl<S: GrowingSource> GrowingLookup<S> {
    /// Whether there is a copy of the class of this hash. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(self, hash: u64) -> bool {
        let begin = (self.0.epoch(), self.0.state());
        by_rows!(begin.1.rows(), layout => self.contains_by(layout, begin, hash),
            whole split => self.contains_by_two(whole, split, begin, hash), self.contains_by_any(begin, hash))
    }

    /// `contains` where, in this epoch and state, the buckets have this layout.
    #[inline(never)]
    fn contains_by(self, layout: impl Layout, begin: (u64, State), hash: u64) -> bool {
        self.contains_where(begin, hash, |pair, _, stored| Bucket::either_holds_each(layout, pair, stored))
    }

    /// `contains` where the buckets have these two layouts.
    #[inline(never)]
    fn contains_by_two(self, whole: impl Layout, split: impl Layout, begin: (u64, State), hash: u64) -> bool {
        self.contains_where(begin, hash, |pair, are_split, stored| either_holds(whole, split, pair, are_split, stored))
    }

    /// `contains` where the buckets have any two layouts.
    #[inline(never)]
    fn contains_by_any(self, begin: (u64, State), hash: u64) -> bool {
        let layouts = BothLayouts::of_rows(begin.1.rows());
        self.contains_where(begin, hash, |pair, are_split, stored| layouts.either_holds_each(pair, are_split, stored))
    }

    /// Whether the two buckets of the class hold it, by one optimistic read in this epoch and state; begins again if that is
    /// invalidated, or if a bucket is being moved. The arguments of `holds` are the buckets, whether they are split, and what
    /// their slots would store.
    #[inline(always)]
    fn contains_where(
        self,
        (epoch, state): (u64, State),
        hash: u64,
        holds: impl FnOnce([Bucket; 2], [bool; 2], [u32; 2]) -> bool,
    ) -> bool {
        let classes = self.0.classes();
        let class = classes.of(hash);
        let places = both(class.sides, |side| state.place(side));
        if state.moves_any(both(places, |place| place.number)) {
            return self.0.contains_slow(hash);
        }
        let stored = classes.stored_at(class, state, places);
        match self.load_pair(class, epoch, places) {
            Some(pair) => holds(pair, both(places, |place| place.depth != state.level()), stored),
            None => self.0.contains_slow(hash),
        }
    }

    /// The words of a class's two buckets, by one optimistic read. `None` if it was invalidated.
    #[inline(always)]
    fn load_pair(self, class: Class, epoch: u64, places: [Place; 2]) -> Option<[Bucket; 2]> {
        let version = self.0.version(self.0.stripe(class.base));
        // A word is missing only if the table has shrunk, and so its state has changed.
        let pair = self.0.load_pair(both(places, |place| place.number as u32))?;
        (self.0.changes_since(version) == 0 && self.0.is_still(epoch)).then_some(pair)
    }

    /// Calls `answers` with the answers for all hashes, in order and a block at a time.
    pub(crate) fn contains_all(self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        VectorUnit::widest().run(LookupBatch { lookup: self, hashes, answers });
    }

    #[inline(always)]
    fn prefetch_nth(self, prepared: &PreparedBlock, nth: usize) {
        (0..2).for_each(|side| self.0.prefetch(prepared.places.numbers[side][nth]));
    }

    /// The lookups of a block, one by one.
    #[inline(never)]
    fn look_up_each(self, block: Block<'_, PreparedBlock>, next: &PreparedBlock, answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate().take(block.len) {
            self.prefetch_nth(next, nth);
            *answer = self.contains(block.hashes[nth]);
        }
    }

    /// The lookups of a block in a table whose buckets have this layout. Its numbers are data: constants gain less here than in
    /// a single lookup. Not 0 if any was invalidated.
    #[inline(always)]
    fn look_up_by(
        self,
        layout: impl Layout,
        block: Block<'_, PreparedBlock>,
        next: &PreparedBlock,
        answers: &mut [bool; BLOCK],
    ) -> u64 {
        let mut pairs = Pairs::NONE;
        let set = |pairs: &mut Pairs, nth, [first, second]: [Bucket; 2]| pairs.set(layout, nth, first, second);
        let changes = self.load_block(block, next, &mut pairs, set);
        pairs.find_stored(layout, &block.prepared.places.stored, answers);
        changes
    }

    /// The lookups of a block in a table whose buckets have two layouts. Not 0 if any was invalidated. (Vectorizing it
    /// gains nothing.)
    #[inline(never)]
    fn look_up_mixed(self, block: Block<'_, PreparedBlock>, next: &PreparedBlock, answers: &mut [bool; BLOCK]) -> u64 {
        let &PreparedBlock { state, ref places, .. } = block.prepared;
        let mut pairs = Pairs::NONE;
        let changes = self.load_block(block, next, &mut pairs, Pairs::set_encoded);
        let are_split = places.are_split(state);
        by_rows!(state.rows(), _layout => unreachable!("the buckets have two layouts"), whole split => {
            compare_each(&pairs, &are_split, &places.stored, answers, |pair, are_split, stored| {
                either_holds(whole, split, pair, are_split, stored)
            })
        }, {
            let layouts = BothLayouts::of_rows(state.rows());
            compare_each(&pairs, &are_split, &places.stored, answers, |pair, are_split, stored| {
                layouts.either_holds_each(pair, are_split, stored)
            })
        });
        changes
    }

    /// Reads the words of a block, each lookup's as [`load_pair`](Self::load_pair) does, and passes them on. Prefetches those
    /// of the next one. Not 0 if any lookup was invalidated. (Not inlined: no vector unit does it better.)
    #[inline(never)]
    fn load_block(
        self,
        block: Block<'_, PreparedBlock>,
        next: &PreparedBlock,
        pairs: &mut Pairs,
        set: impl Fn(&mut Pairs, usize, [Bucket; 2]),
    ) -> u64 {
        let (prepared, places) = (block.prepared, &block.prepared.places);
        let (source, is_far) = (self.0, prepared.state.buckets() > NEAR);
        let mut changes = 0;
        for nth in 0..block.len.min(BLOCK) {
            if is_far {
                self.prefetch_nth(next, nth);
            }
            let version = source.version(prepared.stripes[nth]);
            let Some(pair) = source.load_pair(both([0, 1], |side| places.numbers[side][nth])) else { return 1 };
            set(pairs, nth, pair);
            changes |= source.changes_since(version);
        }
        changes
    }
}

/// The classes of a block and, in one state, their places.
#[derive(Clone, Copy)]
pub(crate) struct PreparedBlock {
    state: State,
    stripes: [u32; BLOCK],
    places: BlockOfPlaces,
}

/// A value to be overwritten.
impl Default for PreparedBlock {
    fn default() -> Self {
        Self { state: State(0), stripes: [0; BLOCK], places: BlockOfPlaces::default() }
    }
}

impl<S: GrowingSource> BlockLookup for GrowingLookup<S> {
    type Prepared = PreparedBlock;

    type Answer = bool;

    const ABSENT: bool = false;

    #[inline(always)]
    fn prepare(&self, _: VectorUnit, hashes: &[u64; BLOCK], prepared: &mut PreparedBlock) {
        let (state, classes) = (self.0.state(), self.0.classes());
        prepared.state = state;
        for (nth, &hash) in hashes.iter().enumerate() {
            let class = classes.of(hash);
            prepared.stripes[nth] = self.0.stripe(class.base);
            prepared.places.set(nth, classes, state, class);
        }
    }

    #[inline(always)]
    fn prefetch(&self, prepared: &PreparedBlock) {
        (0..BLOCK).for_each(|nth| self.prefetch_nth(prepared, nth));
    }

    /// The steps of a single lookup, for all keys, in the same order. If the state has changed meanwhile, each key is looked up
    /// again by itself.
    #[inline(always)]
    fn look_up(&mut self, block: Block<'_, PreparedBlock>, next: &PreparedBlock, answers: &mut [bool; BLOCK]) {
        let epoch = self.0.epoch();
        let (state, prepared) = (self.0.state(), block.prepared);
        if prepared.state != state || state.is_moving() {
            return self.look_up_each(block, next, answers);
        }
        let [whole, split] = both([false, true], |is_split| state.rows().of(is_split));
        let changes = if whole != split {
            self.look_up_mixed(block, next, answers)
        } else {
            by_encoding!(Layouts::in_row(whole).runtime(), layout => self.look_up_by(layout, block, next, answers))
        };
        if changes != 0 || !self.0.is_still(epoch) {
            self.look_up_each(block, next, answers);
        }
    }
}

/// Compares the two buckets of each class of a block, of which each is split or not, with what their slots would store.
#[inline(always)]
fn compare_each(
    pairs: &Pairs,
    are_split: &[[bool; BLOCK]; 2],
    stored: &[[u32; BLOCK]; 2],
    answers: &mut [bool; BLOCK],
    holds: impl Fn([Bucket; 2], [bool; 2], [u32; 2]) -> bool,
) {
    for (nth, answer) in answers.iter_mut().enumerate() {
        let are_split = both([0, 1], |side| are_split[side][nth]);
        *answer = holds(pairs.buckets(nth), are_split, both([0, 1], |side| stored[side][nth]));
    }
}

/// Whether either bucket holds what its slots would store. One that is split has `split` as its layout, another one `whole`.
#[inline(always)]
fn either_holds(
    whole: impl Layout,
    split: impl Layout,
    pair: [Bucket; 2],
    are_split: [bool; 2],
    stored: [u32; 2],
) -> bool {
    // Without a branch on random bits. An empty bucket holds nothing, as long as what is searched for fits in its
    // slots.
    let of = |of_split| both([0, 1], |side| pair[side].only_if(are_split[side] == of_split));
    let fitting = both(stored, |stored| stored & split.lanes().fingerprint_mask);
    Bucket::either_holds_each(whole, of(false), stored) | Bucket::either_holds_each(split, of(true), fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::classes::Classes;
    use crate::word::layout::SHAPES;

    /// Unless an encoding was asked for, every size has code of its own, with the constants of its layouts.
    #[test]
    fn a_lookup_knows_the_constants_of_the_layouts() {
        fn check(layout: impl Layout, shape: Shape) {
            let lanes = layout.lanes();
            assert_eq!((lanes.slots.into(), lanes.bits.into()), (shape.slots, shape.lane_bits()), "{shape:?}");
        }
        let layouts = Layouts::new(Classes::new(8, 32), None, 8..=32).expect("memory for decode tables");
        for (level, is_split) in (8..32).flat_map(|level| [(level, false), (level, true)]) {
            let rows = layouts.rows(level, is_split);
            let [of_whole, of_split] = [rows.whole(), rows.split()].map(|row| SHAPES[usize::from(row)]);
            by_rows!(rows,
                layout => { assert_eq!(of_whole, of_split); check(layout, of_whole); },
                whole split => { check(whole, of_whole); check(split, of_split); },
                panic!("none for {of_whole:?} and {of_split:?}"));
        }
    }
}
