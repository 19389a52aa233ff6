//! Tables that grow: rates, loads, and keys that are chosen to collide.

use crate::error::insert::InsertError;
use crate::machine::memory::Pages;
use crate::plan::sizing;
use crate::table::face::by_layout;
use crate::tables::growth::Tables;
use crate::tables::growth_plan::{MAX_TABLES, Plan, lowest_rate, shapes};
use crate::word::geometry::{Geometry, Nested, nested};
use crate::word::layout::{Encoding, Fingerprint, Shape};

/// Rates that a filter may be built for, and the lowest.
fn rates(encoding: Option<Encoding>) -> impl Iterator<Item = f64> {
    let lowest = lowest_rate(encoding);
    let rates = (1..=120).map(|tenths| 10f64.powf(f64::from(-tenths) / 16.0)).chain([0.999, 0.03, 0.001, lowest]);
    rates.filter(move |&rate| rate >= lowest)
}

#[test]
fn all_tables_stay_below_the_rate_and_fingerprints_never_shrink() {
    for encoding in [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)] {
        for rate in rates(encoding) {
            let shapes: Vec<_> = shapes(rate, encoding).take(MAX_TABLES).collect();
            assert_eq!(shapes.len(), MAX_TABLES, "rate {rate:e}, {encoding:?}");
            let sum: f64 = shapes.iter().map(|shape| shape.nested_false_positive_rate(1.0)).sum();
            assert!(sum <= rate, "rate {rate:e}, {encoding:?}: {sum:e} in all");
            assert!(shapes.is_sorted_by_key(|shape| shape.fingerprint_bits), "rate {rate:e}: {shapes:?}");
            assert!(shapes.iter().all(|shape| encoding.is_none_or(|wanted| wanted == shape.encoding)), "{shapes:?}");
        }
        let lower = lowest_rate(encoding) * 0.99;
        assert!(shapes(lower, encoding).take(MAX_TABLES).count() < MAX_TABLES, "it could be lower");
    }
}

#[test]
fn the_first_tables_of_a_filter_for_the_default_rate() {
    let shapes: Vec<_> = shapes(0.001, None).take(5).map(|shape| (shape.slots, shape.fingerprint_bits)).collect();
    assert_eq!(shapes, [(5, 14), (4, 16), (4, 16), (4, 17), (3, 21)]);
}

/// An attacker who knows the hasher's key can fill a pair of buckets, and is then refused, but cannot drive the
/// memory up.
#[test]
fn keys_chosen_to_fill_a_pair_do_not_make_the_filter_grow() {
    let plan = Plan {
        buckets: 64,
        rate: 0.001,
        encoding: None,
        pages: Pages::Usual,
        memory_limit: usize::MAX,
        memory_of_caller: 0,
    };
    let tables = Tables::new(plan).expect("some kilobytes");
    let geometry = plan.table(0).expect("it is small").geometry;
    // Hashes whose fingerprints have the same alternate bucket for bucket 0.
    let alike = (256..1 << 14).filter(|&hash: &u64| {
        hash & 0xff != 0 && geometry.alternate(0, Fingerprint(hash as u32)) == geometry.alternate(0, Fingerprint(257))
    });
    let (mut inserted, mut refused) = (0, 0);
    for hash in alike {
        match tables.insert(hash) {
            Ok(()) => inserted += 1,
            Err(InsertError::Full { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(inserted == 10 && refused > 100, "{inserted} inserted, {refused} refused");
    assert_eq!((tables.tables(), tables.len()), (1, 10));
    // Other keys still find room.
    let others = sizing::capacity_of(shapes(plan.rate, None).next().expect("a layout"), plan.buckets) as u64 * 4 / 5;
    (0..others).for_each(|key| tables.insert(nested(key)).expect("there is room"));
    assert_eq!(tables.tables(), 1);
}

fn held_before_refusal(shape: Shape, geometry: Nested, buckets: usize, seed: u64) -> usize {
    let table = by_layout::nested(Pages::Usual, shape, geometry).expect("some megabytes");
    let refused = (0..).find(|&key: &u64| table.insert(nested(seed << 32 | key)).is_err()).expect("it fills");
    assert_eq!(table.len(), refused as usize);
    assert_eq!(table.buckets(), buckets);
    refused as usize
}

/// Tables of all levels, whose alternate buckets are computed from fewer bits than they store.
#[test]
#[cfg_attr(miri, ignore = "millions of inserts")]
fn nested_tables_fill_to_their_capacity() {
    let pairs = Shape::nesting(None).flat_map(|coarse| Shape::nesting(None).map(move |shape| (coarse, shape)));
    for (coarse, shape) in pairs {
        if coarse.fingerprint_bits > shape.fingerprint_bits {
            continue;
        }
        for (coarsest, level) in [(2, 3), (2, 7), (6, 5), (32, 1), (32, 8), (250, 2), (1000, 4)] {
            let buckets = coarsest << level;
            let geometry = Nested::new(coarsest, coarse.fingerprint_bits, level);
            let capacity = sizing::capacity_of(shape, buckets);
            for seed in 0..(20_000 / buckets as u64).clamp(1, 50) {
                let held = held_before_refusal(shape, geometry, buckets, seed);
                assert!(held >= capacity, "{coarse:?}, then {shape:?}, {coarsest} << {level}: {held} of {capacity}");
            }
        }
    }
}

/// The load at the first refused insert, in nested tables and in tables that are not nested.
#[test]
#[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
fn load_of_nested_tables() {
    let of_bits = |bits| Shape::nesting(None).find(|shape| shape.fingerprint_bits == bits).expect("there is one");
    for (coarse, shape) in [(8, 8), (8, 14), (14, 16), (14, 21)].map(|(one, other)| (of_bits(one), of_bits(other))) {
        for (coarsest, level) in [(2, 6), (2, 15), (32, 8), (32, 15), (1000, 6), (1 << 16, 4)] {
            let buckets = coarsest << level;
            let geometry = Nested::new(coarsest, coarse.fingerprint_bits, level);
            let slots = buckets as f64 * f64::from(shape.slots);
            let share = |held: usize| held as f64 / slots * 100.0;
            let alone = by_layout::new(Pages::Usual, shape, buckets).expect("some megabytes");
            let alone = (0..).find(|&key| alone.insert(key).is_err()).expect("it fills") as usize;
            let tables = (400_000 / buckets as u64).clamp(3, 200);
            let mut held: Vec<_> =
                (0..tables).map(|seed| held_before_refusal(shape, geometry, buckets, seed)).collect();
            held.sort_unstable();
            println!(
                "{:2} bits, {} by {:2}, {coarsest:6} << {level:2}: capacity {:6.2} %, lowest {:6.2} %, median {:6.2} %, alone {:6.2} %",
                coarse.fingerprint_bits,
                shape.slots,
                shape.fingerprint_bits,
                share(sizing::capacity_of(shape, buckets)),
                share(held[0]),
                share(held[held.len() / 2]),
                share(alone),
            );
        }
    }
}
