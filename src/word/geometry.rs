//! Pure: from a key's hash to its fingerprint and its two buckets.
//!
//! The paper's partial-key cuckoo hashing (section 3.1) finds an item's other bucket from the fingerprint alone, as
//! `i ^ hash(f)`. That needs a power of two of buckets. Here the alternate of bucket `i` is `s(f) - i` modulo the
//! number of buckets `m`, with `s(f)` a hash of the fingerprint onto `0..m`. That is its own inverse for every `m`.
//!
//! Where `m` is even, `s(f)` is made odd. Then one of an item's two buckets has an even number and the other an odd
//! one, and they are never the same. Where `m` is odd, one bucket in `m` is its own alternate.
//!
//! # Tables that double
//! A filter that grows ([`Doubled`], `growth/mod.rs`) has one table, of `m` buckets at first, with `m` even. At *level*
//! `i` it has been doubled `i` times: it has `m << i` buckets. Each doubling moves one bit of every fingerprint into the
//! bucket's number. So no information is lost, and a halving moves the bit back.
//!
//! A class is `(c, b, D)`: a bucket of level 0, the *base* of the fingerprint, which are the bits that even the last
//! level stores, and `k` further bits `D`, one for each doubling. At level `i` the number of a bucket is `c` followed by
//! `i` bits `d`. The first `i` bits of `D` are in `d`, and a slot stores the others above the base.
//!
//! A class has two buckets at each level. In one of them `c` is even, and `d` is the first `i` bits of `D`. The other one
//! has `s(b) - c` in the place of `c`, as in partial-key hashing with the base as the fingerprint. `m` is even and `s(b)`
//! is odd, so that is odd. Its `d` is the first `i` bits of `D ^ g(b)`, where `g(b)` is another hash of the base. What a
//! slot stores is the same in both. So a slot shows, in either bucket, to which of the two buckets of the next level it
//! goes: those two are neighbours, with the bit 0 or 1 at the end of the number.
//!
//! `s(b)` is the integer part of a multiple of a hash of `b`, and `g(b)` is its fraction. So `s(b)` and `i` bits of
//! `g(b)` together are one product.
//!
//! All fingerprints must be bits of the hash and nothing else. But a low part of 0 means "empty slot" and becomes 1. And
//! the width of the low part differs from level to level. So [`doubling`] makes the lowest eight bits not 0 beforehand,
//! in the hash.

use core::hint::select_unpredictable;
use core::ops::Deref;
use std::sync::Arc;

use crate::word::layout::{Encoding, Entry, Fingerprint, Layout, NEVER_ZERO, Shape};

/// What the table knows of a key: its *class*, which is its fingerprint and the two buckets that may hold it. Where
/// slots have a payload, also that of the copy in question, beside the fingerprint in its entry; it is 0 until it
/// is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) entry: Entry,
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// A number that is the same for all items of one pair of buckets: see [`Geometry::sum`].
    pub(crate) sum: usize,
}

impl Item {
    /// The same class with this payload.
    #[inline(always)]
    pub(crate) fn with<L: Layout>(self, layout: L, payload: u16) -> Self {
        Self { entry: layout.entry(layout.fingerprint_of(self.entry), payload), ..self }
    }
}

/// The classes of `N` hashes, with an array for each part: vector units can do a loop over one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items<I, const N: usize> {
    /// Without payloads, until they are added.
    pub(crate) entries: [u32; N],
    pub(crate) firsts: [I; N],
    pub(crate) seconds: [I; N],
    pub(crate) sums: [I; N],
}

/// To be overwritten.
impl<I: Index, const N: usize> Default for Items<I, N> {
    fn default() -> Self {
        Self { entries: [0; N], firsts: [I::ZERO; N], seconds: [I::ZERO; N], sums: [I::ZERO; N] }
    }
}

impl<I: Index, const N: usize> Items<I, N> {
    #[inline(always)]
    pub(crate) fn get(&self, nth: usize) -> Item {
        Item {
            entry: Entry(self.entries[nth]),
            first: self.firsts[nth].get(),
            second: self.seconds[nth].get(),
            sum: self.sums[nth].get(),
        }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, nth: usize, item: Item) {
        self.entries[nth] = item.entry.0;
        self.firsts[nth] = I::new(item.first);
        self.seconds[nth] = I::new(item.second);
        self.sums[nth] = I::new(item.sum);
    }
}

