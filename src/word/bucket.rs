//! Pure: one bucket as a 64-bit word, and what can be asked of it or changed in it.
//!
//! A lane of 0 is an empty slot, so an all-zero word is an empty bucket in every layout.
//!
//! # Comparing all lanes at once
//! Subtracting 1 from every lane of `x` sets a lane's top bit if the lane was 0, or if its top bit was set already
//! (`& !x` excludes that), or if a lower lane that was 0 borrowed from it. So [`any_zero_lane`] is exact about *whether* a
//! lane is 0, and about the lowest one, but may flag further lanes above it. [`zero_lanes`] adds instead of
//! subtracting, which cannot carry, and is exact for each lane.
//!
//! # Semi-sorted words
//! The lanes stand in the order of their nibbles, empty slots first (their nibble counts as 0). So lane 0 alone tells
//! whether there is room, and adding drops lane 0, an empty one, and shifts the lanes below the new one down. *Decode
//! late*: a fingerprint's low part is compared first, and the rank is decoded only where a lane matched.

use core::hint::select_unpredictable;

use crate::machine::arch::{any_lane_is, at};
use crate::word::layout::{Fingerprint, Layout};
use crate::word::semisort::{self, STRIDE};

/// A bucket's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bucket(pub(crate) u64);

/// What the comparison of low parts found in an item's two buckets.
#[derive(Clone, Copy, Default)]
pub(crate) struct Candidate {
    /// Not 0 if there is one. Then the lowest set bit is the top bit of its lane, under the same condition.
    lanes: u64,
    /// The bucket that it is in, if semi-sorted or found by [`place`](BucketOps::place).
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
    /// Whether either bucket holds the fingerprint; `None` in the rare case that takes a second look, with `count`.
    ///
    /// `None` needs a fingerprint stored whose low part is that of the one in question and whose nibble is not.
    #[inline(always)]
    fn either_contains(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Option<bool> {
        let candidate = self.candidate(first, second, fingerprint);
        // A branch, which is mispredicted where hits and misses come at random. To decode always, without it, makes such a
        // mixture 1.6 times as fast, and misses alone a third slower: see the page `scaling`.
        if !candidate.exists() {
            return Some(false);
        }
        self.confirms(candidate, fingerprint).then_some(true)
    }

    /// The slot in either bucket whose lane matches the fingerprint's low part; if plain, only whether there is one.
    #[inline(always)]
    fn candidate(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Candidate {
        if Self::SEMI_SORTED {
            return self.place(first, second, fingerprint).1;
        }
        let found = any_lane_is(first.0, second.0, fingerprint.0, Self::LANE_BITS)
            .unwrap_or_else(|| self.either_matches(first, second, self.pattern(fingerprint)));
        Candidate { lanes: found.into(), word: first }
    }

    /// The fingerprint's low part in every lane.
    #[inline(always)]
    fn pattern(self, fingerprint: Fingerprint) -> u64 {
        pattern::<Self>(fingerprint)
    }

    /// Whether a lane of either bucket is that of the pattern.
    #[inline(always)]
    fn either_matches(self, first: Bucket, second: Bucket, pattern: u64) -> bool {
        any_zero_lane::<Self>(second.0 ^ pattern) | any_zero_lane::<Self>(first.0 ^ pattern) != 0
    }

    /// The slot in either bucket whose lane is that of the pattern.
    #[inline(always)]
    fn candidate_for(self, first: Bucket, second: Bucket, pattern: u64) -> Candidate {
        self.place_for(first, second, pattern).1
    }

    /// Whether a candidate holds the whole fingerprint. If not, another one still may.
    #[inline(always)]
    fn confirms(self, candidate: Candidate, fingerprint: Fingerprint) -> bool {
        let Candidate { lanes, word } = candidate;
        !Self::SEMI_SORTED || nibble_at::<Self>(self.sorted_nibbles(word), lanes) == nibble::<Self>(fingerprint)
    }

    /// How many copies of the fingerprint the bucket holds.
    #[inline]
    fn count(self, bucket: Bucket, fingerprint: Fingerprint) -> usize {
        self.matches(bucket, fingerprint).count_ones() as usize
    }

    /// Whether the bucket holds the fingerprint.
    #[inline]
    fn holds(self, bucket: Bucket, fingerprint: Fingerprint) -> bool {
        self.matches(bucket, fingerprint) != 0
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

    /// A measure of how much room there is, to compare buckets by: hardly ever less for more. For [`add_to`](Self::add_to),
    /// which tells whether there is any.
    ///
    /// Plain: the empty lanes as a bit mask, which is cheaper than their number. They stand together at the high end, but
    /// for gaps that removals leave, so that a mask of more lanes is the larger number too. Semi-sorted: the empty lanes
    /// stand at the low end, so it is the number of low bits that are 0.
    #[inline(always)]
    fn room(self, bucket: Bucket) -> u64 {
        if Self::SEMI_SORTED {
            (bucket.0 | 1 << (Self::SLOTS * Self::LANE_BITS)).trailing_zeros().into()
        } else {
            any_zero_lane::<Self>(bucket.0)
        }
    }

    /// The bucket with one more copy of the fingerprint, or `None` if it is full.
    #[inline]
    fn add(self, bucket: Bucket, fingerprint: Fingerprint) -> Option<Bucket> {
        self.add_to(bucket, self.room(bucket), fingerprint)
    }

    /// The same where [`room`](Self::room) is known.
    #[inline(always)]
    fn add_to(self, bucket: Bucket, room: u64, fingerprint: Fingerprint) -> Option<Bucket> {
        let low = u64::from(fingerprint.0) & Self::LANE;
        if !Self::SEMI_SORTED {
            if room == 0 {
                return None;
            }
            let lane_start = room.trailing_zeros() + 1 - Self::LANE_BITS;
            return Some(Bucket(bucket.0 | low << lane_start));
        }
        let empty = room as u32 / Self::LANE_BITS;
        if empty == 0 {
            return None;
        }
        let nibble = nibble::<Self>(fingerprint);
        let list = self.sorted_nibbles(bucket);
        // The new lane goes above those with a smaller nibble, and above the empty ones, whose nibble is 0; all of these
        // move down by one.
        let place = semisort::less_than(list, nibble, Self::SLOTS).max(empty) - 1;
        let lanes = shift_down::<Self>(bucket.0, place, Self::LANE_BITS) | low << (place * Self::LANE_BITS);
        let list = shift_down::<Self>(list.into(), place, STRIDE) as u32 | nibble << (place * STRIDE);
        Some(encode::<Self>(lanes, list))
    }

    /// The bucket with one copy of the fingerprint less, or `None` if it holds none.
    #[inline]
    fn remove(self, bucket: Bucket, fingerprint: Fingerprint) -> Option<Bucket> {
        let matches = self.matches(bucket, fingerprint);
        (matches != 0).then(|| self.without(bucket, matches))
    }

    /// The bucket without the lowest of these lanes, which is one.
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

    /// The slot in either bucket whose lane matches the fingerprint's low part, and whether it is in the first.
    #[inline(always)]
    fn place(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> (bool, Candidate) {
        self.place_for(first, second, pattern::<Self>(fingerprint))
    }

    /// The same for the pattern of a fingerprint.
    #[inline(always)]
    fn place_for(self, first: Bucket, second: Bucket, pattern: u64) -> (bool, Candidate) {
        let lanes_of_first = any_zero_lane::<Self>(first.0 ^ pattern);
        let lanes_of_second = any_zero_lane::<Self>(second.0 ^ pattern);
        // A branch on *which* word matched would be mispredicted half of the time: conditional moves choose.
        let in_first = lanes_of_first != 0;
        let lanes = select_unpredictable(in_first, lanes_of_first, lanes_of_second);
        (in_first, Candidate { lanes, word: select_unpredictable(in_first, first, second) })
    }

    /// The candidate's bucket without it. It comes from [`place`](Self::place), which tells the lane.
    #[inline(always)]
    fn without_candidate(self, candidate: Candidate) -> Bucket {
        self.without(candidate.word, candidate.lanes)
    }

    /// Whether additions and removals can lead to this word: no other has a meaning, and none is ever stored.
    #[cfg_attr(not(any(feature = "snapshot", test)), allow(dead_code, reason = "only snapshots come from elsewhere"))]
    fn is_valid(self, bucket: Bucket) -> bool {
        if !Self::SEMI_SORTED {
            return bucket.0 & !all::<Self>(Self::LANE_BITS) == 0;
        }
        let list = self.sorted_nibbles(bucket);
        let empty = Self::SLOTS - self.occupied(bucket) as u32;
        // Ranks that belong to no list decode to the list of rank 0.
        let rank = bucket.0 >> (Self::SLOTS * Self::LANE_BITS);
        u64::from(semisort::rank(list, Self::SLOTS)) == rank
            // The empty lanes come first, and their nibbles are 0.
            && bucket.0 & ((1 << (empty * Self::LANE_BITS)) - 1) == 0
            && u64::from(list) & ((1 << (empty * STRIDE)) - 1) == 0
    }

    /// The fingerprints in the bucket.
    #[inline]
    fn fingerprints(self, bucket: Bucket) -> impl Iterator<Item = Fingerprint> {
        let list = if Self::SEMI_SORTED { self.sorted_nibbles(bucket) } else { 0 };
        (0..Self::SLOTS).filter_map(move |j| {
            let low = (bucket.0 >> (j * Self::LANE_BITS)) & Self::LANE;
            let high = if Self::SEMI_SORTED { u64::from((list >> (STRIDE * j)) & 15) << Self::LANE_BITS } else { 0 };
            (low != 0).then_some(Fingerprint((high | low) as u32))
        })
    }

    /// The lanes, by their top bits, that hold the fingerprint.
    #[inline]
    fn matches(self, bucket: Bucket, fingerprint: Fingerprint) -> u64 {
        let lanes = zero_lanes::<Self>(bucket.0 ^ pattern::<Self>(fingerprint));
        if lanes == 0 || !Self::SEMI_SORTED {
            return lanes;
        }
        let list = self.sorted_nibbles(bucket);
        let (mut matches, mut rest) = (0, lanes);
        while rest != 0 {
            let lowest = rest & rest.wrapping_neg();
            if nibble_at::<Self>(list, lowest) == nibble::<Self>(fingerprint) {
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

/// The fingerprint's low part in every lane.
#[inline(always)]
fn pattern<L: Layout>(fingerprint: Fingerprint) -> u64 {
    (u64::from(fingerprint.0) & L::LANE) * L::ONES
}

/// The part of the fingerprint that a semi-sorted bucket stores in its rank.
#[inline(always)]
fn nibble<L: Layout>(fingerprint: Fingerprint) -> u32 {
    fingerprint.0 >> L::LANE_BITS
}

/// The top bit of the lowest lane that is 0, perhaps with top bits above it; nothing if no lane is 0.
#[inline(always)]
fn any_zero_lane<L: Layout>(word: u64) -> u64 {
    word.wrapping_sub(L::ONES) & !word & L::TOPS
}

/// The top bits of exactly those lanes that are 0.
#[inline(always)]
fn zero_lanes<L: Layout>(word: u64) -> u64 {
    let lows = L::TOPS - L::ONES;
    !(((word & lows) + lows) | word) & L::TOPS
}

/// The index of the lowest lane that has a bit set.
#[inline(always)]
fn lane_index<L: Layout>(lanes: u64) -> u32 {
    lanes.trailing_zeros() / L::LANE_BITS
}

/// The nibble of the lowest lane whose top bit is set.
#[inline(always)]
fn nibble_at<L: Layout>(list: u32, lanes: u64) -> u32 {
    (list >> (STRIDE * lane_index::<L>(lanes))) & 15
}

#[inline(always)]
fn encode<L: Layout>(lanes: u64, list: u32) -> Bucket {
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
fn shift_up<L: Layout>(list: u64, place: u32, width: u32) -> u64 {
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
