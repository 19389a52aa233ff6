//! PURE: from a key's hash to its fingerprint and its two buckets.
//!
//! The paper's partial-key cuckoo hashing (section 3.1) finds an item's other bucket from the fingerprint alone, as
//! `i ^ hash(f)`. That needs a power of two of buckets. Here the alternate of bucket `i` is `s(f) - i` modulo the
//! number of buckets `m`, with `s(f)` a hash of the fingerprint onto `0..m`. That is its own inverse for every `m`.
//!
//! Where `m` is even, `s(f)` is made odd. Then one of an item's two buckets has an even number and the other an odd
//! one, and they are never the same. Where `m` is odd, one bucket in `m` is its own alternate.

use core::hint::select_unpredictable;

use crate::machine::arch::{VectorUnit, Vectorized};
use crate::word::layout::{Encoding, Entry, Fingerprint, Lanes, Layout, NEVER_ZERO, Shape};

/// What the table knows of a key: its *class*, which is its fingerprint and the two buckets that may hold it. If slots
/// have payloads, the entry also has that of one copy; it is 0 until it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) entry: Entry,
    pub(crate) first: usize,
    pub(crate) second: usize,
    /// The sum of the numbers of its two buckets, modulo how many there are. It chooses the stripe: see [`Geometry::bucket_sum`].
    pub(crate) bucket_sum: usize,
}

impl Item {
    /// This item with another payload.
    #[inline(always)]
    pub(crate) fn with<L: Layout>(self, layout: L, payload: u16) -> Self {
        Self { entry: layout.entry(layout.fingerprint_of(self.entry), payload), ..self }
    }
}

/// The classes of `N` hashes, as a struct of arrays: a loop over one of them can be vectorized.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items<const N: usize> {
    /// Without payloads, until they are added.
    pub(crate) entries: [u32; N],
    pub(crate) firsts: [u32; N],
    pub(crate) seconds: [u32; N],
    pub(crate) bucket_sums: [u32; N],
}

/// Zeros, to be overwritten.
impl<const N: usize> Default for Items<N> {
    fn default() -> Self {
        Self { entries: [0; N], firsts: [0; N], seconds: [0; N], bucket_sums: [0; N] }
    }
}

impl<const N: usize> Items<N> {
    #[inline(always)]
    pub(crate) fn get(&self, nth: usize) -> Item {
        Item {
            entry: Entry(self.entries[nth]),
            first: self.firsts[nth] as usize,
            second: self.seconds[nth] as usize,
            bucket_sum: self.bucket_sums[nth] as usize,
        }
    }
}

/// The number of buckets of a table of a fixed size, and the arithmetic that maps hashes onto them.
///
/// It multiplies numbers of 32 bits. Vector units can do that too, several at a time (`lookup/batch.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Stored three times, once per use, so that each use has a memory operand and none occupies a register.
    count: u64,
    count_for_bucket_sums: u64,
    count_to_wrap: u32,
    /// 1 where the count is even, else 0. It makes `s(f)` odd.
    even: u32,
}

impl Geometry {
    /// Just less than 32 GiB of them.
    pub(crate) const MOST: usize = u32::MAX as usize;

    pub(crate) fn new(count: usize) -> Self {
        assert!(count > 0, "a table has a bucket");
        assert!(count <= Self::MOST, "`plan::sizing` makes no larger table");
        let even = u32::from(count.is_multiple_of(2));
        Self { count: count as u64, count_for_bucket_sums: count as u64, count_to_wrap: count as u32, even }
    }

    #[inline(always)]
    pub(crate) fn buckets(self) -> usize {
        self.count as usize
    }

    /// The items of keys with these hashes, in a layout with these lanes. The same code serves all layouts: their numbers are
    /// data.
    pub(crate) fn items<const N: usize>(self, unit: VectorUnit, lanes: Lanes, hashes: &[u64; N], items: &mut Items<N>) {
        unit.run(ToItems { geometry: self, lanes, hashes, items });
    }

