//! How long single operations take, by two clocks: the processor time of the thread, and the time of day.

use std::time::Instant;

use hdrhistogram::Histogram;

use crate::support::clock::processor_time;

/// When an operation began.
pub(crate) struct Stopwatch {
    processor: u64,
    clock: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let clock = Instant::now();
        Self { processor: processor_time(), clock }
    }
}

/// How long operations of one kind took, in nanoseconds.
#[derive(Clone)]
pub(crate) struct Times {
    processor: Histogram<u64>,
    clock: Histogram<u64>,
}

impl Default for Times {
    fn default() -> Self {
        let none = Histogram::new(3).expect("three digits");
        Self { processor: none.clone(), clock: none }
    }
}

impl Times {
    pub(crate) fn stop(&mut self, watch: Stopwatch) {
        let (processor, clock) = (processor_time() - watch.processor, watch.clock.elapsed().as_nanos() as u64);
        self.processor += processor;
        self.clock += clock;
    }

    /// Times `work` and returns what it returns.
    pub(crate) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let watch = Stopwatch::start();
        let result = work();
        self.stop(watch);
        result
    }

    pub(crate) fn count(&self) -> u64 {
        self.clock.len()
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.processor += &others.processor;
        self.clock += &others.clock;
    }

    /// The headings of the columns of [`row`](Self::row).
    pub(crate) const HEAD: [&str; 8] =
        ["operations", "average", "99.9%", "99.99%", "longest", "clock: 99.9%", "99.99%", "longest"];

    /// In microseconds, processor time first.
    pub(crate) fn row(&self) -> Vec<String> {
        let longest = |times: &Histogram<u64>| {
            [times.value_at_quantile(0.999), times.value_at_quantile(0.9999), times.max()].map(|time| time as f64)
        };
        let show = |time: f64| {
            let time = time / 1e3;
            if time < 100.0 { format!("{time:.1}") } else { format!("{time:.0}") }
        };
        let times = [self.processor.mean()].into_iter().chain(longest(&self.processor)).chain(longest(&self.clock));
        [self.count().to_string()].into_iter().chain(times.map(show)).collect()
    }
}
