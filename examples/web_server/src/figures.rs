//! The figures of a filter for Prometheus, or whatever recorder the `metrics` facade has.

use std::sync::{Mutex, PoisonError};

use concurrent_cuckoo_filter::{FigureValue, Stats};
use metrics::{counter, describe_counter, describe_gauge, gauge};

/// The figures of one filter, or of all that take its place one after the other. Their counters only go up.
#[derive(Debug)]
pub struct Figures {
    filter: String,
    /// What was recorded last.
    last: Mutex<Stats>,
}

impl Figures {
    /// Nothing was recorded yet. `filter` is the value of the label `filter`.
    pub fn new(filter: impl Into<String>) -> Self {
        Self { filter: filter.into(), last: Mutex::default() }
    }

    /// Records the statistics of the filter that there is now, always with the same recorder.
    pub fn record(&self, stats: impl FnOnce() -> Stats) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stats = stats(); // under the lock, so that no thread records older ones later
        for figure in stats.since(&last).figures() {
            let label = ("filter", self.filter.clone());
            match figure.value {
                FigureValue::Counter(count) => {
                    describe_counter!(figure.name, figure.help);
                    counter!(figure.name, &[label]).increment(count);
                }
                FigureValue::Gauge(value) => {
                    describe_gauge!(figure.name, figure.help);
                    gauge!(figure.name, &[label]).set(value);
                }
            }
        }
        *last = stats;
    }
}
