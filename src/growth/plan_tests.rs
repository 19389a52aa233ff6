use super::*;
use crate::error::insert::InsertError;
use crate::growth::growth::Growth;
use crate::word::geometry::doubling;
use crate::word::layout::Fingerprint;

const ENCODINGS: [Option<Encoding>; 3] = [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)];

fn plan(capacity: usize, max_capacity: Option<usize>, rate: f64, encoding: Option<Encoding>) -> Plan {
    Plan::new(Wanted { capacity, max_capacity, rate, encoding }).expect("it is possible")
}

/// Rates that a filter may be built for, and the lowest.
fn rates(encoding: Option<Encoding>) -> impl Iterator<Item = f64> {
    let lowest = lowest_rate(encoding);
    let rates = (1..=120).map(|tenths| 10f64.powf(f64::from(-tenths) / 16.0)).chain([0.999, 0.03, 0.001, lowest]);
    rates.filter(move |&rate| rate >= lowest)
}

/// Every plan that the tests look at, and what was wanted.
fn for_each_plan(mut check: impl FnMut(Wanted, Plan)) {
    let step = if cfg!(miri) { 40 } else { 1 };
    for encoding in ENCODINGS {
        for rate in rates(encoding).step_by(step) {
            for capacity in [0, 1, 1000, 54_321, 3_000_000] {
                let times = [1, 2, 100, 7_777].map(|times| Some(capacity * times));
                for max_capacity in times.into_iter().chain([None, Some(0), Some(10)]) {
                    let wanted = Wanted { capacity, max_capacity, rate, encoding };
                    // At the lowest rate, this may be too much for one table.
                    if let Ok(plan) = Plan::new(wanted) {
                        check(wanted, plan);
                    }
                }
            }
        }
    }
}

#[test]
fn every_level_keeps_the_rate_and_is_made_for_twice_as_many() {
    for_each_plan(|wanted, plan| {
        for level in 0..=plan.doublings {
            let shape = plan.shape(level);
            assert!(shape.doubled_false_positive_rate(1.0) <= wanted.rate, "{wanted:?}, level {level}: {shape:?}");
            assert!(wanted.encoding != Some(Encoding::Plain) || shape.encoding == Encoding::Plain);
            assert_eq!(plan.buckets(level), plan.buckets(0) << level);
            assert!(level == 0 || plan.capacity(level) >= 2 * plan.capacity(level - 1), "{wanted:?}");
        }
    });
}

#[test]
fn the_first_and_the_largest_capacity_are_kept() {
    for_each_plan(|wanted, plan| {
        let Wanted { capacity, max_capacity, .. } = wanted;
        assert!(plan.capacity(0) >= capacity, "{wanted:?}: only {}", plan.capacity(0));
        let largest = sizing::capacity_of(plan.shape(plan.doublings), sizing::LARGEST);
        let reach = match max_capacity {
            Some(most) => most,
            // For this alone, a first table has at most a mebibyte.
            None if plan.buckets(0) >= MOST_FOR_REACH => capacity << LEAST_DOUBLINGS,
            None => capacity.max(LEAST_FIRST).saturating_mul(REACH),
        };
        // The largest number of buckets may not be reached by doublings.
        let reach = if max_capacity.is_none() { reach.min(largest / 2) } else { reach };
        assert!(plan.max_capacity() >= reach, "{wanted:?}: {} of {reach}", plan.max_capacity());
        let items = [0, 1, capacity, plan.capacity(0), plan.capacity(0) + 1, plan.max_capacity()];
        for items in items.into_iter().filter(|&items| items <= plan.max_capacity()) {
            let level = plan.level_for(items).expect("there is one");
            assert!(plan.capacity(level) >= items && (level == 0 || plan.capacity(level - 1) < items));
        }
        assert_eq!(plan.level_for(plan.max_capacity() + 1), None);
    });
}

