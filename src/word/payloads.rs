//! PURE: the queries of a bucket and the changes to it that concern payloads.
//!
//! A payload is in the lane, above the fingerprint's low part, which is never 0. So a lane is 0 only if its slot is
//! empty, with a payload too. An operation on a *fingerprint* leaves the payloads out of the comparison. An
//! operation on an *entry* compares them too. In a filter there are none, and both are the same.

use crate::word::bucket::{Bucket, FoundSlot, Pattern, choose, encode, without_lane, zero_lanes};
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

impl OnlySlot {
    /// The slot in either bucket that holds a fingerprint, if there are not several. `lanes` are those in which the
    /// buckets hold it.
    #[inline(always)]
    pub(crate) fn of(pair: [Bucket; 2], lanes: [u64; 2]) -> Self {
        let all = lanes[0] | lanes[1];
        // Several in one bucket, or one in each.
        let several = all & all.wrapping_sub(1) | lanes[0] & lanes[1];
        Self { slot: FoundSlot { lanes: all, ..choose(pair, [0; 2], lanes).1 }, several }
    }
}

impl FoundSlot {
    #[inline(always)]
    pub(crate) fn payload(self, layout: impl Layout) -> u16 {
        self.bucket.payload_in(layout, self.lanes)
    }

    /// The only value of a key: the payload in its slot, if it has one.
    #[inline(always)]
    pub(crate) fn value(self, layout: impl Layout) -> Values {
        Values::of_one_if(self.exists(), self.payload(layout), layout.payload().bits)
    }

    /// The bucket with `new` in this slot, where `old` is. They differ only in the payload, so the order of the lanes stays.
    #[inline(always)]
    pub(crate) fn replaced(self, layout: impl Layout, old: Entry, new: Entry) -> Bucket {
        let lane_at = self.lanes.trailing_zeros() + 1 - u32::from(layout.lanes().bits);
        Bucket(self.bucket.0 ^ u64::from(old.0 ^ new.0) << lane_at)
    }
}

impl Bucket {
    /// The payload in the lowest of these lanes, each by its top bit.
    #[inline(always)]
    pub(super) fn payload_in(self, layout: impl Layout, lanes: u64) -> u16 {
        // The payload is the upper end of its lane. This is the lane's top bit.
        let lowest_bit = lanes.trailing_zeros() + 1 - layout.payload().bits;
        (self.0.wrapping_shr(lowest_bit) as u32 & layout.payload().mask) as u16
    }

    /// The bucket with another payload in one copy of the entry, or `None` if it holds none.
    #[inline]
    pub(crate) fn replace(self, layout: impl Layout, old: Entry, new: Entry) -> Option<Self> {
        debug_assert_eq!(layout.fingerprint_of(old), layout.fingerprint_of(new));
        let found = self.find(layout, old);
        found.exists().then(|| found.replaced(layout, old, new))
    }

    /// All payloads that either bucket of the pair holds with the fingerprint.
    #[inline(never)]
    pub(crate) fn values(layout: impl Layout, pair: [Self; 2], fingerprint: Fingerprint) -> Values {
        let mut values = Values::EMPTY;
        for bucket in pair {
            let mut lanes = bucket.matches(layout, fingerprint);
            while lanes != 0 {
                values = values.with(bucket.payload_in(layout, lanes), layout.payload().bits);
                lanes &= lanes - 1;
            }
        }
        values
    }

    /// The lanes, by their top bits, whose entries have one of these payloads.
    #[inline(always)]
    pub(crate) fn lanes_with(self, layout: impl Layout, these: impl Fn(u16) -> bool) -> u64 {
        let (mut rest, mut lanes) = (!zero_lanes(layout.lanes(), self.0) & layout.lanes().tops, 0);
        while rest != 0 {
            let lowest = rest & rest.wrapping_neg();
            if these(self.payload_in(layout, lowest)) {
                lanes |= lowest;
            }
            rest ^= lowest;
        }
        lanes
    }

    /// The lanes, by their top bits, whose entries have this payload.
    #[inline(always)]
    pub(crate) fn lanes_with_payload(self, layout: impl Layout, payload: u16) -> u64 {
        let payloads = (u64::from(payload) << layout.payload_shift()).wrapping_mul(layout.lanes().ones);
        let with_it = zero_lanes(layout.lanes(), (self.0 ^ payloads) & !layout.payload().fingerprints_mask);
        with_it & !zero_lanes(layout.lanes(), self.0)
    }

    #[inline]
    pub(crate) fn count_payloads(self, layout: impl Layout, these: impl Fn(u16) -> bool) -> usize {
        self.lanes_with(layout, these).count_ones() as usize
    }

    #[inline]
    pub(crate) fn count_with(
        self,
        layout: impl Layout,
        fingerprint: Fingerprint,
        these: impl Fn(u16) -> bool,
    ) -> usize {
        (self.matches(layout, fingerprint) & self.lanes_with(layout, these)).count_ones() as usize
    }

    /// Whether either bucket of the pair holds the fingerprint with a payload in the range.
    #[inline(always)]
    pub(crate) fn either_holds_with(
        layout: impl Layout,
        [first, second]: [Self; 2],
        fingerprint: Fingerprint,
        range: Payloads,
    ) -> bool {
        let pattern = Pattern::new(layout, fingerprint.0);
        let with = |bucket: Self| bucket.lanes_with_any(layout, bucket.folded(layout), pattern, range);
        with(first) | with(second) != 0
    }

    /// The lanes, by their top bits, whose entries have the fingerprint of the pattern and a payload in the range. All
    /// lanes are compared at once, so a loop over many buckets is vectorized. `folded` is as in
    /// [`lanes_in`](Self::lanes_in).
    #[inline(always)]
    pub(crate) fn lanes_with_any(self, layout: impl Layout, folded: u32, pattern: Pattern, range: Payloads) -> u64 {
        let (tops, ones) = (layout.lanes().tops, layout.lanes().ones);
        let in_all = |payload: u16| (u64::from(payload) << layout.payload_shift()).wrapping_mul(ones);
        let (payloads, first, most) =
            (self.0 & !layout.payload().fingerprints_mask, in_all(range.first), in_all(range.most));
        // Each payload less the first, modulo their number: the top bit of a lane lends what its other bits lack.
        let after = ((payloads | tops) - (first & !tops)) ^ (payloads ^ !first) & tops;
        // The top bit stays where the other bits of the most are not less. It counts where the top bits are equal.
        let not_less = (most | tops) - (after & !tops);
        let in_range = most & !after | !(most ^ after) & not_less;
        zero_lanes(layout.lanes(), self.decoded_by(layout, folded).differences(layout, pattern)) & in_range
    }

    /// The bucket without all of these lanes, each by its top bit.
    pub(crate) fn without_all(self, layout: impl Layout, mut lanes: u64) -> Self {
        let bits = u32::from(layout.lanes().bits);
        if !layout.is_semi_sorted() {
            // From the top bits to all bits of these lanes.
            let lows = lanes >> (bits - 1);
            return Self(self.0 & !lows.wrapping_mul(layout.lanes().mask.into()));
        }
        if lanes == !zero_lanes(layout.lanes(), self.0) & layout.lanes().tops {
            return Self::default();
        }
        // From the lowest lane on. The lanes below one that goes move up, and those above stay.
        let (mut word, mut list) = (self.0 & (layout.lanes().above() - 1), self.decoded(layout).list);
        while lanes != 0 {
            let top = lanes.trailing_zeros();
            word = without_lane(word, top, bits);
            list = without_lane(list, top, bits);
            lanes &= lanes - 1;
        }
        encode(layout, word, list)
    }
}
