//! PURE: the layouts of the buckets of a growing table, by depth.
//!
//! The deeper a bucket, the fewer bits its slots store (`word/classes.rs`), so the more slots fit. Buckets of two depths
//! differ by one bit, and most often that makes no difference to the layout.

use core::hint::select_unpredictable;
use core::ops::RangeInclusive;
use std::sync::OnceLock;

use crate::machine::arch::at;
use crate::word::bucket::{self, Bucket, Pattern, any_zero_lane, entries_in, zero_lanes};
#[cfg(feature = "snapshot")]
use crate::word::classes::State;
use crate::word::classes::{Classes, Rows};
use crate::word::layout::{
    ConstLayout, Encoding, Entry, Lanes, Layout as _, NEVER_ZERO, RuntimeLayout, SHAPES, Shape, by_encoding,
};
use crate::word::semisort;

/// The shapes that a table that grows can have: those whose slots are never 0 although any low part may be. From one to
/// the next, slots go down and bits go up.
const fn is_possible(shape: Shape) -> bool {
    shape.low_bits() >= NEVER_ZERO
}

pub(crate) const MOST_SLOTS: usize = 8;

/// The place in [`SHAPES`] of the shape with the most slots that store this many bits: of `encoding`, if one is asked
/// for and has such a shape; otherwise the plain one, which is faster, before the semi-sorted one.
pub(crate) const fn row(stored_bits: u32, encoding: Option<Encoding>) -> usize {
    let mut nth = 0;
    while nth < SHAPES.len() {
        let shape = SHAPES[nth];
        let is_wanted = match encoding {
            Some(wanted) => wanted as u8 == shape.encoding as u8,
            None => true,
        };
        if is_possible(shape) && shape.fingerprint_bits >= stored_bits && is_wanted {
            return nth;
        }
        nth += 1;
    }
    assert!(encoding.is_some(), "two slots of 32 bits fit");
    row(stored_bits, None)
}

/// The row of the buckets into which those of this row are split, where it is another one and no encoding was asked for.
/// The row itself if there is none.
const fn row_of_split(whole: usize) -> usize {
    let mut stored_bits = SHAPES[whole].fingerprint_bits;
    if row(stored_bits, None) != whole {
        return whole;
    }
    while stored_bits > 0 && row(stored_bits, None) == whole {
        stored_bits -= 1;
    }
    row(stored_bits, None)
}

/// A row of [`SHAPES`] that is known when the code is compiled.
pub(crate) struct Row<const ROW: usize>;

impl<const ROW: usize> Row<ROW> {
    /// Whether a table that grows can have it.
    pub(crate) const IS_POSSIBLE: bool = is_possible(SHAPES[ROW]);
    /// The row of the buckets into which those of this row are split, if [`CHANGES`](Self::CHANGES); otherwise this one.
    pub(crate) const SPLIT: usize = row_of_split(ROW);
    /// Whether that is another one.
    pub(crate) const CHANGES: bool = Self::SPLIT != ROW;

    /// The rows of a table all of whose buckets have this one.
    pub(crate) const ALONE: Rows = Rows::new(ROW as u8, ROW as u8);
    /// The rows of a table some of whose buckets are split into those of another row.
    pub(crate) const WITH_SPLIT: Rows = Rows::new(ROW as u8, Self::SPLIT as u8);
}

/// The shape of the buckets at this depth, with the bits that their slots store.
pub(crate) fn shape(classes: Classes, encoding: Option<Encoding>, depth: u32) -> Shape {
    let stored_bits = classes.stored_bits(depth);
    Shape { fingerprint_bits: stored_bits, ..SHAPES[row(stored_bits, encoding)] }
}

/// The layout of the buckets of one depth of a growing table. All tables share it.
///
/// Reads of a bucket take the same steps for all layouts, without a choice of the encoding. The slots of a plain bucket have
/// high parts of 0 bits, and the decode table says 0 whatever is read as its rank.
#[derive(Debug)]
pub(crate) struct GrowingLayout(RuntimeLayout);

/// The layouts of a table's buckets in one state: of those that are not split, and of those that are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BothLayouts {
    whole: &'static GrowingLayout,
    split: &'static GrowingLayout,
}

impl BothLayouts {
    #[inline(always)]
    pub(crate) fn of_rows(rows: Rows) -> Self {
        Self { whole: Layouts::in_row(rows.of(false)), split: Layouts::in_row(rows.of(true)) }
    }

    /// The layout of a bucket, chosen without a branch: whether one is split is as good as random.
    #[inline(always)]
    pub(crate) fn of(self, is_split: bool) -> &'static GrowingLayout {
        select_unpredictable(is_split, self.split, self.whole)
    }

    /// Whether either bucket holds what its own slots would store.
    #[inline(always)]
    pub(crate) fn either_holds_each(self, pair: [Bucket; 2], are_split: [bool; 2], stored: [u32; 2]) -> bool {
        let holds = |nth: usize| self.of(are_split[nth]).matches(pair[nth], stored[nth]);
        holds(0) | holds(1) != 0
    }
}

