//! PURE: one bucket as a 64-bit word, and the queries and changes on it.
//!
//! A lane of 0 is an empty slot, so an all-zero word is an empty bucket in every layout.
//!
//! # Comparing all lanes at once
//! Subtracting 1 from every lane of `x` sets a lane's top bit in three cases: the lane was 0; or its top bit was
//! set already (`& !x` excludes that); or a lower lane that was 0 borrowed from it. So [`any_zero_lane`] is exact
//! about *whether* a lane is 0, and about the lowest one, but it may flag further lanes above it. [`zero_lanes`]
//! adds instead of subtracting. That cannot carry into the next lane, so it is exact for each lane.
//!
//! # Semi-sorted words
//! The lanes are sorted by their high parts, with empty slots first (their high part counts as 0). So lane 0 alone
//! shows whether there is room. Adding drops lane 0, which is empty, and shifts the lanes below the new one down.
//!
//! A lookup always decodes both buckets and compares all bits of all slots. A lane is 0 in
//! [`Pattern::differences`] if and only if its slot has the fingerprint. (To compare the low parts
//! first, and to decode only where one of them matches, saves a few instructions of most misses. But whether one
//! matches can't be predicted where hits and misses come at random.)
//!
//! Where slots have payloads, these are in the lanes too: see `word/payloads.rs`.

use core::hint::select_unpredictable;

use crate::machine::arch::{Comparison, at};
use crate::word::layout::{Entry, Fingerprint, Lanes, Layout};
use crate::word::semisort;

/// The 64 bits of a bucket. What they mean depends on the layout, so nearly every operation is told that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bucket(pub(crate) u64);

/// A bucket with the list of its high parts (`word/semisort.rs`). The list is 0 in a plain layout.
#[derive(Clone, Copy, Default)]
pub(crate) struct Decoded {
    pub(crate) bucket: Bucket,
    pub(super) list: u64,
}

impl Decoded {
    /// [`Pattern::differences`] of the fingerprints alone.
    #[inline(always)]
    pub(super) fn differences(self, layout: impl Layout, pattern: Pattern) -> u64 {
        pattern.differences(self.bucket.without_payloads(layout), self.list)
    }

    /// [`Pattern::differences`] of whole entries.
    #[inline(always)]
    fn differences_of_entry(self, pattern: Pattern) -> u64 {
        pattern.differences(self.bucket.0, self.list)
    }
}

/// The low part and the high part of an entry, each repeated in every lane.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pattern {
    lows: u64,
    highs: u64,
}

impl Pattern {
    /// The pattern of an entry, or of a fingerprint, with these bits.
    #[inline(always)]
    pub(crate) fn new(layout: impl Layout, bits: u32) -> Self {
        // Written out: a call of `Pattern::of` would take lookups of live entries two instructions more.
        let ones = layout.lanes().ones;
        let highs = if layout.is_semi_sorted() { u64::from(layout.high(bits)).wrapping_mul(ones) } else { 0 };
        Self { lows: u64::from(layout.low(bits)).wrapping_mul(ones), highs }
    }

    #[inline(always)]
    pub(super) fn of(ones: u64, low: u32, high: u32) -> Self {
        Self { lows: u64::from(low).wrapping_mul(ones), highs: u64::from(high).wrapping_mul(ones) }
    }

    /// A word with a lane of 0 where a slot of `word`, with its high part in `list`, has the entry of this pattern, and in no
    /// other lane. The bits above the lanes have no meaning.
    #[inline(always)]
    pub(super) fn differences(self, word: u64, list: u64) -> u64 {
        word ^ self.lows | list ^ self.highs
    }
}

/// The slot in an item's two buckets that a search has found, if any.
#[derive(Clone, Copy, Default)]
pub(crate) struct FoundSlot {
    /// Not 0 if a slot was found. Then the lowest set bit is the top bit of its lane.
    pub(super) lanes: u64,
    /// The bucket of that slot, and its entry in the decode table.
    pub(crate) bucket: Bucket,
    pub(super) folded: u32,
}

impl FoundSlot {
    #[inline(always)]
    pub(crate) fn exists(self) -> bool {
        self.lanes != 0
    }

