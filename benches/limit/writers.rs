//! Two writers: what the machine allows them, and how close our filters come to it.
//!
//! A cache line that one core has changed is in that core's cache, and another core must fetch it from there before
//! it can change it. So in a table that fits in the cache, two writers wait for each other's lines, although they
//! hardly ever need the same word at the same time. Bare exchanges show how much that costs without any filter.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use super::source::BATCH;
use super::support::filled::{Sample, on_new_threads};
use super::support::keys::key;
use super::support::ours::of_size;
use super::support::plan::Size;
use super::support::report::{Spread, align, median};
use super::{LAYOUTS, Layout, Plan};

/// The default, and plain fingerprints.
const CHANGED: [Layout; 2] = [LAYOUTS[0], LAYOUTS[2]];

/// As many locks as our tables have.
const LOCKS: usize = 1024;

/// One lock, in as many bytes as our tables have for a lock and its version counter.
#[derive(Default)]
#[repr(align(16))]
struct Lock(AtomicBool);

/// A table of bare words, with locks beside it.
struct Words {
    words: Vec<AtomicU64>,
    locks: Vec<Lock>,
    /// The seed of the next thread's random numbers.
    seed: AtomicU64,
}

impl Words {
    fn new(bytes: usize) -> Self {
        let words = (0..bytes / size_of::<AtomicU64>()).map(|_| AtomicU64::new(1)).collect();
        let locks = (0..LOCKS).map(|_| Lock::default()).collect();
        Self { words, locks, seed: AtomicU64::new(0) }
    }

    /// A generator for one thread.
    fn random(&self) -> SmallRng {
        SmallRng::seed_from_u64(self.seed.fetch_add(1, Ordering::Relaxed))
    }

    /// Adds 1 to a random word. Returns 1, or 0 if another thread has changed the word in between.
    #[inline(always)]
    fn exchange(&self, random: u64) -> u64 {
        let word = &self.words[((u128::from(random) * self.words.len() as u128) >> 64) as usize];
        let seen = word.load(Ordering::Relaxed);
        u64::from(word.compare_exchange(seen, seen + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok())
    }

    /// How many of `count` exchanges succeed.
    #[inline(never)]
    fn exchanges(&self, count: u64) -> u64 {
        let mut random = self.random();
        (0..count).map(|_| self.exchange(random.next_u64())).sum()
    }

    /// How many of `count` exchanges under random locks succeed.
    #[inline(never)]
    fn locked_exchanges(&self, count: u64) -> u64 {
        let mut random = self.random();
        let exchange = |_| {
            // The lowest bits choose the lock, the highest ones the word.
            let random = random.next_u64();
            let Lock(lock) = &self.locks[random as usize % LOCKS];
            while lock.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
                spin_loop();
            }
            let done = self.exchange(random);
            let freed = lock.compare_exchange(true, false, Ordering::Release, Ordering::Relaxed);
            done * u64::from(freed.is_ok())
        };
        (0..count).map(exchange).sum()
    }
}

/// One of our filters, 75 % full.
struct Changed {
    filter: ConcurrentCuckooFilter<u64, RandomState>,
    /// The numbers of the keys in it.
    present: Range<u64>,
}

impl Changed {
    fn new(bytes: usize, (_, slots, builder): Layout) -> Self {
        let build = |capacity| builder().capacity(capacity).build().expect("a valid filter");
        let filter = of_size(bytes, slots, build);
        let present = 0..filter.slots() as u64 * 3 / 4;
        present.clone().for_each(|index| filter.insert(&key(index)).expect("room"));
        Self { filter, present }
    }

    /// Each thread removes its oldest key and inserts a new one, `pairs` times. Every `threads`th key is its own.
    #[inline(never)]
    fn changes(&mut self, pairs: u64, threads: u64) -> Sample {
        let Self { filter, present } = self;
        let (time, done) = on_new_threads(threads, |thread| {
            let change = |index: u64| {
                let removed = filter.remove(&key(present.start + index));
                let inserted = filter.insert(&key(present.end + index)).is_ok();
                u64::from(removed) + u64::from(inserted)
            };
            (0..pairs).map(|pair| change(pair * threads + thread)).sum::<u64>()
        });
        let operations = 2 * pairs * threads;
        assert_eq!(done.iter().sum::<u64>(), operations, "a change failed");
        *present = present.start + pairs * threads..present.end + pairs * threads;
        Sample { operations, time }
    }

