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
use core::ops::RangeInclusive;

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
pub(crate) fn both<A: Copy, B: Copy>([first, second]: [A; 2], mut map: impl FnMut(A) -> B) -> [B; 2] {
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

    /// The base of what a slot stores.
    #[inline(always)]
    pub(crate) fn base(self, stored: u32) -> u32 {
        stored & self.base_mask
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
        Class { base, sides: [even, even ^ base_hash(base)] }
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

    /// The way to the other buckets of the entries in the bucket of this number, in this state.
    #[inline(always)]
    pub(crate) fn alternates(self, state: State, number: usize) -> Alternates {
        let (low, is_split) = (state.low_mask(), state.is_split(number as u32));
        let of_depth = select_unpredictable(is_split, 2 * low + 1, low);
        Alternates {
            number: number as u64,
            base_mask: self.base_mask,
            differing: select_unpredictable(number.is_multiple_of(2), u64::MAX, of_depth),
            rotation: state.level().wrapping_sub(self.base_bits()),
            next: select_unpredictable(is_split, 0, low + 1),
            low,
            split: state.split(),
        }
    }

    /// What the slots of bucket `to` store of a class of which those of bucket `from` store this. They are its two buckets in
    /// this state.
    #[inline(always)]
    pub(crate) fn stored_in_other(self, state: State, [from, to]: [usize; 2], stored: u32) -> u32 {
        let base = stored & self.base_mask;
        // The bits of the even side, from the bucket's depth on; then from the level on; then from the other depth on.
        let above = u64::from(stored) >> self.base_bits;
        let even = from as u64 ^ select_unpredictable(from.is_multiple_of(2), 0, u64::from(base_hash(base)));
        let of_level = above << 1 | even >> state.level() & 1;
        let above = select_unpredictable(state.is_split(from as u32), of_level, above);
        let above = above >> u32::from(state.is_split(to as u32));
        base | (above << self.base_bits) as u32
    }

    /// The class of an entry, from what its slot stores and from the number and depth of its bucket.
    ///
    /// Bits that no class has are left out. A search that is late may have read some, in a word that it took for one of another
    /// layout. In a narrower slot, they would reach into the next one.
    #[inline(always)]
    pub(crate) fn of_stored(self, number: usize, depth: u32, stored: u32) -> Class {
        let base = stored & self.base_mask;
        let low = number as u64 ^ select_unpredictable(number.is_multiple_of(2), 0, u64::from(base_hash(base)));
        let (low, high) = (low & ((1 << depth) - 1), u64::from(stored) >> self.base_bits << depth);
        self.with(base, (low | high) as u32 & self.even_mask)
    }
}

/// `g`. The middle bits of a product depend on all bits of the base, so two relocations in a row lead to many buckets.
#[inline(always)]
pub(super) fn base_hash(base: u32) -> u32 {
    (u64::from(base).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32 | 1
}

/// A number by which the classes are spread over the stripes. It depends on the base alone, so a class keeps its stripe.
#[inline(always)]
pub(crate) fn stripe_number(base: u32) -> usize {
    // The bit that is always 1 is left out.
    (base_hash(base) >> 1) as usize
}

/// The way from the entries of one bucket to their other buckets, in one state. A search for room computes it once for a
/// bucket. Of an entry's class, it needs only the number of the other bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alternates {
    number: u64,
    base_mask: u32,
    /// By which bits of `g(base)` the sides differ. In an odd bucket, what is stored of the even side is not to be hashed.
    differing: u64,
    /// By how many bits a slot's lowest bit above the base is below that of the level.
    rotation: u32,
    /// The bit of the level, if the bucket is not split: so its slots store it. Otherwise its number has it.
    next: u64,
    low: u64,
    split: u64,
}

impl Alternates {
    /// The number of the other bucket of an entry of which a slot stores this.
    #[inline(always)]
    pub(crate) fn of(&self, stored: u32) -> usize {
        let hashed = u64::from(base_hash(stored & self.base_mask)) & self.differing;
        let next = u64::from(stored).rotate_left(self.rotation) & self.next;
        place_of(self.number ^ hashed ^ next, self.low, self.split).0 as usize
    }
}

/// The number of a side's bucket, and whether that is split: with these low bits as a mask, and this split pointer.
#[inline(always)]
fn place_of(side: u64, low: u64, split: u64) -> (u64, bool) {
    // Without a branch on random bits.
    let is_split = side & low < split;
    (side & select_unpredictable(is_split, 2 * low + 1, low), is_split)
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

    #[cfg(test)]
    pub(crate) fn whole(self) -> u8 {
        self.0 & 15
    }

    #[cfg(test)]
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
        let (number, is_split) = place_of(side.into(), self.low_mask(), self.split());
        Place { number: number as usize, depth: self.level() + u32::from(is_split) }
    }

    /// The place of this side's bucket in the group, if the group is being moved.
    #[inline(always)]
    pub(crate) fn moving_at(self, side: u32) -> Option<usize> {
        let at = (u64::from(side) & self.low_mask()).wrapping_sub(self.split());
        (self.is_moving() && at < GROUP as u64).then_some(at as usize)
    }

    /// Whether any of the buckets of these numbers is being moved.
    #[inline(always)]
    pub(crate) fn moves_any<const N: usize>(self, numbers: [usize; N]) -> bool {
        self.is_moving() && numbers.iter().any(|&number| self.moving_at(number as u32).is_some())
    }

    /// As many low bits as the level says.
    #[inline(always)]
    fn low_mask(self) -> u64 {
        (1 << self.level()) - 1
    }

    /// Whether the bucket of this number, which exists, is split.
    #[inline(always)]
    pub(crate) fn is_split(self, number: u32) -> bool {
        // What it was split from has the same low bits. (Of 32 bits, since this is asked of a whole block.)
        number & (self.low_mask() as u32) < self.split() as u32
    }

    /// The depths of the buckets.
    pub(crate) fn depths(self) -> RangeInclusive<u32> {
        self.level()..=self.level() + u32::from(self.split() > 0)
    }

    /// The depth of the bucket of this number, which exists.
    #[inline(always)]
    pub(crate) fn depth(self, number: usize) -> u32 {
        self.level() + u32::from(self.is_split(number as u32))
    }
}

#[cfg(test)]
#[path = "classes_tests.rs"]
mod tests;
