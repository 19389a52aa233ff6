//! How long single operations take, by two clocks: the processor time of the thread, and the time of day.

use std::sync::OnceLock;
use std::time::Instant;

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

/// How long operations of one kind took.
#[derive(Clone, Default)]
pub(crate) struct Times {
    processor: Histogram,
    clock: Histogram,
}

impl Times {
    pub(crate) fn stop(&mut self, Stopwatch { processor, clock }: Stopwatch) {
        self.processor.add(processor_time() - processor);
        self.clock.add(clock.elapsed().as_nanos() as u64);
    }

    /// Times `work` and returns what it returns.
    pub(crate) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let watch = Stopwatch::start();
        let result = work();
        self.stop(watch);
        result
    }

    pub(crate) fn count(&self) -> u64 {
        self.clock.count
    }

    pub(crate) fn extend(&mut self, others: &Self) {
        self.processor.extend(&others.processor);
        self.clock.extend(&others.clock);
    }

    /// The headings of the columns of [`row`](Self::row).
    pub(crate) const HEAD: [&str; 8] =
        ["operations", "average", "99.9 %", "99.99 %", "longest", "clock: 99.9 %", "99.99 %", "longest"];

    /// In microseconds, processor time first.
    pub(crate) fn row(&self) -> Vec<String> {
        let Self { processor, clock } = self;
        let average = processor.sum as f64 / processor.count.max(1) as f64;
        let of = |histogram: &Histogram| [histogram.quantile(0.999), histogram.quantile(0.9999), histogram.longest];
        let times = of(processor).into_iter().chain(of(clock)).map(|time| time as f64);
        let show = |time: f64| {
            let time = time / 1e3;
            if time < 100.0 { format!("{time:.1}") } else { format!("{time:.0}") }
        };
        let count = processor.count.to_string();
        [count, show(average)].into_iter().chain(times.map(show)).collect()
    }
}

/// The number of parts into which each power of two is divided. So a time has an error of some percent.
const PARTS: u64 = 32;

/// How often each time occurred, in nanoseconds.
#[derive(Clone)]
struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    longest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; (64 * PARTS) as usize], count: 0, sum: 0, longest: 0 }
    }
}

impl Histogram {
    fn add(&mut self, time: u64) {
        // The times from 32 to 63 are in parts 32 to 63; those from 64 to 127, two in each, in the next 32; and so
        // on.
        let power = u64::from((time | PARTS).ilog2() - PARTS.ilog2());
        self.counts[(power * PARTS + (time >> power)) as usize] += 1;
        self.count += 1;
        self.sum += time;
        self.longest = self.longest.max(time);
    }

    /// The longest time of a part.
    fn end_of(part: u64) -> u64 {
        let power = (part / PARTS).saturating_sub(1);
        ((part - power * PARTS + 1) << power) - 1
    }

    /// The time within which this share of the operations ended.
    fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        let part = self.counts.iter().position(|&count| {
            seen += count;
            seen >= wanted
        });
        part.map_or(0, |part| Self::end_of(part as u64).min(self.longest))
    }

    fn extend(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }
}
