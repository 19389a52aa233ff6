use super::*;
use crate::word::layout::{OfShape, Plain, SemiSorted, Shape};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 50 } else { 20_000 }))]

    #[test]
    fn the_alternate_is_its_own_inverse(
        count in prop_oneof![1..100usize, 1..1usize << 20, 1..=Buckets::MOST],
        bucket in any::<u64>(),
        fingerprint in any::<u32>(),
    ) {
        check_alternates(Buckets::new(count), bucket, fingerprint);
    }

    #[test]
    fn the_items_of_many_hashes_are_those_of_each(
        count in prop_oneof![1..100usize, 1..1usize << 20, Buckets::MOST - 100..=Buckets::MOST],
        hashes in any::<[u64; 8]>(),
    ) {
        check_items(Buckets::new(count), Plain::of(Shape::plain(8, 8)), hashes);
        check_items(Buckets::new(count), SemiSorted::of(Shape::semi_sorted(5, 14)), hashes);
        check_items(Buckets::new(count), Plain::of(Shape::plain(2, 32)), hashes);
    }
}

fn check_alternates(buckets: impl Geometry, bucket: u64, fingerprint: u32) {
    let (count, fingerprint) = (buckets.count(), Fingerprint(fingerprint));
    let bucket = (bucket % count as u64) as usize;
    let other = buckets.alternate(bucket, fingerprint);
    assert!(other < count);
    assert_eq!(buckets.alternate(other, fingerprint), bucket);
    assert!(buckets.sum(fingerprint) < count);
    assert_eq!((bucket as u64 + other as u64) % count as u64, buckets.sum(fingerprint) as u64, "of both buckets alike");
    if count % 2 == 0 {
        assert_ne!(other % 2, bucket % 2, "one bucket of either parity");
    }
}

fn check_items<G: Geometry>(buckets: G, layout: impl Layout, hashes: [u64; 8]) {
    let mut items = Items::default();
    buckets.items(layout, &hashes, &mut items);
    for (nth, &hash) in hashes.iter().enumerate() {
        let item = items.get(nth);
        assert_eq!(item, buckets.item(layout, hash));
        assert!(item.first < buckets.count() && item.second < buckets.count());
    }
}

#[test]
fn the_low_part_of_a_mixed_hash_is_never_zero() {
    let count = if cfg!(miri) { 1_000 } else { 100_000 };
    assert!((0..count).all(|hash| mixed(hash) & ((1 << NEVER_ZERO) - 1) != 0));
    assert!((0..count).any(|hash| mix(hash) & ((1 << NEVER_ZERO) - 1) == 0));
}

#[test]
fn with_an_odd_count_each_fingerprint_has_one_own_alternate() {
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
    let (buckets, mut reached) = (Buckets::new(16), [0; 16]);
    for fingerprint in (1..=4096).map(Fingerprint) {
        reached[buckets.alternate(5, fingerprint)] += 1;
    }
    for (bucket, &times) in reached.iter().enumerate() {
        let expected = if bucket % 2 == 0 { 480..=544 } else { 0..=0 };
        assert!(expected.contains(&times), "bucket {bucket} reached {times} times");
    }
}

#[test]
fn hashes_reach_all_buckets_and_have_all_fingerprints() {
    let (buckets, layout) = (Buckets::new(16), Plain::of(Shape::plain(8, 8)));
    let (mut reached, mut fingerprints) = ([0; 16], std::collections::HashSet::new());
    for hash in 1..=4096 {
        let Item { entry, first, second, .. } = buckets.item(layout, mixed(hash));
        reached[first] += 1;
        reached[second] += 1;
        fingerprints.insert(entry.0);
    }
    assert!(reached.iter().all(|times| (400..=640).contains(times)), "{reached:?}");
    assert_eq!(fingerprints.len(), 255);
}

