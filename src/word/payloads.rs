//! Pure: the questions and changes that concern the payloads in a bucket.
//!
//! A payload is in the lane, above the fingerprint's low part, which is never 0. So a lane is 0 only if its slot is
//! empty, with a payload too. An operation on a *fingerprint* leaves the payloads out of the comparison. An
//! operation on an *entry* compares them too. In a filter there are none, and both are the same.

use core::hint::select_unpredictable;

use crate::word::bucket::{Bucket, BucketOps, Candidate, encode, lane_index, shift_up, zero_lanes};
use crate::word::layout::{Entry, Fingerprint, Layout};
use crate::word::semisort::STRIDE;
use crate::word::values::Values;

/// The candidate, if there is only one.
#[derive(Clone, Copy, Default)]
pub(crate) struct OnlyCandidate {
    pub(crate) candidate: Candidate,
    /// Not 0 if there are several, or seem to be.
    pub(crate) several: u64,
}

/// What a layout whose slots have payloads can do with a bucket.
pub(crate) trait PayloadOps: BucketOps {
    /// How many entries with the fingerprint and one of these payloads the bucket holds.
    #[inline]
    fn count_with(self, bucket: Bucket, fingerprint: Fingerprint, these: impl Fn(u16) -> bool) -> usize {
        (self.matches(bucket, fingerprint) & self.lanes_with(bucket, these)).count_ones() as usize
    }

    /// The bucket with another payload in one copy of the entry, or `None` if it holds none.
    #[inline]
    fn replace(self, bucket: Bucket, old: Entry, new: Entry) -> Option<Bucket> {
        debug_assert_eq!(self.fingerprint_of(old), self.fingerprint_of(new));
        let matches = self.matches_of_entry(bucket, old);
        (matches != 0).then(|| replace_at::<Self>(bucket, matches, old, new))
    }

    /// The same for a candidate: its bucket, with another payload in the candidate's place.
    #[inline(always)]
    fn replace_candidate(self, candidate: Candidate, old: Entry, new: Entry) -> Bucket {
        replace_at::<Self>(candidate.word, candidate.lanes, old, new)
    }

    /// The slots in both buckets whose lanes equal that of the pattern, if there are not several.
    #[inline(always)]
    fn only_candidate(self, first: Bucket, second: Bucket, pattern: u64) -> OnlyCandidate {
        let (in_first, in_second) = (self.lanes_of(first, pattern), self.lanes_of(second, pattern));
        let word = select_unpredictable(in_first != 0, first, second);
        let lanes = in_first | in_second;
        // Several in one bucket, or one in each.
        let several = lanes & lanes.wrapping_sub(1) | in_first & in_second;
        OnlyCandidate { candidate: Candidate { lanes, word }, several }
    }

    /// The payloads of all entries with the fingerprint, for a caller with one candidate.
    #[inline(always)]
    fn value_of(self, candidate: Candidate, fingerprint: Fingerprint) -> Values {
        if !self.confirms(candidate, fingerprint) {
            return Values::EMPTY;
        }
        Values::of(self.payload_of_candidate(candidate), self.payload_bits())
    }

    /// The payload of a candidate.
    #[inline(always)]
    fn payload_of_candidate(self, candidate: Candidate) -> u16 {
        self.payload_at(candidate.word, candidate.lanes)
    }

    /// The payload in the lowest of these lanes.
    #[inline(always)]
    fn payload_at(self, bucket: Bucket, lanes: u64) -> u16 {
        // The payload is the upper end of its lane. This is the lane's top bit.
        let lowest_bit = lanes.trailing_zeros() + 1 - self.payload_bits();
        (bucket.0.wrapping_shr(lowest_bit) & self.payload_mask()) as u16
    }

    /// The payloads of all entries with the fingerprint in either bucket.
    #[inline(never)]
    fn values(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Values {
        let mut values = Values::EMPTY;
        for bucket in [first, second] {
            let mut lanes = self.matches(bucket, fingerprint);
            while lanes != 0 {
                values = values.with(self.payload_at(bucket, lanes), self.payload_bits());
                lanes &= lanes - 1;
            }
        }
        values
    }

    /// The lanes, by their top bits, whose entries have this payload.
    #[inline(always)]
    fn lanes_with_payload(self, bucket: Bucket, payload: u16) -> u64 {
        let payloads = (u64::from(payload) << self.payload_shift()).wrapping_mul(Self::ONES);
        let with_it = zero_lanes::<Self>((bucket.0 ^ payloads) & !self.of_fingerprints());
        with_it & !zero_lanes::<Self>(bucket.0)
    }

    /// How many entries have one of these payloads.
    #[inline]
    fn count_payloads(self, bucket: Bucket, these: impl Fn(u16) -> bool) -> usize {
        self.lanes_with(bucket, these).count_ones() as usize
    }

    /// The bucket without all of these lanes, each by its top bit.
    fn without_all(self, bucket: Bucket, mut lanes: u64) -> Bucket {
        if !Self::SEMI_SORTED {
            // From the top bits to all bits of these lanes.
            let lows = lanes >> (Self::LANE_BITS - 1);
            return Bucket(bucket.0 & !lows.wrapping_mul(Self::LANE));
        }
        if lanes == !zero_lanes::<Self>(bucket.0) & Self::TOPS {
            return Bucket::default();
        }
        // From the lowest lane on. The lanes below one that goes move up, and those above stay.
        let (mut word, mut list) = (bucket.0, u64::from(self.sorted_nibbles(bucket)));
        while lanes != 0 {
            let place = lane_index::<Self>(lanes);
            word = shift_up::<Self>(word, place, Self::LANE_BITS);
            list = shift_up::<Self>(list, place, STRIDE);
            lanes &= lanes - 1;
        }
        encode::<Self>(word, list as u32)
    }

    /// The lanes, by their top bits, whose entries have one of these payloads.
    #[inline(always)]
    fn lanes_with(self, bucket: Bucket, these: impl Fn(u16) -> bool) -> u64 {
        let (mut rest, mut lanes) = (!zero_lanes::<Self>(bucket.0) & Self::TOPS, 0);
        while rest != 0 {
            let lowest = rest & rest.wrapping_neg();
            if these(self.payload_at(bucket, lowest)) {
                lanes |= lowest;
            }
            rest ^= lowest;
        }
        lanes
    }
}

impl<L: Layout> PayloadOps for L {}

/// The bucket with `new` in the lowest of these lanes, where `old` is. They differ only in the payload, so the
/// order of the lanes stays.
#[inline(always)]
fn replace_at<L: Layout>(bucket: Bucket, lanes: u64, old: Entry, new: Entry) -> Bucket {
    Bucket(bucket.0 ^ u64::from(old.0 ^ new.0) << (lane_index::<L>(lanes) * L::LANE_BITS))
}
