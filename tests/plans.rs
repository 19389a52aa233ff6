//! What builders say that they would build, beside what they build.

mod support;

use std::fmt::Debug;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringCuckooFilter, FilterKind, FilterPlan,
    GrowableCuckooFilter, WhenFull,
};
use support::{LAYOUTS, MAPLET_LAYOUTS};

/// Asserts that the builder's plan is the filter's, and that the filter's other figures are those of its plan.
macro_rules! assert_planned {
    ($plan:expr, $filter:expr) => {{
        let (plan, filter): (&FilterPlan, _) = (&$plan, &$filter);
        let stats = filter.stats();
        assert_eq!(filter.plan(), *plan);
        assert_eq!(
            (plan.capacity, plan.slots, plan.memory_usage),
            (filter.capacity(), stats.slots, stats.memory_usage)
        );
        assert_eq!(plan.max_false_positive_rate, stats.max_false_positive_rate);
    }};
}

/// From one bucket to tables with all stripes.
const CAPACITIES: [usize; 5] = [0, 3, 1000, 12_345, 300_000];

#[test]
fn a_plan_has_the_figures_of_the_filter() {
    for capacity in CAPACITIES {
        for (encoding, rate, slots, bits) in LAYOUTS {
            let builder = ConcurrentCuckooFilter::<str>::builder().capacity(capacity).false_positive_rate(rate);
            let builder = builder.encoding(encoding);
            let plan = builder.plan().unwrap();
            let layout = plan.layout;
            assert_eq!((layout.slots_per_bucket, layout.fingerprint_bits, layout.encoding), (slots, bits, encoding));
            assert_eq!(plan.bits_per_slot(), 64.0 / slots as f64);
            assert!(plan.capacity >= capacity && plan.max_false_positive_rate <= rate, "{plan}");
            assert_planned!(plan, builder.build().unwrap());

            let builder = GrowableCuckooFilter::<str>::builder().capacity(capacity).false_positive_rate(rate.max(1e-6));
            let builder = builder.encoding(encoding);
            let plan = builder.plan().unwrap();
            let filter = builder.build().unwrap();
            assert_planned!(plan, filter);
            assert_eq!(plan.max_capacity, Some(filter.max_capacity()));
            assert!(plan.capacity >= capacity && plan.max_false_positive_rate <= rate.max(1e-6), "{plan}");
        }
        for (payload_bits, rate, slots, bits) in MAPLET_LAYOUTS {
            let builder = CuckooMaplet::<str>::builder().capacity(capacity).false_positive_rate(rate);
            let builder = builder.value_bits(payload_bits);
            let plan = builder.plan().unwrap();
            let layout = plan.layout;
            assert_eq!(
                (layout.slots_per_bucket, layout.fingerprint_bits, layout.payload_bits),
                (slots, bits, payload_bits)
            );
            assert_planned!(plan, builder.build().unwrap());
            assert!(plan.capacity >= capacity && plan.max_false_positive_rate <= rate, "{plan}");

            let builder = ExpiringCuckooFilter::<str>::builder().capacity(capacity).false_positive_rate(rate);
            let builder = builder.lifetime_in_ticks((1 << payload_bits) - 1).when_full(WhenFull::EvictSoonest);
            let plan = builder.plan().unwrap();
            let filter = builder.build().unwrap();
            assert_planned!(plan, filter);
            assert_eq!((plan.lifetime_in_ticks, plan.resolution), (Some((1 << payload_bits) - 1), None));
            assert_eq!(plan.when_full, Some(WhenFull::EvictSoonest));
        }
    }
}

/// The plan of a growable filter describes its present size, and a snapshot of it says the same.
#[test]
fn a_plan_grows_with_the_filter() {
    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    let first = filter.plan();
    for key in 0..5000 {
        filter.insert(&key).unwrap();
        let (plan, stats) = (filter.plan(), filter.stats());
        assert_planned!(plan, filter);
        assert!(plan.slots >= stats.len && plan.capacity <= plan.slots);
    }
    let plan = filter.plan();
    assert!(plan.slots > 20 * first.slots && plan.layout.buckets > 20 * first.layout.buckets, "{plan:?}");
    assert_eq!((plan.max_capacity, plan.max_memory_usage), (first.max_capacity, first.max_memory_usage));
    #[cfg(feature = "snapshot")]
    {
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        let saved = concurrent_cuckoo_filter::SnapshotInfo::read(&bytes[..]).unwrap().plan;
        assert_eq!((saved.layout, saved.slots, saved.capacity), (plan.layout, plan.slots, plan.capacity));
    }
}