    /// The bucket with this slot emptied.
    #[inline(always)]
    pub(crate) fn emptied(self, layout: impl Layout) -> Bucket {
        let Decoded { bucket, list } = self.bucket.decoded_by(layout, self.folded);
        let bits = u32::from(layout.lanes().bits);
        let top = self.lanes.trailing_zeros();
        if !layout.is_semi_sorted() {
            return Bucket(bucket.0 & (!u64::from(layout.lanes().mask)).rotate_left(top + 1 - bits));
        }
        encode(layout, without_lane(bucket.0 & (layout.lanes().above() - 1), top, bits), without_lane(list, top, bits))
    }
}

/// One bucket. (`word/payloads.rs` has what concerns its payloads.)
impl Bucket {
    /// This bucket if the condition holds, otherwise an empty one, without a branch.
    #[inline(always)]
    pub(crate) fn only_if(self, condition: bool) -> Self {
        Self(select_unpredictable(condition, self.0, 0))
    }

    #[inline(always)]
    pub(crate) fn without_payloads(self, layout: impl Layout) -> u64 {
        self.0 & layout.payload().fingerprints_mask
    }

    /// The list of the bucket's high parts, as the decode table has it. 0 in a plain layout.
    #[inline(always)]
    pub(crate) fn folded(self, layout: impl Layout) -> u32 {
        if layout.is_semi_sorted() { *at(layout.unrank(), (self.0 >> layout.lanes().rank_at) as usize) } else { 0 }
    }

    #[inline(always)]
    pub(super) fn decoded(self, layout: impl Layout) -> Decoded {
        self.decoded_by(layout, self.folded(layout))
    }

    #[inline(always)]
    pub(super) fn decoded_by(self, layout: impl Layout, folded: u32) -> Decoded {
        let lanes = layout.lanes();
        let list = if layout.is_semi_sorted() { semisort::unfold(folded, lanes.fold.into(), lanes.list()) } else { 0 };
        Decoded { bucket: self, list }
    }

    /// The lanes that match the pattern, for a caller that knows the [`folded`](Self::folded) list.
    #[inline(always)]
    pub(crate) fn lanes_equal(self, layout: impl Layout, folded: u32, pattern: Pattern) -> u64 {
        any_zero_lane(layout.lanes(), self.decoded_by(layout, folded).differences(layout, pattern))
    }

    /// The lanes, by their top bits, that hold the fingerprint.
    #[inline]
    pub(super) fn matches(self, layout: impl Layout, fingerprint: Fingerprint) -> u64 {
        zero_lanes(layout.lanes(), self.decoded(layout).differences(layout, Pattern::new(layout, fingerprint.0)))
    }

    /// The lanes, by their top bits, that hold the entry.
    #[inline]
    fn matches_of_entry(self, layout: impl Layout, entry: Entry) -> u64 {
        zero_lanes(layout.lanes(), self.decoded(layout).differences_of_entry(Pattern::new(layout, entry.0)))
    }

    #[inline]
    pub(crate) fn count(self, layout: impl Layout, fingerprint: Fingerprint) -> usize {
        self.matches(layout, fingerprint).count_ones() as usize
    }

    #[inline]
    pub(crate) fn count_entry(self, layout: impl Layout, entry: Entry) -> usize {
        self.matches_of_entry(layout, entry).count_ones() as usize
    }

    #[inline(always)]
    pub(super) fn find(self, layout: impl Layout, entry: Entry) -> FoundSlot {
        let folded = self.folded(layout);
        let differences = self.decoded_by(layout, folded).differences_of_entry(Pattern::new(layout, entry.0));
        FoundSlot { lanes: any_zero_lane(layout.lanes(), differences), bucket: self, folded }
    }

    #[inline]
    pub(crate) fn holds_entry(self, layout: impl Layout, entry: Entry) -> bool {
        self.find(layout, entry).exists()
    }

    #[inline]
    pub(crate) fn entries(self, layout: impl Layout) -> impl Iterator<Item = Entry> {
        entries_in(layout.lanes(), self.0, self.decoded(layout).list)
    }

    #[inline]
    pub(crate) fn occupied(self, layout: impl Layout) -> usize {
        (u32::from(layout.lanes().slots) - zero_lanes(layout.lanes(), self.0).count_ones()) as usize
    }

    #[inline]
    pub(crate) fn has_room(self, layout: impl Layout) -> bool {
        if layout.is_semi_sorted() {
            self.0 as u32 & layout.lanes().mask == 0
        } else {
            any_zero_lane(layout.lanes(), self.0) != 0
        }
    }

