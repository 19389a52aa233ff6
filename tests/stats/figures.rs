//! The statistics as a list for metrics systems, and what has come since earlier ones.

use std::collections::HashMap;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, Encoding, ExpiryStats, Figure, FigureValue, GrowableCuckooFilter, LimiterStats,
    RecentStats, Stats,
};

use super::clocks::amid_a_sweep;
use super::one_bucket;
use crate::support::{Filter, build, hashes};

/// Statistics in which no two figures are equal, and none is 0.
fn all_different() -> Stats {
    let mut stats = Stats::default();
    (stats.len, stats.capacity, stats.slots, stats.memory_usage) = (2, 3, 4, 5);
    (stats.load_factor, stats.false_positive_rate, stats.max_false_positive_rate) = (0.1, 0.2, 0.3);
    (stats.relocations, stats.longest_path, stats.inserts_failed, stats.lookup_retries) = (10, 11, 12, 13);
    stats.removals_not_found = 17;
    (stats.lock_waits, stats.negatives_recorded, stats.false_positives_recorded) = (14, 15, 16);
    let mut expiry = ExpiryStats::default();
    (expiry.clock_steps_back, expiry.clock_jumps, expiry.expired, expiry.evicted) = (20, 21, 22, 23);
    (expiry.evicted_early_by, expiry.sweeps) = (24, 25);
    stats.expiry = Some(expiry);
    stats
}

/// The same for a filter of recent keys.
fn of_recent() -> Stats {
    let mut recent = RecentStats::default();
    (recent.expired, recent.evicted, recent.evicted_early_by) = (22, 23, 0.4);
    let mut stats = all_different();
    (stats.expiry, stats.recent) = (None, Some(recent));
    stats
}

/// Those of a rate limiter.
fn of_limiter() -> Stats {
    let mut limiter = LimiterStats::default();
    (limiter.allowed, limiter.rejected, limiter.evicted, limiter.evicted_debt) = (25, 26, 27, 0.7);
    let mut stats = all_different();
    (stats.expiry, stats.limiter) = (None, Some(limiter));
    stats
}

/// The rows of the documentation's table: name, kind, unit, and the method or field that the figure is.
fn documented() -> Vec<[String; 4]> {
    let rows = include_str!("../../src/filter/figures.rs").lines().filter(|line| line.contains("| `cuckoo_filter_"));
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (kind, unit) = cells[2].split_once(", ").unwrap_or((cells[2], ""));
        [cells[1], kind, unit, cells[3].split('`').nth(1).unwrap()].map(str::to_owned)
    })
    .collect()
}

#[test]
fn every_figure_is_listed_as_the_documentation_says() {
    let stats = all_different();
    let expiry = stats.expiry.as_ref().unwrap();
    let (recent, limiter) = (of_recent(), of_limiter());
    let of_limiter = limiter.limiter.as_ref().unwrap();
    let fields = |name: &str, unit: &str| match name {
        "evicted_early_by" if unit == "ratio" => recent.recent.as_ref().unwrap().evicted_early_by,
        "len" => stats.len as f64,
        "capacity" => stats.capacity as f64,
        "slots" => stats.slots as f64,
        "load_factor" => stats.load_factor,
        "memory_usage" => stats.memory_usage as f64,
        "false_positive_rate" => stats.false_positive_rate,
        "max_false_positive_rate" => stats.max_false_positive_rate,
        "longest_path" => stats.longest_path as f64,
        "relocations" => stats.relocations as f64,
        "inserts_failed" => stats.inserts_failed as f64,
        "removals_not_found" => stats.removals_not_found as f64,
        "lookup_retries" => stats.lookup_retries as f64,
        "lock_waits" => stats.lock_waits as f64,
        "negatives_recorded" => stats.negatives_recorded as f64,
        "false_positives_recorded" => stats.false_positives_recorded as f64,
        "clock_steps_back" => expiry.clock_steps_back as f64,
        "clock_jumps" => expiry.clock_jumps as f64,
        "expired" => expiry.expired as f64,
        "evicted" => expiry.evicted as f64,
        "evicted_early_by" => expiry.evicted_early_by as f64,
        "sweeps" => expiry.sweeps as f64,
        "allowed" => of_limiter.allowed as f64,
        "rejected" => of_limiter.rejected as f64,
        "evicted_debt" => of_limiter.evicted_debt,
        _ => panic!("{name}"),
    };
    let all = limiter.figures().chain(recent.figures()).chain(stats.figures());
    let figures: HashMap<_, _> = all.map(|figure| (figure.name, figure)).collect();
    assert_eq!((figures.len(), stats.figures().count(), documented().len()), (25, 21, 25));
    assert_eq!((recent.figures().count(), limiter.figures().count()), (18, 19));
    for [name, kind, unit, field] in documented() {
        let Figure { help, unit: listed, value, .. } = figures[&*name];
        let (is, value) = match value {
            FigureValue::Counter(count) => ("counter", count as f64),
            FigureValue::Gauge(value) => ("gauge", value),
        };
        assert_eq!((is, listed, value), (&*kind, &*unit, fields(&field, &unit)), "{name}");
        assert_eq!(name.ends_with("_total"), is == "counter", "{name}");
        assert!(help.ends_with('.'), "{name}: {help}");
    }
}

