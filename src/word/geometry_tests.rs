use super::*;
use crate::word::layout::{Encoding, OfShape, Plain, SemiSorted, Shape};
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
        check_items(Nested::new(count / 2 * 2 + 2, 16, 0), Plain::of(Shape::plain(4, 16)), hashes.map(nested));
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

/// What a table stores for one key.
fn class<L: Layout>(geometry: impl Geometry, layout: L, hash: u64) -> (u32, usize, usize) {
    let Item { entry, first, second, .. } = geometry.item(layout, hash);
    (entry.0, first.min(second), first.max(second))
}

/// Two hashes that often look the same to a small table: they share a few high bits, and all low bits except a few.
fn alike() -> impl Strategy<Value = (u64, u64)> {
    let low = prop_oneof![
        Just(0),
        0..4u64,
        any::<u64>().prop_map(|low| low & 0xffff_ffff),
        (8..32u32).prop_map(|bit| 1 << bit)
    ];
    let change =
        prop_oneof![Just(0), Just(1), (0..32u32).prop_map(|bit| 1 << bit), (20..32u32).prop_map(|bit| 3 << bit)];
    (low, change, any::<u64>(), 0..12u32, any::<bool>()).prop_map(|(low, change, high, same, exchanged)| {
        let high = high & !0xffff_ffff;
        // The first bits of the bucket are the same, or each is inverted: the item's second bucket.
        let other = if exchanged { !high & !0xffff_ffff } else { high ^ (u64::MAX >> 1 >> same & !0xffff_ffff) };
        (high | low, other | (low ^ change))
    })
}

/// Counts the pairs that are one class in the finer table.
fn check_that_classes_nest(shapes: [Shape; 2], coarsest: usize, levels: [u32; 2], hashes: (u64, u64)) -> bool {
    let bits = shapes[0].fingerprint_bits;
    let (one, other) = (without_zero(hashes.0), without_zero(hashes.1));
    let [coarser, finer] = levels.map(|level| Nested::new(coarsest, bits, level));
    let same = |geometry, shape: Shape| match shape.encoding {
        Encoding::Plain => class(geometry, Plain::of(shape), one) == class(geometry, Plain::of(shape), other),
        Encoding::SemiSorted => {
            class(geometry, SemiSorted::of(shape), one) == class(geometry, SemiSorted::of(shape), other)
        }
    };
    let same_when_fine = same(finer, shapes[1]);
    assert!(!same_when_fine || same(coarser, shapes[0]), "{hashes:x?}");
    same_when_fine
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 50 } else { 20_000 }))]

    #[test]
    fn the_nested_alternate_is_its_own_inverse(
        half in prop_oneof![1..50usize, 1..1usize << 20],
        // Not more buckets than there can be.
        level in 0..if cfg!(target_pointer_width = "64") { 16u32 } else { 8 },
        bits in 8..=32u32,
        bucket in any::<u64>(),
        fingerprint in any::<u32>(),
    ) {
        let (geometry, fingerprint) = (Nested::new(2 * half, bits, level), Fingerprint(fingerprint));
        let bucket = (bucket % geometry.count() as u64) as usize;
        let other = geometry.alternate(bucket, fingerprint);
        prop_assert!(other < geometry.count());
        prop_assert_ne!(other, bucket);
        prop_assert_eq!(geometry.alternate(other, fingerprint), bucket);
    }

    /// The bits of a finer table's fingerprint that the first table stores are its fingerprint there.
    #[test]
    fn fingerprints_nest(hash in alike()) {
        let hash = without_zero(hash.0);
        for shape in Shape::nesting(None) {
            let (fingerprint, low) = match shape.encoding {
                Encoding::Plain => (Plain::of(shape).fingerprint_from(hash), shape.fingerprint_bits),
                Encoding::SemiSorted => (SemiSorted::of(shape).fingerprint_from(hash), shape.low_bits()),
            };
            let fingerprint = u64::from(fingerprint.0);
            assert_eq!(fingerprint, hash & ((1 << shape.fingerprint_bits) - 1), "{shape:?} changed it");
            assert_ne!(fingerprint & ((1 << low) - 1), 0, "{shape:?}: an empty slot");
        }
    }
}