    /// A measure of how much room there is, to compare buckets: more room hardly ever gives a lower number.
    /// [`add_to`](Self::add_to) uses it to see whether there is any.
    ///
    /// Plain: the empty lanes as a bit mask, which is cheaper than their number. They are together at the high end,
    /// except for gaps that removals leave, so a mask of more lanes is the larger number too. Semi-sorted: the
    /// empty lanes are at the low end, so the measure is the number of low bits that are 0.
    #[inline(always)]
    pub(crate) fn room(self, layout: impl Layout) -> u64 {
        if layout.is_semi_sorted() {
            (self.0 | layout.lanes().above()).trailing_zeros().into()
        } else {
            any_zero_lane(layout.lanes(), self.0)
        }
    }

    /// Whether [`room`](Self::room) returned this for a bucket with an empty slot.
    #[inline(always)]
    pub(crate) fn is_room(layout: impl Layout, room: u64) -> bool {
        if layout.is_semi_sorted() { room >= layout.lanes().bits.into() } else { room != 0 }
    }

    /// The bucket with one more copy of the entry, or `None` if it is full.
    #[inline]
    pub(crate) fn add(self, layout: impl Layout, entry: Entry) -> Option<Self> {
        self.add_to(layout, self.room(layout), entry)
    }

    /// [`add`](Self::add) for a caller that knows the bucket's [`room`](Self::room).
    #[inline(always)]
    pub(crate) fn add_to(self, layout: impl Layout, room: u64, entry: Entry) -> Option<Self> {
        let lanes = layout.lanes();
        let low = u64::from(layout.low(entry.0));
        if !Self::is_room(layout, room) {
            return None;
        }
        if !layout.is_semi_sorted() {
            return Some(Self(self.0 | low << (room.trailing_zeros() + 1 - u32::from(lanes.bits))));
        }
        let (high, Decoded { list, .. }) = (u64::from(layout.high(entry.0)), self.decoded(layout));
        // The top bit of a lane stays where the subtraction does not borrow from it: where the slot's high part is
        // not less.
        let not_less = (list | lanes.tops) - high.wrapping_mul(lanes.ones);
        // The new slot goes above those with a lower high part, and above the empty ones: just below the first that
        // is neither. All slots up to there move down by one.
        let above = not_less & occupied_lanes(layout.lanes(), self.0) & lanes.tops;
        let from = (above >> (lanes.bits - 1) | lanes.above()).trailing_zeros();
        let at = from - u32::from(lanes.bits);
        let below = (1 << from) - 1;
        let with = |list: u64, part: u64| (list & below) >> lanes.bits | list & !below | part << at;
        Some(encode(layout, with(self.0 & (lanes.above() - 1), low), with(list, high)))
    }

    /// The bucket with the first [`entries`](Self::entries) of the other one, as many as fit, and their number.
    #[inline]
    pub(crate) fn add_all(self, layout: impl Layout, others: Self) -> (Self, usize) {
        if self == Self::default() {
            return (others, others.occupied(layout));
        }
        let (mut sum, mut added) = (self, 0);
        for entry in others.entries(layout) {
            let Some(with_it) = sum.add(layout, entry) else { break };
            sum = with_it;
            added += 1;
        }
        (sum, added)
    }

    /// The bucket with one copy of the entry less, or `None` if it holds none.
    #[inline]
    pub(crate) fn remove(self, layout: impl Layout, entry: Entry) -> Option<Self> {
        let found = self.find(layout, entry);
        found.exists().then(|| found.emptied(layout))
    }

    /// A bucket of these entries, which fit in one. Sorts them.
    #[inline]
    pub(super) fn of_entries(layout: impl Layout, entries: &mut [Entry]) -> Self {
        let lanes = layout.lanes();
        if layout.is_semi_sorted() {
            // By insertion: they are few, and nearly in order if they come from one bucket.
            for end in 1..entries.len() {
                let mut at = end;
                while at > 0 && layout.high(entries[at - 1].0) > layout.high(entries[at].0) {
                    entries.swap(at - 1, at);
                    at -= 1;
                }
            }
        }
        // In a semi-sorted bucket, the empty slots come first.
        let first = if layout.is_semi_sorted() { usize::from(lanes.slots) - entries.len() } else { 0 };
        let (mut lows, mut list) = (0, 0);
        for (slot, entry) in (first..).zip(&*entries) {
            let at = slot as u32 * u32::from(lanes.bits);
            lows |= u64::from(layout.low(entry.0)) << at;
            list |= u64::from(layout.high(entry.0)) << at;
        }
        if layout.is_semi_sorted() { encode(layout, lows, list) } else { Self(lows) }
    }

