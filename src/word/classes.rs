//! PURE: the classes of a growing table, and where their copies are.
//!
//! Linear hashing (Litwin, VLDB 1980) under partial-key cuckoo hashing (Fan et al., CoNEXT 2014, section 3.1). A
//! *class* is a *base*, the bits of the fingerprint that even the largest table stores, and an even number of `K` bits.
//! Its two *sides* are that number and the number xor `g(base)`, where `g` is an odd hash. So one side is even and the
//! other one odd, and they are never the same.
//!
//! At *depth* `d` the bucket of a side is given by the side's low `d` bits, and a slot stores the base and the even
//! side's bits from `d` on: the same in both buckets. So a slot and the number of its bucket give the class: the parity
//! of the number says which side it is.
//!
//! A table of `2^level + split` buckets has two depths. The buckets below `split`, and those from `2^level` on, have
//! depth `level + 1`; the others have depth `level`. To *split* bucket `split` is to move the copies whose next bit is 1
//! to bucket `split + 2^level`. When `split` reaches `2^level`, the level rises.

use core::hint::select_unpredictable;

use crate::sync::sizes::GROUP;
use crate::word::layout::NEVER_ZERO;

/// The class of a key. The table cannot distinguish keys of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) base: u32,
    /// The even one and the odd one. The odd one has more than `K` bits, of which no depth uses the others.
    pub(crate) sides: [u32; 2],
}

