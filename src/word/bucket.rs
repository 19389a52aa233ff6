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
//! [`differences`](BucketOps::differences) if and only if its slot has the fingerprint. (To compare the low parts
//! first, and to decode only where one of them matches, saves a few instructions of most misses. But whether one
//! matches can't be predicted where hits and misses come at random.)
//!
//! Where slots have payloads, these are in the lanes too: see `word/payloads.rs`.

use core::hint::select_unpredictable;

use crate::machine::arch::{Comparison, at};
use crate::word::layout::{Entry, Fingerprint, Lanes, Layout};
use crate::word::semisort;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bucket(pub(crate) u64);

impl Bucket {
    /// This bucket if the condition holds, otherwise an empty one, without a branch.
    #[inline(always)]
    pub(crate) fn only_if(self, condition: bool) -> Self {
        Self(select_unpredictable(condition, self.0, 0))
    }
}

/// A bucket with the list of its high parts (`word/semisort.rs`). The list is 0 in a plain layout.
#[derive(Clone, Copy, Default)]
pub(crate) struct Decoded {
    pub(crate) bucket: Bucket,
    pub(super) list: u64,
}

/// The low part and the high part of an entry, each repeated in every lane.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pattern {
    lows: u64,
    highs: u64,
}

impl Pattern {
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
}