    /// Whether additions and removals can lead to this word. No other word has a meaning, and none is ever stored.
    #[cfg_attr(not(any(feature = "snapshot", test)), allow(dead_code, reason = "only snapshots come from elsewhere"))]
    pub(super) fn is_valid(self, layout: impl Layout) -> bool {
        let lanes = layout.lanes();
        // A slot with a payload has a fingerprint.
        if zero_lanes(lanes, self.without_payloads(layout)) != zero_lanes(lanes, self.0) {
            return false;
        }
        let word = self.0 & lanes.all();
        if !layout.is_semi_sorted() {
            return self.0 == word;
        }
        let list = self.decoded(layout).list;
        // The empty slots come first, and their high parts are 0.
        let empty = (1 << (u32::from(lanes.bits) * (u32::from(lanes.slots) - self.occupied(layout) as u32))) - 1;
        // Ranks of no list decode to the list of rank 0.
        encode(layout, word, list) == self && (word | list) & empty == 0
    }
}

/// The two buckets of an item. A [`Comparison`] compares both at once, with the registers of vector units.
impl Bucket {
    /// Whether either bucket holds the fingerprint, with whatever payload.
    #[inline(always)]
    pub(crate) fn either_holds(layout: impl Layout, pair: [Self; 2], fingerprint: Fingerprint) -> bool {
        is_any_lane_equal::<true, _>(layout, compare_fingerprint(layout, pair, fingerprint))
    }

    /// Whether either bucket holds what its own slots would store.
    #[inline(always)]
    pub(crate) fn either_holds_each(layout: impl Layout, pair: [Self; 2], stored: [u32; 2]) -> bool {
        let patterns = [Pattern::new(layout, stored[0]), Pattern::new(layout, stored[1])];
        is_any_lane_equal::<false, _>(layout, compare(layout, pair, [pair[0].0, pair[1].0], patterns, 0))
    }

    /// The lanes in which either bucket holds the fingerprint, in the form of a [`FoundSlot`].
    #[inline(always)]
    pub(crate) fn lanes_in_either(layout: impl Layout, pair: [Self; 2], fingerprint: Fingerprint) -> [u64; 2] {
        equal_lanes(layout, compare_fingerprint(layout, pair, fingerprint))
    }

    /// [`lanes_in_either`](Self::lanes_in_either) for a caller that knows the [`folded`](Self::folded) lists. In this form, a
    /// loop over many buckets is vectorized.
    #[inline(always)]
    pub(crate) fn lanes_in(layout: impl Layout, pair: [Self; 2], folded: [u32; 2], pattern: Pattern) -> [u64; 2] {
        [pair[0].lanes_equal(layout, folded[0], pattern), pair[1].lanes_equal(layout, folded[1], pattern)]
    }

    #[inline]
    pub(crate) fn count_entry_in_both(layout: impl Layout, [first, second]: [Self; 2], entry: Entry) -> usize {
        // The matches of one bucket at the top bits of the lanes, those of the other one bit below.
        let lanes = first.matches_of_entry(layout, entry) | second.matches_of_entry(layout, entry) >> 1;
        lanes.count_ones() as usize
    }

    /// Whether the slot is in the first bucket, and the slot.
    #[inline(always)]
    pub(crate) fn find_in_either(layout: impl Layout, pair: [Self; 2], entry: Entry) -> (bool, FoundSlot) {
        let pattern = Pattern::new(layout, entry.0);
        let comparison = compare(layout, pair, [pair[0].0, pair[1].0], [pattern; 2], layout.low(entry.0));
        choose(pair, comparison.folded, equal_lanes(layout, comparison))
    }
}

/// The comparison of both buckets with a fingerprint, without their payloads.
#[inline(always)]
fn compare_fingerprint(layout: impl Layout, pair: [Bucket; 2], fingerprint: Fingerprint) -> Comparison {
    let words = [pair[0].without_payloads(layout), pair[1].without_payloads(layout)];
    let pattern = Pattern::new(layout, fingerprint.0);
    compare(layout, pair, words, [pattern; 2], layout.low(fingerprint.0))
}

