//! What is built, and the messages.

use std::error::Error;
use std::hash::RandomState;
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, FigureValue, FilterKind, RecentBuilder, RecentCuckooFilter, Stats, Window};

use crate::{builder, last};

#[test]
fn every_way_to_construct_a_filter_leads_to_one() {
    type Seen = RecentCuckooFilter<str, RandomState>;
    let filters: [Seen; 3] = [
        Seen::builder_with_hasher(RandomState::new()).last(100).build().unwrap(),
        RecentCuckooFilter::<str>::builder().last(100).hasher(RandomState::new()).build().unwrap(),
        Seen::builder_with_hasher(RandomState::new()).within(Duration::from_secs(60), 100).last(100).build().unwrap(),
    ];
    for filter in filters {
        assert!(filter.insert("a") && !filter.insert("a"));
        assert_eq!(filter.window().to_string(), "the last 104 to 111 keys");
    }
    let default: RecentBuilder<u64, std::hash::BuildHasherDefault<std::hash::DefaultHasher>> = Default::default();
    assert!(default.last(1).build().unwrap().insert(&1));
    let twice = builder().last(10);
    let (one, other) = (twice.clone().build().unwrap(), twice.last(1000).build().unwrap());
    assert!(one.hash_one(&7) == other.hash_one(&7) && one.capacity() < other.capacity());
}

#[test]
fn the_plan_is_what_is_built_and_names_the_window() {
    for (builder, shown) in [
        (builder().last(1_000_000), ", the last 1000012 to 1076935 keys"),
        (builder().within(Duration::from_secs(65), 1000), ", the keys of the last 65s to 70s"),
    ] {
        let (plan, filter) = (builder.plan().unwrap(), builder.build().unwrap());
        assert_eq!((plan, plan.filter, plan.window), (filter.plan(), FilterKind::Recent, Some(filter.window())));
        assert_eq!((plan.memory_usage, plan.lifetime_in_ticks), (filter.stats().memory_usage, None));
        assert!(plan.to_string().ends_with(shown) && plan.to_string().starts_with("RecentCuckooFilter for "), "{plan}");
        assert!(format!("{filter:?}").starts_with("RecentCuckooFilter { len: 0, window: "), "{filter:?}");
    }
    assert!(format!("{:?}", builder().last(3)).contains("Last(3)"));
}

/// Room for what the filter may hold, and for a group that is being removed.
#[test]
fn there_is_room_for_all_that_the_filter_may_hold() {
    for keys in [0, 1, 14, 100, 1000, 100_000] {
        let filter = last(keys);
        let Window::Keys { at_least, at_most, .. } = filter.window() else { unreachable!() };
        assert!(filter.capacity() as u64 > at_most && at_most >= at_least, "{filter:?}");
        assert!((filter.capacity() as f64) < 1.3 * keys as f64 + 100.0, "{filter:?}");
        assert!(filter.plan().false_positive_rate_with(filter.plan().slots) <= 2e-8, "with every slot taken");
    }
}

#[test]
fn a_smaller_tolerance_costs_bits() {
    let mut bits = 0;
    for (tolerance, least) in [(0.5, 4), (0.08, 4), (0.03, 6), (0.004, 8)] {
        let builder = builder().false_positive_rate(0.02).last(1_000_000).tolerance(tolerance);
        let plan = builder.plan().unwrap();
        let Some(Window::Keys { at_least, at_most, .. }) = plan.window else { unreachable!() };
        assert!((at_most - at_least) as f64 <= tolerance * at_least as f64, "{plan}");
        assert!(plan.layout.payload_bits == least && plan.layout.payload_bits >= bits, "{plan}");
        bits = plan.layout.payload_bits;
        let filter = builder.clone().last(5000).build().unwrap();
        let new: u64 = (0..20_000).map(|key| u64::from(filter.insert_or_renew(&key))).sum();
        assert!(new > 19_000 && (15_500..20_000).all(|key| filter.contains(&key)), "{new}");
    }
}

#[test]
fn settings_that_cannot_be_met_are_errors_that_say_what_to_do() {
    let second = Duration::from_secs(1);
    type IsIt = fn(&BuildError) -> bool;
    let cases: [(RecentBuilder<u64, _>, IsIt, &str); 9] = [
        (builder(), |error| *error == BuildError::WindowMissing, ".last(keys) or .within("),
        (builder().within(Duration::ZERO, 10), |error| *error == BuildError::ZeroDuration, "more than 0"),
        (
            builder().last(10).tolerance(0.003),
            |error| matches!(error, BuildError::InvalidTolerance { .. }),
            "at least 0.004 ",
        ),
        (
            builder().within(second, 10).tolerance(f64::NAN),
            |error| matches!(error, BuildError::InvalidTolerance { .. }),
            "0.004 ",
        ),
        (
            builder().last(10).tolerance(1.0),
            |error| matches!(error, BuildError::InvalidTolerance { .. }),
            "less than 1",
        ),
        (
            builder().last(10).false_positive_rate(1.0),
            |error| matches!(error, BuildError::InvalidRate { .. }),
            "less than 1",
        ),
        (
            builder().last(10).false_positive_rate(1e-12),
            |error| matches!(error, BuildError::RateTooLow { .. }),
            "RecentCuckooFilter with 4-bit",
        ),
        (
            builder().last(10).tolerance(0.01).false_positive_rate(1e-8),
            |error| matches!(error, BuildError::RateTooLow { .. }),
            "a larger tolerance",
        ),
        (
            builder().last(usize::MAX),
            |error| matches!(error, BuildError::CapacityTooLarge { capacity: usize::MAX, largest, .. } if *largest > 1_000_000),
            "RecentCuckooFilter for 18446744073709551615 keys",
        ),
    ];
    for (builder, is_it, says) in cases {
        let error = builder.plan().unwrap_err();
        assert!(is_it(&error), "{error:?}");
        assert!(cfg!(target_pointer_width = "32") || error.to_string().contains(says), "{error}");
        assert!(error.source().is_none());
        assert_eq!(builder.build().unwrap_err().to_string(), error.to_string());
    }
    // What the error names as the limit can be built.
    let Err(BuildError::CapacityTooLarge { largest, .. }) = builder().last(usize::MAX).plan() else { unreachable!() };
    assert!(builder().last(largest - largest / 1000).plan().is_ok());
}

#[test]
fn its_statistics_are_listed_for_metrics() {
    let filter = last(100);
    (0..1000).for_each(|key| _ = filter.insert(&key));
    let stats = filter.stats();
    assert!(stats.expiry.is_none());
    let value = |name: &str| {
        let mut named = stats.figures().filter(|figure| figure.name == name);
        let value = named.next().unwrap_or_else(|| panic!("{name} is missing")).value;
        assert!(named.next().is_none());
        value
    };
    let recent = stats.recent.as_ref().unwrap();
    assert_eq!(value("cuckoo_filter_expired_total"), FigureValue::Counter(recent.expired));
    assert_eq!(value("cuckoo_filter_evicted_total"), FigureValue::Counter(0));
    assert_eq!(value("cuckoo_filter_evicted_early_by_ratio"), FigureValue::Gauge(0.0));
    assert!(recent.expired > 800);
    (1000..2000).for_each(|key| _ = filter.insert(&key));
    let since = filter.stats().since(&stats);
    assert!((900..=1100).contains(&since.recent.unwrap().expired));
    assert!(Stats::default().recent.is_none());
}
