//! What it costs to take dead entries out, and how that slows down other threads.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{Advance, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::subjects::{Expiring, expiring};
use crate::support::clock::{Times, own_time};
use crate::support::keys::{ABSENT, key};
use crate::support::report::{Spread, median};
use crate::{LONGEST, NOW, Sizes, end};

type Table = (String, Vec<Vec<String>>);

/// How full the large table is.
const LOAD: f64 = 0.9;

/// A filter whose entries expire evenly, and the numbers of the keys to fill it with.
struct Filled {
    filter: Expiring,
    now: u64,
    next: u64,
    len: usize,
}

impl Filled {
    /// Filled to this capacity, or to this load.
    fn new(capacity: usize, load: Option<f64>) -> Self {
        let filter = expiring(capacity, 0.001, LONGEST);
        let len = load.map_or(capacity, |load| (filter.plan().slots as f64 * load) as usize);
        filter.advance_to(Tick::new(NOW));
        let mut filled = Self { filter, now: NOW, next: 0, len };
        filled.fill();
        filled
    }

    /// Inserts new entries in place of those that are gone.
    fn fill(&mut self) {
        self.sweep(&mut Times::default());
        let missing = self.len.saturating_sub(self.filter.len()) as u64;
        let hash = |number| self.filter.hash_one(&key(number));
        let new = (self.next..self.next + missing).map(|number| (hash(number), Tick::new(end(self.now, number))));
        self.filter.by_hash().insert_until_batch(new, &mut Vec::new()).expect("room");
        self.next += missing;
    }

    /// Moves the clock by one tick or more, in one call.
    fn forward(&mut self, ticks: u64) {
        self.now += ticks;
        assert_eq!(self.filter.advance_to(Tick::new(self.now)), Advance::Forward { ticks });
    }

    fn is_swept(&self) -> bool {
        self.filter.stats().expiry.unwrap().oldest_unswept.is_none()
    }

    /// Continues the sweep until it ends. Records the time of each call.
    fn sweep(&self, times: &mut Times) {
        while !self.is_swept() {
            times.time(|| self.filter.advance_to(Tick::new(self.now)));
        }
    }

    /// The processor's milliseconds for all the calls that are needed after this many ticks.
    fn whole(&mut self, ticks: u64) -> f64 {
        self.fill();
        let start = own_time();
        self.forward(ticks);
        self.sweep(&mut Times::default());
        (own_time() - start) as f64 / 1e6
    }
}

/// The sweep of a million entries.
fn whole(entries: u64, rounds: usize) -> Table {
    let mut filled = Filled::new(entries as usize, None);
    let mut rows = vec![["of all entries die", "sweeps", "milliseconds"].map(String::from).to_vec()];
    for (name, ticks, sweeps) in [("a fifteenth", 1, 3 * rounds), ("a third", 5, rounds), ("all", LONGEST, rounds)] {
        let times = Spread::of((0..sweeps).map(|_| filled.whole(ticks)));
        rows.push(vec![name.into(), sweeps.to_string(), times.show()]);
    }
    (format!("processor time for {entries} entries"), rows)
}

/// Single calls of `advance_to`.
fn calls(filled: &mut Filled, rounds: usize) -> Table {
    let [mut nothing, mut share, mut new, mut late, mut jump]: [Times; 5] = Default::default();
    for round in 0..rounds {
        eprintln!("calls, round {round}");
        filled.fill();
        (0..100_000).for_each(|_| _ = nothing.time(|| filled.filter.advance_to(Tick::new(filled.now))));
        new.time(|| filled.forward(1));
        late.time(|| filled.forward(1));
        filled.sweep(&mut share);
    }
    // Only once, because filling the table again takes long.
    jump.time(|| filled.forward(1000));
    let named = [
        ("nothing is due", nothing),
        ("same tick, a share", share),
        ("new tick", new),
        ("new tick, none swept", late),
        ("all have died", jump),
    ];
    ("calls of `advance_to`, microseconds".into(), times_table("", named.iter().map(|(name, times)| (*name, times))))
}

fn times_table<'a>(first: &str, named: impl Iterator<Item = (&'a str, &'a Times)>) -> Vec<Vec<String>> {
    let head = std::iter::once(first).chain(Times::HEAD).map(String::from).collect();
    let row = |(name, times): (&str, &Times)| std::iter::once(name.to_owned()).chain(times.row()).collect();
    std::iter::once(head).chain(named.filter(|(_, times)| times.count() > 0).map(row)).collect()
}

/// What the clock does at the moment: the number of the step. Work is not counted if the step changed during it.
#[derive(Debug, Default)]
struct Step(AtomicUsize);

const STEPS: [&str; 4] = ["no sweep", "a sweep by shares", "no sweep", "one late call"];

impl Step {
    /// None of the steps: the next one is being prepared.
    const BETWEEN: usize = usize::MAX;

    // Relaxed: a thread that reads it a moment too late has done a bit of work under the wrong name.
    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn begin(&self, step: usize) {
        self.0.store(step, Ordering::Relaxed);
    }
}