/// A rate or a capacity that was mistyped can be seen in a log.
#[test]
fn a_plan_displays_the_type_capacity_memory_rate_layout_and_clock() {
    fn assert_shows(plan: &FilterPlan, parts: &[&str]) {
        let shown = plan.to_string();
        assert!(
            shown.starts_with(&format!("{} for {} keys in {} bytes", plan.filter, plan.capacity, plan.memory_usage))
        );
        assert!(shown.contains(&plan.layout.to_string()), "{shown}");
        for part in parts {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
    let fixed =
        |rate| ConcurrentCuckooFilter::<str>::builder().capacity(1000).false_positive_rate(rate).plan().unwrap();
    assert_shows(&fixed(0.1), &["false-positive rate 0.057 (", "plain"]);
    assert_shows(&fixed(0.001), &["false-positive rate 0.00056 (", "semi-sorted"]);
    assert_shows(&fixed(1e-8), &["false-positive rate 3.9e-10 ("]);

    // At first it is near 0. That of the largest size is named too.
    let growable = GrowableCuckooFilter::<str>::builder();
    for (rate, usual, last) in [(0.1, "1e-6", "0.05"), (0.001, "1.5e-8", "0.0009")] {
        let plan = growable.clone().false_positive_rate(rate).plan().unwrap();
        let (capacity, most, bytes) = (plan.capacity, plan.max_capacity.unwrap(), plan.max_memory_usage.unwrap());
        let rates = format!("with a false-positive rate of {usual} with {capacity} keys, and {last}");
        assert_shows(&plan, &[&rates, &format!("and up to {most} keys in {bytes} bytes")]);
        assert_eq!(plan.expected_keys, None);
    }
    // Who expects a number of keys finds their rate first, and it is the one that was asked for.
    let plan = growable.clone().expected_keys(1_000_000).plan().unwrap();
    let most = plan.max_capacity.unwrap();
    let rates = "with a false-positive rate of 0.00094 with the 1000000 keys expected, and 0.059 with";
    assert_shows(&plan, &[&format!("{rates} {most} (from ")]);
    let filter = growable.clone().expected_keys(1_000_000).build().unwrap();
    assert_eq!((plan.expected_keys, filter.plan().expected_keys), (Some(1_000_000), Some(1_000_000)));
    assert_eq!(filter.plan().to_string(), plan.to_string());
    // A limit for the memory is the end of the growth.
    let plan = growable.capacity(0).memory_limit(5000).plan().unwrap();
    let (most, bytes) = (plan.max_capacity.unwrap(), plan.max_memory_usage.unwrap());
    assert!(bytes <= 5000 && most < 500, "{plan}");
    assert_shows(&plan, &[&format!("and up to {most} keys in {bytes} bytes"), &format!(" with {most} (from ")]);

    let maplet = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).plan().unwrap();
    assert_shows(&maplet, &["false-positive rate 0.000", " + 4 bits"]);

    let minute = Duration::from_secs(60);
    let expiring = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime(14 * minute).resolution(minute);
    let expiring = expiring.when_full(WhenFull::EvictSoonest).plan().unwrap();
    assert_shows(
        &expiring,
        &["false-positive rate 0.000", ", lifetime 14 min (15 ticks of 1 min), WhenFull::EvictSoonest"],
    );
}

/// What a user sees of it are the public fields.
#[test]
fn a_plan_shows_its_public_fields() {
    let shown = format!("{:?}", GrowableCuckooFilter::<str>::builder().plan().unwrap());
    for field in ["filter: Growable", "layout: TableLayout", "slots: ", "max_memory_usage: Some", "when_full: None"] {
        assert!(shown.contains(field), "{field}: {shown}");
    }
    assert!(!shown.contains("classes") && !shown.contains("largest"), "{shown}");
}

#[test]
fn the_largest_size_of_a_growable_filter_takes_what_its_plan_says() {
    let builder = GrowableCuckooFilter::<u64>::builder().capacity(100).max_capacity(50_000);
    let (plan, filter) = (builder.plan().unwrap(), builder.build().unwrap());
    filter.reserve(filter.max_capacity()).unwrap();
    assert_eq!(plan.max_memory_usage, Some(filter.stats().memory_usage));
    assert!(plan.memory_usage < filter.stats().memory_usage);
}

/// A limit at which the largest size can be reached is accepted, and it is reached.
#[test]
fn a_memory_limit_is_refused_exactly_if_the_largest_size_cannot_be_reached() {
    let builder = |limit| GrowableCuckooFilter::<u64>::builder().capacity(100).max_capacity(50_000).memory_limit(limit);
    let error = builder(90_000).build().expect_err("a small limit");
    let BuildError::MemoryLimitBelowMaxCapacity { max_capacity: 50_000, needed, limit: 90_000, .. } = error else {
        panic!("{error}")
    };
    for name in ["50000", "90000", &needed.to_string(), "max_capacity", "memory_limit"] {
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
    assert!(builder(needed - 1).build().is_err() && builder(needed - 1).plan().is_err());
    let filter = builder(needed).build().expect("just enough");
    (0..50_000).try_for_each(|key| filter.insert(&key)).expect("it grows to its largest size");
    filter.reserve(filter.max_capacity() - filter.len()).expect("and to all of it");
}

#[test]
fn a_plan_counts_the_hasher() {
    let plan = ConcurrentCuckooFilter::<str, _>::builder_with_hasher([0; 100]).capacity(1000).plan().unwrap();
    let other = ConcurrentCuckooFilter::<str, _>::builder_with_hasher([0; 200]).capacity(1000).plan().unwrap();
    assert_eq!(other.memory_usage - plan.memory_usage, 400);
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_plan_for_more_than_the_machine_has_allocates_nothing() {
    let plan = ConcurrentCuckooFilter::<str>::builder().capacity(20_000_000_000).plan().unwrap();
    assert!(plan.memory_usage > 30 << 30, "{plan}");
    let plan = GrowableCuckooFilter::<str>::builder().capacity(8_000_000_000).plan().unwrap();
    assert!(plan.memory_usage > 12 << 30, "{plan}");
}

#[test]
fn invalid_settings_have_the_error_that_building_has() {
    fn same<F: Debug>(plan: Result<FilterPlan, BuildError>, built: Result<F, BuildError>) -> BuildError {
        let error = built.unwrap_err();
        // Errors compare by `PartialEq`, except for a rate that is not a number.
        assert_eq!(format!("{:?}", plan.unwrap_err()), format!("{error:?}"));
        error
    }
    macro_rules! same {
        ($builder:expr, $pattern:pat $(if $guard:expr)? $(, names $($word:expr),+)?) => {{
            let builder = $builder;
            let error = same(builder.plan(), builder.build());
            assert!(matches!(error, $pattern $(if $guard)?), "{error:?}");
            $($(assert!(error.to_string().contains(&$word.to_string()), "{error}");)+)?
        }};
    }
    use FilterKind::{Concurrent, Expiring, Maplet};
    let one_table = || ConcurrentCuckooFilter::<u64>::builder();
    same!(one_table(), BuildError::CapacityMissing { filter: Concurrent, .. }, names ".capacity(keys)");
    same!(one_table().capacity(usize::MAX), BuildError::CapacityTooLarge { .. });
    for rate in [1.0, -1.0, f64::NAN, f64::INFINITY] {
        same!(one_table().capacity(10).false_positive_rate(rate), BuildError::InvalidRate { .. });
        same!(GrowableCuckooFilter::<u64>::builder().false_positive_rate(rate), BuildError::InvalidRate { .. });
        let expiring = ExpiringCuckooFilter::<u64>::builder().capacity(10).lifetime_in_ticks(3);
        same!(expiring.false_positive_rate(rate), BuildError::InvalidRate { .. });
    }
    same!(one_table().capacity(10).false_positive_rate(0.0), BuildError::RateTooLow { .. });
    same!(one_table().capacity(10).false_positive_rate(1e-12), BuildError::RateTooLow { .. });
    same!(
        one_table().capacity(10).false_positive_rate(1e-8).encoding(Encoding::SemiSorted),
        BuildError::RateTooLow { encoding: Some(Encoding::SemiSorted), .. }
    );
    #[cfg(feature = "snapshot")]
    same!(one_table().capacity(10).schema("x".repeat(256)), BuildError::SchemaTooLong { len: 256, .. });

    let growable = || GrowableCuckooFilter::<u64>::builder();
    same!(growable().false_positive_rate(1e-12), BuildError::RateTooLow { .. });
    same!(growable().max_capacity(usize::MAX), BuildError::CapacityTooLarge { .. });
    same!(growable().memory_limit(100), BuildError::MemoryLimit { limit: 100, .. });
    assert!(growable().plan().is_ok(), "the capacity may be left out");
    same!(
        growable().capacity(10_000).max_capacity(5000),
        BuildError::MaxCapacityBelowCapacity { capacity: 10_000, max_capacity: 5000, .. }
    );
    let text = growable().capacity(10_000).max_capacity(5000).build().unwrap_err().to_string();
    assert!(text.contains("max_capacity of 5000") && text.contains("capacity of 10000"), "{text}");
    let small = growable().max_capacity(50).plan().expect("a capacity that was left out is no more than the largest");
    assert!((50..1000).contains(&small.capacity), "{small}");
    same!(
        growable().max_capacity(1_000_000).memory_limit(1 << 20),
        BuildError::MemoryLimitBelowMaxCapacity { max_capacity: 1_000_000, limit: 0x10_0000, .. }
    );

    let maplet = || CuckooMaplet::<u64>::builder().capacity(10);
    same!(maplet(), BuildError::ValueBitsMissing);
    let without = CuckooMaplet::<u64>::builder().value_bits(4);
    same!(without.clone(), BuildError::CapacityMissing { filter: Maplet, .. }, names ".capacity(keys)");
    same!(without.capacity(usize::MAX), BuildError::CapacityTooLarge { filter: Maplet, .. });
    for bits in [0, 17, u32::MAX] {
        same!(
            maplet().value_bits(bits),
            BuildError::InvalidValueBits { value_bits, .. } if value_bits == bits,
            names bits
        );
    }
    same!(
        maplet().value_bits(16).false_positive_rate(1e-6),
        BuildError::RateTooLow { value_bits: 16, .. },
        names "CuckooMaplet with 16-bit values"
    );

    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let expiring = || ExpiringCuckooFilter::<u64>::builder().capacity(10);
    let without = ExpiringCuckooFilter::<u64>::builder().lifetime_in_ticks(3);
    same!(without, BuildError::CapacityMissing { filter: Expiring, .. });
    same!(expiring(), BuildError::LifetimeMissing);
    for (longest, resolution, named) in [
        (Duration::ZERO, minute, "a longest lifetime of 0 was asked for"),
        (minute, Duration::ZERO, "a resolution of 0 was asked for"),
    ] {
        let invalid = expiring().lifetime(longest).resolution(resolution);
        same!(invalid, BuildError::InvalidLifetime { .. }, names named);
    }
    same!(
        expiring().lifetime(minute).resolution(hour),
        BuildError::InvalidLifetime { longest, resolution, .. } if (longest, resolution) == (minute, hour),
        names "lifetime of 1 min is shorter than the resolution of 1 h"
    );
    same!(
        expiring().lifetime(65_535 * minute).resolution(minute),
        BuildError::InvalidTicks { ticks: 65_536, limit: 65_535, .. },
        names "coarser resolution"
    );
    same!(
        expiring().lifetime(Duration::MAX).resolution(Duration::from_nanos(1)),
        BuildError::InvalidTicks { ticks: u64::MAX, .. }
    );
    same!(expiring().lifetime_in_ticks(0), BuildError::InvalidTicks { ticks: 0, .. }, names "1 to 65535");
    same!(expiring().lifetime_in_ticks(1 << 16), BuildError::InvalidTicks { ticks: 65_536, .. });
    same!(
        expiring().lifetime_in_ticks(65_535).false_positive_rate(1e-5),
        BuildError::RateTooLow { filter: Expiring, value_bits: 16, .. },
        names "coarser resolution"
    );
}
