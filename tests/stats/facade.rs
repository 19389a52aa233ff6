//! The statistics as the recorder of the `metrics` facade gets them.

use std::collections::BTreeMap;

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use super::clocks::amid_a_sweep;
use super::*;

/// Everything that was published for this filter, by name: the value, and whether it is a counter. Checks that each has
/// a description.
fn published(snapshots: &Snapshotter, filter: &str) -> BTreeMap<String, (f64, bool)> {
    let snapshot = snapshots.snapshot().into_vec().into_iter();
    let of_filter = snapshot.filter_map(|(key, _, description, value)| {
        let key = key.key();
        let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
        assert_eq!((labels.len(), labels[0].0), (1, "filter"));
        assert!(description.is_some_and(|text| text.ends_with('.')), "{} is not described", key.name());
        let value = match value {
            DebugValue::Counter(value) => (value as f64, true),
            DebugValue::Gauge(value) => (value.into_inner(), false),
            DebugValue::Histogram(_) => panic!("{} must not be a histogram", key.name()),
        };
        (labels[0].1 == filter).then(|| (key.name().to_owned(), value))
    });
    of_filter.collect()
}

/// What must be published for these statistics.
fn expected(stats: &Stats) -> BTreeMap<String, (f64, bool)> {
    let gauges = [
        ("tables", stats.tables as f64),
        ("len", stats.len as f64),
        ("capacity", stats.capacity as f64),
        ("slots", stats.slots as f64),
        ("load_factor", stats.load_factor),
        ("memory_bytes", stats.memory_usage as f64),
        ("false_positive_rate_expected", stats.false_positive_rate),
        ("false_positive_rate_max", stats.max_false_positive_rate),
        ("longest_path", stats.longest_path as f64),
        ("forgotten_early_by_ticks", stats.forgotten_early_by as f64),
    ];
    let counters = [
        ("relocations", stats.relocations),
        ("inserts_refused", stats.inserts_refused),
        ("lookup_retries", stats.lookup_retries),
        ("lock_waits", stats.lock_waits),
        ("clock_steps_back", stats.clock_steps_back),
        ("clock_jumps", stats.clock_jumps),
        ("expired", stats.expired),
        ("forgotten", stats.forgotten),
        ("sweeps", stats.sweeps),
        ("negatives_recorded", stats.negatives_recorded),
        ("false_positives_recorded", stats.false_positives_recorded),
    ];
    let observed = stats.observed_false_positive_rate().map(|rate| ("false_positive_rate_observed", rate));
    let gauges = gauges.into_iter().chain(observed).map(|(name, value)| (name.to_owned(), (value, false)));
    let counters = counters.map(|(name, value)| (format!("{name}_total"), (value as f64, true)));
    gauges.chain(counters).map(|(name, value)| (format!("cuckoo_filter_{name}"), value)).collect()
}

#[test]
fn all_figures_are_published_and_again_when_they_have_changed() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let (one, other) = (build(1000, Encoding::SemiSorted, 0.001), build(10, Encoding::Plain, 0.07));
    metrics::with_local_recorder(&recorder, || {
        let new = one.stats();
        new.publish("one");
        assert_eq!(published(&snapshots, "one"), expected(&new));

        hashes(0, one.slots() + 10).for_each(|key| _ = one.insert(&key));
        one.record_negatives(1000);
        one.record_false_positives(3);
        let full = one.stats();
        for _ in 0..2 {
            full.publish("one");
            other.stats().publish("other");
            assert_eq!(published(&snapshots, "one"), expected(&full), "absolute, however often it is published");
        }
        full.publish("one");
        other.stats().publish("other");
        assert_eq!(published(&snapshots, "other"), expected(&other.stats()));
        assert!(full.relocations > 0 && full.inserts_refused > 0);
    });
}

#[test]
fn those_of_a_clock_are_published_too() {
    let recorder = DebuggingRecorder::new();
    let snapshots = recorder.snapshotter();
    let filter = amid_a_sweep();
    metrics::with_local_recorder(&recorder, || {
        let stats = filter.stats();
        stats.publish("expiring");
        assert_eq!(published(&snapshots, "expiring"), expected(&stats));
        assert!(stats.expired > 0 && stats.sweeps > 0, "{stats:?}");
    });
}
