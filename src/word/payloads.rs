//! PURE: the queries and changes that concern the payloads in a bucket.
//!
//! A payload is in the lane, above the fingerprint's low part, which is never 0. So a lane is 0 only if its slot is
//! empty, with a payload too. An operation on a *fingerprint* leaves the payloads out of the comparison. An
//! operation on an *entry* compares them too. In a filter there are none, and both are the same.

use crate::word::bucket::{Bucket, BucketOps, FoundSlot, Pattern, choose, encode, without_lane, zero_lanes};
use crate::word::layout::{Entry, Fingerprint, Layout};
use crate::word::values::Values;

/// The slot that holds a fingerprint, if there is only one.
#[derive(Clone, Copy, Default)]
pub(crate) struct OnlySlot {
    pub(crate) slot: FoundSlot,
    /// Not 0 if there are several, or seem to be.
    pub(crate) several: u64,
}

/// A range of payloads, on the ring that they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payloads {
    pub(crate) first: u16,
    /// How far the last one is from the first.
    pub(crate) most: u16,
}

pub(crate) trait PayloadOps: BucketOps {
    #[inline]
    fn count_with(self, bucket: Bucket, fingerprint: Fingerprint, these: impl Fn(u16) -> bool) -> usize {
        (self.matches(bucket, fingerprint) & self.lanes_with(bucket, these)).count_ones() as usize
    }

    /// The bucket with another payload in one copy of the entry, or `None` if it holds none.
    #[inline]
    fn replace(self, bucket: Bucket, old: Entry, new: Entry) -> Option<Bucket> {
        debug_assert_eq!(self.fingerprint_of(old), self.fingerprint_of(new));
        let found = self.find_in(bucket, old);
        found.exists().then(|| self.replace_at(found, old, new))
    }

    /// The bucket of a slot that was found, with `new` in that slot, where `old` is. They differ only in the payload, so
    /// the order of the lanes stays.
    #[inline(always)]
    fn replace_at(self, found: FoundSlot, old: Entry, new: Entry) -> Bucket {
        let lane_at = found.lanes.trailing_zeros() + 1 - u32::from(self.lanes().bits);
        Bucket(found.bucket.0 ^ u64::from(old.0 ^ new.0) << lane_at)
    }

    /// The slot in either bucket that holds the fingerprint, if there are not several. `lanes` are those in which the
    /// buckets hold it.
    #[inline(always)]
    fn only_slot(self, buckets: [Bucket; 2], lanes: [u64; 2]) -> OnlySlot {
        let all = lanes[0] | lanes[1];
        // Several in one bucket, or one in each.
        let several = all & all.wrapping_sub(1) | lanes[0] & lanes[1];
        OnlySlot { slot: FoundSlot { lanes: all, ..choose(buckets, [0; 2], lanes).1 }, several }
    }

    #[inline(always)]
    fn payload_at(self, found: FoundSlot) -> u16 {
        self.payload_in(found.bucket, found.lanes)
    }

    /// The only value of a key: the payload in its slot, if it has one.
    #[inline(always)]
    fn value_at(self, found: FoundSlot) -> Values {
        Values::of_one_if(found.exists(), self.payload_at(found), self.payload().bits)
    }

    #[inline(always)]
    fn payload_in(self, bucket: Bucket, lanes: u64) -> u16 {
        // The payload is the upper end of its lane. This is the lane's top bit.
        let lowest_bit = lanes.trailing_zeros() + 1 - self.payload().bits;
        (bucket.0.wrapping_shr(lowest_bit) as u32 & self.payload().mask) as u16
    }

    #[inline(never)]
    fn values(self, first: Bucket, second: Bucket, fingerprint: Fingerprint) -> Values {
        let mut values = Values::EMPTY;
        for bucket in [first, second] {
            let mut lanes = self.matches(bucket, fingerprint);
            while lanes != 0 {
                values = values.with(self.payload_in(bucket, lanes), self.payload().bits);
                lanes &= lanes - 1;
            }
        }
        values
    }