/// A bucket's number, in the type that [`Items`] keeps.
pub(crate) trait Index: Copy + core::fmt::Debug {
    const ZERO: Self;
    fn new(bucket: usize) -> Self;
    fn get(self) -> usize;
}

impl Index for u32 {
    const ZERO: Self = 0;

    #[inline(always)]
    fn new(bucket: usize) -> Self {
        bucket as u32
    }

    #[inline(always)]
    fn get(self) -> usize {
        self as usize
    }
}

impl Index for usize {
    const ZERO: Self = 0;

    #[inline(always)]
    fn new(bucket: usize) -> Self {
        bucket
    }

    #[inline(always)]
    fn get(self) -> usize {
        self
    }
}

/// The number of buckets, and the arithmetic that maps hashes onto them.
pub(crate) trait Geometry: Copy + core::fmt::Debug + Send + Sync + 'static {
    /// A type that holds every bucket's number.
    type Index: Index;

    /// How a table holds what all tables of a filter that grows share.
    type Shared<T: Fields>: Deref<Target = T> + From<T> + core::fmt::Debug + Send + Sync;

    /// Whether the table is one of a filter that grows.
    const GROWS: bool = false;

    fn count(self) -> usize;

    /// The items of keys with these hashes.
    #[inline(always)]
    fn items<L: Layout, const N: usize>(self, layout: L, hashes: &[u64; N], items: &mut Items<Self::Index, N>) {
        for (nth, &hash) in hashes.iter().enumerate() {
            items.set(nth, self.item(layout, hash));
        }
    }

    /// The item of a key with this hash.
    #[inline(always)]
    fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        let (fingerprint, first) = self.first(layout, hash);
        let sum = self.sum(fingerprint);
        Item { entry: layout.entry(fingerprint, 0), first, second: self.other(sum, first), sum }
    }

    /// The fingerprint of a key with this hash, and the first of its two buckets.
    fn first<L: Layout>(self, layout: L, hash: u64) -> (Fingerprint, usize);

    /// A number that is the same for all items of one pair of buckets. It chooses their stripe. In [`Buckets`] it is
    /// `s(f)`, to which the two buckets add up modulo their number.
    fn sum(self, fingerprint: Fingerprint) -> usize;

    /// The other bucket of a pair with this sum.
    fn other(self, sum: usize, bucket: usize) -> usize;

    /// The other bucket of a fingerprint that is stored in `bucket`.
    #[inline(always)]
    fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        self.other(self.sum(fingerprint), bucket)
    }

    /// The class of a fingerprint that is stored in `bucket`: a fingerprint, and the lower-numbered of its buckets.
    /// It is the same from either bucket.
    #[inline(always)]
    fn class(self, fingerprint: Fingerprint, bucket: usize) -> (Fingerprint, usize) {
        (fingerprint, bucket.min(self.alternate(bucket, fingerprint)))
    }

    /// Numbers that are equal for tables of this geometry, and of layouts of this shape, if these have the same classes.
    fn of_classes(self, shape: Shape) -> [u64; 5] {
        let Shape { encoding, slots, fingerprint_bits, payload_bits } = shape;
        let encoding = u32::from(encoding == Encoding::SemiSorted);
        let [encoding, slots, bits, payload] = [encoding, slots, fingerprint_bits, payload_bits].map(u64::from);
        [encoding, slots, bits, payload, self.count() as u64]
    }
}

/// What a table has, if it can be shared.
pub(crate) trait Fields: core::fmt::Debug + Send + Sync {}

/// What a table shares with no other, in the table itself.
#[derive(Debug)]
pub(crate) struct Own<T>(T);

impl<T> From<T> for Own<T> {
    fn from(own: T) -> Self {
        Self(own)
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The geometry of a table of a fixed size.
///
/// It multiplies numbers of 32 bits. Vector units can do that too, several at a time (`plan/batch.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Kept three times, once for each use. So each use reads an operand from memory, and none takes a register.
    count: u64,
    count_for_sums: u64,
    count_to_wrap: u32,
    /// 1 where the count is even, else 0. It makes `s(f)` odd.
    even: u32,
}

impl Buckets {
    /// Just less than 32 GiB of them.
    pub(crate) const MOST: usize = u32::MAX as usize;