impl Filled {
    /// Takes the steps this many times, while another thread works.
    fn beside<R: Send>(&mut self, times: usize, work: impl FnOnce(&Expiring, &Step, &AtomicBool) -> R + Send) -> R {
        self.fill();
        let (step, ended) = (Step::default(), AtomicBool::new(false));
        let mut now = self.now;
        let result = thread::scope(|scope| {
            let (filter, step, ended) = (&self.filter, &step, &ended);
            let worker = scope.spawn(move || work(filter, step, ended));
            let is_swept = || filter.stats().expiry.unwrap().oldest_unswept.is_none();
            let mut forward = || {
                now += 1;
                filter.advance_to(Tick::new(now));
                now
            };
            let mut took = Duration::from_millis(20);
            for first in (0..times).map(|time| time * STEPS.len()) {
                step.begin(first);
                thread::sleep(took);

                step.begin(first + 1);
                let start = Instant::now();
                let now = forward();
                while !is_swept() {
                    filter.advance_to(Tick::new(now));
                }
                took = start.elapsed();

                step.begin(first + 2);
                thread::sleep(took);

                step.begin(Step::BETWEEN);
                forward();
                step.begin(first + 3);
                let now = forward();
                step.begin(Step::BETWEEN);
                while !is_swept() {
                    filter.advance_to(Tick::new(now));
                }
            }
            ended.store(true, Ordering::Relaxed);
            worker.join().expect("no panic")
        });
        self.now = now;
        result
    }
}

/// How long single inserts take, of entries with a short lifetime and with the longest, which may have to wait.
fn inserts(filled: &mut Filled, rounds: usize) -> Table {
    eprintln!("inserts beside sweeps");
    let mut next = filled.next;
    let times = filled.beside(rounds, |filter, step, ended| {
        let mut times: [[Times; 2]; STEPS.len()] = Default::default();
        while !ended.load(Ordering::Relaxed) {
            for (nth, lifetime) in [LONGEST / 2, LONGEST].into_iter().enumerate() {
                let (at, now) = (step.now(), filter.now().expect("a clock that was set").get());
                let key = key(next);
                let mut inserted = Times::default();
                let times = if at == Step::BETWEEN { &mut inserted } else { &mut times[at % STEPS.len()][nth] };
                // A refused insert takes its time too: then there is no more room.
                black_box(times.time(|| filter.insert_until(&key, Tick::new(now + lifetime)))).ok();
                next += 1;
            }
        }
        times
    });
    filled.next += 1 << 36;
    let mut rows = Vec::new();
    for (nth, lifetime) in ["half the longest lifetime", "the longest lifetime"].into_iter().enumerate() {
        for (step, name) in STEPS.iter().enumerate().filter(|&(step, _)| step != 2) {
            rows.push((format!("{lifetime}, beside {name}"), &times[step][nth]));
        }
    }
    let table = times_table("an insert with", rows.iter().map(|(name, times)| (name.as_str(), *times)));
    ("inserts, microseconds".into(), table)
}

/// How many lookups a thread makes, in processor time.
fn lookups(filled: &mut Filled, rounds: usize) -> Table {
    eprintln!("lookups beside sweeps");
    const SLICE: u64 = 1024;
    let before = filled.filter.stats().lookup_retries;
    let (slices, all) = filled.beside(rounds, |filter, step, ended| {
        let mut random = SmallRng::seed_from_u64(31);
        let mut all = 0u64;
        // How many slices there were, and what they took, in each step.
        let mut slices = vec![(0u64, 0u64); rounds * STEPS.len()];
        while !ended.load(Ordering::Relaxed) {
            let (at, start) = (step.now(), own_time());
            let found = (0..SLICE).filter(|_| filter.contains(&key(random.random_range(ABSENT..2 * ABSENT)))).count();
            black_box(found);
            let took = own_time() - start;
            if at == step.now() && at != Step::BETWEEN {
                slices[at] = (slices[at].0 + 1, slices[at].1 + took);
            }
            all += SLICE;
        }
        (slices, all)
    });
    let retries = filled.filter.stats().lookup_retries - before;
    let speed = |&(slices, took): &(u64, u64)| (slices * SLICE) as f64 * 1e3 / took as f64;
    let mut rows = vec![["lookups beside", "millions a second", "of those beside none"].map(String::from).to_vec()];
    for (nth, name) in STEPS.iter().enumerate() {
        let of_steps = slices.chunks(STEPS.len()).filter(|steps| steps[0].0 > 0 && steps[nth].0 > 0);
        let speeds: Vec<[f64; 2]> = of_steps.map(|steps| [speed(&steps[nth]), speed(&steps[0])]).collect();
        if !speeds.is_empty() {
            let ratios = Spread::of(speeds.iter().map(|[own, alone]| own / alone)).show();
            let own = median(speeds.iter().map(|[own, _]| *own));
            rows.push(vec![(*name).into(), format!("{own:.2}"), if nth == 0 { "–".into() } else { ratios }]);
        }
    }
    (format!("lookups of absent keys, of which {retries} of {all} looked again"), rows)
}

pub(crate) fn tables(sizes: &Sizes) -> Vec<Table> {
    let first = whole(sizes.swept, sizes.rounds);
    eprintln!("a table of {} MB", sizes.table_bytes >> 20);
    // 4 slots in 8 bytes.
    let slots = sizes.table_bytes / 8 * 4;
    let mut filled = Filled::new((slots as f64 * 0.95) as usize, Some(LOAD));
    let (bytes, buckets) =
        (filled.filter.stats().memory_usage, filled.filter.plan().slots / filled.filter.plan().layout.slots_per_bucket);
    let tables =
        [lookups(&mut filled, sizes.rounds), inserts(&mut filled, sizes.rounds), calls(&mut filled, sizes.rounds)];
    let named =
        |(name, rows)| (format!("{name} ({:.1} MB, {buckets} buckets)", bytes as f64 / f64::from(1 << 20)), rows);
    std::iter::once(first).chain(tables.map(named)).collect()
}