#[test]
fn two_hops_lead_to_a_bucket_for_each_pair_of_fingerprints() {
    let (buckets, fingerprints) = (Buckets::new(1 << 24), || (1..256).map(Fingerprint));
    let two_hops = |f| fingerprints().map(move |g| buckets.alternate(buckets.alternate(5, f), g));
    let reached: std::collections::HashSet<_> = fingerprints().flat_map(two_hops).collect();
    // All that differ, except for chance, and the way back.
    assert!(reached.len() > 255 * 254 * 9 / 10, "only {}", reached.len());
}

/// A set of structured hashes, as weak hashers return them: a function of a number, and its name.
type Weak = (&'static str, fn(u64) -> u64);

const WEAK: [Weak; 12] = [
    ("numbers in a row", |n| n),
    ("even numbers", |n| n << 1),
    ("addresses", |n| 0x7f12_3400_0000 + n * 48),
    ("multiples of 2¹²", |n| n << 12),
    ("the upper half", |n| n << 32),
    ("the upper quarter", |n| n << 48),
    ("pairs of numbers", |n| (n & 0xff) << 32 | n >> 8),
    ("both halves alike", |n| n << 32 | n),
    ("decimals", |n| n * 1000),
    ("floating point", |n| (n as f64).to_bits()),
    ("FxHash", |n| n.wrapping_mul(0x517c_c1b7_2722_0a95)),
    ("FxHash of the upper half", |n| (n << 32).wrapping_mul(0x517c_c1b7_2722_0a95)),
];

/// How many pairs of so many of these hashes are of one class.
fn pairs_of_one_class(mix: fn(u64) -> u64, hash: fn(u64) -> u64, count: u64) -> f64 {
    let layout = Plain::of(Shape::plain(8, 8));
    let mut classes: std::collections::HashMap<_, u64> = std::collections::HashMap::new();
    for n in 0..count {
        let hash = mix(hash(n));
        let class = (layout.fingerprint_from(hash), scale(hash, 1 << 14));
        *classes.entry((class.0.0, class.1)).or_default() += 1;
    }
    classes.values().map(|&n| n * (n - 1) / 2).sum::<u64>() as f64
}

/// Random classes have this many pairs.
const PAIRS: u64 = 1 << 16;
const EXPECTED: f64 = (PAIRS * (PAIRS - 1) / 2) as f64 / (255.0 * (1 << 14) as f64);

#[test]
#[cfg_attr(miri, ignore = "statistics need many hashes")]
fn hashes_with_a_structure_are_spread_like_random_ones() {
    for (name, hash) in WEAK {
        let pairs = pairs_of_one_class(mix, hash, PAIRS);
        assert!((EXPECTED * 0.7..EXPECTED * 1.3).contains(&pairs), "{name}: {pairs} pairs, not {EXPECTED}");
    }
}

/// Why there is a product of 128 bits, both factors of which depend on the hash, and a second product: without
/// either, some of these hashes are far from random.
#[test]
#[cfg_attr(miri, ignore = "statistics need many hashes")]
fn with_less_they_are_not() {
    const LESS: [fn(u64) -> u64; 3] = [
        |hash| hash,
        |hash| hash.wrapping_mul(GOLDEN),
        |hash| {
            let product = u128::from(hash) * u128::from(GOLDEN);
            (product >> 64) as u64 ^ product as u64
        },
    ];
    for mix in LESS {
        let far = |&(_, hash): &Weak| !(EXPECTED * 0.7..EXPECTED * 1.3).contains(&pairs_of_one_class(mix, hash, PAIRS));
        assert!(WEAK.iter().any(far));
    }
}

#[test]
#[cfg_attr(miri, ignore = "much arithmetic")]
fn mixing_merges_no_hashes_that_are_near_each_other() {
    for (name, hash) in WEAK {
        let mut mixed: Vec<u64> = (0..PAIRS).map(|n| mix(hash(n))).collect();
        mixed.sort_unstable();
        let all = mixed.len();
        mixed.dedup();
        assert_eq!(mixed.len(), all, "{name}");
    }
}