    pub(crate) fn new(count: usize) -> Self {
        assert!(count > 0, "a table has a bucket");
        assert!(count <= Self::MOST, "`plan::sizing` makes no larger table");
        let even = u32::from(count.is_multiple_of(2));
        Self { count: count as u64, count_for_sums: count as u64, count_to_wrap: count as u32, even }
    }
}

impl Geometry for Buckets {
    type Index = u32;
    type Shared<T: Fields> = Own<T>;

    /// One step after the other for all of them. All steps except the first are vectorized.
    #[inline(always)]
    fn items<L: Layout, const N: usize>(self, layout: L, hashes: &[u64; N], items: &mut Items<u32, N>) {
        let mut mixed = [0; N];
        for (mixed, &hash) in mixed.iter_mut().zip(hashes) {
            *mixed = mix(hash);
        }
        let Items { entries: fingerprints, firsts, seconds, sums } = items;
        for (first, &hash) in firsts.iter_mut().zip(&mixed) {
            *first = scale_by_halves(hash, self.count_to_wrap);
        }
        for (fingerprint, &hash) in fingerprints.iter_mut().zip(&mixed) {
            *fingerprint = layout.fingerprint_from(hash).0;
        }
        for (sum, &fingerprint) in sums.iter_mut().zip(&*fingerprints) {
            *sum = self.sum(Fingerprint(fingerprint)) as u32;
        }
        for ((second, &first), &sum) in seconds.iter_mut().zip(&*firsts).zip(&*sums) {
            *second = self.other(sum as usize, first as usize) as u32;
        }
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    #[inline(always)]
    fn first<L: Layout>(self, layout: L, hash: u64) -> (Fingerprint, usize) {
        let hash = mix(hash);
        (layout.fingerprint_from(hash), scale(hash, self.count) as usize)
    }

    #[inline(always)]
    fn sum(self, fingerprint: Fingerprint) -> usize {
        (scale_half(spread_half(fingerprint), self.count_for_sums) as u32 | self.even) as usize
    }

    #[inline(always)]
    fn other(self, sum: usize, bucket: usize) -> usize {
        let (other, borrow) = (sum as u32).overflowing_sub(bucket as u32);
        select_unpredictable(borrow, other.wrapping_add(self.count_to_wrap), other) as usize
    }
}

/// The geometry of a table that has been doubled. Its hashes are those that [`doubling`] returns.
///
/// Each number is kept, and not computed from others: what bounds lookups in a large table is how many of them a
/// processor has under way at a time, and so how many instructions each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubled {
    count: u64,
    /// Half of the buckets that there are at level 0.
    half: u64,
    /// How many bits a slot stores.
    stored_bits: u32,
    /// Where `c` begins in a bucket's number, less the bit that says whether it is odd; and that bit.
    coarse_from: u32,
    odd: u64,
    /// The bits of a bucket's number that are its `d`.
    fine: u64,
    /// The bits of a hash that are fingerprint at level 0.
    fingerprint: u64,
    /// The bits of a fingerprint that are the base.
    base: u32,
}

impl Doubled {
    /// Level 0 with this many buckets, an even number. There, a fingerprint has a base of `base_bits`, and one bit more
    /// for each of the `doublings` that are possible.
    pub(crate) fn new(buckets: usize, base_bits: u32, doublings: u32) -> Self {
        assert!(buckets > 0 && buckets.is_multiple_of(2), "an item's two buckets differ at every level");
        assert!(buckets << doublings <= Buckets::MOST, "`growth::plan` makes no larger table");
        assert!((NEVER_ZERO..=32 - doublings).contains(&base_bits), "a fingerprint has up to 32 bits");
        let (base, stored_bits) = (u32::MAX >> (u32::BITS - base_bits), base_bits + doublings);
        let (count, fingerprint) = (buckets as u64, u64::MAX >> (u64::BITS - stored_bits));
        Self { count, half: count / 2, stored_bits, coarse_from: 1, odd: 1, fine: 0, fingerprint, base }
    }

    /// The geometry at this level.
    pub(crate) fn at(self, level: u32) -> Self {
        let stored_bits = self.stored_bits + self.level() - level;
        let odd = 1 << level;
        Self { count: self.half * 2 * odd, stored_bits, coarse_from: level + 1, odd, fine: odd - 1, ..self }
    }

    fn level(self) -> u32 {
        self.coarse_from - 1
    }

    /// How many bits a slot stores.
    pub(crate) fn stored_bits(self) -> u32 {
        self.stored_bits
    }

