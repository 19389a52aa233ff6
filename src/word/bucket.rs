//! Pure: one bucket as a 64-bit word, and the questions and changes that a word allows.
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
//! The lanes are sorted by their nibbles, with empty slots first (their nibble counts as 0). So lane 0 alone shows
//! whether there is room. Adding drops lane 0, which is empty, and shifts the lanes below the new one down. *Decode
//! late*: a lookup compares a fingerprint's low part first, and decodes the rank only where a lane matches.
//!
//! Where slots have payloads, these are in the lanes too: see `word/payloads.rs`.

use core::hint::select_unpredictable;

use crate::machine::arch::{any_lane_is, at};
use crate::word::layout::{Entry, Fingerprint, Layout};
use crate::word::semisort::{self, STRIDE};

/// A bucket's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bucket(pub(crate) u64);

/// What the comparison of low parts finds in an item's two buckets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Candidate {
    /// Not 0 if there is one. Then the lowest set bit is the top bit of its lane, if the layout is semi-sorted or
    /// [`place`](BucketOps::place) found it.
    pub(super) lanes: u64,
    /// The candidate's bucket, under the same condition.
    pub(crate) word: Bucket,
}

impl Candidate {
    #[inline(always)]
    pub(crate) fn exists(self) -> bool {
        self.lanes != 0
    }
}

