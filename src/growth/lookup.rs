//! CONCURRENT: lookups in a table that grows, and the reads of operations that hold a stripe's lock.

use core::hint::select_unpredictable;

use crate::growth::table::{GrowingTable, load};
use crate::machine::arch::{VectorUnit, Vectorized, prefetch_line};
use crate::plan::batch::{self, BLOCK, Block, Hashes, Steps};
use crate::sync::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::classes::{Class, Place, State, stripe_number};
use crate::word::layout::{Borrowed, Layout, Plain, SemiSorted};
use crate::word::layouts::{Layouts, MIXED};

/// A table of at most this many buckets is in the L2 cache, if it is used much.
const NEAR: usize = (512 << 10) / size_of::<u64>();

/// `$body` with `$layout` as the layout of all buckets, whose numbers are constants, or `$mixed` if there are two.
macro_rules! by_kind {
    ($table:expr, $kind:expr, $layout:ident => $body:expr, $mixed:expr) => {
        by_kind!($table, $kind, $layout => $body, $mixed;
            Plain 0 8 8, Plain 2 7 9, Plain 4 6 10, SemiSorted 5 6 12 0, Plain 6 5 12, SemiSorted 7 5 14 1, Plain 8 4 16,
            SemiSorted 9 4 17 2, Plain 10 3 21, SemiSorted 11 3 22 3, Plain 12 2 32)
    };
    ($table:expr, $kind:expr, $layout:ident => $body:expr, $mixed:expr; $($Encoding:ident $row:literal $slots:literal $bits:literal $($at:literal)?),*) => {
        match $kind {
            $($row => {
                let $layout: Borrowed<'_, $Encoding, $slots, $bits> = Borrowed(by_kind!(of $table, $Encoding $row $($at)?));
                $body
            })*
            _ => $mixed,
        }
    };
    (of $table:expr, Plain $row:literal) => { Layouts::plain($row) };
    (of $table:expr, SemiSorted $row:literal $at:literal) => { $table.layouts.semi_sorted($at) };
}

impl GrowingTable {
    /// Whether a copy is in. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let kind = self.state().own();
        by_kind!(self, kind, layout => self.contains_by(layout, kind, hash), self.contains_mixed(hash))
    }

    /// The same in a table whose buckets have this layout.
    #[inline(never)]
    fn contains_by(&self, layout: impl Layout, kind: u8, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        self.attempt(class, kind, |pair, stored, _| layout.either_holds_each(pair, stored))
    }

    /// The same in a table whose buckets have two layouts.
    #[inline(never)]
    fn contains_mixed(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        self.attempt(class, MIXED, |pair, stored, state| {
            let [whole, split] = [state.level(), state.level() + 1].map(|depth| self.layout(depth));
            // Without a branch on what is as good as random.
            let of = |nth: usize| {
                let is_split = state.place(class.sides[nth]).depth != state.level();
                let layout = select_unpredictable(is_split, &split, &whole);
                layout.matches(pair[nth], stored[nth])
            };
            of(0) | of(1) != 0
        })
    }

    /// One attempt in a table of this kind, by `holds`. If it is invalidated, if a bucket is being moved, or if the table is of
    /// another kind by now, others.
    #[inline(always)]
    fn attempt(&self, class: Class, kind: u8, holds: impl FnOnce([Bucket; 2], [u32; 2], State) -> bool) -> bool {
        let epoch = self.epoch();
        let state = self.state();
        let is_moving = || class.sides.iter().any(|&side| state.moving_at(side).is_some());
        if state.own() != kind || state.is_moving() && is_moving() {
            return self.contains_slow(class);
        }
        let places = class.sides.map(|side| state.place(side));
        let stored = self.plan.classes.stored_at(class, state, places);
        match self.load_pair(class, epoch, places) {
            Some(pair) => holds(pair, stored, state),
            None => self.contains_slow(class),
        }
    }

    /// The words of a class's two buckets. `None` if they are not of one moment.
    #[inline(always)]
    fn load_pair(&self, class: Class, epoch: u64, places: [Place; 2]) -> Option<[Bucket; 2]> {
        let stripe = self.stripe(class);
        let version = stripe.version();
        let [first, second] = places.map(|place| self.words.get(place.number as u32));
        // There is no such word only if the table has become smaller and its state has changed.
        let pair = [load(first?), load(second?)];
        let is_still = (stripe.is_still(version) || fault::injected(Fault::LookupWithoutVersion))
            && (self.is_still(epoch) || fault::injected(Fault::LookupWithoutEpoch));
        is_still.then_some(pair)
    }

    /// `contains` where the first attempt was invalidated, or where a bucket is being moved.
    #[cold]
    #[inline(never)]
    fn contains_slow(&self, class: Class) -> bool {
        let stripe = self.stripe(class);
        loop {
            let epoch = self.epoch();
            let state = self.state();
            let version = stripe.version();
            let found = self.copies_in(class, state).iter().any(|&copies| copies > 0);
            if self.is_still(epoch) || fault::injected(Fault::LookupWithoutEpoch) {
                // A match is certain, whatever was taken meanwhile.
                if found || stripe.is_still(version) || fault::injected(Fault::LookupWithoutVersion) {
                    return found;
                }
            }
            self.counters.lookup_retried();
        }
    }

    /// How many copies of the class there are on each side, in this state.
    #[inline]
    fn copies_in(&self, class: Class, state: State) -> [usize; 2] {
        class.sides.map(|side| {
            let (bucket, depth) = self.contents(state, side);
            self.layout(depth).count(bucket, self.plan.classes.stored(class, depth))
        })
    }

    /// How many copies of the class there are on each side. The caller holds the class's stripe: nobody takes one out, so
    /// they are there at one moment.
    pub(super) fn copies(&self, class: Class) -> [usize; 2] {
        loop {
            let epoch = self.epoch();
            let copies = self.copies_in(class, self.state());
            if self.is_still(epoch) || fault::injected(Fault::WriterWithoutEpoch) {
                return copies;
            }
        }
    }

    /// How many copies are in.
    pub(crate) fn count(&self, hash: u64) -> usize {
        let class = self.plan.classes.of(hash);
        let _guard = self.stripe(class).lock_unless(Fault::CountWithoutLock, &self.counters);
        self.copies(class).iter().sum()
    }

    /// Prefetches the buckets and the stripes of these.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        let state = self.state();
        for class in hashes.iter().map(|&hash| self.plan.classes.of(hash)) {
            self.prefetch_class(state, class);
            prefetch_line(self.stripe(class));
        }
    }

    #[inline(always)]
    pub(super) fn prefetch_class(&self, state: State, class: Class) {
        for side in class.sides {
            if let Some(word) = self.words.get(state.place(side).number as u32) {
                prefetch_line(word);
            }
        }
    }

    /// `contains` for many.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        VectorUnit::widest().run(Lookups { table: self, hashes, answers });
    }
}

