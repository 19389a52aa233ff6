//! What all soaks share: rounds that follow from a seed, their threads, and the counts of operations.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;
use std::iter;
use std::ops::{Index, IndexMut};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use crate::support::{Raw, scattered};
use crate::worker::{Kind, Round};

/// How many threads work on a filter.
pub(crate) const THREADS: u64 = 4;

/// Round after round, for `CCF_SOAK_SECONDS`.
pub(crate) fn soak<K: Kind>() {
    let duration = Duration::from_secs(setting("CCF_SOAK_SECONDS").unwrap_or(60));
    let first = setting("CCF_SOAK_SEED").unwrap_or_else(|| std::hash::RandomState::new().hash_one(0) >> 16);
    println!("{} s, CCF_SOAK_SEED={first}", duration.as_secs());

    let current = Arc::new(AtomicU64::new(first));
    let watched = Arc::downgrade(&current);
    thread::spawn(move || end_with_a_round_that_does_not(&watched));

    let (start, mut minutes) = (Instant::now(), 0);
    let (mut all, mut parts) = (Tally::default(), BTreeMap::<_, Tally>::new());
    for seed in first.. {
        current.store(seed, Ordering::Relaxed);
        let (kinds, tally) = run::<K>(seed, 200_000);
        all.add(&tally);
        kinds.into_iter().for_each(|kind| parts.entry(kind).or_default().add(&tally));
        if start.elapsed() >= duration {
            break;
        }
        if start.elapsed().as_secs() / 60 > minutes {
            minutes = start.elapsed().as_secs() / 60;
            println!("{minutes:4} min: {all}; no violation up to seed {seed}");
        }
    }
    for (name, tally) in parts {
        println!("{name:42} {tally}");
    }
    println!("{:42} {all}", "all");
    println!("no violation in {} s", start.elapsed().as_secs());
}

/// Ends the process if a round takes ten minutes: an operation that never ends is also a violation. (A round of a filter
/// that is full most of the time takes one, since each insert that fails has looked at 2,048 buckets twice.)
fn end_with_a_round_that_does_not(current: &Weak<AtomicU64>) {
    while let Some(seed) = current.upgrade().map(|current| current.load(Ordering::Relaxed)) {
        thread::sleep(Duration::from_secs(600));
        if current.upgrade().is_some_and(|current| current.load(Ordering::Relaxed) == seed) {
            eprintln!("a round does not end: CCF_SOAK_SEED={seed} begins with it");
            std::process::exit(1);
        }
    }
}

/// Runs a few short rounds, in every run of the tests. They are the same each time, but for the interleaving of threads.
pub(crate) fn sample<K: Kind>(rounds: u64) {
    let first = setting("CCF_SOAK_SEED").unwrap_or(0);
    for seed in first..first + rounds {
        let (kinds, tally) = run::<K>(seed, 20_000);
        println!("{:42} {tally}", kinds.concat());
    }
}