    /// The item of a key with this hash.
    #[inline(always)]
    pub(crate) fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        let hash = mix(hash);
        let (fingerprint, first) = (layout.fingerprint_from(hash), scale(hash, self.count) as usize);
        let bucket_sum = self.bucket_sum(fingerprint);
        Item { entry: layout.entry(fingerprint, 0), first, second: self.other(bucket_sum, first), bucket_sum }
    }

    /// `s(f)`, to which the two buckets of a pair add up modulo their number. It also chooses the pair's stripe.
    #[inline(always)]
    pub(crate) fn bucket_sum(self, fingerprint: Fingerprint) -> usize {
        (scale_half(spread_half(fingerprint), self.count_for_bucket_sums) as u32 | self.even) as usize
    }

    /// The other bucket of a pair with this bucket sum.
    #[inline(always)]
    pub(crate) fn other(self, bucket_sum: usize, bucket: usize) -> usize {
        let (other, borrow) = (bucket_sum as u32).overflowing_sub(bucket as u32);
        select_unpredictable(borrow, other.wrapping_add(self.count_to_wrap), other) as usize
    }

    /// The other bucket of a fingerprint that is stored in `bucket`.
    #[inline(always)]
    pub(crate) fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        self.other(self.bucket_sum(fingerprint), bucket)
    }

    /// The item of an entry that is stored in `bucket`.
    #[inline(always)]
    pub(crate) fn item_in<L: Layout>(self, layout: L, bucket: usize, entry: Entry) -> Item {
        let bucket_sum = self.bucket_sum(layout.fingerprint_of(entry));
        Item { entry, first: bucket, second: self.other(bucket_sum, bucket), bucket_sum }
    }

    /// Numbers that are equal for two tables if these have the same classes.
    pub(crate) fn of_classes(self, shape: Shape) -> [u64; 5] {
        let Shape { encoding, slots, fingerprint_bits, payload_bits } = shape;
        let encoding = u32::from(encoding == Encoding::SemiSorted);
        let [encoding, slots, bits, payload] = [encoding, slots, fingerprint_bits, payload_bits].map(u64::from);
        [encoding, slots, bits, payload, self.count]
    }
}

/// The step from hashes to items.
struct ToItems<'a, const N: usize> {
    geometry: Geometry,
    lanes: Lanes,
    hashes: &'a [u64; N],
    items: &'a mut Items<N>,
}

impl<const N: usize> Vectorized for ToItems<'_, N> {
    /// One step after the other for all hashes: all steps except the first are vectorized.
    #[inline(always)]
    fn run(self, _: VectorUnit) {
        let Self { geometry, lanes, hashes, items } = self;
        let mut mixed = [0; N];
        for (mixed, &hash) in mixed.iter_mut().zip(hashes) {
            *mixed = mix(hash);
        }
        let Items { entries: fingerprints, firsts, seconds, bucket_sums } = items;
        for (first, &hash) in firsts.iter_mut().zip(&mixed) {
            *first = scale_by_halves(hash, geometry.count_to_wrap);
        }
        for (fingerprint, &hash) in fingerprints.iter_mut().zip(&mixed) {
            *fingerprint = lanes.fingerprint_from(hash).0;
        }
        for (bucket_sum, &fingerprint) in bucket_sums.iter_mut().zip(&*fingerprints) {
            *bucket_sum = geometry.bucket_sum(Fingerprint(fingerprint)) as u32;
        }
        for ((second, &first), &bucket_sum) in seconds.iter_mut().zip(&*firsts).zip(&*bucket_sums) {
            *second = geometry.other(bucket_sum as usize, first as usize) as u32;
        }
    }
}

/// The hash for a growing table: mixed, and with eight lowest bits that are not all 0. So every fingerprint is the low
/// bits of it, however many there are.
#[inline(always)]
pub(crate) fn mixed(hash: u64) -> u64 {
    let hash = mix(hash);
    hash + u64::from(hash & ((1 << NEVER_ZERO) - 1) < 1)
}

/// 2⁶⁴ divided by the golden ratio: multiples of it spread evenly over the words (Knuth, volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a fingerprint that `s(f)` is made of: spread evenly, but not in equal steps.
///
/// Its top bits are those of a multiple of [`GOLDEN`], so each bucket of a small table is the alternate of about as
/// many fingerprints as any other. The bits below are those of another multiple. If `s(f)` were a plain multiple of
/// `f`, `s(f) - s(g)` would depend on `f - g` alone, and two hops would lead to few more buckets than one. With
/// fingerprints of eight bits, a search would then go in circles: the first failed insert into a table of a million
/// buckets was at a load of 98.0%, now at 99.4%.
#[inline(always)]
fn spread_half(fingerprint: Fingerprint) -> u32 {
    fingerprint.0.wrapping_mul((GOLDEN >> 32) as u32) ^ fingerprint.0.wrapping_mul(0x3c6f)
}

/// `x / 2⁶⁴` of `n`: maps a word onto `0..n` by its high bits, without a division.
#[inline(always)]
fn scale(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// `x / 2⁶⁴` of `n`, without a product of 128 bits, which vector units don't have.
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
