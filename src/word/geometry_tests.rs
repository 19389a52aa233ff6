use std::collections::{HashMap, HashSet};

use super::*;
use crate::word::layout::{RuntimeLayout, SHAPES, SHAPES_WITH_PAYLOAD, Shape, WithPayload};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 50 } else { 20_000 }))]

    #[test]
    fn the_alternate_is_its_own_inverse(
        count in prop_oneof![1..100usize, 1..1usize << 20, 1..=Geometry::MOST],
        bucket in any::<u64>(),
        fingerprint in any::<u32>(),
    ) {
        let (geometry, fingerprint) = (Geometry::new(count), Fingerprint(fingerprint));
        let bucket = (bucket % count as u64) as usize;
        let other = geometry.alternate(bucket, fingerprint);
        prop_assert!(other < count && geometry.bucket_sum(fingerprint) < count);
        prop_assert_eq!(geometry.alternate(other, fingerprint), bucket);
        prop_assert_eq!((bucket as u64 + other as u64) % count as u64, geometry.bucket_sum(fingerprint) as u64, "of both alike");
        prop_assert!(count % 2 == 1 || other % 2 != bucket % 2, "one bucket of either parity");
    }

    #[test]
    fn the_items_of_many_hashes_are_those_of_each(
        count in prop_oneof![1..100usize, 1..1usize << 20, Geometry::MOST - 100..=Geometry::MOST],
        hashes in any::<[u64; 8]>(),
    ) {
        let geometry = Geometry::new(count);
        for unit in VectorUnit::all() {
            for shape in SHAPES {
                the_items_are_those_of_each(geometry, unit, RuntimeLayout::of(shape), hashes)?;
            }
            for shape in SHAPES_WITH_PAYLOAD.map(|shape| shape.with_payload(4).expect("it leaves enough")) {
                the_items_are_those_of_each(geometry, unit, WithPayload::of(shape), hashes)?;
            }
        }
    }
}

fn the_items_are_those_of_each(
    geometry: Geometry,
    unit: VectorUnit,
    layout: impl Layout,
    hashes: [u64; 8],
) -> Result<(), TestCaseError> {
    let mut items = Items::default();
    geometry.items(unit, layout.lanes(), &hashes, &mut items);
    for (nth, &hash) in hashes.iter().enumerate() {
        let item = items.get(nth);
        prop_assert_eq!(item, geometry.item(layout, hash));
        prop_assert!(item.first < geometry.buckets() && item.second < geometry.buckets());
    }
    Ok(())
}

#[test]
fn the_low_part_of_a_mixed_hash_is_never_zero() {
    let count = if cfg!(miri) { 1_000 } else { 100_000 };
    assert!((0..count).all(|hash| mixed(hash) & ((1 << NEVER_ZERO) - 1) != 0));
    assert!((0..count).any(|hash| mix(hash) & ((1 << NEVER_ZERO) - 1) == 0));
}

#[test]
fn alternates_reach_all_buckets_of_the_other_parity_alike() {
    let (geometry, mut reached) = (Geometry::new(16), [0; 16]);
    for fingerprint in (1..=4096).map(Fingerprint) {
        reached[geometry.alternate(5, fingerprint)] += 1;
    }
    for (bucket, &times) in reached.iter().enumerate() {
        let expected = if bucket % 2 == 0 { 480..=544 } else { 0..=0 };
        assert!(expected.contains(&times), "bucket {bucket} reached {times} times");
    }
}

#[test]
fn two_hops_lead_to_a_bucket_for_each_pair_of_fingerprints() {
    let (geometry, fingerprints) = (Geometry::new(1 << 24), || (1..256).map(Fingerprint));
    let two_hops = |f| fingerprints().map(move |g| geometry.alternate(geometry.alternate(5, f), g));
    let reached: HashSet<_> = fingerprints().flat_map(two_hops).collect();
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

/// As many pairs of them are of one class as of random hashes, and no two become one by mixing.
#[test]
#[cfg_attr(miri, ignore = "statistics need many hashes")]
fn hashes_with_a_structure_are_spread_like_random_ones() {
    const HASHES: u64 = 1 << 16;
    let (geometry, layout) = (Geometry::new(1 << 14), RuntimeLayout::of(Shape::plain(8, 8)));
    let expected = (HASHES * (HASHES - 1) / 2) as f64 / (255.0 * geometry.buckets() as f64);
    for (name, hash) in WEAK {
        let mut classes: HashMap<_, u64> = HashMap::new();
        for Item { entry, first, .. } in (0..HASHES).map(|n| geometry.item(layout, hash(n))) {
            *classes.entry((entry.0, first)).or_default() += 1;
        }
        let pairs = classes.values().map(|&n| n * (n - 1) / 2).sum::<u64>() as f64;
        assert!((expected * 0.7..expected * 1.3).contains(&pairs), "{name}: {pairs} pairs, not {expected}");
        let mixed: HashSet<u64> = (0..HASHES).map(|n| mix(hash(n))).collect();
        assert_eq!(mixed.len() as u64, HASHES, "{name}");
    }
}
