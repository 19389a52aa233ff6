//! Pure: from a key's hash to its fingerprint and its two buckets.
//!
//! The paper's partial-key cuckoo hashing (section 3.1) finds an item's other bucket from the fingerprint alone, as
//! `i ^ hash(f)`, which needs a power of two of buckets. Here the alternate of bucket `i` is `s(f) - i` modulo the number
//! of buckets `m`, with `s(f)` a hash of the fingerprint onto `0..m`. That is its own inverse for every `m`.
//!
//! Where `m` is even, `s(f)` is made odd. Then an item's two buckets are one of even and one of odd number and never
//! the same; where `m` is odd, one bucket in `m` is its own alternate.
//!
//! # Nested tables
//! A filter of several tables ([`Nested`], `tables/growth.rs`) needs *classes that nest*: keys that a finer table takes for one
//! must be one in every coarser table too. Table `i` has `m << i` buckets, `m` even, so its bucket is a pair: `c`, the
//! bucket in table 0, and `d`, `i` bits more. Its fingerprint is cut from the same bits of the hash as that of table 0,
//! which it extends by some further bits or none. The alternate is found from what table 0 would store: `c` becomes
//! `s(f) - c` as there, and `d` becomes `d ^ g(f)`. Where `s(f)` is the integer part of a multiple of a hash of `f`, `g(f)`
//! is the first `i` bits of its fraction. So to leave out the lowest bits of a bucket and the highest of a fingerprint leads
//! from the class in one table to that in any coarser one.
//!
//! That takes fingerprints which are bits of the hash and nothing else. But a low part of 0 means "empty slot" and becomes
//! 1, and the low part is of another width in each layout (which with plain and semi-sorted ones need not grow with the
//! fingerprint). So [`nested`] makes it 1 beforehand, in the hash, for all layouts by the narrowest of them.

use crate::word::layout::{Fingerprint, Layout, NEVER_ZERO};

/// What the table knows of a key: its fingerprint and the two buckets that may hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) first: usize,
    pub(crate) second: usize,
}

impl Item {
    /// Fills what has yet to be computed.
    pub(crate) const NONE: Self = Self { fingerprint: Fingerprint(0), first: 0, second: 0 };
}

/// The number of buckets, and the arithmetic that maps hashes onto them.
pub(crate) trait Geometry: Copy + core::fmt::Debug + Send + Sync + 'static {
    fn count(self) -> usize;

    /// The item of a key with this hash.
    fn item<L: Layout>(self, layout: L, hash: u64) -> Item;

    /// The other bucket of a fingerprint that is stored in `bucket`.
    fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize;
}

/// The geometry of a table that stands alone, with any number of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    count: u64,
    /// 1 where the count is even, else 0: what makes `s(f)` odd.
    even: u64,
}

impl Buckets {
    pub(crate) fn new(count: usize) -> Self {
        assert!(count > 0, "a table has a bucket");
        Self { count: count as u64, even: u64::from(count.is_multiple_of(2)) }
    }
}

impl Geometry for Buckets {
    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    #[inline(always)]
    fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        let hash = mix(hash);
        let fingerprint = layout.fingerprint(hash);
        let first = scale(hash, self.count) as usize;
        Item { fingerprint, first, second: self.alternate(first, fingerprint) }
    }

    #[inline(always)]
    fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        let sum = scale(spread(fingerprint), self.count) | self.even;
        let (other, borrow) = sum.overflowing_sub(bucket as u64);
        (if borrow { other.wrapping_add(self.count) } else { other }) as usize
    }
}

/// The geometry of one of several tables whose classes nest. Its hashes are those that [`nested`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nested {
    count: u64,
    /// The bits of a bucket's number that make up its `d`; those above are its `c`, left where they stand.
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
    #[inline(always)]
    fn count(self) -> usize {
        self.count as usize
    }

    #[inline(always)]
    fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        // Nothing but bits of the hash, since these are not all 0.
        let fingerprint = Fingerprint((hash & ((1 << L::SHAPE.fingerprint_bits) - 1)) as u32);
        debug_assert_eq!(fingerprint, layout.fingerprint(hash), "`nested` has been here");
        let first = scale(hash, self.count) as usize;
        Item { fingerprint, first, second: self.alternate(first, fingerprint) }
    }

    #[inline(always)]
    fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        let bucket = bucket as u64;
        // Above, `s(f)` of table 0, as in `Buckets`; below, `g(f)`: the first bits of the fraction.
        let sum = scale(spread(Fingerprint(fingerprint.0 & self.coarse)), self.count);
        let odd = sum & !self.fine | (self.fine + 1);
        let (coarse, borrow) = odd.overflowing_sub(bucket & !self.fine);
        let coarse = if borrow { coarse.wrapping_add(self.count) } else { coarse };
        (coarse | (sum ^ bucket) & self.fine) as usize
    }
}

/// The hash that nested tables are given: mixed, once for all of them, and with a low part that is not 0 in any layout,
/// so that every fingerprint is just the low bits of it.
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
/// Its top bits are those of a multiple of [`GOLDEN`], so that each bucket of a small table is the alternate of about as
/// many fingerprints as any other. The bits below must not be: with `s(f)` a mere multiple of `f`, `s(f) - s(g)` would
/// depend on `f - g` alone, and two hops would lead to few more buckets than one. Among fingerprints of eight bits a
/// search then goes round in circles: a table of a million buckets refused its first insert at 98.0 %, now at 99.4 %.
#[inline(always)]
fn spread(fingerprint: Fingerprint) -> u64 {
    let multiple = u64::from(fingerprint.0).wrapping_mul(GOLDEN);
    multiple ^ multiple >> 9
}

/// `x / 2⁶⁴` of `n`: maps a word onto `0..n` by its high bits, without a division.
#[inline(always)]
fn scale(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// Spreads every bit of a hash over all 64, so that a weak hasher (the identity, FxHash) still fills the table at the
/// nominal rate.
///
/// A bijection: it merges no two hashes. Two rounds of xor-shift and multiply; the constants are those of the `mix13`
/// variant of David Stafford, *Better Bit Mixing* (2011), as in SplitMix64.
#[inline(always)]
fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;