/// A batch of lookups, all of which is compiled for each vector unit.
struct Lookups<'a> {
    table: &'a GrowingTable,
    hashes: Hashes<'a>,
    answers: &'a mut dyn FnMut(&[bool]),
}

impl Vectorized for Lookups<'_> {
    #[inline(always)]
    fn run(self) {
        batch::for_each_block(self.hashes, &mut LookUp { table: self.table, answers: self.answers });
    }
}

/// The steps of a batch of lookups.
struct LookUp<'a> {
    table: &'a GrowingTable,
    answers: &'a mut dyn FnMut(&[bool]),
}

/// The classes of a block, and their places in a state.
#[derive(Clone, Copy)]
struct Places {
    state: State,
    stripes: [u32; BLOCK],
    numbers: [[u32; BLOCK]; 2],
    stored: [[u32; BLOCK]; 2],
}

/// To be overwritten.
impl Default for Places {
    fn default() -> Self {
        Self { state: State(0), stripes: [0; BLOCK], numbers: [[0; BLOCK]; 2], stored: [[0; BLOCK]; 2] }
    }
}

impl Steps for LookUp<'_> {
    type Prepared = Places;

    #[inline(always)]
    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, places: &mut Places) {
        self.table.find_places(hashes, places);
    }

    #[inline(always)]
    fn prefetch_block(&self, places: &Places) {
        for nth in 0..BLOCK {
            self.table.prefetch_nth(places, nth);
        }
    }

    #[inline(always)]
    fn act(&mut self, block: Block<'_, Places>, coming: &Places) -> bool {
        let mut answers = [false; BLOCK];
        self.table.look_up_block(block, coming, &mut answers);
        (self.answers)(&answers[..block.len]);
        true
    }
}

impl GrowingTable {
    #[inline(always)]
    fn find_places(&self, hashes: &[u64; BLOCK], places: &mut Places) {
        let (state, classes, mask) = (self.state(), self.plan.classes, self.stripes.len() - 1);
        places.state = state;
        for (nth, &hash) in hashes.iter().enumerate() {
            let class = classes.of(hash);
            places.stripes[nth] = (stripe_number(class) & mask) as u32;
            for side in 0..2 {
                let Place { number, depth } = state.place(class.sides[side]);
                places.numbers[side][nth] = number as u32;
                places.stored[side][nth] = classes.stored(class, depth);
            }
        }
    }