impl GrowingLayout {
    /// This layout, for changes of a bucket, which depend on the encoding.
    #[inline(always)]
    pub(crate) fn runtime(&self) -> &RuntimeLayout {
        &self.0
    }

    #[inline(always)]
    pub(super) fn lanes(&self) -> &Lanes {
        &self.0.lanes
    }

    pub(super) fn is_semi_sorted(&self) -> bool {
        self.0.is_semi_sorted()
    }

    /// Whether this is the other one too. (All tables share the layouts.)
    pub(super) fn is_same(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }

    #[inline(always)]
    pub(crate) fn slots(&self) -> usize {
        self.0.lanes.slots.into()
    }

    #[inline(always)]
    pub(crate) fn has_room(&self, bucket: Bucket) -> bool {
        any_zero_lane(self.0.lanes, bucket.0) != 0
    }

    #[inline(always)]
    pub(crate) fn free(&self, bucket: Bucket) -> usize {
        self.zeros(bucket.0)
    }

    #[inline(always)]
    pub(crate) fn occupied(&self, bucket: Bucket) -> usize {
        self.slots() - self.zeros(bucket.0)
    }

    /// Whether a slot holds this. Not 0 if so.
    #[inline(always)]
    pub(crate) fn matches(&self, bucket: Bucket, stored: u32) -> u64 {
        any_zero_lane(self.0.lanes, self.differences(bucket, stored))
    }

    /// Whether a slot may hold this. It compares what the slots store as it is, and decodes nothing: so it errs where a slot
    /// differs only in its high part.
    #[inline(always)]
    pub(crate) fn may_hold(&self, bucket: Bucket, stored: u32) -> bool {
        let pattern = Pattern::of(self.0.lanes.ones, stored & self.0.lanes.mask, 0);
        any_zero_lane(self.0.lanes, pattern.differences(bucket.0, 0)) != 0
    }

    #[inline(always)]
    pub(crate) fn count(&self, bucket: Bucket, stored: u32) -> usize {
        self.zeros(self.differences(bucket, stored))
    }

    #[inline(always)]
    fn differences(&self, bucket: Bucket, stored: u32) -> u64 {
        // In 64 bits, since a lane may have 32.
        let (low, high) = (stored & self.0.lanes.mask, u64::from(stored) >> self.0.lanes.bits);
        Pattern::of(self.0.lanes.ones, low, high as u32).differences(bucket.0, self.highs(bucket))
    }

    /// The high parts, each at the low end of its slot's lane.
    #[inline(always)]
    pub(super) fn highs(&self, bucket: Bucket) -> u64 {
        let folded = *at(self.0.unrank, (bucket.0 >> self.0.lanes.rank_at) as usize);
        semisort::unfold(folded, self.0.lanes.fold.into(), self.0.lanes.list())
    }

    #[inline(always)]
    fn zeros(&self, word: u64) -> usize {
        let &Lanes { ones, bits, end, mask, .. } = &self.0.lanes;
        let zero = zero_lanes(self.0.lanes, word);
        // The product has their number in its top lane. (It takes fewer steps than counting bits without an instruction for it.)
        ((zero >> (bits - 1)).wrapping_mul(ones) >> (end - bits)) as usize & mask as usize
    }

    /// Passes on the entries of a bucket.
    #[inline(always)]
    pub(crate) fn for_each_entry(&self, bucket: Bucket, mut each: impl FnMut(Entry)) {
        let (mut highs, mut lows, &Lanes { mask, bits, slots, .. }) = (self.highs(bucket), bucket.0, &self.0.lanes);
        for _ in 0..slots {
            let low = lows as u32 & mask;
            if low != 0 {
                each(Entry((u64::from(highs as u32 & mask) << bits) as u32 | low));
            }
            lows >>= bits;
            highs >>= bits;
        }
    }

    #[inline(always)]
    pub(crate) fn entries(&self, bucket: Bucket) -> impl Iterator<Item = Entry> {
        entries_in(self.0.lanes, bucket.0, self.highs(bucket))
    }

    #[inline]
    pub(crate) fn add(&self, bucket: Bucket, stored: u32) -> Option<Bucket> {
        by_encoding!(self.runtime(), layout => bucket.add(layout, Entry(stored)))
    }

    #[inline]
    pub(crate) fn remove(&self, bucket: Bucket, stored: u32) -> Option<Bucket> {
        by_encoding!(self.runtime(), layout => bucket.remove(layout, Entry(stored)))
    }

    /// The bucket with these lanes and, in a semi-sorted one, this list of high parts. All lanes from the bit `from` on are
    /// taken, and no others: a plain bucket has them at its low end.
    #[inline(always)]
    pub(super) fn encode(&self, lows: u64, list: u64, from: u32) -> Bucket {
        if self.is_semi_sorted() {
            bucket::encode(self.runtime(), lows, list)
        } else {
            // If no lane is taken, `from` may be 64.
            Bucket(lows.wrapping_shr(from))
        }
    }