    /// The two buckets of this hash's class. At a lower level they have the same numbers without the last bits.
    #[inline(always)]
    pub(crate) fn pair(self, hash: u64) -> [usize; 2] {
        self.pair_of(hash, self.sum_of(hash))
    }

    /// The same for a caller that has the sum.
    #[inline(always)]
    fn pair_of(self, hash: u64, sum: usize) -> [usize; 2] {
        let (coarse, fine) = self.parts(hash);
        [(coarse | fine) as usize, self.opposite(sum, coarse, fine)]
    }

    /// The sum of the pair of this hash's class, which is the same at all levels.
    #[inline(always)]
    pub(crate) fn sum_of(self, hash: u64) -> usize {
        self.sum(Fingerprint(hash as u32))
    }

    /// `s(b)`, followed by the first bits of `g(b)`.
    #[inline(always)]
    fn scaled(self, sum: usize) -> u64 {
        scale_half(sum as u32, self.count) | self.odd
    }

    /// The bucket of this hash's class that has an even `c`: the part that is `c`, and the part that is `d`.
    #[inline(always)]
    fn parts(self, hash: u64) -> (u64, u64) {
        let coarse = scale_half((hash >> 32) as u32, self.half);
        (coarse << self.coarse_from, (hash & self.fingerprint) >> self.stored_bits)
    }

    /// The other bucket of a pair with this sum.
    #[inline(always)]
    fn opposite(self, sum: usize, coarse: u64, fine: u64) -> usize {
        // The lowest bits are those of `scaled`, since the subtraction borrows nothing from them.
        let (difference, borrow) = self.scaled(sum).overflowing_sub(coarse);
        (select_unpredictable(borrow, difference.wrapping_add(self.count), difference) ^ fine) as usize
    }

    /// What a slot stores of this hash's class: only bits of the hash, since [`doubling`] has made sure that these are
    /// not all 0.
    #[inline(always)]
    pub(crate) fn fingerprint<L: Layout>(layout: L, hash: u64) -> Fingerprint {
        Fingerprint(hash as u32 & layout.lanes().fingerprint_mask)
    }

    /// In which of the two buckets of the next level, that with 0 or with 1 at the end of its number, a fingerprint
    /// belongs that is stored in this bucket; and what it stores there.
    #[inline(always)]
    pub(crate) fn split(self, bucket: usize, fingerprint: Fingerprint) -> (usize, Fingerprint) {
        let at = self.stored_bits - 1;
        let is_odd = usize::from(bucket as u64 & self.odd != 0);
        // The next bit of `g(b)`.
        let turn = scale_half(self.sum(fingerprint) as u32, 2 * self.count) as usize & is_odd;
        (fingerprint.0 as usize >> at ^ turn, Fingerprint(fingerprint.0 & !(1 << at)))
    }

    /// A hash of the class of a fingerprint that is stored in `bucket`. It is the same from either bucket and at any
    /// level.
    #[inline(always)]
    pub(crate) fn hash_of(self, bucket: usize, fingerprint: Fingerprint) -> u64 {
        let sum = self.sum(fingerprint);
        // Of the class's two buckets, that with an even `c`. There, `d` is the first bits of `D`.
        let is_odd = bucket as u64 & self.odd != 0;
        let even = if is_odd { self.other(sum, bucket) } else { bucket } as u64;
        let bits = (even & self.fine) << self.stored_bits | u64::from(fingerprint.0);
        // The least number that `scale_half` takes to this `c`.
        let top = (even >> self.coarse_from << 32).div_ceil(self.half);
        top << 32 | bits
    }
}

impl Geometry for Doubled {
    type Index = u32;
    type Shared<T: Fields> = Arc<T>;
    const GROWS: bool = true;

    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    /// One step after the other for all of them, as in [`Buckets`].
    #[inline(always)]
    fn items<L: Layout, const N: usize>(self, layout: L, hashes: &[u64; N], items: &mut Items<u32, N>) {
        let mask = layout.lanes().fingerprint_mask;
        let Items { entries: fingerprints, firsts, seconds, sums } = items;
        for (fingerprint, &hash) in fingerprints.iter_mut().zip(hashes) {
            *fingerprint = hash as u32 & mask;
        }
        for (sum, &fingerprint) in sums.iter_mut().zip(&*fingerprints) {
            *sum = self.sum(Fingerprint(fingerprint)) as u32;
        }
        for (((first, second), &sum), &hash) in firsts.iter_mut().zip(seconds).zip(&*sums).zip(hashes) {
            [*first, *second] = self.pair_of(hash, sum as usize).map(|bucket| bucket as u32);
        }
    }

