//! How long lookups and changes take while a filter grows and shrinks.
//!
//! `cargo bench --bench latency [-- --quick | --keys=N | --rate=R | --out=DIR]`
//!
//! A `GrowableCuckooFilter` grows from a thousand keys to `N` (50 million), and shrinks again, in place.
//! `scalable_cuckoo_filter` in a `parking_lot::RwLock` does the same: it grows by adding filters, and `shrink_to_fit`
//! makes each of these smaller, under the write lock, but never fewer. A third subject does nothing: its figures are
//! those of the clock and of the machine.
//!
//! One thread inserts all keys and then removes them, the last one first. Whenever the keys are an eighth of the
//! capacity, it calls `shrink_to_fit`. Another thread looks up present and absent keys in turn. Each thread has `R`
//! operations to make a second (500,000), at regular moments. The *latency* is the time from such a moment to the end of
//! the operation. So it includes the wait for the operations before, as it does for the requests to a server. The *own
//! time* is that from the operation's beginning to its end. After `shrink_to_fit` the writer's next moment is a new one:
//! that call's time is shown by itself.
//!
//! The table has percentiles of each phase, and charts have them over time. They go to `target/latency`, or to `DIR`, as
//! SVG and CSV. Two threads that wait for their moments need two cores for themselves.

mod support;

use std::error::Error;
use std::fs;
use std::hash::BuildHasher;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ahash::{AHasher, RandomState};
use concurrent_cuckoo_filter::GrowableCuckooFilter;
use hdrhistogram::Histogram;
use parking_lot::RwLock;
use plot::{Axis, Chart, Line, Marker, Scale, Series, Style};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use scalable_cuckoo_filter::{ScalableCuckooFilter, ScalableCuckooFilterBuilder};
use support::hash::HASH;
use support::keys::{ABSENT, key};
use support::options::Options;
use support::report::align;

/// The number of keys at first and at last.
const FEW: u64 = 1000;

/// The share of lookups of absent keys that may be answered `true`.
const RATE: f64 = 0.001;

/// A filter that grows, shared by the two threads.
trait Subject: Sync {
    const NAME: &'static str;
    fn new() -> Self;
    fn insert(&self, key: u64);
    fn contains(&self, key: u64) -> bool;
    fn remove(&self, key: u64);
    fn capacity(&self) -> usize;
    fn shrink_to_fit(&self);
    fn bytes(&self) -> usize;
}

type Growable = GrowableCuckooFilter<u64, RandomState>;

impl Subject for Growable {
    const NAME: &'static str = "growable";

    fn new() -> Self {
        let builder = GrowableCuckooFilter::builder().hasher(HASH).false_positive_rate(RATE);
        builder.capacity(FEW as usize).build().expect("a valid filter")
    }

    fn insert(&self, key: u64) {
        self.insert(&key).expect("it grows");
    }

    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    fn remove(&self, key: u64) {
        assert!(self.remove(&key), "the key is in");
    }

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn shrink_to_fit(&self) {
        self.shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.stats().memory_usage
    }
}

type Scalable = RwLock<ScalableCuckooFilter<u64, AHasher, SmallRng>>;

impl Subject for Scalable {
    const NAME: &'static str = "scalable, RwLock";

    fn new() -> Self {
        let builder =
            ScalableCuckooFilterBuilder::new().initial_capacity(FEW as usize).false_positive_probability(RATE);
        RwLock::new(builder.hasher(HASH.build_hasher()).rng(SmallRng::seed_from_u64(1)).finish())
    }

    fn insert(&self, key: u64) {
        self.write().insert(&key);
    }

    fn contains(&self, key: u64) -> bool {
        self.read().contains(&key)
    }

    fn remove(&self, key: u64) {
        // It takes an empty slot for a copy of a key whose fingerprint is 0, of 14 bits in its first filter. With debug
        // assertions it panics.
        if cfg!(debug_assertions) && HASH.hash_one(key) >> 50 == 0 {
            return;
        }
        self.write().remove(&key);
    }

    fn capacity(&self) -> usize {
        self.read().capacity()
    }

    fn shrink_to_fit(&self) {
        self.write().shrink_to_fit();
    }

    fn bytes(&self) -> usize {
        self.read().bits() as usize / 8
    }
}

struct Nothing;

impl Subject for Nothing {
    const NAME: &'static str = "nothing";

    fn new() -> Self {
        Self
    }

    fn insert(&self, _: u64) {}

    fn contains(&self, _: u64) -> bool {
        true
    }

    fn remove(&self, _: u64) {}

    fn capacity(&self) -> usize {
        0
    }

    fn shrink_to_fit(&self) {}

    fn bytes(&self) -> usize {
        0
    }
}

/// What is asked of each filter.
#[derive(Clone, Copy)]
struct Task {
    keys: u64,
    /// From one operation of a thread to the next.
    pace: Duration,
    /// The length of a point of the charts.
    window: Duration,
}

