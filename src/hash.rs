//! Pure: from a key's hash to its fingerprint and its two buckets.
//!
//! The paper's partial-key cuckoo hashing (section 3.1) finds an item's other bucket from the fingerprint alone, as
//! `i ^ hash(f)`, which needs a power of two of buckets. Here the alternate of bucket `i` is `s(f) - i` modulo the number
//! of buckets `m`, with `s(f)` a hash of the fingerprint onto `0..m`. That is its own inverse for every `m`.
//!
//! Where `m` is even, `s(f)` is made odd. Then an item's two buckets are one of even and one of odd number and never
//! the same; where `m` is odd, one bucket in `m` is its own alternate.

use crate::layout::{Fingerprint, Layout};

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

    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        self.count as usize
    }

    /// The item of a key with this hash.
    #[inline(always)]
    pub(crate) fn item<L: Layout>(self, layout: L, hash: u64) -> Item {
        let hash = mix(hash);
        let fingerprint = layout.fingerprint(hash);
        let first = scale(hash, self.count) as usize;
        Item { fingerprint, first, second: self.alternate(first, fingerprint) }
    }

    /// The other bucket of a fingerprint that is stored in `bucket`.
    #[inline(always)]
    pub(crate) fn alternate(self, bucket: usize, fingerprint: Fingerprint) -> usize {
        let sum = scale(spread(fingerprint), self.count) | self.even;
        let (other, borrow) = sum.overflowing_sub(bucket as u64);
        (if borrow { other.wrapping_add(self.count) } else { other }) as usize
    }
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 50 } else { 20_000 }))]

        #[test]
        fn the_alternate_is_its_own_inverse(
            count in prop_oneof![1..100usize, 1..1usize << 20, 1..usize::MAX >> 24],
            bucket in any::<u64>(),
            fingerprint in any::<u32>(),
        ) {
            let (buckets, fingerprint) = (Buckets::new(count), Fingerprint(fingerprint));
            let bucket = (bucket % count as u64) as usize;
            let other = buckets.alternate(bucket, fingerprint);
            prop_assert!(other < count);
            prop_assert_eq!(buckets.alternate(other, fingerprint), bucket);
            if count % 2 == 0 {
                prop_assert_ne!(other % 2, bucket % 2, "one bucket of either parity");
            }
        }
    }

    #[test]
    fn where_the_bucket_count_is_odd_each_fingerprint_has_one_bucket_that_is_its_own_alternate() {
        for count in (1..100).step_by(2) {
            let buckets = Buckets::new(count);
            for fingerprint in (0..64).map(Fingerprint) {
                let own = (0..count).filter(|&bucket| buckets.alternate(bucket, fingerprint) == bucket).count();
                assert_eq!(own, 1, "{count} buckets, {fingerprint:?}");
            }
        }
    }

    #[test]
    fn alternates_reach_all_buckets_of_the_other_parity_alike() {
        let buckets = Buckets::new(16);
        let mut reached = [0; 16];
        for fingerprint in (1..=4096).map(Fingerprint) {
            reached[buckets.alternate(5, fingerprint)] += 1;
        }
        for (bucket, &times) in reached.iter().enumerate() {
            let expected = if bucket % 2 == 0 { 480..=544 } else { 0..=0 };
            assert!(expected.contains(&times), "bucket {bucket} reached {times} times");
        }
    }

    #[test]
    fn two_hops_lead_to_as_many_buckets_as_there_are_pairs_of_fingerprints() {
        let buckets = Buckets::new(1 << 24);
        let fingerprints = || (1..256).map(Fingerprint);
        let two_hops = |f| fingerprints().map(move |g| buckets.alternate(buckets.alternate(5, f), g));
        let reached: std::collections::HashSet<_> = fingerprints().flat_map(two_hops).collect();
        // But for chance, all that differ, and the way back.
        assert!(reached.len() > 255 * 254 * 9 / 10, "only {}", reached.len());
    }

    #[test]
    fn mixing_is_a_bijection_that_moves_every_bit() {
        // Flipping one bit of the input flips each bit of the output about half the time.
        let mut flips = [[0u32; 64]; 64];
        let samples = if cfg!(miri) { 16 } else { 4096 };
        for sample in 0..samples {
            let x = sample << 32 | sample;
            for (bit, counts) in flips.iter_mut().enumerate() {
                let changed = mix(x) ^ mix(x ^ 1 << bit);
                assert_ne!(changed, 0);
                for (out, count) in counts.iter_mut().enumerate() {
                    *count += (changed >> out & 1) as u32;
                }
            }
        }
        if !cfg!(miri) {
            let (low, high) = (samples as u32 * 4 / 10, samples as u32 * 6 / 10);
            assert!(flips.iter().flatten().all(|count| (low..=high).contains(count)), "{flips:?}");
        }
    }
}