    /// The lanes, by their top bits, whose entries have this payload.
    #[inline(always)]
    fn lanes_with_payload(self, bucket: Bucket, payload: u16) -> u64 {
        let payloads = (u64::from(payload) << self.payload_shift()).wrapping_mul(self.lanes().ones);
        let with_it = zero_lanes(self.lanes(), (bucket.0 ^ payloads) & !self.payload().fingerprints_mask);
        with_it & !zero_lanes(self.lanes(), bucket.0)
    }

    /// Whether either bucket holds the fingerprint with a payload in the range.
    #[inline(always)]
    fn either_holds_with(self, [first, second]: [Bucket; 2], fingerprint: Fingerprint, range: Payloads) -> bool {
        let pattern = self.pattern(fingerprint.0);
        let with = |bucket| self.lanes_with_any(bucket, self.folded(bucket), pattern, range);
        with(first) | with(second) != 0
    }

    /// The lanes, by their top bits, whose entries have the fingerprint of the pattern and a payload in the range. All
    /// lanes are compared at once, so a loop over many buckets is vectorized. `folded` is as in
    /// [`lanes_in`](BucketOps::lanes_in).
    #[inline(always)]
    fn lanes_with_any(self, bucket: Bucket, folded: u32, pattern: Pattern, range: Payloads) -> u64 {
        let (tops, ones) = (self.lanes().tops, self.lanes().ones);
        let in_all = |payload: u16| (u64::from(payload) << self.payload_shift()).wrapping_mul(ones);
        let (payloads, first, most) =
            (bucket.0 & !self.payload().fingerprints_mask, in_all(range.first), in_all(range.most));
        // Each payload less the first, modulo their number: the top bit of a lane lends what its other bits lack.
        let after = ((payloads | tops) - (first & !tops)) ^ (payloads ^ !first) & tops;
        // The top bit stays where the other bits of the most are not less. It counts where the top bits are equal.
        let not_less = (most | tops) - (after & !tops);
        let in_range = most & !after | !(most ^ after) & not_less;
        zero_lanes(self.lanes(), self.differences(self.decoded_by(bucket, folded), pattern)) & in_range
    }

    #[inline]
    fn count_payloads(self, bucket: Bucket, these: impl Fn(u16) -> bool) -> usize {
        self.lanes_with(bucket, these).count_ones() as usize
    }

    /// The bucket without all of these lanes, each by its top bit.
    fn without_all(self, bucket: Bucket, mut lanes: u64) -> Bucket {
        let bits = u32::from(self.lanes().bits);
        if !self.is_semi_sorted() {
            // From the top bits to all bits of these lanes.
            let lows = lanes >> (bits - 1);
            return Bucket(bucket.0 & !lows.wrapping_mul(self.lanes().first.into()));
        }
        if lanes == !zero_lanes(self.lanes(), bucket.0) & self.lanes().tops {
            return Bucket::default();
        }
        // From the lowest lane on. The lanes below one that goes move up, and those above stay.
        let (mut word, mut list) = (bucket.0 & (self.lanes().above() - 1), self.decoded(bucket).list);
        while lanes != 0 {
            let top = lanes.trailing_zeros();
            word = without_lane(word, top, bits);
            list = without_lane(list, top, bits);
            lanes &= lanes - 1;
        }
        encode(self, word, list)
    }

    /// The lanes, by their top bits, whose entries have one of these payloads.
    #[inline(always)]
    fn lanes_with(self, bucket: Bucket, these: impl Fn(u16) -> bool) -> u64 {
        let (mut rest, mut lanes) = (!zero_lanes(self.lanes(), bucket.0) & self.lanes().tops, 0);
        while rest != 0 {
            let lowest = rest & rest.wrapping_neg();
            if these(self.payload_in(bucket, lowest)) {
                lanes |= lowest;
            }
            rest ^= lowest;
        }
        lanes
    }
}

impl<L: Layout> PayloadOps for L {}
