//! Pure: from a key's hash to its fingerprint and its two buckets.
//!
//! The paper's partial-key cuckoo hashing (section 3.1) finds an item's other bucket from the fingerprint alone, as
//! `i ^ hash(f)`. That needs a power of two of buckets. Here the alternate of bucket `i` is `s(f) - i` modulo the
//! number of buckets `m`, with `s(f)` a hash of the fingerprint onto `0..m`. That is its own inverse for every `m`.
//!
//! Where `m` is even, `s(f)` is made odd. Then one of an item's two buckets has an even number and the other an odd
//! one, and they are never the same. Where `m` is odd, one bucket in `m` is its own alternate.
//!
//! # Nested tables
//! A filter of several tables ([`Nested`], `tables/growth.rs`) needs *classes that nest*: keys that are one class
//! in a finer table must be one class in every coarser table too. Table `i` has `m << i` buckets, with `m` even. So
//! the number of a bucket has two parts: `c`, the bucket in table 0, and `d`, `i` bits more. Its fingerprint is cut
//! from the same bits of the hash as that of table 0, and has some further bits or none.
//!
//! The alternate is found from what table 0 would store: `c` becomes `s(f) - c` as there, and `d` becomes
//! `d ^ g(f)`. `s(f)` is the integer part of a multiple of a hash of `f`, and `g(f)` is the first `i` bits of its
//! fraction. So leaving out the lowest bits of a bucket and the highest bits of a fingerprint leads from the class
//! in one table to that in any coarser one.
//!
//! That needs fingerprints which are bits of the hash and nothing else. But a low part of 0 means "empty slot" and
//! becomes 1. And the width of the low part differs between layouts: with plain and semi-sorted ones it need not
//! grow with the fingerprint. So [`nested`] makes it 1 beforehand, in the hash, by the narrowest low part of the
//! layouts that nest.

use core::hint::select_unpredictable;

use crate::word::layout::{Entry, Fingerprint, Layout, NEVER_ZERO};

/// What the table knows of a key: its *class*, which is its fingerprint and the two buckets that may hold it. Where
/// slots have a payload, also that of the copy in question, beside the fingerprint in its entry; it is 0 until it
/// is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) entry: Entry,
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// `s(f)`. The two buckets add up to it modulo their number, so it identifies the pair: see [`Geometry::sum`].
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

    /// A number below that of the buckets, the same for all items of one pair of buckets.
    fn sum(self, fingerprint: Fingerprint) -> usize;

    /// The other bucket of a pair with this sum.
    fn other(self, sum: usize, bucket: usize) -> usize;

    /// The other bucket of a fingerprint that is stored in `bucket`.
    #[inline(always)]
    fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        self.other(self.sum(fingerprint), bucket)
    }

    /// The class of a fingerprint that is stored in `bucket`: a fingerprint, and the lower-numbered of its buckets.
    /// It is the same from either bucket. Where classes nest, it is that in the coarsest table.
    #[inline(always)]
    fn class(self, fingerprint: Fingerprint, bucket: usize) -> (Fingerprint, usize) {
        (fingerprint, bucket.min(self.alternate(bucket, fingerprint)))
    }
}

/// The geometry of a table that is not one of several.
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

/// The geometry of one of several tables whose classes nest. Its hashes are those that [`nested`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    count: u64,
    /// The bits of a bucket's number that are its `d`. Those above are its `c`, not shifted down.
    fine: u64,
    /// The bits of a fingerprint that table 0 stores.
    coarse: u32,
}

impl Nested {
    /// The geometry of table `level`, where table 0 has `coarsest` buckets, an even number, and fingerprints of so many
    /// bits.
    pub(crate) fn new(coarsest: usize, fingerprint_bits: u32, level: u32) -> Self {
        assert!(coarsest > 0 && coarsest.is_multiple_of(2), "an item's two buckets differ in every table");
        let count = coarsest.checked_mul(1 << level).expect("the buckets can be counted") as u64;
        Self { count, fine: (1 << level) - 1, coarse: u32::MAX >> (32 - fingerprint_bits) }
    }
}

impl Geometry for Nested {
    type Index = usize;

    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    #[inline(always)]
    fn first<L: Layout>(self, layout: L, hash: u64) -> (Fingerprint, usize) {
        // Only bits of the hash, since [`nested`] has made sure that these are not all 0.
        let fingerprint = Fingerprint(hash as u32 & layout.lanes().fingerprint_mask);
        debug_assert_eq!(fingerprint, layout.fingerprint_from(hash), "`nested` has been here");
        (fingerprint, scale(hash, self.count) as usize)
    }

    /// Above, `s(f)` of table 0; below, `g(f)`: the first bits of the fraction.
    #[inline(always)]
    fn sum(self, fingerprint: Fingerprint) -> usize {
        let sum = scale(spread(Fingerprint(fingerprint.0 & self.coarse)), self.count);
        (sum | (self.fine + 1)) as usize
    }

    #[inline(always)]
    fn other(self, sum: usize, bucket: usize) -> usize {
        let (sum, bucket) = (sum as u64, bucket as u64);
        let coarse = difference(sum & !self.fine, bucket & !self.fine, self.count);
        (coarse | (sum ^ bucket) & self.fine) as usize
    }

    #[inline(always)]
    fn class(self, fingerprint: Fingerprint, bucket: usize) -> (Fingerprint, usize) {
        let lower = bucket.min(self.alternate(bucket, fingerprint));
        // The buckets of a pair differ above these bits, so the lower one stays the lower one.
        (Fingerprint(fingerprint.0 & self.coarse), lower >> self.fine.count_ones())
    }
}

/// The hash for nested tables: mixed, once for all of them, and with a low part that is not 0 in any of the layouts
/// that [nest](crate::word::layout::Shape::nesting). So every fingerprint is the low bits of it.
#[inline(always)]
pub(crate) fn nested(hash: u64) -> u64 {
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
/// many fingerprints as any other. The bits below must not be those of a multiple. If `s(f)` were a plain multiple
/// of `f`, `s(f) - s(g)` would depend on `f - g` alone, and two hops would lead to few more buckets than one. With
/// fingerprints of eight bits, a search would then go in circles: a table of a million buckets refused its first
/// insert at 98.0 %, now at 99.4 %.
#[inline(always)]
fn spread(fingerprint: Fingerprint) -> u64 {
    let multiple = u64::from(fingerprint.0).wrapping_mul(GOLDEN);
    multiple ^ multiple >> 9
}

/// The same in 32 bits, with another multiple for the bits below. It takes one instruction less, and vector units
/// can do it too.
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

/// `sum - bucket` modulo `count`, where both are below `count`.
#[inline(always)]
fn difference(sum: u64, bucket: u64, count: u64) -> u64 {
    let (other, borrow) = sum.overflowing_sub(bucket);
    if borrow { other.wrapping_add(count) } else { other }
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
