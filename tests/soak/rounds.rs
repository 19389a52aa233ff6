//! What all soaks share: rounds that follow from a seed, their threads, and the counts of operations.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::BuildHasher;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

use crate::support::{Raw, scattered};

/// How many threads work on a filter.
pub(crate) const THREADS: u64 = 4;

/// A filter and what is done to it. Everything follows from the seed.
pub(crate) trait Round: fmt::Debug + Sized {
    fn new(seed: u64) -> Self;

    /// The kinds of rounds that this one belongs to. The counts are printed for each kind.
    fn kinds(&self) -> [String; 2];

    /// Runs the threads, each for so many steps where a round has no length of its own, and checks every operation. Panics
    /// at a violation.
    fn run(&self, steps: u64) -> Tally;
}

/// Round after round, for `CCF_SOAK_SECONDS`.
pub(crate) fn soak<R: Round>() {
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
        let (kinds, tally) = run::<R>(seed, 200_000);
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

/// Ends the process if a round takes as long as a hundred rounds do: an operation that never ends is also a
/// violation.
fn end_with_a_round_that_does_not(current: &Weak<AtomicU64>) {
    while let Some(seed) = current.upgrade().map(|current| current.load(Ordering::Relaxed)) {
        thread::sleep(Duration::from_secs(120));
        if current.upgrade().is_some_and(|current| current.load(Ordering::Relaxed) == seed) {
            eprintln!("a round does not end: CCF_SOAK_SEED={seed} begins with it");
            std::process::exit(1);
        }
    }
}

/// Runs a few short rounds, in every run of the tests. They are the same each time, but for the interleaving of threads.
pub(crate) fn sample<R: Round>(rounds: u64) {
    let first = setting("CCF_SOAK_SEED").unwrap_or(0);
    for seed in first..first + rounds {
        let (kinds, tally) = run::<R>(seed, 20_000);
        println!("{:42} {tally}", kinds.join(", "));
    }
}

/// Runs the round of this seed. Returns its kinds, and the counts of its operations.
fn run<R: Round>(seed: u64, steps: u64) -> ([String; 2], Tally) {
    let violation = |round: &dyn fmt::Debug| -> ! {
        panic!("the violation above: CCF_SOAK_SEED={seed} begins with this round, {round:?}")
    };
    let round = panic::catch_unwind(|| R::new(seed)).unwrap_or_else(|_| violation(&"which could not begin"));
    let tally = panic::catch_unwind(AssertUnwindSafe(|| round.run(steps))).unwrap_or_else(|_| violation(&round));
    (round.kinds(), Tally { rounds: 1, ..tally })
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

/// About this many keys of a round, of which no two are of one class. `add_if_absent` adds a key to an empty filter
/// unless one of its class is in, and returns whether it did.
pub(crate) fn distinct(seed: u64, count: u64, add_if_absent: impl FnMut(&Raw) -> bool) -> Vec<Raw> {
    (0..2 * count).map(|index| key(seed, 0, index)).filter(add_if_absent).take(count as usize).collect()
}

/// The share of each thread. They are alike, and a few keys may be left over.
pub(crate) fn shares(keys: &[Raw]) -> Vec<Vec<Raw>> {
    let each = keys.len() / THREADS as usize;
    (0..THREADS as usize).map(|id| keys[id * each..(id + 1) * each].to_vec()).collect()
}

/// When a thread saves. Saves take a quarter of its time, and none without the feature.
pub(crate) struct Saves {
    next: Instant,
}

impl Saves {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now() }
    }

    /// The beginning of a save, if one is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        (cfg!(feature = "snapshot") && now > self.next).then_some(now)
    }

    /// Puts off the next save when the one that began then has ended.
    pub(crate) fn ended(&mut self, began: Instant) {
        self.next = Instant::now() + 3 * began.elapsed();
    }
}

/// A random element, or `None` if there is none.
pub(crate) fn pick<T: Copy>(from: &[T], random: &mut SmallRng) -> Option<T> {
    from.choose(random).copied()
}

/// Counts of operations and rounds. Each key of a batch counts as one.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) rounds: u64,
    pub(crate) lookups: u64,
    pub(crate) inserts: u64,
    /// Inserts that were refused.
    pub(crate) refused: u64,
    pub(crate) removals: u64,
    pub(crate) counts: u64,
    /// Values of a maplet that were to be replaced.
    pub(crate) replacements: u64,
    /// How often the clock of entries advanced.
    pub(crate) ticks: u64,
    /// Snapshots that were written, loaded and compared.
    pub(crate) saves: u64,
    /// Digests of a filter that others change.
    pub(crate) digests: u64,
    /// Filters that another one has absorbed.
    pub(crate) merges: u64,
}

impl Tally {
    /// Counts an insert. Returns its result, unless it was refused.
    pub(crate) fn taken<T, E>(&mut self, result: Result<T, E>) -> Option<T> {
        self.inserts += 1;
        self.refused += u64::from(result.is_err());
        result.ok()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.lookups += other.lookups;
        self.inserts += other.inserts;
        self.refused += other.refused;
        self.removals += other.removals;
        self.counts += other.counts;
        self.replacements += other.replacements;
        self.ticks += other.ticks;
        self.saves += other.saves;
        self.digests += other.digests;
        self.merges += other.merges;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rounds, lookups, inserts, refused, removals, counts, replacements, ticks, saves, digests, merges } =
            self;
        let operations = lookups + inserts + removals + counts + replacements;
        write!(
            f,
            "{rounds:6} rounds, {operations:12} operations: {lookups} lookups, {inserts} inserts ({refused} refused), \
             {removals} removals, {counts} counts"
        )?;
        let more = [
            (replacements, "replacements"),
            (ticks, "ticks"),
            (saves, "saves"),
            (digests, "digests"),
            (merges, "merges"),
        ];
        for (number, name) in more {
            if *number > 0 {
                write!(f, ", {number} {name}")?;
            }
        }
        Ok(())
    }
}
