//! CONCURRENT: lookups in a growing table, and the reads of operations that hold a stripe's lock.

use crate::growth::growing_table::{GrowingTable, load};
use crate::lookup::batch::{BLOCK, Block, BlockLookup, Hashes, LookupBatch};
use crate::lookup::pairs::Pairs;
use crate::lookup::places::BlockOfPlaces;
use crate::machine::arch::{VectorUnit, at, prefetch_line};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::classes::{Class, Place, State, both, stripe_number};
use crate::word::layout::{Encoding, Layout, Shape, by_encoding, shapes};
use crate::word::layouts::{BothLayouts, Layouts, Row};

/// A table of at most this many buckets stays in the L2 cache if it is hot.
pub(super) const NEAR: usize = (512 << 10) / size_of::<u64>();

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
                let $layout = Layouts::in_known_row::<{ row!($Encoding $slots) }>();
                $body
            })*
            $(rows if const { Row::<{ row!($Encoding $slots) }>::CHANGES }
                && rows == Row::<{ row!($Encoding $slots) }>::WITH_SPLIT =>
            {
                let $whole = Layouts::in_known_row::<{ row!($Encoding $slots) }>();
                let $split = Layouts::in_known_row::<{ Row::<{ row!($Encoding $slots) }>::SPLIT }>();
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

impl GrowingTable {
    /// Whether there is a copy of the class of this hash. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let begin = (self.epoch(), self.state());
        by_rows!(begin.1.rows(), layout => self.contains_by(layout, begin, hash),
            whole split => self.contains_by_two(whole, split, begin, hash), self.contains_by_any(begin, hash))
    }

    /// `contains` where, in this epoch and state, the buckets have this layout.
    #[inline(never)]
    fn contains_by(&self, layout: impl Layout, begin: (u64, State), hash: u64) -> bool {
        self.attempt(begin, hash, |pair, _, stored| layout.either_holds_each(pair, stored))
    }

    /// `contains` where the buckets have these two layouts.
    #[inline(never)]
    fn contains_by_two(&self, whole: impl Layout, split: impl Layout, begin: (u64, State), hash: u64) -> bool {
        self.attempt(begin, hash, |pair, are_split, stored| either_holds(whole, split, pair, are_split, stored))
    }

    /// `contains` where the buckets have any two layouts.
    #[inline(never)]
    fn contains_by_any(&self, begin: (u64, State), hash: u64) -> bool {
        let layouts = BothLayouts::of_rows(begin.1.rows());
        self.attempt(begin, hash, |pair, are_split, stored| layouts.either_holds_each(pair, are_split, stored))
    }

    /// One attempt, in this epoch and state; retries if it is invalidated, or if a bucket is being moved. The arguments
    /// of `holds` are the two buckets, whether they are split, and what their slots would store.
    #[inline(always)]
    fn attempt(
        &self,
        (epoch, state): (u64, State),
        hash: u64,
        holds: impl FnOnce([Bucket; 2], [bool; 2], [u32; 2]) -> bool,
    ) -> bool {
        let class = self.plan.classes.of(hash);
        let places = both(class.sides, |side| state.place(side));
        if state.moves_any(both(places, |place| place.number)) {
            return self.contains_slow(hash);
        }
        let stored = self.plan.classes.stored_at(class, state, places);
        match self.load_pair(class, epoch, places) {
            Some(pair) => holds(pair, both(places, |place| place.depth != state.level()), stored),
            None => self.contains_slow(hash),
        }
    }

    /// The words of a class's two buckets, by one optimistic read. `None` if it was invalidated.
    #[inline(always)]
    fn load_pair(&self, class: Class, epoch: u64, places: [Place; 2]) -> Option<[Bucket; 2]> {
        let stripe = self.stripe(class.base);
        let version = stripe.version();
        // A word is missing only if the table has shrunk, and so its state has changed.
        let pair = self.words.read_pair(both(places, |place| place.number as u32), load)?;
        (stripe.is_still(version) && self.is_still(epoch)).then_some(pair)
    }

    /// `contains` where the first attempt was invalidated, or where a bucket is being moved.
    #[cold]
    #[inline(never)]
    fn contains_slow(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        let stripe = self.stripe(class.base);
        loop {
            let epoch = self.epoch();
            let state = self.state();
            let version = stripe.version();
            let found = self.copies_in(class, state).iter().any(|&copies| copies > 0);
            // If the state is the same, a match is certain, whatever was taken meanwhile.
            if self.is_still(epoch) && (found || stripe.is_still(version)) {
                return found;
            }
            self.counters().lookup_retried();
        }
    }

    /// How many copies of the class there are on each side, in this state.
    #[inline]
    fn copies_in(&self, class: Class, state: State) -> [usize; 2] {
        both([0, 1], |side| self.copies_on(class, side, state))
    }

    /// How many copies of the class there are on one side, in this state.
    #[inline(always)]
    fn copies_on(&self, class: Class, side: usize, state: State) -> usize {
        let (bucket, depth) = self.contents(state, class.sides[side]);
        self.layout(depth).count(bucket, self.plan.classes.stored(class, depth))
    }

    /// How many copies of the class there are on each side. The caller holds the class's stripe, so no copy is taken
    /// out meanwhile.
    pub(super) fn copies(&self, class: Class) -> [usize; 2] {
        self.in_one_state(|state| self.copies_in(class, state))
    }

    /// Retries `read` until the state is the same afterwards.
    #[inline(always)]
    fn in_one_state<R>(&self, read: impl Fn(State) -> R) -> R {
        loop {
            let epoch = self.epoch();
            let found = read(self.state());
            if self.is_still(epoch) {
                return found;
            }
        }
    }

    /// How many copies of the class of this hash there are.
    pub(crate) fn count(&self, hash: u64) -> usize {
        let class = self.plan.classes.of(hash);
        let _guard = self.stripe(class.base).lock(self.counters());
        self.copies(class).iter().sum()
    }

    /// Prefetches the buckets and the stripes of these hashes.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        let state = self.state();
        for class in hashes.iter().map(|&hash| self.plan.classes.of(hash)) {
            self.prefetch_class(state, class);
            prefetch_line(self.stripe(class.base));
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_class(&self, state: State, class: Class) {
        class.sides.into_iter().for_each(|side| self.prefetch_bucket(state.place(side).number));
    }

    /// Prefetches a bucket that there is or was.
    #[inline(always)]
    pub(super) fn prefetch_bucket(&self, number: usize) {
        if let Some(word) = self.words.get(number as u32) {
            prefetch_line(word);
        }
    }

    /// `contains` for each hash.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        VectorUnit::widest().run(LookupBatch { lookup: self, hashes, answers });
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

impl BlockLookup for &GrowingTable {
    type Prepared = PreparedBlock;

    type Answer = bool;

    const ABSENT: bool = false;

    #[inline(always)]
    fn prepare(&self, _: VectorUnit, hashes: &[u64; BLOCK], prepared: &mut PreparedBlock) {
        let (state, classes, mask) = (self.state(), self.plan.classes, self.stripes.len() - 1);
        prepared.state = state;
        for (nth, &hash) in hashes.iter().enumerate() {
            let class = classes.of(hash);
            prepared.stripes[nth] = (stripe_number(class.base) & mask) as u32;
            prepared.places.set(nth, classes, state, class);
        }
    }

    #[inline(always)]
    fn prefetch(&self, prepared: &PreparedBlock) {
        (0..BLOCK).for_each(|nth| self.prefetch_nth(prepared, nth));
    }

    #[inline(always)]
    fn look_up(&mut self, block: Block<'_, PreparedBlock>, coming: &PreparedBlock, answers: &mut [bool; BLOCK]) {
        self.look_up_block(block, coming, answers);
    }
}

impl GrowingTable {
    #[inline(always)]
    fn prefetch_nth(&self, prepared: &PreparedBlock, nth: usize) {
        (0..2).for_each(|side| self.prefetch_bucket(prepared.places.numbers[side][nth] as usize));
    }

    /// The lookups of a block: the steps of a single lookup, for all keys, in the same order. If the state has changed
    /// meanwhile, each key is looked up again by itself.
    #[inline(always)]
    fn look_up_block(&self, block: Block<'_, PreparedBlock>, coming: &PreparedBlock, answers: &mut [bool; BLOCK]) {
        let epoch = self.epoch();
        let (state, prepared) = (self.state(), block.prepared);
        if prepared.state != state || state.is_moving() {
            return self.look_up_each(block, coming, answers);
        }
        let [whole, split] = both([false, true], |is_split| state.rows().of(is_split));
        let changes = if whole != split {
            self.look_up_mixed(block, coming, answers)
        } else {
            by_encoding!(Layouts::in_row(whole).data(), layout => self.look_up_by(layout, block, coming, answers))
        };
        if changes != 0 || !self.is_still(epoch) {
            self.look_up_each(block, coming, answers);
        }
    }

    /// The lookups of a block, one by one.
    #[inline(never)]
    fn look_up_each(&self, block: Block<'_, PreparedBlock>, coming: &PreparedBlock, answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate().take(block.len) {
            self.prefetch_nth(coming, nth);
            *answer = self.contains(block.hashes[nth]);
        }
    }

    /// The lookups of a block in a table whose buckets have this layout. Its numbers are data: constants gain less here than in
    /// a single lookup. Not 0 if any was invalidated.
    #[inline(always)]
    fn look_up_by(
        &self,
        layout: impl Layout,
        block: Block<'_, PreparedBlock>,
        coming: &PreparedBlock,
        answers: &mut [bool; BLOCK],
    ) -> u64 {
        let mut pairs = Pairs::NONE;
        let set = |pairs: &mut Pairs, nth, [first, second]: [Bucket; 2]| pairs.set(layout, nth, first, second);
        let changes = self.load_block(block, coming, &mut pairs, set);
        pairs.find_stored(layout, &block.prepared.places.stored, answers);
        changes
    }

    /// The lookups of a block in a table whose buckets have two layouts. Not 0 if any was invalidated. (Vectorizing it
    /// gains nothing.)
    #[inline(never)]
    fn look_up_mixed(
        &self,
        block: Block<'_, PreparedBlock>,
        coming: &PreparedBlock,
        answers: &mut [bool; BLOCK],
    ) -> u64 {
        let &PreparedBlock { state, ref places, .. } = block.prepared;
        let mut pairs = Pairs::NONE;
        let changes = self.load_block(block, coming, &mut pairs, Pairs::set_encoded);
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
        &self,
        block: Block<'_, PreparedBlock>,
        coming: &PreparedBlock,
        pairs: &mut Pairs,
        set: impl Fn(&mut Pairs, usize, [Bucket; 2]),
    ) -> u64 {
        let (prepared, places) = (block.prepared, &block.prepared.places);
        let (stripes, is_far) = (&*self.stripes, prepared.state.buckets() > NEAR);
        let mut changes = 0;
        for nth in 0..block.len.min(BLOCK) {
            if is_far {
                self.prefetch_nth(coming, nth);
            }
            let stripe = at(stripes, prepared.stripes[nth] as usize);
            let version = stripe.version();
            let words = both([0, 1], |side| self.words.get(places.numbers[side][nth]));
            let [Some(first), Some(second)] = words else { return 1 };
            set(pairs, nth, [load(first), load(second)]);
            changes |= stripe.changes_since(version);
        }
        changes
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
    whole.either_holds_each(of(false), stored) | split.either_holds_each(of(true), fitting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::plan::Plan;
    use crate::word::classes::Classes;
    use crate::word::layout::SHAPES;

    /// Unless an encoding was asked for, every size has code of its own, with the constants of its layouts.
    #[test]
    fn a_lookup_knows_the_constants_of_the_layouts() {
        fn check(layout: impl Layout, shape: Shape) {
            let lanes = layout.lanes();
            assert_eq!((lanes.slots.into(), lanes.bits.into()), (shape.slots, shape.lane_bits()), "{shape:?}");
        }
        let table = GrowingTable::new(Plan::of(Classes::new(8, 32), 1 << 8, None)).expect("some kilobytes");
        for (level, is_split) in (8..32).flat_map(|level| [(level, false), (level, true)]) {
            let rows = table.layouts.rows(level, is_split);
            let [of_whole, of_split] = [rows.whole(), rows.split()].map(|row| SHAPES[usize::from(row)]);
            by_rows!(rows,
                layout => { assert_eq!(of_whole, of_split); check(layout, of_whole); },
                whole split => { check(whole, of_whole); check(split, of_split); },
                panic!("none for {of_whole:?} and {of_split:?}"));
        }
    }
}
