//! Compares measured with computed values: false-positive rate, load, and the promise of `with_capacity`, for every
//! layout and for weak hashers.

#[path = "support/kinds.rs"]
mod kinds;
mod support;

use std::hash::{BuildHasher, BuildHasherDefault};

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding};
use kinds::{Table, in_each_layout};
use support::{Identity, LAYOUTS, Layout, Seeded, plausible, scattered, seeded};

fn build(capacity: usize, layout: Layout, seed: u64) -> ConcurrentCuckooFilter<u64, Seeded> {
    let (encoding, rate, slots, bits) = layout;
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
    let filter = builder.encoding(encoding).hasher(seeded(seed)).build().unwrap();
    // So few keys may need less memory in a layout of which not all slots may be taken.
    if capacity >= 1000 {
        assert_eq!(
            (
                filter.plan().layout.encoding,
                filter.plan().layout.slots_per_bucket,
                filter.plan().layout.fingerprint_bits
            ),
            (encoding, slots, bits)
        );
    }
    filter
}

fn has_the_computed_rate<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    const LOOKUPS: u64 = 1_000_000;
    let (filter, mut keys) = (new(100_000), 0);
    for share in [0.5, 1.0] {
        let goal = (filter.capacity() as f64 * share) as u64;
        (keys..goal).for_each(|nth| assert_eq!(filter.insert(&(scattered(nth), number(nth))), Ok(true), "{filter:?}"));
        keys = goal;
        let expected = filter.stats().false_positive_rate * LOOKUPS as f64;
        let absent = 1 << 40..(1 << 40) + LOOKUPS;
        let found = absent.filter(|&nth| filter.contains(&scattered(nth))).count() as f64;
        // False positives come in groups: all absent keys of one class are false positives together.
        assert!(
            plausible(found, expected) || (found / expected - 1.0).abs() < 0.05,
            "{filter:?}: {found} for {expected}"
        );
    }
    let (rate, highest) = (filter.stats().false_positive_rate, filter.plan().max_false_positive_rate);
    assert!(rate <= highest && highest < 2.0 * rate, "{filter:?}");
}

#[test]
#[cfg_attr(miri, ignore = "statistics need millions of operations")]
fn the_rate_is_as_computed_at_half_load_and_at_capacity() {
    in_each_layout!(of_a_fixed_size: has_the_computed_rate);
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn a_hundred_thousand_small_filters_take_their_capacity() {
    let mut trials = 0;
    for capacity in (1..=40).chain([50, 64, 100, 200, 500]) {
        for seed in 0..if capacity <= 40 { 2500 } else { 200 } {
            let filter = ConcurrentCuckooFilter::<u64, _>::with_capacity_and_hasher(capacity, seeded(seed));
            for key in 0..filter.capacity() as u64 {
                assert!(filter.insert(&key).is_ok(), "capacity {capacity}, seed {seed}: refused the key {key}");
            }
            trials += 1;
        }
    }
    assert!(trials >= 100_000);
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn filters_of_every_layout_and_size_take_their_capacity() {
    for layout in LAYOUTS {
        for capacity in [1, 2, 3, 9, 17, 33, 70, 150, 400, 1000, 5000, 30_000, 300_000] {
            for seed in 0..(100_000 / capacity as u64).clamp(1, 100) {
                let filter = build(capacity, layout, seed);
                let refused = (0..filter.capacity() as u64).find(|key| filter.insert(key).is_err());
                assert_eq!(refused, None, "{filter:?}, seed {seed}");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn a_large_filter_takes_as_many_keys_as_it_is_made_for() {
    let filter = ConcurrentCuckooFilter::<u64, _>::with_capacity_and_hasher(6_000_000, seeded(1));
    for key in 0..filter.capacity() as u64 {
        assert!(filter.insert(&key).is_ok(), "refused the key {key}");
    }
    assert!(filter.stats().load_factor > 0.969, "{filter:?}");
    assert!((0..filter.capacity() as u64).all(|key| filter.contains(&key)));
}

/// The page `choosing_parameters` has these loads, which hold for ten million keys too.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn copies_fit_up_to_the_documented_loads() {
    for (slots, loads) in [(5, [0.9, 0.7]), (4, [0.85, 0.5]), (3, [0.7, 0.2]), (2, [0.33, 0.0])] {
        let layout = LAYOUTS.into_iter().rfind(|layout| layout.2 == slots).unwrap();
        for (copies, load) in (2..).zip(loads) {
            let filter = build(1_000_000, layout, copies);
            let keys = (filter.capacity() as f64 * load) as u64 / copies;
            for key in 0..keys {
                (0..copies).for_each(|_| assert!(filter.insert(&key).is_ok(), "{layout:?}: {key} of {keys}"));
            }
        }
    }
}

/// Fills 95% of the slots with keys of a pattern, and looks up others of the same pattern.
fn check_weak_hasher<S: BuildHasher>(name: &str, new: impl Fn() -> S) {
    const KEYS: u64 = 100_000;
    let patterns: [(&str, &dyn Fn(u64) -> u64); 9] = [
        ("counting", &|i| i),
        ("every 8th", &|i| i << 3),
        ("every 4096th", &|i| i << 12),
        ("in the upper half", &|i| i << 32),
        ("in the upper bits", &|i| i << 44),
        ("bytes reversed", &|i| i.swap_bytes()),
        ("bits reversed", &|i| i.reverse_bits()),
        ("floating-point", &|i| (i as f64).to_bits()),
        ("decimal strides", &|i| i * 1_000_000_007),
    ];
    for layout in [(Encoding::Plain, 0.012), (Encoding::SemiSorted, 0.003), (Encoding::SemiSorted, 0.001)] {
        for (pattern, key) in patterns {
            let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(KEYS as usize).hasher(new());
            let filter = builder.encoding(layout.0).false_positive_rate(layout.1).build().unwrap();
            let goal = (filter.plan().slots as f64 * 0.95).ceil() as u64;
            for i in 0..goal {
                assert!(filter.insert(&key(i)).is_ok(), "{name}, {pattern}: refused at {filter:?}");
            }
            let lookups = goal..goal + 900_000;
            let found = lookups.clone().filter(|&i| filter.contains(&key(i))).count() as f64;
            let rate = found / (lookups.end - lookups.start) as f64;
            let nominal = filter.stats().false_positive_rate;
            assert!(rate <= 1.25 * nominal, "{name}, {pattern}: {rate} for {nominal}, {filter:?}");
            assert!(rate >= nominal / 1.25, "{name}, {pattern}: {rate} for {nominal}, {filter:?}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn the_identity_as_hasher_reaches_load_and_rate() {
    check_weak_hasher("identity", BuildHasherDefault::<Identity>::default);
}

#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn fxhash_reaches_load_and_rate() {
    check_weak_hasher("FxHash", rustc_hash::FxBuildHasher::default);
}