pub(crate) trait BucketOps: Layout {
    /// Whether either bucket holds the fingerprint, with whatever payload.
    #[inline(always)]
    fn either_holds(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> bool {
        let words = [self.without_payloads(first), self.without_payloads(second)];
        self.is_any_lane_equal::<true>(self.comparison(first, second, words, fingerprint.0))
    }

    /// [`Comparison::is_any_lane_equal`], which `machine/arch` has for each vector unit, with the constants of this
    /// layout. `SAME` says that both words are compared with the same.
    #[inline(always)]
    fn is_any_lane_equal<const SAME: bool>(self, comparison: Comparison) -> bool {
        match (self.is_semi_sorted(), Self::CONST_LANE_BITS) {
            (true, _) => comparison.is_any_lane_equal::<true, 0, SAME>(),
            (false, Some(8)) => comparison.is_any_lane_equal::<false, 8, SAME>(),
            (false, Some(16)) => comparison.is_any_lane_equal::<false, 16, SAME>(),
            (false, Some(32)) => comparison.is_any_lane_equal::<false, 32, SAME>(),
            (false, _) => comparison.is_any_lane_equal::<false, 0, SAME>(),
        }
    }

    /// The lanes in which either bucket holds the fingerprint, in the form of a [`FoundSlot`].
    #[inline(always)]
    fn lanes_in_either(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> [u64; 2] {
        let words = [self.without_payloads(first), self.without_payloads(second)];
        self.equal_lanes(self.comparison(first, second, words, fingerprint.0))
    }

    #[inline(always)]
    fn equal_lanes(self, comparison: Comparison) -> [u64; 2] {
        if self.is_semi_sorted() { comparison.equal_lanes::<true>() } else { comparison.equal_lanes::<false>() }
    }

    /// The comparison of both buckets with an entry, or a fingerprint, with these bits. `words` has their lanes.
    #[inline(always)]
    fn comparison(self, first: Bucket, second: Bucket, words: [u64; 2], bits: u32) -> Comparison {
        let pattern = self.pattern(bits);
        self.comparison_with(first, second, words, [pattern; 2], self.low(bits))
    }

    #[inline(always)]
    fn comparison_with(
        self,
        first: Bucket,
        second: Bucket,
        words: [u64; 2],
        patterns: [Pattern; 2],
        low: u32,
    ) -> Comparison {
        let lanes = self.lanes();
        let folded = [self.folded(first), self.folded(second)];
        let (fold, list, ones, tops) = (lanes.fold.into(), lanes.list(), lanes.ones, lanes.tops);
        let [of_first, of_second] = patterns;
        let (lows, highs) = ([of_first.lows, of_second.lows], [of_first.highs, of_second.highs]);
        Comparison { words, low, lows, folded, fold, list, highs, ones, tops }
    }

    /// [`either_holds`](Self::either_holds) for a caller that knows the [`folded`](Self::folded) lists: the matching
    /// lanes of each bucket. In this form, a loop over many buckets is vectorized.
    #[inline(always)]
    fn lanes_in(self, words: [Bucket; 2], folded: [u32; 2], pattern: Pattern) -> [u64; 2] {
        [self.lanes_equal(words[0], folded[0], pattern), self.lanes_equal(words[1], folded[1], pattern)]
    }

    /// The lanes of one bucket that match the pattern, for a caller that knows its folded list.
    #[inline(always)]
    fn lanes_equal(self, word: Bucket, folded: u32, pattern: Pattern) -> u64 {
        any_zero_lane(self.lanes(), self.differences(self.decoded_by(word, folded), pattern))
    }

    /// Whether either bucket holds what its own slots would store.
    #[inline(always)]
    fn either_holds_each(self, [first, second]: [Bucket; 2], stored: [u32; 2]) -> bool {
        let patterns = [self.pattern(stored[0]), self.pattern(stored[1])];
        self.is_any_lane_equal::<false>(self.comparison_with(first, second, [first.0, second.0], patterns, 0))
    }

    /// The low and the high part of an entry, or of a fingerprint, with these bits.
    #[inline(always)]
    fn pattern(self, bits: u32) -> Pattern {
        // Written out: a call of `Pattern::of` would take lookups of live entries two instructions more.
        let ones = self.lanes().ones;
        let highs = if self.is_semi_sorted() { u64::from(self.high(bits)).wrapping_mul(ones) } else { 0 };
        Pattern { lows: u64::from(self.low(bits)).wrapping_mul(ones), highs }
    }

    #[inline(always)]
    fn without_payloads(self, bucket: Bucket) -> u64 {
        bucket.0 & self.payload().fingerprints_mask
    }

    /// The list of the bucket's high parts, as the decode table has it. 0 in a plain layout.
    #[inline(always)]
    fn folded(self, bucket: Bucket) -> u32 {
        if self.is_semi_sorted() { *at(self.unrank(), (bucket.0 >> self.lanes().rank_at) as usize) } else { 0 }
    }

    #[inline(always)]
    fn decoded(self, bucket: Bucket) -> Decoded {
        self.decoded_by(bucket, self.folded(bucket))
    }

    #[inline(always)]
    fn decoded_by(self, bucket: Bucket, folded: u32) -> Decoded {
        let lanes = self.lanes();
        let list = if self.is_semi_sorted() { semisort::unfold(folded, lanes.fold.into(), lanes.list()) } else { 0 };
        Decoded { bucket, list }
    }

    /// [`Pattern::differences`] of the fingerprints alone.
    #[inline(always)]
    fn differences(self, of: Decoded, pattern: Pattern) -> u64 {
        pattern.differences(self.without_payloads(of.bucket), of.list)
    }

    /// [`Pattern::differences`] of whole entries.
    #[inline(always)]
    fn differences_of_entry(self, of: Decoded, pattern: Pattern) -> u64 {
        pattern.differences(of.bucket.0, of.list)
    }

    #[inline]
    fn count(self, bucket: Bucket, fingerprint: Fingerprint) -> usize {
        self.matches(bucket, fingerprint).count_ones() as usize
    }

    #[inline]
    fn count_entry(self, bucket: Bucket, entry: Entry) -> usize {
        self.matches_of_entry(bucket, entry).count_ones() as usize
    }

    #[inline]
    fn count_entry_in_both(self, first: Bucket, second: Bucket, entry: Entry) -> usize {
        // The matches of one bucket at the top bits of the lanes, those of the other one bit below.
        let lanes = self.matches_of_entry(first, entry) | self.matches_of_entry(second, entry) >> 1;
        lanes.count_ones() as usize
    }

    #[inline]
    fn holds_entry(self, bucket: Bucket, entry: Entry) -> bool {
        self.find_in(bucket, entry).exists()
    }

    #[inline]
    fn has_room(self, bucket: Bucket) -> bool {
        if self.is_semi_sorted() {
            bucket.0 as u32 & self.lanes().first == 0
        } else {
            any_zero_lane(self.lanes(), bucket.0) != 0
        }
    }

    #[inline]
    fn occupied(self, bucket: Bucket) -> usize {
        (u32::from(self.lanes().slots) - zero_lanes(self.lanes(), bucket.0).count_ones()) as usize
    }

    /// A measure of how much room there is, to compare buckets: more room hardly ever gives a lower number.
    /// [`add_to`](Self::add_to) uses it to see whether there is any.
    ///
    /// Plain: the empty lanes as a bit mask, which is cheaper than their number. They are together at the high end,
    /// except for gaps that removals leave, so a mask of more lanes is the larger number too. Semi-sorted: the
    /// empty lanes are at the low end, so the measure is the number of low bits that are 0.
    #[inline(always)]
    fn room(self, bucket: Bucket) -> u64 {
        if self.is_semi_sorted() {
            (bucket.0 | self.lanes().above()).trailing_zeros().into()
        } else {
            any_zero_lane(self.lanes(), bucket.0)
        }
    }

    /// Whether [`room`](Self::room) returned this for a bucket with an empty slot.
    #[inline(always)]
    fn is_room(self, room: u64) -> bool {
        if self.is_semi_sorted() { room >= self.lanes().bits.into() } else { room != 0 }
    }

    /// The bucket with one more copy of the entry, or `None` if it is full.
    #[inline]
    fn add(self, bucket: Bucket, entry: Entry) -> Option<Bucket> {
        self.add_to(bucket, self.room(bucket), entry)
    }

    #[inline(always)]
    fn add_to(self, bucket: Bucket, room: u64, entry: Entry) -> Option<Bucket> {
        let lanes = self.lanes();
        let low = u64::from(self.low(entry.0));
        if !self.is_room(room) {
            return None;
        }
        if !self.is_semi_sorted() {
            return Some(Bucket(bucket.0 | low << (room.trailing_zeros() + 1 - u32::from(lanes.bits))));
        }
        let (high, Decoded { list, .. }) = (u64::from(self.high(entry.0)), self.decoded(bucket));
        // The top bit of a lane stays where the subtraction does not borrow from it: where the slot's high part is
        // not less.
        let not_less = (list | lanes.tops) - high.wrapping_mul(lanes.ones);
        // The new slot goes above those with a lower high part, and above the empty ones: just below the first that
        // is neither. All slots up to there move down by one.
        let above = not_less & occupied_lanes(self.lanes(), bucket.0) & lanes.tops;
        let from = (above >> (lanes.bits - 1) | lanes.above()).trailing_zeros();
        let at = from - u32::from(lanes.bits);
        let below = (1 << from) - 1;
        let with = |list: u64, part: u64| (list & below) >> lanes.bits | list & !below | part << at;
        Some(encode(self, with(bucket.0 & (lanes.above() - 1), low), with(list, high)))
    }

    /// A bucket of these entries, which fit in one. Sorts them.
    #[inline]
    fn of_entries(self, entries: &mut [Entry]) -> Bucket {
        let lanes = self.lanes();
        if self.is_semi_sorted() {
            // By insertion: they are few, and nearly in order if they come from one bucket.
            for end in 1..entries.len() {
                let mut at = end;
                while at > 0 && self.high(entries[at - 1].0) > self.high(entries[at].0) {
                    entries.swap(at - 1, at);
                    at -= 1;
                }
            }
        }
        // In a semi-sorted bucket, the empty slots come first.
        let first = if self.is_semi_sorted() { usize::from(lanes.slots) - entries.len() } else { 0 };
        let (mut lows, mut list) = (0, 0);
        for (slot, entry) in (first..).zip(&*entries) {
            let at = slot as u32 * u32::from(lanes.bits);
            lows |= u64::from(self.low(entry.0)) << at;
            list |= u64::from(self.high(entry.0)) << at;
        }
        if self.is_semi_sorted() { encode(self, lows, list) } else { Bucket(lows) }
    }

    /// The bucket with the first [`entries`](Self::entries) of the other one, as many as fit, and their number.
    #[inline]
    fn add_all(self, bucket: Bucket, others: Bucket) -> (Bucket, usize) {
        if bucket == Bucket::default() {
            return (others, self.occupied(others));
        }
        let (mut sum, mut added) = (bucket, 0);
        for entry in self.entries(others) {
            let Some(with_it) = self.add(sum, entry) else { break };
            sum = with_it;
            added += 1;
        }
        (sum, added)
    }

    /// The bucket with one copy of the entry less, or `None` if it holds none.
    #[inline]
    fn remove(self, bucket: Bucket, entry: Entry) -> Option<Bucket> {
        let found = self.find_in(bucket, entry);
        found.exists().then(|| self.without(found))
    }

    #[inline(always)]
    fn without(self, found: FoundSlot) -> Bucket {
        let Decoded { bucket, list } = self.decoded_by(found.bucket, found.folded);
        let bits = u32::from(self.lanes().bits);
        let top = found.lanes.trailing_zeros();
        if !self.is_semi_sorted() {
            return Bucket(bucket.0 & (!u64::from(self.lanes().first)).rotate_left(top + 1 - bits));
        }
        encode(self, without_lane(bucket.0 & (self.lanes().above() - 1), top, bits), without_lane(list, top, bits))
    }

    #[inline(always)]
    fn find_in_either(self, first: Bucket, second: Bucket, entry: Entry) -> (bool, FoundSlot) {
        let comparison = self.comparison(first, second, [first.0, second.0], entry.0);
        choose([first, second], comparison.folded, self.equal_lanes(comparison))
    }

    #[inline(always)]
    fn find_in(self, bucket: Bucket, entry: Entry) -> FoundSlot {
        let folded = self.folded(bucket);
        let differences = self.differences_of_entry(self.decoded_by(bucket, folded), self.pattern(entry.0));
        FoundSlot { lanes: any_zero_lane(self.lanes(), differences), bucket, folded }
    }

    /// Whether additions and removals can lead to this word. No other word has a meaning, and none is ever stored.
    #[cfg_attr(not(any(feature = "snapshot", test)), allow(dead_code, reason = "only snapshots come from elsewhere"))]
    fn is_valid(self, bucket: Bucket) -> bool {
        // A slot with a payload has a fingerprint.
        if zero_lanes(self.lanes(), self.without_payloads(bucket)) != zero_lanes(self.lanes(), bucket.0) {
            return false;
        }
        let lanes = self.lanes();
        let word = bucket.0 & lanes.all();
        if !self.is_semi_sorted() {
            return bucket.0 == word;
        }
        let list = self.decoded(bucket).list;
        // The empty slots come first, and their high parts are 0.
        let empty = (1 << (u32::from(lanes.bits) * (u32::from(lanes.slots) - self.occupied(bucket) as u32))) - 1;
        // Ranks of no list decode to the list of rank 0.
        encode(self, word, list) == bucket && (word | list) & empty == 0
    }

    #[inline]
    fn entries(self, bucket: Bucket) -> impl Iterator<Item = Entry> {
        entries_in(self.lanes(), bucket.0, self.decoded(bucket).list)
    }

    /// The lanes, by their top bits, that hold the fingerprint.
    #[inline]
    fn matches(self, bucket: Bucket, fingerprint: Fingerprint) -> u64 {
        zero_lanes(self.lanes(), self.differences(self.decoded(bucket), self.pattern(fingerprint.0)))
    }

    /// The lanes, by their top bits, that hold the entry.
    #[inline]
    fn matches_of_entry(self, bucket: Bucket, entry: Entry) -> u64 {
        zero_lanes(self.lanes(), self.differences_of_entry(self.decoded(bucket), self.pattern(entry.0)))
    }
}

impl<L: Layout> BucketOps for L {}

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
        let (low, high) = ((word >> at) as u32 & lanes.first, (list >> at) as u32 & lanes.first);
        // In 64 bits, since a lane may have 32.
        (low != 0).then_some(Entry((u64::from(high) << lanes.bits) as u32 | low))
    })
}

#[inline(always)]
pub(super) fn encode<L: Layout>(layout: L, lows: u64, list: u64) -> Bucket {
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