#[test]
fn keys_of_one_class_are_of_one_class_in_every_coarser_table() {
    let same = std::cell::Cell::new(0);
    let cases = ProptestConfig::with_cases(if cfg!(miri) { 50 } else { 20_000 });
    proptest!(cases, |(half in 1..4usize, coarser in 0..6u32, more in 0..6u32, hashes in alike())| {
        let levels = [coarser, coarser + more];
        let shapes = [
            [Shape::plain(8, 8), Shape::plain(8, 8)],
            [Shape::plain(8, 8), Shape::plain(7, 9)],
            [Shape::semi_sorted(6, 12), Shape::plain(5, 12)],
            [Shape::plain(5, 12), Shape::semi_sorted(5, 14)],
            [Shape::semi_sorted(5, 14), Shape::plain(4, 16)],
            [Shape::plain(4, 16), Shape::semi_sorted(4, 17)],
            [Shape::semi_sorted(5, 14), Shape::plain(3, 21)],
        ];
        let found = shapes.map(|shapes| check_that_classes_nest(shapes, 2 * half, levels, hashes));
        same.set(same.get() + found.into_iter().filter(|&same| same).count());
    });
    assert!(same.get() > if cfg!(miri) { 0 } else { 5_000 }, "only {} pairs are of one class", same.get());
}

/// Why tables that are alone can't be used for this: a control of the test above.
#[test]
fn the_classes_of_tables_that_stand_alone_do_not_nest() {
    let layout = Plain::of(Shape::plain(8, 8));
    let (coarse, fine) = (Buckets::new(2 * 3), Buckets::new(4 * 3));
    let hash = |n: u64| without_zero(n.wrapping_mul(GOLDEN));
    let mut keys: std::collections::HashMap<_, Vec<u64>> = std::collections::HashMap::new();
    (0..20_000).map(hash).for_each(|hash| keys.entry(class(fine, layout, hash)).or_default().push(hash));
    let unlike =
        |hashes: &Vec<u64>| hashes.iter().any(|&hash| class(coarse, layout, hash) != class(coarse, layout, hashes[0]));
    assert!(keys.values().any(unlike));
}

/// Why the low part is made other than 0 before it is cut: the layouts disagree about which hashes have a low part
/// of 0.
#[test]
fn fingerprints_of_hashes_as_they_are_do_not_nest() {
    let (one, other) = (0x400, 0x401);
    let (coarse, fine) = (Plain::of(Shape::plain(5, 12)), SemiSorted::of(Shape::semi_sorted(5, 14)));
    assert_eq!(fine.fingerprint_from(one), fine.fingerprint_from(other));
    assert_ne!(coarse.fingerprint_from(one), coarse.fingerprint_from(other));
    assert_eq!(without_zero(one), without_zero(other));
}

#[test]
fn the_low_part_of_a_nested_hash_is_never_zero() {
    let count = if cfg!(miri) { 1_000 } else { 100_000 };
    assert!((0..count).all(|hash| nested(hash) & ((1 << NEVER_ZERO) - 1) != 0));
    assert!((0..count).any(|hash| mix(hash) & ((1 << NEVER_ZERO) - 1) == 0));
}

#[test]
fn the_low_part_that_is_never_zero_is_the_narrowest_that_nests() {
    assert_eq!(Shape::nesting(None).map(|shape| shape.lane_bits()).min(), Some(NEVER_ZERO));
    assert!(Shape::nesting(None).is_sorted_by_key(|shape| shape.fingerprint_bits), "further tables have more bits");
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
    fn check(geometry: impl Geometry) {
        let mut reached = [0; 16];
        for fingerprint in (1..=4096).map(Fingerprint) {
            reached[geometry.alternate(5, fingerprint)] += 1;
        }
        for (bucket, &times) in reached.iter().enumerate() {
            let expected = if bucket % 2 == 0 { 480..=544 } else { 0..=0 };
            assert!(expected.contains(&times), "bucket {bucket} reached {times} times");
        }
    }
    check(Buckets::new(16));
    check(Nested::new(16, 14, 0));
}

#[test]
fn hashes_reach_all_buckets_and_have_all_fingerprints() {
    fn check(geometry: impl Geometry) {
        let layout = Plain::of(Shape::plain(8, 8));
        let (mut reached, mut fingerprints) = ([0; 16], std::collections::HashSet::new());
        for hash in 1..=4096 {
            let (fingerprint, first) = geometry.first(layout, nested(hash));
            reached[first] += 1;
            fingerprints.insert(fingerprint.0);
        }
        assert!(reached.iter().all(|times| (170..=340).contains(times)), "{reached:?}");
        assert_eq!(fingerprints.len(), 255);
    }
    check(Buckets::new(16));
    check(Nested::new(4, 8, 2));
}

#[test]
fn two_hops_lead_to_a_bucket_for_each_pair_of_fingerprints() {
    fn check(geometry: impl Geometry) {
        let fingerprints = || (1..256).map(Fingerprint);
        let two_hops = |f| fingerprints().map(move |g| geometry.alternate(geometry.alternate(5, f), g));
        let reached: std::collections::HashSet<_> = fingerprints().flat_map(two_hops).collect();
        // All that differ, except for chance, and the way back.
        assert!(reached.len() > 255 * 254 * 9 / 10, "only {}", reached.len());
    }
    check(Buckets::new(1 << 24));
    check(Nested::new(1 << 24, 14, 0));
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