    /// One thread removes the oldest keys. After each slice it inserts as many new keys, which is not timed.
    #[inline(never)]
    fn removals(&mut self, count: u64) -> Sample {
        let Self { filter, present } = self;
        let mut sample = Sample::default();
        while sample.operations < count {
            let slice = BATCH as u64;
            let start = Instant::now();
            let removed = (0..slice).filter(|index| filter.remove(&key(present.start + index))).count();
            sample += Sample { operations: slice, time: start.elapsed() };
            assert_eq!(removed, BATCH, "a key was not there to be removed");
            (0..slice).for_each(|index| filter.insert(&key(present.end + index)).expect("room"));
            *present = present.start + slice..present.end + slice;
        }
        sample
    }
}

/// What is timed. The number is a filter's, in [`CHANGED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Exchanges,
    LockedExchanges,
    Changes(usize),
    Removals(usize),
}

/// All tables.
struct Tables {
    words: Words,
    filters: [Changed; 2],
}

impl Tables {
    /// About `count` operations, in equal shares.
    fn run(&mut self, work: Work, count: u64, threads: u64) -> Sample {
        let each = count / threads + 1;
        let words = &self.words;
        let (time, done) = match work {
            Work::Exchanges => on_new_threads(threads, |_| words.exchanges(each)),
            Work::LockedExchanges => on_new_threads(threads, |_| words.locked_exchanges(each)),
            Work::Changes(filter) => return self.filters[filter].changes(each / 2 + 1, threads),
            Work::Removals(filter) => return self.filters[filter].removals(each),
        };
        Sample { operations: done.iter().sum(), time }
    }

    /// One turn, in millions of operations a second.
    fn turn(&mut self, work: Work, threads: u64, turn: Duration) -> f64 {
        // A first try shows how many operations fit in a turn.
        let first = self.run(work, 16 * BATCH as u64, threads).mops();
        self.run(work, (turn.as_micros() as f64 * first) as u64, threads).mops()
    }
}

/// The results of some work, a number for each round.
struct Row {
    name: String,
    work: Work,
    one: Vec<f64>,
    /// Empty if only one thread does it.
    two: Vec<f64>,
}

fn rows() -> Vec<Row> {
    let row = |name: String, work| Row { name, work, one: Vec::new(), two: Vec::new() };
    let mut rows = vec![row("exchange".into(), Work::Exchanges), row("locked exchange".into(), Work::LockedExchanges)];
    for (filter, (name, ..)) in CHANGED.into_iter().enumerate() {
        rows.push(row(format!("{name} remove and insert"), Work::Changes(filter)));
        rows.push(row(format!("{name} remove"), Work::Removals(filter)));
    }
    rows
}

/// Times one writer and two, interleaved in the same rounds, and prints a table of them.
pub(crate) fn measure(size: Size, plan: &Plan) {
    eprintln!("{}: filling the tables of the writers", size.name());
    let bytes = plan.table_bytes;
    let mut tables = Tables { words: Words::new(bytes), filters: CHANGED.map(|layout| Changed::new(bytes, layout)) };
    let mut rows = rows();
    for round in 0..plan.rounds {
        eprintln!("{}: writers, round {} of {}", size.name(), round + 1, plan.rounds);
        for Row { work, one, two, .. } in &mut rows {
            one.push(tables.turn(*work, 1, plan.turn));
            if !matches!(work, Work::Removals(_)) {
                two.push(tables.turn(*work, 2, plan.turn));
            }
        }
    }
    if !plan.test {
        print(size, &rows);
    }
}

fn print(size: Size, rows: &[Row]) {
    let mops = |numbers: &[f64]| match numbers {
        [] => "-".into(),
        some => format!("{:.1}", median(some.iter().copied())),
    };
    let over = |numbers: &[f64], others: &[f64]| match numbers {
        [] => "-".into(),
        some => Spread::of_ratios(some, others).show(),
    };
    let locked = rows.iter().find(|row| row.work == Work::LockedExchanges).expect("a row of all");
    let head = ["", "one thread", "two threads", "two over one", "one over locked exchange"];
    let mut table = vec![head.map(String::from).to_vec()];
    for Row { name, work, one, two } in rows {
        let compared: &[f64] = if matches!(work, Work::Removals(_)) { one } else { &[] };
        table.push(vec![name.clone(), mops(one), mops(two), over(two, one), over(compared, &locked.one)]);
    }
    println!("### {}: one writer and two, millions a second\n\n{}", size.name(), align(&table, 1));
}
