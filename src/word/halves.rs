//! PURE: what a bucket of a growing table becomes when it is split.
//!
//! To split a bucket of depth `d` takes one bit out of what each slot stores: the lowest bit above the base, bit `d` of the
//! even side (`word/classes.rs`). In an even bucket this bit says which half a copy goes to. In an odd one it is this bit
//! xor bit `d` of `g(base)`. So a split needs no class, and the numbers that it takes are the same for all buckets of a group.
//!
//! While buckets are plain and keep their layout, all slots are split at once: each copy keeps its lane, in either half, and
//! leaves a gap in the other one, as a removal does. Otherwise, slots are taken one by one. In a semi-sorted bucket they have to
//! be in the order of their high parts. If the layout stays, and the base is not in the high parts, they are: then the bit that
//! is removed is below the high part or is its lowest bit, so what is left of the high part is in the same order.

use crate::word::bucket::Bucket;
use crate::word::classes::{Classes, base_hash};
use crate::word::layout::Lanes;
use crate::word::layouts::{GrowingLayout, MOST_SLOTS};

/// How the buckets of one depth are split.
#[derive(Clone, Copy)]
pub(crate) struct Halves {
    from: &'static GrowingLayout,
    to: &'static GrowingLayout,
    depth: u32,
    base_bits: u32,
    base_mask: u32,
    way: SplitMethod,
}

/// How the slots of a bucket are split.
#[derive(Clone, Copy)]
enum SplitMethod {
    /// All at once. `bases` has the bits of every lane's base, and `aboves` those that are above the one that is removed.
    AtOnce { bases: u64, aboves: u64 },
    /// One by one. They are in order.
    InOrder,
    /// One by one, and sorted.
    Sorted,
}

impl Halves {
    /// How the buckets of this depth, which have the layout `from`, become buckets of the next depth, which have `to`.
    pub(crate) fn new(classes: Classes, depth: u32, from: &'static GrowingLayout, to: &'static GrowingLayout) -> Self {
        let (base_bits, base_mask) = (classes.base_bits(), u32::MAX >> (u32::BITS - classes.base_bits()));
        let &Lanes { ones, mask, bits, .. } = from.lanes();
        let is_same = from.is_same(to);
        let way = if is_same && !from.is_semi_sorted() {
            let bases = ones * u64::from(base_mask);
            SplitMethod::AtOnce { bases, aboves: (ones * u64::from(mask)) & !bases & !(ones << base_bits) }
        } else if !to.is_semi_sorted() || is_same && base_bits <= bits.into() {
            SplitMethod::InOrder
        } else {
            SplitMethod::Sorted
        };
        Self { from, to, depth, base_bits, base_mask, way }
    }

    /// The buckets that the one of this number becomes: the one that keeps the number, and the other one.
    #[inline(always)]
    pub(crate) fn of(&self, number: usize, whole: Bucket) -> [Bucket; 2] {
        match self.way {
            SplitMethod::AtOnce { bases, aboves } => self.at_once(number, whole, bases, aboves),
            SplitMethod::InOrder => self.one_by_one::<false>(number, whole),
            SplitMethod::Sorted => self.one_by_one::<true>(number, whole),
        }
    }

    #[inline(always)]
    fn at_once(&self, number: usize, Bucket(word): Bucket, bases: u64, aboves: u64) -> [Bucket; 2] {
        let &Lanes { ones, mask, bits, slots, .. } = self.from.lanes();
        let mut is_high = word >> self.base_bits & ones;
        if !number.is_multiple_of(2) {
            for slot in 0..u32::from(slots) {
                let at = slot * u32::from(bits);
                is_high ^= u64::from(self.hash_bit((word >> at) as u32)) << at;
            }
        }
        let stored = word & bases | (word & aboves) >> 1;
        let high = stored & (is_high * u64::from(mask));
        [Bucket(stored ^ high), Bucket(high)]
    }

    #[inline(always)]
    fn one_by_one<const SORTED: bool>(&self, number: usize, whole: Bucket) -> [Bucket; 2] {
        let (highs, &Lanes { mask, bits, slots, .. }) = (self.from.highs(whole), self.from.lanes());
        let (bits, is_odd) = (u32::from(bits), u32::from(!number.is_multiple_of(2)));
        let (mut list, mut len) = ([0; MOST_SLOTS], 0);
        let mut filled = Filled::new(self.to);
        let mut at = u32::from(slots) * bits;
        while at > 0 {
            at -= bits;
            let low = (whole.0 >> at) as u32 & mask;
            if low == 0 {
                continue;
            }
            let before = u64::from((highs >> at) as u32 & mask) << bits | u64::from(low);
            let half = (before >> self.base_bits) as u32 & 1 ^ is_odd & self.hash_bit(before as u32);
            let above = before >> (self.base_bits + 1) << self.base_bits;
            // What the slot will store and, below it, the number of the half.
            let new = (above | before & u64::from(self.base_mask)) << 1 | u64::from(half);
            if !SORTED {
                filled.add(new);
                continue;
            }
            // By insertion, because they are few: the one with the highest high part comes first.
            let mut to = len;
            while to > 0 && filled.high(list[to - 1]) < filled.high(new) {
                list[to] = list[to - 1];
                to -= 1;
            }
            list[to] = new;
            len += 1;
        }
        list[..len].iter().for_each(|&new| filled.add(new));
        [filled.half(self.to, 0), filled.half(self.to, 1)]
    }

    /// The bit of `g` that a split needs, of the base of what a slot stores.
    #[inline(always)]
    fn hash_bit(&self, stored: u32) -> u32 {
        base_hash(stored & self.base_mask) >> self.depth & 1
    }
}

/// The lanes of two halves, as far as they are filled, from the top.
struct Filled {
    lows: [u64; 2],
    highs: [u64; 2],
    /// Where the filled lanes begin.
    from: [u32; 2],
    mask: u64,
    bits: u32,
}

impl Filled {
    #[inline(always)]
    fn new(layout: &'static GrowingLayout) -> Self {
        let &Lanes { mask, bits, slots, .. } = layout.lanes();
        let from = [u32::from(slots) * u32::from(bits); 2];
        Self { lows: [0; 2], highs: [0; 2], from, mask: mask.into(), bits: bits.into() }
    }

    /// Adds what a slot stores, with the number of its half below it.
    #[inline(always)]
    fn add(&mut self, new: u64) {
        let (half, stored) = ((new & 1) as usize, new >> 1);
        let from = self.from[half] - self.bits;
        self.from[half] = from;
        self.lows[half] |= (stored & self.mask) << from;
        self.highs[half] |= (stored >> self.bits) << from;
    }

    /// The high part in a semi-sorted bucket of what [`add`](Self::add) adds.
    #[inline(always)]
    fn high(&self, new: u64) -> u64 {
        new >> 1 >> self.bits
    }

    #[inline(always)]
    fn half(&self, layout: &'static GrowingLayout, half: usize) -> Bucket {
        layout.encode(self.lows[half], self.highs[half], self.from[half])
    }
}

#[cfg(test)]
#[path = "halves_tests.rs"]
mod tests;