impl Task {
    fn new(keys: u64, rate: f64) -> Self {
        let window = Duration::from_secs_f64(keys as f64 / rate / 50.0);
        Self { keys, pace: Duration::from_secs_f64(1.0 / rate), window }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

/// In nanoseconds: the latencies, and the own times.
type Times = [Histogram<u64>; 2];

fn times() -> Times {
    [(); 2].map(|()| histogram())
}

/// The times of one thread's operations.
struct Latencies {
    start: Instant,
    window: Duration,
    windows: Vec<Times>,
    phases: [Times; 2],
}

impl Latencies {
    fn new(start: Instant, window: Duration) -> Self {
        Self { start, window, windows: Vec::new(), phases: [(); 2].map(|()| times()) }
    }

    /// Waits for the moment `due`, and runs the operation.
    fn run<R>(&mut self, due: Instant, phase: usize, operation: impl FnOnce() -> R) -> R {
        let begin = loop {
            let now = Instant::now();
            if now >= due {
                break now;
            }
            spin_loop();
        };
        let result = operation();
        let end = Instant::now();
        let window = (due - self.start).div_duration_f64(self.window) as usize;
        if window >= self.windows.len() {
            self.windows.resize_with(window + 1, times);
        }
        for times in [&mut self.windows[window], &mut self.phases[phase]] {
            for (times, from) in times.iter_mut().zip([due, begin]) {
                *times += (end - from).as_nanos() as u64;
            }
        }
        result
    }
}

/// What a run has shown.
struct Results {
    name: &'static str,
    writer: Latencies,
    reader: Latencies,
    shrinks: Histogram<u64>,
    /// Present keys that a lookup did not find.
    lost: u64,
    lookups: u64,
    most_bytes: usize,
    last_bytes: usize,
}

/// What the writer tells the reader.
#[derive(Default)]
struct Progress {
    /// The keys of all numbers below this are in.
    present: AtomicU64,
    /// 0 while the filter grows, 1 while it shrinks.
    phase: AtomicUsize,
}

fn run<S: Subject>(task: Task) -> Results {
    let (filter, progress) = (S::new(), Progress::default());
    (0..FEW).for_each(|number| filter.insert(key(number)));
    progress.present.store(FEW, Ordering::Release);
    let start = Instant::now() + task.pace;
    let ((writer, shrinks, most_bytes), (reader, lost, lookups)) = thread::scope(|scope| {
        let writer = scope.spawn(|| change(&filter, &progress, task, start));
        let looked_up = look_up(&filter, &progress, task, start, || writer.is_finished());
        (writer.join().expect("no panic"), looked_up)
    });
    Results { name: S::NAME, writer, reader, shrinks, lost, lookups, most_bytes, last_bytes: filter.bytes() }
}

/// The times of the changes and of `shrink_to_fit`, and the memory at the most keys.
fn change(
    filter: &impl Subject,
    progress: &Progress,
    task: Task,
    start: Instant,
) -> (Latencies, Histogram<u64>, usize) {
    let (mut latencies, mut shrinks, mut due) = (Latencies::new(start, task.window), histogram(), start);
    for number in FEW..task.keys {
        latencies.run(due, 0, || filter.insert(key(number)));
        due += task.pace;
        // Seldom, so that the two threads do not wait for the line that they share.
        if number % 64 == 63 {
            progress.present.store(number + 1, Ordering::Release);
        }
    }
    let most_bytes = filter.bytes();
    progress.phase.store(1, Ordering::Relaxed);
    let mut next_shrink = filter.capacity() as u64 / 8;
    for number in (FEW..task.keys).rev() {
        if number % 64 == 63 || number == task.keys - 1 {
            progress.present.store((number & !63).max(FEW), Ordering::Release);
        }
        latencies.run(due, 1, || filter.remove(key(number)));
        due += task.pace;
        if number <= next_shrink || number == FEW {
            let begin = Instant::now();
            filter.shrink_to_fit();
            shrinks += begin.elapsed().as_nanos() as u64;
            next_shrink = (filter.capacity() as u64 / 8).min(number / 2);
            due = due.max(Instant::now());
        }
    }
    (latencies, shrinks, most_bytes)
}

/// The latencies of the lookups, how many present keys were not found, and how many were looked up.
fn look_up(
    filter: &impl Subject,
    progress: &Progress,
    task: Task,
    start: Instant,
    is_over: impl Fn() -> bool,
) -> (Latencies, u64, u64) {
    let mut latencies = Latencies::new(start, task.window);
    let (mut due, mut lost, mut lookups) = (start, 0, 0);
    while !is_over() {
        let phase = progress.phase.load(Ordering::Relaxed);
        let present = progress.present.load(Ordering::Acquire);
        // A number below `present`, at random.
        let number = ((key(lookups) >> 32) * present) >> 32;
        let found = latencies.run(due, phase, || filter.contains(key(number)));
        // The writer may have removed it meanwhile.
        lost += u64::from(!found && number < progress.present.load(Ordering::Acquire));
        due += task.pace;
        latencies.run(due, phase, || filter.contains(key(ABSENT + lookups)));
        due += task.pace;
        lookups += 1;
    }
    (latencies, lost, lookups)
}

const QUANTILES: [(&str, f64); 4] = [("50 %", 0.5), ("99 %", 0.99), ("99.9 %", 0.999), ("longest", 1.0)];

/// Of each phase, in microseconds.
fn percentiles(results: &[Results]) -> Vec<Vec<String>> {
    let names = QUANTILES.map(|(name, _)| name.to_owned());
    let own = names.clone().map(|name| format!("own time: {name}"));
    let head = [String::new(), "operations".to_owned()].into_iter().chain(names).chain(own);
    let mut rows = vec![head.collect::<Vec<_>>()];
    let mut add = |name: String, times: [&Histogram<u64>; 2]| {
        let figures = times.map(|times| QUANTILES.map(|(_, quantile)| microseconds(times, quantile)));
        let figures = figures.as_flattened().iter().map(|time| format!("{time:.1}"));
        rows.push([name, times[0].len().to_string()].into_iter().chain(figures).collect());
    };
    for (phase, (name, change)) in [("growing", "insert"), ("shrinking", "remove")].into_iter().enumerate() {
        for result in results {
            for (operation, of) in [("lookup", &result.reader), (change, &result.writer)] {
                add(format!("{name}, {operation}: {}", result.name), of.phases[phase].each_ref());
            }
        }
    }
    results.iter().for_each(|result| add(format!("`shrink_to_fit`: {}", result.name), [&result.shrinks; 2]));
    rows
}

fn microseconds(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
}

fn memory(results: &[Results]) -> Vec<Vec<String>> {
    let head = ["", "KiB at the most keys", "KiB in the end", "present keys looked up", "not found"];
    let rows = results.iter().map(|result| {
        let bytes = [result.most_bytes, result.last_bytes].map(|bytes| format!("{:.1}", bytes as f64 / 1024.0));
        let [most, last] = bytes;
        vec![result.name.to_owned(), most, last, result.lookups.to_string(), result.lost.to_string()]
    });
    [vec![head.map(String::from).to_vec()], rows.collect()].concat()
}

/// Of the latencies (0) or the own times (1).
fn chart(results: &[Results], task: Task, kind: usize, operation: &str, of: fn(&Results) -> &Latencies) -> Chart {
    let styles = [(Line::Thick, Marker::None), (Line::Thin, Marker::None), (Line::Dashed, Marker::None)];
    let styles = styles.into_iter().chain([(Line::None, Marker::Circle)]);
    let series = results.iter().enumerate().flat_map(|(number, result)| {
        let of = of(result);
        QUANTILES.iter().zip(styles.clone()).map(move |(&(name, quantile), (line, marker))| Series {
            name: format!("{}, {name}", result.name),
            points: of
                .windows
                .iter()
                .map(|window| &window[kind])
                .enumerate()
                .filter(|(_, times)| !times.is_empty())
                .map(|(window, times)| {
                    ((window as f64 + 0.5) * task.window.as_secs_f64(), microseconds(times, quantile).max(1e-3))
                })
                .collect(),
            style: Style { colour: [1, 0, 7][number], marker, line },
        })
    });
    Chart {
        title: format!("{} of {operation} while a filter grows and shrinks", ["Latency", "Own time"][kind]),
        subtitle: format!(
            "from {FEW} keys to {} and back; {:.0} operations a second on each of two threads",
            task.keys,
            1.0 / task.pace.as_secs_f64()
        ),
        x: Axis::linear("seconds"),
        y: Axis { scale: Scale::Log10, ..Axis::linear("microseconds") },
        series: series.collect(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let default_keys = match (options.test, options.quick) {
        (true, _) => 20_000,
        (false, true) => 2_000_000,
        (false, false) => 50_000_000,
    };
    let number = |name| options.value(name).map(|number| number.parse().expect("a number"));
    let keys = number("--keys").unwrap_or(default_keys);
    let task = Task::new(keys, number("--rate").unwrap_or(500_000) as f64);
    let results = [run::<Growable>(task), run::<Scalable>(task), run::<Nothing>(task)];
    for result in &results {
        assert!(result.name != Growable::NAME || result.lost == 0, "{} keys were not found", result.lost);
    }
    let charts = [("latency", 0), ("own_time", 1)].map(|(name, kind)| {
        [
            (format!("{name}_of_lookups"), chart(&results, task, kind, "lookups", |result| &result.reader)),
            (
                format!("{name}_of_changes"),
                chart(&results, task, kind, "inserts and removals", |result| &result.writer),
            ),
        ]
    });
    let charts = charts.as_flattened();
    if options.test && options.value("--out").is_none() {
        // The figures of a test mean nothing, but drawing them must succeed.
        return charts.iter().try_for_each(|(_, chart)| chart.svg().map(drop));
    }
    println!("## Latencies: microseconds\n\n{}", align(&percentiles(&results), 1));
    println!("## Memory and answers\n\n{}", align(&memory(&results), 1));
    let files = options.out("target/latency");
    fs::create_dir_all(&files)?;
    println!("## Figures, in {}\n", files.display());
    for (file, chart) in charts {
        println!("- `{file}.svg`: {}", chart.title);
        fs::write(files.join(file).with_extension("csv"), chart.csv())?;
        fs::write(files.join(file).with_extension("svg"), chart.svg()?)?;
    }
    Ok(())
}