/// What every layout can do with a bucket.
pub(crate) trait BucketOps: Layout {
    /// Whether either bucket holds the fingerprint. `None` is rare: then a second look, with `count`, must decide.
    ///
    /// `None` needs a stored fingerprint with the same low part as the one in question, and another nibble.
    #[inline(always)]
    fn either_contains(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Option<bool> {
        let candidate = self.candidate(first, second, fingerprint);
        // This branch is mispredicted where hits and misses come at random. Always decoding, without the branch,
        // makes such a mixture 1.6 times as fast, and misses alone a third slower: see the page `scaling`.
        if !candidate.exists() {
            return Some(false);
        }
        self.confirms(candidate, fingerprint).then_some(true)
    }

    /// The slot in either bucket whose lane matches the fingerprint's low part. In a plain layout, only whether
    /// there is one.
    #[inline(always)]
    fn candidate(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Candidate {
        if Self::SEMI_SORTED {
            return self.candidate_for(first, second, self.pattern(fingerprint));
        }
        let (a, b) = (self.fingerprints_of(first), self.fingerprints_of(second));
        let found = any_lane_is(a, b, fingerprint.0, Self::LANE_BITS)
            .unwrap_or_else(|| self.either_matches(first, second, self.pattern(fingerprint)));
        Candidate { lanes: found.into(), word: first }
    }

    /// The fingerprint's low part in every lane.
    #[inline(always)]
    fn pattern(self, fingerprint: Fingerprint) -> u64 {
        pattern::<Self>(fingerprint.0)
    }

    /// The bucket's lanes without their payloads.
    #[inline(always)]
    fn fingerprints_of(self, bucket: Bucket) -> u64 {
        bucket.0 & self.of_fingerprints()
    }

    /// Whether a lane of either bucket equals that of the pattern.
    #[inline(always)]
    fn either_matches(self, first: Bucket, second: Bucket, pattern: u64) -> bool {
        let (first, second) = (self.fingerprints_of(first), self.fingerprints_of(second));
        any_zero_lane::<Self>(second ^ pattern) | any_zero_lane::<Self>(first ^ pattern) != 0
    }

    /// The slot in either bucket whose lane equals that of the pattern.
    #[inline(always)]
    fn candidate_for(self, first: Bucket, second: Bucket, pattern: u64) -> Candidate {
        self.chosen(first, second, self.lanes_of(first, pattern), self.lanes_of(second, pattern))
    }

    /// Whether a candidate holds the whole fingerprint. If it does not, another candidate still may.
    #[inline(always)]
    fn confirms(self, candidate: Candidate, fingerprint: Fingerprint) -> bool {
        let Candidate { lanes, word } = candidate;
        !Self::SEMI_SORTED || nibble_at::<Self>(self.sorted_nibbles(word), lanes) == nibble::<Self>(fingerprint.0)
    }

    /// How many entries with the fingerprint the bucket holds.
    #[inline]
    fn count(self, bucket: Bucket, fingerprint: Fingerprint) -> usize {
        self.matches(bucket, fingerprint).count_ones() as usize
    }

    /// How many copies of the entry the bucket holds.
    #[inline]
    fn count_entry(self, bucket: Bucket, entry: Entry) -> usize {
        self.matches_of_entry(bucket, entry).count_ones() as usize
    }

    /// Whether the bucket holds the fingerprint.
    #[inline]
    fn holds(self, bucket: Bucket, fingerprint: Fingerprint) -> bool {
        self.matches(bucket, fingerprint) != 0
    }

    /// Whether the bucket holds the entry.
    #[inline]
    fn holds_entry(self, bucket: Bucket, entry: Entry) -> bool {
        self.matches_of_entry(bucket, entry) != 0
    }

    /// Whether a slot is empty.
    #[inline]
    fn has_room(self, bucket: Bucket) -> bool {
        if Self::SEMI_SORTED { bucket.0 & Self::LANE == 0 } else { any_zero_lane::<Self>(bucket.0) != 0 }
    }

    /// How many slots are taken.
    #[inline]
    fn occupied(self, bucket: Bucket) -> usize {
        (Self::SLOTS - zero_lanes::<Self>(bucket.0).count_ones()) as usize
    }

    /// A measure of how much room there is, to compare buckets: more room hardly ever gives a lower number.
    /// [`add_to`](Self::add_to) uses it to see whether there is any.
    ///
    /// Plain: the empty lanes as a bit mask, which is cheaper than their number. They are together at the high end,
    /// except for gaps that removals leave, so a mask of more lanes is the larger number too. Semi-sorted: the
    /// empty lanes are at the low end, so the measure is the number of low bits that are 0.
    #[inline(always)]
    fn room(self, bucket: Bucket) -> u64 {
        if Self::SEMI_SORTED {
            (bucket.0 | 1 << (Self::SLOTS * Self::LANE_BITS)).trailing_zeros().into()
        } else {
            any_zero_lane::<Self>(bucket.0)
        }
    }

    /// The bucket with one more copy of the entry, or `None` if it is full.
    #[inline]
    fn add(self, bucket: Bucket, entry: Entry) -> Option<Bucket> {
        self.add_to(bucket, self.room(bucket), entry)
    }

    /// The same, for a caller that knows [`room`](Self::room).
    #[inline(always)]
    fn add_to(self, bucket: Bucket, room: u64, entry: Entry) -> Option<Bucket> {
        let lane = u64::from(entry.0) & Self::LANE;
        if !Self::SEMI_SORTED {
            if room == 0 {
                return None;
            }
            let lane_start = room.trailing_zeros() + 1 - Self::LANE_BITS;
            return Some(Bucket(bucket.0 | lane << lane_start));
        }
        let empty = room as u32 / Self::LANE_BITS;
        if empty == 0 {
            return None;
        }
        let nibble = nibble::<Self>(entry.0);
        let list = self.sorted_nibbles(bucket);
        // The new lane goes above those with a smaller nibble, and above the empty ones, whose nibble is 0. All of
        // these move down by one.
        let place = semisort::less_than(list, nibble, Self::SLOTS).max(empty) - 1;
        let lanes = shift_down::<Self>(bucket.0, place, Self::LANE_BITS) | lane << (place * Self::LANE_BITS);
        let list = shift_down::<Self>(list.into(), place, STRIDE) as u32 | nibble << (place * STRIDE);
        Some(encode::<Self>(lanes, list))
    }

    /// The bucket with as many entries of the other one as fit, and how many those are. They are the first ones of
    /// [`entries`](Self::entries).
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
        let matches = self.matches_of_entry(bucket, entry);
        (matches != 0).then(|| self.without(bucket, matches))
    }

    /// The bucket without the lowest of these lanes. There is at least one.
    #[inline(always)]
    fn without(self, bucket: Bucket, lanes: u64) -> Bucket {
        let place = lane_index::<Self>(lanes);
        if !Self::SEMI_SORTED {
            return Bucket(bucket.0 & (!Self::LANE).rotate_left(place * Self::LANE_BITS));
        }
        let lanes = shift_up::<Self>(bucket.0, place, Self::LANE_BITS);
        let list = shift_up::<Self>(self.sorted_nibbles(bucket).into(), place, STRIDE) as u32;
        encode::<Self>(lanes, list)
    }

    /// The slot in either bucket whose lane is that of the entry, and whether it is in the first bucket.
    #[inline(always)]
    fn place(self, first: Bucket, second: Bucket, entry: Entry) -> (bool, Candidate) {
        let lanes_of = |bucket: Bucket| any_zero_lane::<Self>(bucket.0 ^ pattern::<Self>(entry.0));
        choose(first, second, lanes_of(first), lanes_of(second))
    }

    /// The candidate's bucket without the candidate. The candidate comes from [`place`](Self::place), which finds
    /// the lane.
    #[inline(always)]
    fn without_candidate(self, candidate: Candidate) -> Bucket {
        self.without(candidate.word, candidate.lanes)
    }

    /// Whether additions and removals can lead to this word. No other word has a meaning, and none is ever stored.
    #[cfg_attr(not(any(feature = "snapshot", test)), allow(dead_code, reason = "only snapshots come from elsewhere"))]
    fn is_valid(self, bucket: Bucket) -> bool {
        // A slot with a payload has a fingerprint.
        if zero_lanes::<Self>(self.fingerprints_of(bucket)) != zero_lanes::<Self>(bucket.0) {
            return false;
        }
        if !Self::SEMI_SORTED {
            return bucket.0 & !all::<Self>(Self::LANE_BITS) == 0;
        }
        let list = self.sorted_nibbles(bucket);
        let empty = Self::SLOTS - self.occupied(bucket) as u32;
        // Ranks of no list decode to the list of rank 0.
        let rank = bucket.0 >> (Self::SLOTS * Self::LANE_BITS);
        u64::from(semisort::rank(list, Self::SLOTS)) == rank
            // The empty lanes come first, and their nibbles are 0.
            && bucket.0 & ((1 << (empty * Self::LANE_BITS)) - 1) == 0
            && u64::from(list) & ((1 << (empty * STRIDE)) - 1) == 0
    }

    /// The entries in the bucket.
    #[inline]
    fn entries(self, bucket: Bucket) -> impl Iterator<Item = Entry> {
        let list = if Self::SEMI_SORTED { self.sorted_nibbles(bucket) } else { 0 };
        (0..Self::SLOTS).filter_map(move |j| {
            let lane = (bucket.0 >> (j * Self::LANE_BITS)) & Self::LANE;
            let high = if Self::SEMI_SORTED { u64::from((list >> (STRIDE * j)) & 15) << Self::LANE_BITS } else { 0 };
            (lane != 0).then_some(Entry((high | lane) as u32))
        })
    }

    /// The lanes that equal that of the pattern, in the form of a [`Candidate`].
    #[inline(always)]
    fn lanes_of(self, bucket: Bucket, pattern: u64) -> u64 {
        any_zero_lane::<Self>(self.fingerprints_of(bucket) ^ pattern)
    }

    /// The candidate among these lanes of either bucket.
    #[inline(always)]
    fn chosen(self, first: Bucket, second: Bucket, in_first: u64, in_second: u64) -> Candidate {
        choose(first, second, in_first, in_second).1
    }

    /// The lanes, by their top bits, that hold the fingerprint.
    #[inline]
    fn matches(self, bucket: Bucket, fingerprint: Fingerprint) -> u64 {
        self.confirmed(
            bucket,
            zero_lanes::<Self>(self.fingerprints_of(bucket) ^ self.pattern(fingerprint)),
            fingerprint.0,
        )
    }

    /// The lanes, by their top bits, that hold the entry.
    #[inline]
    fn matches_of_entry(self, bucket: Bucket, entry: Entry) -> u64 {
        self.confirmed(bucket, zero_lanes::<Self>(bucket.0 ^ pattern::<Self>(entry.0)), entry.0)
    }

    /// Those of the lanes whose nibble is that of the entry, or fingerprint, with these bits.
    #[inline(always)]
    fn confirmed(self, bucket: Bucket, lanes: u64, bits: u32) -> u64 {
        if lanes == 0 || !Self::SEMI_SORTED {
            return lanes;
        }
        let list = self.sorted_nibbles(bucket);
        let (mut matches, mut rest) = (0, lanes);
        while rest != 0 {
            let lowest = rest & rest.wrapping_neg();
            if nibble_at::<Self>(list, lowest) == nibble::<Self>(bits) {
                matches |= lowest;
            }
            rest ^= lowest;
        }
        matches
    }

    /// The list of a semi-sorted bucket's nibbles.
    #[inline(always)]
    fn sorted_nibbles(self, bucket: Bucket) -> u32 {
        *at(self.unrank(), (bucket.0 >> (Self::SLOTS * Self::LANE_BITS)) as usize)
    }
}

impl<L: Layout> BucketOps for L {}

/// One of the buckets whose matching lanes these are: one that has any. And whether it is the first.
///
/// A branch on *which* word matched would be mispredicted half of the time. So conditional moves choose.
#[inline(always)]
fn choose(first: Bucket, second: Bucket, lanes_of_first: u64, lanes_of_second: u64) -> (bool, Candidate) {
    let in_first = lanes_of_first != 0;
    let lanes = select_unpredictable(in_first, lanes_of_first, lanes_of_second);
    (in_first, Candidate { lanes, word: select_unpredictable(in_first, first, second) })
}

/// These bits of an entry, or of a fingerprint, as they are in a lane, repeated in every lane.
#[inline(always)]
fn pattern<L: Layout>(bits: u32) -> u64 {
    (u64::from(bits) & L::LANE) * L::ONES
}

/// The part of these bits that a semi-sorted bucket stores in its rank.
#[inline(always)]
fn nibble<L: Layout>(bits: u32) -> u32 {
    bits >> L::LANE_BITS
}

/// The top bit of the lowest lane that is 0, perhaps with top bits above it. 0 if no lane is 0.
#[inline(always)]
fn any_zero_lane<L: Layout>(word: u64) -> u64 {
    word.wrapping_sub(L::ONES) & !word & L::TOPS
}

/// The top bits of exactly those lanes that are 0.
#[inline(always)]
pub(super) fn zero_lanes<L: Layout>(word: u64) -> u64 {
    let lows = L::TOPS - L::ONES;
    !(((word & lows) + lows) | word) & L::TOPS
}

/// The index of the lowest lane that has a bit set.
#[inline(always)]
pub(super) fn lane_index<L: Layout>(lanes: u64) -> u32 {
    lanes.trailing_zeros() / L::LANE_BITS
}

/// The nibble of the lowest lane whose top bit is set.
#[inline(always)]
fn nibble_at<L: Layout>(list: u32, lanes: u64) -> u32 {
    (list >> (STRIDE * lane_index::<L>(lanes))) & 15
}

#[inline(always)]
pub(super) fn encode<L: Layout>(lanes: u64, list: u32) -> Bucket {
    Bucket(lanes | u64::from(semisort::rank(list, L::SLOTS)) << (L::SLOTS * L::LANE_BITS))
}

/// `list` without element 0: elements 1 to `place` move down by one, element `place` becomes 0, those above stay.
#[inline]
fn shift_down<L: Layout>(list: u64, place: u32, width: u32) -> u64 {
    let moved = (1 << ((place + 1) * width)) - 1;
    (list & moved) >> width | list & !moved & all::<L>(width)
}

/// `list` without element `place`: the elements below it move up by one, element 0 becomes 0, those above stay.
#[inline]
pub(super) fn shift_up<L: Layout>(list: u64, place: u32, width: u32) -> u64 {
    let moved = (1 << (place * width)) - 1;
    let kept = !((1 << ((place + 1) * width)) - 1);
    (list & moved) << width | list & kept & all::<L>(width)
}

/// The bits of `SLOTS` elements of `width` bits.
#[inline]
fn all<L: Layout>(width: u32) -> u64 {
    u64::MAX >> (u64::BITS - L::SLOTS * width)
}

#[cfg(test)]
#[path = "bucket_tests.rs"]
mod tests;