/// The most that can be asked for is kept too, though doublings reach few numbers of buckets exactly.
#[test]
fn the_largest_capacity_of_all_is_kept_and_one_more_is_an_error() {
    for encoding in ENCODINGS {
        for rate in rates(encoding).step_by(10) {
            let plan_of = |capacity, max| Plan::new(Wanted { capacity, max_capacity: Some(max), rate, encoding });
            let Err(Unable::CapacityTooLarge { capacity: usize::MAX, largest }) = plan_of(1, usize::MAX) else {
                panic!("no table is so large")
            };
            for capacity in [1, 1000, largest / 300, largest / 3, largest / 2 + 1, largest] {
                let plan = plan_of(capacity, largest).expect("it is the largest");
                assert!(plan.max_capacity() >= largest && plan.capacity(0) >= capacity, "rate {rate:e}, {plan:?}");
            }
            for (capacity, max) in [(1, largest + 1), (largest + 1, 0)] {
                let refused = plan_of(capacity, max);
                let Err(Unable::CapacityTooLarge { capacity, .. }) = refused else { panic!("{refused:?}") };
                assert_eq!(capacity, largest + 1);
            }
        }
    }
}

#[test]
fn a_rate_below_the_lowest_is_an_error_that_names_it() {
    for encoding in ENCODINGS {
        let lowest = lowest_rate(encoding);
        let refused = Plan::new(Wanted { capacity: 1, max_capacity: None, rate: lowest * 0.99, encoding });
        let Err(Unable::RateTooLow { lowest: named }) = refused else { panic!("{refused:?}") };
        assert_eq!(named, lowest);
        assert!(plan(1, Some(1), lowest, encoding).doublings == 0, "a filter need not be able to grow");
    }
}

#[test]
fn the_levels_of_a_filter_for_the_default_rate() {
    let plan = plan(1000, None, 0.001, None);
    let shapes: Vec<_> =
        (0..=plan.doublings).map(|level| (plan.shape(level).slots, plan.shape(level).fingerprint_bits)).collect();
    assert_eq!((shapes[0], shapes.last().copied()), ((2, 14 + plan.doublings), Some((5, 14))));
    assert!(plan.max_capacity() >= 1024 << 16, "{plan:?}");
}

/// Distinct keys fill the table of any level to its capacity.
#[test]
#[cfg_attr(miri, ignore = "millions of inserts")]
fn the_table_of_every_level_fills_to_its_capacity() {
    for (rate, encoding) in [
        (0.9, None),
        (0.1, None),
        (0.02, None),
        (0.001, None),
        (0.001, ENCODINGS[1]),
        (1e-5, ENCODINGS[2]),
        (1e-6, None),
    ] {
        for capacity in [1, 300, 5_000] {
            let plan = plan(capacity, None, rate, encoding);
            for level in (0..=plan.doublings).filter(|&level| plan.buckets(level) <= 1 << 14) {
                for seed in 0..(5_000 / plan.buckets(level) as u64).clamp(1, 50) {
                    let growth = Growth::at_level(plan, level).expect("some kilobytes");
                    let keys = seed << 32..(seed << 32) + plan.capacity(level) as u64;
                    keys.for_each(|key| growth.insert(doubling(key)).expect("there is room"));
                    assert_eq!((growth.len(), growth.tables()), (plan.capacity(level), 1), "{plan:?}, level {level}");
                }
            }
        }
    }
}

/// An attacker who knows the hasher's key can fill a pair of buckets, and is then refused, but cannot drive the
/// memory up.
#[test]
fn keys_chosen_to_fill_a_pair_do_not_make_the_filter_grow() {
    let plan = plan(200, None, 0.001, None);
    let growth = Growth::new(plan).expect("some kilobytes");
    let pair = |hash: u64| {
        let (fingerprint, bits) = (Fingerprint(hash as u32), plan.geometry.stored_bits());
        (fingerprint.0 >> bits == 0 || bits == 32).then(|| plan.geometry.alternate(0, fingerprint))
    };
    // All have bucket 0, and the same alternate.
    let alike = (257..1 << 18).filter(|hash| hash & 0xff != 0 && pair(*hash) == pair(257));
    let (mut inserted, mut refused) = (0, 0);
    for hash in alike {
        match growth.insert(hash) {
            Ok(()) => inserted += 1,
            Err(InsertError::Full { .. } | InsertError::TooManyCopies { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(inserted == 4 && refused > 100, "{inserted} inserted, {refused} refused");
    assert_eq!((growth.tables(), growth.len(), growth.capacity()), (1, 4, plan.capacity(0)));
    // Other keys still find room.
    (0..plan.capacity(0) as u64 * 4 / 5).for_each(|key| growth.insert(doubling(key)).expect("there is room"));
    assert_eq!((growth.tables(), growth.capacity()), (1, plan.capacity(0)));
}