/// Runs the round of this seed. Returns its kinds, and the counts of its operations.
fn run<K: Kind>(seed: u64, steps: u64) -> ([String; 2], Tally) {
    let violation = |round: &dyn fmt::Debug| -> ! {
        panic!("the violation above: CCF_SOAK_SEED={seed} begins with this round, {round:?}")
    };
    let round = panic::catch_unwind(|| Round::<K>::new(seed)).unwrap_or_else(|_| violation(&"which could not begin"));
    let mut tally = panic::catch_unwind(AssertUnwindSafe(|| round.run(steps))).unwrap_or_else(|_| violation(&round));
    tally[Count::Rounds] = 1;
    (round.kind.names().map(|name| format!("{name}: {:?}", round.work)), tally)
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

/// A key of a round, made from its owner, which is a thread or a purpose, and a number below 2^40. No two are the
/// same.
pub(crate) fn key(seed: u64, owner: u64, index: u64) -> Raw {
    scattered(seed.rotate_left(32) ^ owner << 40 ^ index)
}

/// Runs `work` on all threads, which are numbered from 1. Returns the result of each.
pub(crate) fn on_all_threads<R: Send>(tally: &mut Tally, work: impl Fn(u64, &mut Tally) -> R + Sync) -> Vec<R> {
    let begin = Barrier::new(THREADS as usize);
    let on_one = &|id| {
        let mut tally = Tally::default();
        begin.wait();
        (work(id, &mut tally), tally)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS).map(|id| scope.spawn(move || on_one(id))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let ended = ended.into_iter().map(|ended| ended.unwrap_or_else(|violation| panic::resume_unwind(violation)));
    let add = |(result, of_one): (R, Tally)| {
        tally.add(&of_one);
        result
    };
    ended.map(add).collect()
}

/// The size and the capacity of a table with so many slots in a bucket: from a few buckets to ten thousand, which are
/// more than one call sweeps.
pub(crate) fn some_capacity(slots: u64, random: &mut SmallRng) -> (&'static str, u64) {
    match random.random_range(0..12) {
        0..4 => ("a few buckets", 2 * slots + random.random_range(0..8 * slots)),
        4..8 => ("hundreds of buckets", slots * random.random_range(100..300)),
        8..11 => ("thousands of buckets", slots * random.random_range(1100..4100)),
        _ => ("ten thousand buckets", slots * random.random_range(9000..14_000)),
    }
}

/// When a thread does what takes long: in a quarter of its time.
pub(crate) struct Pauses {
    end: Instant,
}

impl Pauses {
    pub(crate) fn new() -> Self {
        Self { end: Instant::now() }
    }

    /// The present moment, if a pause is over.
    pub(crate) fn over(&self) -> Option<Instant> {
        let now = Instant::now();
        (now > self.end).then_some(now)
    }

    /// Begins a pause after what began then.
    pub(crate) fn begin(&mut self, began: Instant) {
        self.end = Instant::now() + 3 * began.elapsed();
    }
}

/// A random element, or `None` if there is none.
pub(crate) fn pick<T: Copy>(from: &[T], random: &mut SmallRng) -> Option<T> {
    from.choose(random).copied()
}

/// What is counted. Each key of a batch counts as one.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    Rounds,
    Lookups,
    Inserts,
    /// Inserts that were refused.
    Refused,
    Removals,
    /// Counts of a key's entries, and lookups of its values.
    Counts,
    /// Values of a maplet that were to be replaced.
    Replacements,
    /// How often the clock of entries advanced.
    Ticks,
    /// Snapshots that were written, loaded and compared.
    #[cfg_attr(not(feature = "snapshot"), allow(dead_code, reason = "nothing is saved then"))]
    Saves,
    /// Digests of a filter that others change.
    Digests,
    /// Filters that another one has absorbed.
    Merges,
}

const NAMES: [&str; 11] = [
    "rounds",
    "lookups",
    "inserts",
    "of them refused",
    "removals",
    "counts",
    "replacements",
    "ticks",
    "saves",
    "digests",
    "merges",
];

/// Counts of operations and rounds.
#[derive(Default)]
pub(crate) struct Tally([u64; NAMES.len()]);

impl Index<Count> for Tally {
    type Output = u64;

    fn index(&self, count: Count) -> &u64 {
        &self.0[count as usize]
    }
}

impl IndexMut<Count> for Tally {
    fn index_mut(&mut self, count: Count) -> &mut u64 {
        &mut self.0[count as usize]
    }
}

impl Tally {
    /// Counts an insert. Returns its result, unless it was refused.
    pub(crate) fn taken<T, E>(&mut self, result: Result<T, E>) -> Option<T> {
        self[Count::Inserts] += 1;
        self[Count::Refused] += u64::from(result.is_err());
        result.ok()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        iter::zip(&mut self.0, other.0).for_each(|(all, more)| *all += more);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = iter::zip(self.0, NAMES).filter(|&(number, _)| number > 0);
        let counted: Vec<_> = counted.map(|(number, name)| format!("{number} {name}")).collect();
        f.write_str(&counted.join(", "))
    }
}
