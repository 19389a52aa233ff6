//! What is built, and the messages.

use std::error::Error;
use std::hash::RandomState;
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, FigureValue, FilterKind, RecentBuilder, RecentCuckooFilter, Stats, Window};

use crate::{RATE, builder, last};

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
        assert_eq!(filter.window().to_string(), "the last 100 to 103 keys");
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
        (builder().last(1), ", the last key"),
        (builder().last(13), ", the last 13 keys"),
        (builder().within(Duration::from_secs(65), 1000), ", the keys of the last 65s to 70s"),
        (builder().within(Duration::from_secs(120), 1000), ", the keys of the last 120s to 129.2s"),
    ] {
        let (plan, filter) = (builder.plan().unwrap(), builder.build().unwrap());
        assert_eq!((plan, plan.filter, plan.window), (filter.plan(), FilterKind::Recent, Some(filter.window())));
        assert_eq!((plan.memory_usage, plan.lifetime_in_ticks), (filter.stats().memory_usage, None));
        assert!(plan.to_string().ends_with(shown) && plan.to_string().starts_with("RecentCuckooFilter for "), "{plan}");
        assert!(format!("{filter:?}").starts_with("RecentCuckooFilter { len: 0, window: "), "{filter:?}");
    }
    assert!(format!("{:?}", builder().last(3)).contains("Last(3)"));
}

/// Room for what the filter may hold beside 16 threads, and for a group that is being removed.
#[test]
fn there_is_room_for_all_that_the_filter_may_hold() {
    for keys in [0, 1, 2, 6, 14, 100, 1000, 100_000] {
        let filter = last(keys);
        let Window::Keys { at_least, at_most, .. } = filter.window() else { unreachable!() };
        let of_group = at_most + 1 - at_least;
        // Those of the window, the one that fills, and the one that is being removed.
        let groups = at_least / of_group + 2;
        assert!(filter.capacity() as u64 >= groups * (of_group + 15) && at_most >= at_least, "{filter:?}");
        assert!((filter.capacity() as f64) < 1.2 * keys as f64 + 16.0 * groups as f64 + 100.0, "{filter:?}");
        assert!(filter.plan().false_positive_rate_with(filter.plan().slots) <= RATE, "with every slot taken");
    }
}

/// The window is as long as was asked for, and longer by the tolerance at most, however the number divides.
#[test]
fn no_window_is_longer_than_its_tolerance() {
    let most = if cfg!(miri) { 60 } else { 6000 };
    for (tolerance, at_most) in [(0.2, 0.2), (0.08, 0.08), (0.02, 0.02), (0.008, 0.008), (0.004, 0.008)] {
        let (builder, share) = (builder().false_positive_rate(0.02).tolerance(tolerance), at_most);
        for keys in (1..most).chain([16_593, 100_001, 1_000_000]) {
            let plan = builder.clone().last(keys).plan().unwrap();
            let Some(Window::Keys { at_least, at_most, .. }) = plan.window else { unreachable!() };
            let (at_least, most) = (at_least as usize, keys as f64 * (1.0 + share));
            assert!(at_least >= keys && at_most as f64 <= most, "the last {keys}, {tolerance}: {plan}");
        }
        for millis in (1..most as u64).chain([86_400_000]) {
            let duration = Duration::from_millis(millis) + Duration::from_nanos(millis % 7);
            let plan = builder.clone().within(duration, 100).plan().unwrap();
            let Some(Window::Time { at_least, at_most, .. }) = plan.window else { unreachable!() };
            let most = duration.mul_f64(1.0 + tolerance).max(duration + Duration::from_nanos(1_999_999));
            assert!(at_least >= duration && at_most <= most, "within {duration:?}, {tolerance}: {plan}");
        }
    }
}

/// What the documentation says about it.
#[test]
fn a_smaller_tolerance_takes_less_memory_where_slots_have_the_bits() {
    let bits_per_key = |rate: f64, tolerance: f64| {
        let plan = builder().last(1_000_000).false_positive_rate(rate).tolerance(tolerance).plan().unwrap();
        (plan.memory_usage as f64 * 80.0 / 1e6).round() / 10.0
    };
    assert_eq!([0.08, 0.04, 0.02].map(|tolerance| bits_per_key(1e-6, tolerance)), [44.9, 41.6, 40.2]);
    assert_eq!([0.08, 0.04, 0.02].map(|tolerance| bits_per_key(0.001, tolerance)), [19.5, 25.0, 24.2]);
    let large = builder().last(1_000_000).plan().unwrap();
    assert!((1.15..1.16).contains(&(large.capacity as f64 / 1e6)), "{large}");
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
            builder().last(1000).tolerance(0.01).false_positive_rate(1e-8),
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
