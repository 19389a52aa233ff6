//! How long single operations take, by two clocks: the processor time of the thread, and the time of day.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

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

/// How long this thread has been on a processor, in nanoseconds; 0 if the system does not say.
pub(crate) fn processor_time() -> u64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
    #[cfg(not(unix))]
    0
}

/// The processor time of this thread, or the time of day if the system does not say: in nanoseconds, from any
/// start. By this clock, the work of one thread takes as long on a busy machine as on an idle one, except for the
/// caches and the memory that it shares.
pub(crate) fn own_time() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    match processor_time() {
        0 => START.get_or_init(Instant::now).elapsed().as_nanos() as u64,
        time => time,
    }
}

/// Lets so many subjects take turns for this long, but at least one each. Each round begins with another subject, so that
/// none always comes after the same other one. Returns for each what `turn` has returned for it and each round.
pub(crate) fn by_turns(subjects: usize, length: Duration, mut turn: impl FnMut(usize, u64) -> f64) -> Vec<Vec<f64>> {
    let (mut times, start) = (vec![Vec::new(); subjects], Instant::now());
    for round in 0.. {
        if round > 0 && start.elapsed() >= length {
            break;
        }
        for nth in 0..subjects {
            let subject = (nth + round as usize) % subjects;
            times[subject].push(turn(subject, round));
        }
    }
    times
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
        ["operations", "average", "99.9 %", "99.99 %", "longest", "clock: 99.9 %", "99.99 %", "longest"];

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