/// The comparison of each bucket with a pattern. `words` has their lanes; `low` is the low part, if it is the same for both.
#[inline(always)]
fn compare(
    layout: impl Layout,
    pair: [Bucket; 2],
    words: [u64; 2],
    [of_first, of_second]: [Pattern; 2],
    low: u32,
) -> Comparison {
    let lanes = layout.lanes();
    let folded = [pair[0].folded(layout), pair[1].folded(layout)];
    let (fold, list, ones, tops) = (lanes.fold.into(), lanes.list(), lanes.ones, lanes.tops);
    let (lows, highs) = ([of_first.lows, of_second.lows], [of_first.highs, of_second.highs]);
    Comparison { words, low, lows, folded, fold, list, highs, ones, tops }
}

/// [`Comparison::is_any_lane_equal`], which `machine/arch` has for each vector unit, with the constants of this
/// layout. `SAME` says that both words are compared with the same.
#[inline(always)]
fn is_any_lane_equal<const SAME: bool, L: Layout>(layout: L, comparison: Comparison) -> bool {
    match (layout.is_semi_sorted(), L::CONST_LANE_BITS) {
        (true, _) => comparison.is_any_lane_equal::<true, 0, SAME>(),
        (false, Some(8)) => comparison.is_any_lane_equal::<false, 8, SAME>(),
        (false, Some(16)) => comparison.is_any_lane_equal::<false, 16, SAME>(),
        (false, Some(32)) => comparison.is_any_lane_equal::<false, 32, SAME>(),
        (false, _) => comparison.is_any_lane_equal::<false, 0, SAME>(),
    }
}

#[inline(always)]
fn equal_lanes(layout: impl Layout, comparison: Comparison) -> [u64; 2] {
    if layout.is_semi_sorted() { comparison.equal_lanes::<true>() } else { comparison.equal_lanes::<false>() }
}

/// The slot in these lanes of either bucket, and whether it is in the first. `folded` are the buckets' lists, if the
/// caller needs that of the slot.
///
/// A branch on *which* of the two it is in would be mispredicted half of the time. So conditional moves choose.
#[inline(always)]
pub(crate) fn choose(buckets: [Bucket; 2], folded: [u32; 2], lanes: [u64; 2]) -> (bool, FoundSlot) {
    let in_first = lanes[0] != 0;
    let bucket = select_unpredictable(in_first, buckets[0], buckets[1]);
    let folded = select_unpredictable(in_first, folded[0], folded[1]);
    (in_first, FoundSlot { lanes: select_unpredictable(in_first, lanes[0], lanes[1]), bucket, folded })
}

/// The top bit of the lowest lane that is 0, perhaps with top bits above it. 0 if no lane is 0.
#[inline(always)]
pub(super) fn any_zero_lane(lanes: Lanes, word: u64) -> u64 {
    word.wrapping_sub(lanes.ones) & !word & lanes.tops
}

/// The top bits of exactly those lanes that are 0.
#[inline(always)]
pub(super) fn zero_lanes(lanes: Lanes, word: u64) -> u64 {
    !occupied_lanes(lanes, word) & lanes.tops
}

/// The top bits of exactly those lanes that are not 0, among other bits.
#[inline(always)]
fn occupied_lanes(lanes: Lanes, word: u64) -> u64 {
    let lows = lanes.tops - lanes.ones;
    ((word & lows) + lows) | word
}

/// The entries in the lanes of a word, whose high parts are in `list`.
#[inline(always)]
pub(super) fn entries_in(lanes: Lanes, word: u64, list: u64) -> impl Iterator<Item = Entry> {
    (0..u32::from(lanes.slots)).filter_map(move |slot| {
        let at = slot * u32::from(lanes.bits);
        let (low, high) = ((word >> at) as u32 & lanes.mask, (list >> at) as u32 & lanes.mask);
        // In 64 bits, since a lane may have 32.
        (low != 0).then_some(Entry((u64::from(high) << lanes.bits) as u32 | low))
    })
}

#[inline(always)]
pub(super) fn encode(layout: impl Layout, lows: u64, list: u64) -> Bucket {
    let lanes = layout.lanes();
    let rank = semisort::rank(list, lanes.slots.into(), lanes.bits.into());
    Bucket(lows | u64::from(rank) << lanes.rank_at)
}

/// The lanes of `list` without the one whose top bit this is: those below it move up, and the lowest one becomes 0.
#[inline(always)]
pub(super) fn without_lane(list: u64, top: u32, bits: u32) -> u64 {
    let up_to_it = (2u64 << top) - 1;
    (list & up_to_it >> bits) << bits | list & !up_to_it
}

#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