    #[inline(always)]
    fn prefetch_nth(&self, places: &Places, nth: usize) {
        for side in 0..2 {
            if let Some(word) = self.words.get(places.numbers[side][nth]) {
                prefetch_line(word);
            }
        }
    }

    /// The lookups of a block: those steps of a single one, for all keys, in the same order. What was found in one state
    /// is asked for again, key by key, if the state has changed since then.
    #[cfg_attr(not(ccf_model), inline(always))]
    fn look_up_block(&self, block: Block<'_, Places>, coming: &Places, answers: &mut [bool; BLOCK]) {
        let epoch = self.epoch();
        let (state, places) = (self.state(), block.prepared);
        if places.state != state || state.is_moving() {
            return self.look_up_each(block, coming, answers);
        }
        let len = block.len;
        let are_still = by_kind!(self, state.own(), layout => self.look_up_whole(layout, places, len, coming, answers),
            self.look_up_mixed(places, len, coming, answers));
        if are_still != 0 || !(self.is_still(epoch) || fault::injected(Fault::LookupWithoutEpoch)) {
            self.look_up_each(block, coming, answers);
        }
    }

    /// One by one.
    #[inline(never)]
    fn look_up_each(&self, block: Block<'_, Places>, coming: &Places, answers: &mut [bool; BLOCK]) {
        for (nth, answer) in answers.iter_mut().enumerate().take(block.len) {
            self.prefetch_nth(coming, nth);
            *answer = self.contains(block.hashes[nth]);
        }
    }

    /// The lookups of a block in a table whose buckets have one layout. Not 0 if any was invalidated.
    #[cfg_attr(not(ccf_model), inline(always))]
    fn look_up_whole<L: Layout>(
        &self,
        layout: L,
        places: &Places,
        len: usize,
        coming: &Places,
        answers: &mut [bool; BLOCK],
    ) -> u64 {
        let (mut words, mut folded) = ([[0u64; BLOCK]; 2], [[0u32; BLOCK]; 2]);
        let changes = self.load_block(places, len, coming, |side, nth, bucket| {
            words[side][nth] = bucket.0;
            if L::SEMI_SORTED {
                folded[side][nth] = layout.folded(bucket);
            }
        });
        for (nth, answer) in answers.iter_mut().enumerate() {
            let of = |side: usize| {
                let pattern = layout.pattern(places.stored[side][nth]);
                layout.lanes_equal(Bucket(words[side][nth]), folded[side][nth], pattern)
            };
            *answer = of(0) | of(1) != 0;
        }
        changes
    }

    /// The same where the buckets have two layouts.
    #[inline(never)]
    fn look_up_mixed(&self, places: &Places, len: usize, coming: &Places, answers: &mut [bool; BLOCK]) -> u64 {
        let mut words = [[0u64; BLOCK]; 2];
        let changes = self.load_block(places, len, coming, |side, nth, bucket| words[side][nth] = bucket.0);
        let level = places.state.level();
        let [whole, split] = [level, level + 1].map(|depth| self.layout(depth));
        for (nth, answer) in answers.iter_mut().enumerate() {
            let of = |side: usize| {
                let is_split = places.state.depth(places.numbers[side][nth] as usize) != level;
                let layout = select_unpredictable(is_split, &split, &whole);
                layout.matches(Bucket(words[side][nth]), places.stored[side][nth])
            };
            *answer = of(0) | of(1) != 0;
        }
        changes
    }

    /// Reads the words of a block, each lookup's as [`load_pair`](Self::load_pair) does, and passes them on. Prefetches those
    /// of the next one. Not 0 if any lookup was invalidated.
    #[inline(always)]
    fn load_block(
        &self,
        places: &Places,
        len: usize,
        coming: &Places,
        mut each: impl FnMut(usize, usize, Bucket),
    ) -> u64 {
        let (stripes, is_far) = (&*self.stripes, places.state.buckets() > NEAR);
        let mut changes = 0;
        for nth in 0..len.min(BLOCK) {
            if is_far {
                self.prefetch_nth(coming, nth);
            }
            let stripe = crate::machine::arch::at(stripes, places.stripes[nth] as usize);
            let version = stripe.version();
            for side in 0..2 {
                let Some(word) = self.words.get(places.numbers[side][nth]) else { return 1 };
                each(side, nth, load(word));
            }
            if !fault::injected(Fault::LookupWithoutVersion) {
                changes |= stripe.changes_since(version);
            }
        }
        changes
    }
}