    /// A bucket of these entries. `None` if they are too many.
    #[inline]
    pub(crate) fn of(&self, mut entries: EntryList) -> Option<Bucket> {
        let entries = entries.list.get_mut(..entries.len).filter(|entries| entries.len() <= self.slots())?;
        Some(by_encoding!(self.runtime(), layout => Bucket::of_entries(layout, entries)))
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn is_valid(&self, bucket: Bucket, stored_bits: u32) -> bool {
        let may_be = |stored: u32| u64::from(stored) >> stored_bits == 0 && stored & ((1 << NEVER_ZERO) - 1) != 0;
        by_encoding!(self.runtime(), layout => bucket.is_valid(layout))
            && self.entries(bucket).all(|entry| may_be(entry.0))
    }
}

/// The entries of up to two buckets.
#[derive(Clone, Copy, Default)]
pub(crate) struct EntryList {
    list: [Entry; 2 * MOST_SLOTS],
    len: usize,
}

impl EntryList {
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.list[self.len] = entry;
        self.len += 1;
    }
}

/// The layouts of a table, by depth. All tables share the layouts themselves.
#[derive(Debug)]
pub(crate) struct Layouts {
    rows: [u8; u32::BITS as usize + 2],
}

/// By the place of the shape in [`SHAPES`]. Each is made with the first table that has it. There are as many as four bits can
/// say, so a row needs no comparison with their number.
static ALL: [OnceLock<GrowingLayout>; 16] = [const { OnceLock::new() }; 16];

/// The plain layouts, by the place of the shape in [`SHAPES`]. (In the place of a semi-sorted one is another one.)
static PLAIN: [GrowingLayout; SHAPES.len()] = {
    let mut all = [const { GrowingLayout(RuntimeLayout::plain(SHAPES[0])) }; SHAPES.len()];
    let mut row = 0;
    while row < SHAPES.len() {
        if let Encoding::Plain = SHAPES[row].encoding {
            all[row] = GrowingLayout(RuntimeLayout::plain(SHAPES[row]));
        }
        row += 1;
    }
    all
};

impl Layouts {
    /// The layouts of all depths. Those at `made` are made. (A table of such classes that has buckets of another depth has made
    /// that layout, so its copies can be read.) `None` if there is no memory for a decode table.
    pub(crate) fn new(classes: Classes, encoding: Option<Encoding>, made: RangeInclusive<u32>) -> Option<Self> {
        let mut layouts = Self { rows: [0; 34] };
        let fits_in_a_slot = |&depth: &u32| classes.stored_bits(depth) <= u32::BITS;
        for depth in (0..=classes.side_bits()).filter(fits_in_a_slot) {
            let row = row(classes.stored_bits(depth), encoding);
            layouts.rows[depth as usize] = row as u8;
            if made.contains(&depth) && ALL[row].get().is_none() {
                // If several threads make it at the same time, all take that of the first.
                let layout = GrowingLayout(RuntimeLayout::try_of(SHAPES[row])?);
                ALL[row].get_or_init(|| layout);
            }
        }
        Some(layouts)
    }

    #[inline(always)]
    pub(crate) fn at(&self, depth: u32) -> &'static GrowingLayout {
        Self::in_row(self.rows[depth as usize].into())
    }

    /// The layout of a row that a table has.
    #[inline(always)]
    pub(crate) fn in_row(row: usize) -> &'static GrowingLayout {
        ALL[row & 15].get().expect("made with the table")
    }

    /// The places in [`SHAPES`] of the layouts at this level, with split buckets or without.
    pub(crate) fn rows(&self, level: u32, is_split: bool) -> Rows {
        let row = |depth: u32| self.rows[depth as usize];
        Rows::new(row(level), row(level + u32::from(is_split)))
    }

    /// How many copies these words hold, in a table of this size from the bucket `start` on; or the place of the first that
    /// no such table can hold.
    #[cfg(feature = "snapshot")]
    pub(crate) fn copies_in(&self, classes: Classes, state: State, start: usize, words: &[u64]) -> Result<u64, usize> {
        let mut copies = 0;
        for (nth, &word) in words.iter().enumerate() {
            let (depth, word) = (state.depth(start + nth), Bucket(word));
            if !self.at(depth).is_valid(word, classes.stored_bits(depth)) {
                return Err(nth);
            }
            copies += self.at(depth).occupied(word) as u64;
        }
        Ok(copies)
    }

    /// [`in_row`](Self::in_row) where the row is known when the code is compiled. Plain layouts need not be made first.
    #[inline(always)]
    pub(crate) fn in_const_row<const ROW: usize>() -> ConstLayout<&'static RuntimeLayout, ROW> {
        ConstLayout(match SHAPES[ROW].encoding {
            Encoding::Plain => PLAIN[ROW].runtime(),
            Encoding::SemiSorted => Self::in_row(ROW).runtime(),
        })
    }
}

#[cfg(test)]
#[path = "layouts_tests.rs"]
mod tests;