/// `map` of an array. That is not always inlined.
#[inline(always)]
pub(crate) fn both<A, B>([first, second]: [A; 2], mut map: impl FnMut(A) -> B) -> [B; 2] {
    [map(first), map(second)]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Classes {
    base_mask: u32,
    even_mask: u32,
    base_bits: u8,
    side_bits: u8,
}

impl Classes {
    pub(crate) fn new(base_bits: u32, side_bits: u32) -> Self {
        assert!((NEVER_ZERO..=u32::BITS).contains(&base_bits), "slots are never 0");
        assert!((1..=u32::BITS).contains(&side_bits), "a side is a u32");
        Self {
            base_mask: u32::MAX >> (u32::BITS - base_bits),
            even_mask: u32::MAX >> (u32::BITS - side_bits) & !1,
            base_bits: base_bits as u8,
            side_bits: side_bits as u8,
        }
    }

    pub(crate) fn base_bits(self) -> u32 {
        self.base_bits.into()
    }

    pub(crate) fn side_bits(self) -> u32 {
        self.side_bits.into()
    }

    #[inline(always)]
    pub(crate) fn stored_bits(self, depth: u32) -> u32 {
        u32::from(self.base_bits) + u32::from(self.side_bits) - depth
    }

    /// The false-positive rate of a table with this many keys of these classes.
    pub(crate) fn false_positive_rate(self, keys: f64) -> f64 {
        // Two random bases are equal with this probability: their lowest bits are never all 0.
        let lows = f64::from(1 << NEVER_ZERO);
        let equal = (lows + 2.0) / (lows * lows) / 2f64.powi((self.base_bits() - NEVER_ZERO) as i32);
        // A key is in either of two buckets, of which there are half as many even ones as all.
        -f64::exp_m1(2.0 * keys * f64::ln_1p(-equal / 2f64.powi(self.side_bits() as i32)))
    }

    /// The class of a hash that [`mixed`](crate::word::geometry::mixed) has made.
    #[inline(always)]
    pub(crate) fn of(self, hash: u64) -> Class {
        self.with(hash as u32 & self.base_mask, (hash >> 32) as u32 & self.even_mask)
    }

    pub(crate) fn hash(self, class: Class) -> u64 {
        u64::from(class.sides[0]) << 32 | u64::from(class.base)
    }

    #[inline(always)]
    fn with(self, base: u32, even: u32) -> Class {
        Class { base, sides: [even, even ^ turn(base)] }
    }

    #[inline(always)]
    pub(crate) fn stored(self, class: Class, depth: u32) -> u32 {
        // In 64 bits, since either shift may be by 32.
        class.base | ((u64::from(class.sides[0]) >> depth) << self.base_bits) as u32
    }

    /// What slots store of the class at each of these places of this state.
    #[inline(always)]
    pub(crate) fn stored_at(self, class: Class, state: State, places: [Place; 2]) -> [u32; 2] {
        let bits = (u64::from(class.sides[0]) << self.base_bits) >> state.level();
        both(places, |place| {
            let bits = select_unpredictable(place.depth != state.level(), bits >> 1, bits);
            class.base | bits as u32 & !self.base_mask
        })
    }

    /// The other side of an entry's class, as [`of_stored`](Self::of_stored) has it, in fewer steps: a search for room needs
    /// no more.
    #[inline(always)]
    pub(crate) fn other_side(self, number: usize, depth: u32, stored: u32) -> u32 {
        // The sides differ by `turn`. Beyond the depth, the slot has the bits of the even side.
        let differing = select_unpredictable(number.is_multiple_of(2), u64::from(u32::MAX), (1 << depth) - 1);
        let high = u64::from(stored) >> self.base_bits << depth;
        (number as u64 ^ high ^ u64::from(turn(stored & self.base_mask)) & differing) as u32
    }

    /// The class of an entry, from what its slot stores and from the number and depth of its bucket.
    #[inline(always)]
    pub(crate) fn of_stored(self, number: usize, depth: u32, stored: u32) -> Class {
        let base = stored & self.base_mask;
        let low = number as u64 ^ select_unpredictable(number.is_multiple_of(2), 0, u64::from(turn(base)));
        let (low, high) = (low & ((1 << depth) - 1), u64::from(stored) >> self.base_bits << depth);
        self.with(base, (low | high) as u32)
    }
}

/// `g`. The middle bits of a product depend on all bits of the base, so two relocations in a row lead to many buckets.
#[inline(always)]
pub(super) fn turn(base: u32) -> u32 {
    (u64::from(base).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
}

/// A number by which the classes are spread over the stripes. It depends on the base alone, so a class keeps its stripe.
#[inline(always)]
pub(crate) fn stripe_number(class: Class) -> usize {
    // The bit that is always 1 is left out.
    ((class.sides[0] ^ class.sides[1]) >> 1) as usize
}

/// The bucket of a side, and its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: usize,
    pub(crate) depth: u32,
}

/// The layouts of a table's buckets, as their places among all shapes: of those that are not split, and of those that are.
/// While none is split, the same one twice. In one byte, by which a lookup finds its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows(u8);

impl Rows {
    pub(crate) const fn new(whole: u8, split: u8) -> Self {
        Self(whole | split << 4)
    }

    #[cfg(any(test, feature = "snapshot"))]
    pub(crate) fn whole(self) -> u8 {
        self.0 & 15
    }

    #[cfg(any(test, feature = "snapshot"))]
    pub(crate) fn split(self) -> u8 {
        self.0 >> 4
    }

    /// That of buckets that are split, or of buckets that are not.
    #[inline(always)]
    pub(crate) fn of(self, is_split: bool) -> usize {
        (self.0 >> (4 * u32::from(is_split)) & 15).into()
    }
}

/// The size of a table, in one word.
///
/// From the low end: 6 bits for the level; one bit that says whether the [`GROUP`] buckets from `split` on are being
/// split or merged; from bit 8 on, the [`Rows`], which follow from the rest; from bit 16 on, `split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u64);

const MOVING: u64 = 1 << 6;
const ROWS_AT: u32 = 8;
const SPLIT_AT: u32 = 16;

impl State {
    pub(crate) fn of_buckets(buckets: usize) -> Self {
        let level = buckets.ilog2();
        Self(u64::from(level) | (buckets as u64 ^ 1 << level) << SPLIT_AT)
    }

    /// This state while the buckets from the split pointer on are being split or merged.
    pub(crate) fn moving(self) -> Self {
        Self(self.0 | MOVING)
    }

    pub(crate) fn with_rows(self, rows: Rows) -> Self {
        Self(self.0 & !(0xff << ROWS_AT) | u64::from(rows.0) << ROWS_AT)
    }

    #[inline(always)]
    pub(crate) fn rows(self) -> Rows {
        Rows((self.0 >> ROWS_AT) as u8)
    }

    #[inline(always)]
    pub(crate) fn level(self) -> u32 {
        self.0 as u32 & 63
    }

    #[inline(always)]
    pub(crate) fn split(self) -> u64 {
        self.0 >> SPLIT_AT
    }

    #[inline(always)]
    pub(crate) fn is_moving(self) -> bool {
        self.0 & MOVING != 0
    }

    pub(crate) fn buckets(self) -> usize {
        (1 << self.level()) + self.split() as usize
    }

    /// Where the copies on this side are, unless they are being moved.
    #[inline(always)]
    pub(crate) fn place(self, side: u32) -> Place {
        // Without a branch on random bits.
        let (side, mask) = (u64::from(side), (1 << self.level()) - 1);
        let is_split = side & mask < self.split();
        let number = side & select_unpredictable(is_split, 2 * mask + 1, mask);
        Place { number: number as usize, depth: self.level() + u32::from(is_split) }
    }

    /// The place of this side's bucket in the group, if the group is being moved.
    #[inline(always)]
    pub(crate) fn moving_at(self, side: u32) -> Option<usize> {
        let low = u64::from(side) & ((1 << self.level()) - 1);
        let at = low.wrapping_sub(self.split());
        (self.is_moving() && at < GROUP as u64).then_some(at as usize)
    }

    /// Whether the bucket of any of these sides is being moved.
    #[inline(always)]
    pub(crate) fn moves_any<const N: usize>(self, sides: [u32; N]) -> bool {
        self.is_moving() && sides.iter().any(|&side| self.moving_at(side).is_some())
    }

    /// Whether the bucket of this number, which exists, is split.
    #[inline(always)]
    pub(crate) fn is_split(self, number: u32) -> bool {
        // Of 32 bits, since this is asked of a whole block. A level of 32 has no split buckets.
        let low = ((1u64 << self.level()) - 1) as u32;
        (number < self.split() as u32) | (number & !low != 0)
    }

    #[inline(always)]
    pub(crate) fn depth(self, number: usize) -> u32 {
        let number = number as u64;
        self.level() + u32::from(number < self.split() || number >> self.level() != 0)
    }
}

#[cfg(test)]
#[path = "classes_tests.rs"]
mod tests;