    #[inline(always)]
    fn first<L: Layout>(self, layout: L, hash: u64) -> (Fingerprint, usize) {
        let (coarse, fine) = self.parts(hash);
        (Self::fingerprint(layout, hash), (coarse | fine) as usize)
    }

    #[inline(always)]
    fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        let fingerprint = Self::fingerprint(layout, hash);
        let sum = self.sum(fingerprint);
        let [first, second] = self.pair_of(hash, sum);
        Item { entry: layout.entry(fingerprint, 0), first, second, sum }
    }

    /// The same at all levels.
    #[inline(always)]
    fn sum(self, fingerprint: Fingerprint) -> usize {
        spread_half(Fingerprint(fingerprint.0 & self.base)) as usize
    }

    #[inline(always)]
    fn other(self, sum: usize, bucket: usize) -> usize {
        self.opposite(sum, bucket as u64 & !self.fine, bucket as u64 & self.fine)
    }

    #[inline(always)]
    fn class(self, fingerprint: Fingerprint, bucket: usize) -> (Fingerprint, usize) {
        let hash = self.hash_of(bucket, fingerprint);
        (Fingerprint(hash as u32), (hash >> 32) as usize)
    }

    /// The same at all levels.
    fn of_classes(self, _: Shape) -> [u64; 5] {
        [0, 0, self.fingerprint, self.base.into(), self.half]
    }
}

/// The hash for tables that double: mixed, and with eight lowest bits that are not all 0. So every fingerprint is the
/// low bits of it.
#[inline(always)]
pub(crate) fn doubling(hash: u64) -> u64 {
    without_zero(mix(hash))
}

#[inline(always)]
fn without_zero(hash: u64) -> u64 {
    hash + u64::from(hash & ((1 << NEVER_ZERO) - 1) < 1)
}

/// 2⁶⁴ divided by the golden ratio: multiples of it spread evenly over the words (Knuth, volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a fingerprint that `s(f)` is made of: spread evenly, but not in equal steps.
///
/// Its top bits are those of a multiple of [`GOLDEN`], so each bucket of a small table is the alternate of about as
/// many fingerprints as any other. The bits below are those of another multiple. If `s(f)` were a plain multiple of
/// `f`, `s(f) - s(g)` would depend on `f - g` alone, and two hops would lead to few more buckets than one. With
/// fingerprints of eight bits, a search would then go in circles: a table of a million buckets refused its first
/// insert at 98.0 %, now at 99.4 %.
#[inline(always)]
fn spread_half(fingerprint: Fingerprint) -> u32 {
    fingerprint.0.wrapping_mul((GOLDEN >> 32) as u32) ^ fingerprint.0.wrapping_mul(0x3c6f)
}

/// `x / 2⁶⁴` of `n`: maps a word onto `0..n` by its high bits, without a division.
#[inline(always)]
fn scale(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// The same without a product of 128 bits, which vector units don't have.
#[inline(always)]
fn scale_by_halves(x: u64, n: u32) -> u32 {
    let (high, low) = ((x >> 32) * u64::from(n), (x & 0xffff_ffff) * u64::from(n));
    ((high + (low >> 32)) >> 32) as u32
}

/// `x / 2³²` of `n`, where `n` is at most 2³².
#[inline(always)]
fn scale_half(x: u32, n: u64) -> u64 {
    (u64::from(x) * n) >> 32
}

/// Spreads every bit of a hash over all 64, so that a weak hasher (the identity, FxHash) still fills the table at
/// the nominal rate.
///
/// The two halves of a product of 128 bits are folded into one: the low bits of the low half depend on the low bits
/// of the hash, and those of the high half on its high bits. Both factors depend on the hash. If one were a
/// constant, keys in equal steps would give fingerprints in equal steps. The last product carries the low bits up
/// to those that choose the bucket. Two hashes are merged as seldom as by any random function. (The low half alone
/// merges none: with `C` odd, `x(2x + C)` and `y(2y + C)` differ by the product of `x - y` and an odd number.) Both
/// constants are the same, which saves an instruction.
#[inline(always)]
fn mix(hash: u64) -> u64 {
    let product = u128::from(hash) * u128::from(hash.wrapping_mul(2).wrapping_add(GOLDEN));
    ((product >> 64) as u64 ^ product as u64).wrapping_mul(GOLDEN)
}

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;