/// What a type has no figure of is not listed.
#[test]
fn a_filter_lists_what_it_has() {
    let filter = build(1000, Encoding::SemiSorted, 0.001);
    assert_eq!(filter.stats().figures().count(), 15, "no clock");
    assert_eq!(GrowableCuckooFilter::<u64>::with_capacity(10).stats().figures().count(), 15);
    let figures: HashMap<_, _> = amid_a_sweep().stats().figures().map(|figure| (figure.name, figure.value)).collect();
    assert_eq!((figures.len(), figures["cuckoo_filter_sweeps_total"]), (21, FigureValue::Counter(1)));
}

/// Counts of events are differences, and everything else is as it is now.
#[test]
fn what_has_come_since_is_said_of_all_counters_and_of_nothing_else() {
    let (now, earlier) = (all_different(), all_different());
    for (since, now) in now.since(&earlier).figures().zip(now.figures()) {
        match now.value {
            FigureValue::Counter(_) => assert_eq!(since.value, FigureValue::Counter(0), "{}", now.name),
            FigureValue::Gauge(_) => assert_eq!(since, now),
        }
    }
    assert_eq!(now.since(&earlier).observed_false_positive_rate(), None);
    let mut before = all_different();
    before.inserts_failed = 2;
    before.expiry.as_mut().unwrap().expired = 100;
    let since = now.since(&before);
    assert_eq!((since.inserts_failed, since.longest_path), (10, 11), "{since:?}");
    assert_eq!(since.expiry.unwrap().expired, 0);
}

/// A filter that has refused this many inserts.
fn that_has_refused(count: u64) -> Filter {
    let filter = one_bucket();
    hashes(0, filter.plan().slots).for_each(|key| filter.insert(&key).unwrap());
    (0..count).for_each(|_| assert!(filter.insert(&hashes(100, 1).next().unwrap()).is_err()));
    filter
}

/// The new filter may have counted less than the old one by then, or as much, or more.
#[test]
fn counters_go_on_when_a_filter_takes_the_place_of_another() {
    let (mut last, mut total, mut expected) = (Stats::default(), 0, 0);
    let mut scraped = |filter: &Filter| {
        let stats = filter.stats();
        total += stats.since(&last).inserts_failed;
        last = stats;
        total
    };
    for refused in [5, 0, 5, 3, 1000, 1000, 2] {
        let filter = that_has_refused(refused);
        expected += refused;
        assert_eq!([scraped(&filter), scraped(&filter)], [expected; 2], "after one that has refused {refused}");
        filter.insert(&hashes(101, 1).next().unwrap()).unwrap_err();
        expected += 1;
        assert_eq!(scraped(&filter), expected);
    }
}

/// Whether memory of an earlier filter is used again or not.
#[test]
fn every_filter_is_another_one_and_stays_itself() {
    let mut earlier = Stats::default();
    for count in 1..100 {
        let filter = ConcurrentCuckooFilter::<u64>::with_capacity(100);
        filter.record_negatives(100 + count);
        assert_eq!(filter.stats().since(&earlier).negatives_recorded, 100 + count);
        earlier = filter.stats();
        let empty = filter.empty_like().unwrap();
        empty.record_negatives(1000);
        assert_eq!(empty.stats().since(&earlier).negatives_recorded, 1000);
    }
    // Also while it grows.
    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    let mut relocations = 0;
    let mut earlier = filter.stats();
    for key in 0..20_000 {
        filter.insert(&key).unwrap();
        let stats = filter.stats();
        relocations += stats.since(&earlier).relocations;
        assert_eq!(relocations, stats.relocations);
        earlier = stats;
    }
    assert!(relocations > 0 && filter.capacity() > 10_000);
}
