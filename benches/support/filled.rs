//! The operations, each a timed loop that is compiled for one subject alone. And the keys in the table, against
//! which they check the answers.

use std::cell::OnceCell;
use std::ops::{AddAssign, Range};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use super::keys::{ABSENT, Shuffled, key};
use super::subject::{About, Built, Kind, Set, Subject, TableSize};

/// The operations at a constant load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steady {
    /// Lookups of present keys.
    Hit,
    /// Lookups of absent keys.
    Miss,
    /// Lookups of either, at random.
    Half,
    /// Of ten operations, nine such lookups, and one that alternately removes the oldest key and inserts a new one.
    Mix,
    /// Of fifty operations, 49 lookups and one change: conc-map-bench's read-heavy mix.
    ReadHeavy,
}

impl Steady {
    /// What the benchmarks of all operations measure.
    pub(crate) const ALL: [Self; 3] = [Self::Hit, Self::Miss, Self::Mix];

    /// How many operations contain one change.
    fn block(self) -> u64 {
        if self == Self::ReadHeavy { READ_HEAVY_BLOCK } else { BLOCK }
    }

    pub(crate) fn changes(self) -> bool {
        matches!(self, Self::Mix | Self::ReadHeavy)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hit => "lookup hit",
            Self::Miss => "lookup miss",
            Self::Half => "lookup half hits",
            Self::Mix => "mix 90/5/5",
            Self::ReadHeavy => "mix 98/1/1",
        }
    }
}

/// A subject and its keys, with the subject's type hidden. Each call is one timed loop.
pub(crate) trait Bench {
    fn about(&self) -> About;
    fn size(&self) -> TableSize;
    /// How many keys are in the filter.
    fn len(&self) -> u64;
    /// Replaces the filter by a new one.
    fn renew(&mut self);
    /// Inserts new keys until there are `len`.
    fn insert_to(&mut self, len: u64, threads: u64) -> Sample;
    /// Removes the oldest keys until there are `len`.
    fn remove_to(&mut self, len: u64, threads: u64) -> Sample;
    /// About `count` operations.
    fn steady(&mut self, what: Steady, count: u64, threads: u64) -> Sample;
    /// The false positives among all misses so far, and the misses.
    fn false_positives(&self) -> (u64, u64);
    /// The inserts and removals in all mixes so far that failed although they should not, and all of them.
    fn failed_changes(&self) -> (u64, u64);
}

/// A number of operations, and the time that they took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) operations: u64,
    pub(crate) time: Duration,
}

impl Sample {
    /// Millions of operations a second.
    pub(crate) fn mops(self) -> f64 {
        self.operations as f64 / self.time.as_secs_f64() / 1e6
    }

    pub(crate) fn nanoseconds(self) -> f64 {
        self.time.as_secs_f64() * 1e9 / self.operations as f64
    }
}

impl AddAssign for Sample {
    fn add_assign(&mut self, other: Self) {
        self.operations += other.operations;
        self.time += other.time;
    }
}

/// A subject and the numbers of the keys in it.
pub(crate) struct Filled<S> {
    subject: Subject<S>,
    table_bytes: usize,
    /// Built when it is first needed.
    built: OnceCell<Built<S>>,
    present: Range<u64>,
    absent: u64,
    false_positives: (u64, u64),
    failed_changes: (u64, u64),
}

impl<S: Set + 'static> Filled<S> {
    /// An empty filter whose table takes this many bytes.
    pub(crate) fn boxed(subject: Subject<S>, table_bytes: usize) -> Box<dyn Bench> {
        Box::new(Self {
            subject,
            table_bytes,
            built: OnceCell::new(),
            present: 0..0,
            absent: ABSENT,
            false_positives: (0, 0),
            failed_changes: (0, 0),
        })
    }

    fn built(&self) -> &Built<S> {
        self.built.get_or_init(|| (self.subject.build)(self.table_bytes))
    }
}

impl<S: Set + 'static> Bench for Filled<S> {
    fn about(&self) -> About {
        self.subject.about
    }

    fn size(&self) -> TableSize {
        self.built().size
    }

    fn len(&self) -> u64 {
        self.present.end - self.present.start
    }

    fn renew(&mut self) {
        // This frees the old table's memory before there is a new one.
        self.built.take();
        self.present = self.present.end..self.present.end;
    }

    fn insert_to(&mut self, len: u64, threads: u64) -> Sample {
        let new = self.present.end..self.present.start + len;
        let (name, Built { set, size }) = (self.subject.about.name, self.built());
        let (time, inserted) = on_threads(threads, |thread| insert(set, new.start + thread, new.end, threads));
        let operations = new.end - new.start;
        assert_eq!(inserted.iter().sum::<u64>(), operations, "{name}: an insert failed on the way to {len} items");
        assert!(set.grown_to() < size.bytes + size.bytes / 8, "{name}: the table grew at {len} items");
        self.present.end = new.end;
        Sample { operations, time }
    }

    fn remove_to(&mut self, len: u64, threads: u64) -> Sample {
        let old = self.present.start..self.present.end - len;
        let (name, Built { set, .. }) = (self.subject.about.name, self.built());
        let (time, removed) = on_threads(threads, |thread| remove(set, old.start + thread, old.end, threads));
        let operations = old.end - old.start;
        assert_eq!(removed.iter().sum::<u64>(), operations, "{name}: a key was not there to be removed");
        self.present.start = old.end;
        Sample { operations, time }
    }

    fn steady(&mut self, what: Steady, count: u64, threads: u64) -> Sample {
        // At least two blocks for each thread, so that a mix both removes and inserts.
        let each = count.div_ceil(threads).next_multiple_of(2 * what.block());
        let operations = each * threads;
        let (About { name, kind, .. }, Built { set, .. }) = (self.subject.about, self.built());
        let order = |thread: u64| Shuffled::new(self.present.clone(), thread as f64 / threads as f64);
        let absent = |thread| self.absent + thread * each;
        let (time, answers) = on_threads(threads, |thread| match what {
            Steady::Hit => hits(set, order(thread), each),
            Steady::Miss => misses(set, absent(thread), each),
            Steady::Half => half(set, order(thread), absent(thread), each),
            Steady::Mix => mix::<S, BLOCK>(set, &self.present, absent(thread), each, thread, threads),
            Steady::ReadHeavy => mix::<S, READ_HEAVY_BLOCK>(set, &self.present, absent(thread), each, thread, threads),
        });
        // Another crate's races are reported, but do not end the run.
        let races = kind == Kind::Peer && threads > 1 && what.changes();
        if kind != Kind::Array && !races {
            let most = if what == Steady::Hit { 0 } else { each as i64 / 16 + 8 };
            for Answers { surplus, failed_changes } in &answers {
                assert!(*surplus >= 0, "{name}: {} keys were not found ({what:?})", -surplus);
                assert!(*surplus <= most, "{name}: {surplus} false positives in {each} lookups ({what:?})");
                assert_eq!(*failed_changes, 0, "{name}: changes failed ({what:?})");
            }
        }
        match what {
            Steady::Hit | Steady::Half => {}
            Steady::Miss => {
                self.false_positives.0 += answers.iter().map(|answers| answers.surplus).sum::<i64>() as u64;
                self.false_positives.1 += operations;
            }
            Steady::Mix | Steady::ReadHeavy => {
                let changes = operations / what.block();
                self.failed_changes.0 += answers.iter().map(|answers| answers.failed_changes).sum::<u64>();
                self.failed_changes.1 += changes;
                self.present = self.present.start + changes / 2..self.present.end + changes / 2;
            }
        }
        self.absent += operations;
        Sample { operations, time }
    }

    fn false_positives(&self) -> (u64, u64) {
        self.false_positives
    }

    fn failed_changes(&self) -> (u64, u64) {
        self.failed_changes
    }
}

/// The answers that one thread got.
#[derive(Debug)]
struct Answers {
    /// How many lookups were answered "present", less those of present keys.
    surplus: i64,
    failed_changes: u64,
}

/// Inserts each `by`th key and returns how many inserts succeeded.
#[inline(never)]
fn insert<S: Set>(set: &S, from: u64, to: u64, by: u64) -> u64 {
    let mut inserted = 0;
    let mut index = from;
    while index < to {
        inserted += u64::from(set.insert(key(index)));
        index += by;
    }
    inserted
}

/// Removes each `by`th key and returns how many were present.
#[inline(never)]
fn remove<S: Set>(set: &S, from: u64, to: u64, by: u64) -> u64 {
    let mut removed = 0;
    let mut index = from;
    while index < to {
        removed += u64::from(set.remove(key(index)));
        index += by;
    }
    removed
}

#[inline(never)]
fn hits<S: Set>(set: &S, mut order: Shuffled, count: u64) -> Answers {
    let found: i64 = (0..count).map(|_| i64::from(set.contains(key(order.next())))).sum();
    Answers { surplus: found - count as i64, failed_changes: 0 }
}

#[inline(never)]
fn misses<S: Set>(set: &S, absent: u64, count: u64) -> Answers {
    let surplus = (absent..absent + count).map(|index| i64::from(set.contains(key(index)))).sum();
    Answers { surplus, failed_changes: 0 }
}

/// How many operations use the bits of one random number. In a mix, one of them is a change.
const BLOCK: u64 = 10;
const READ_HEAVY_BLOCK: u64 = 50;

/// In each block, the bits of one random number choose which lookups are of a present key.
#[inline(never)]
fn half<S: Set>(set: &S, mut order: Shuffled, absent: u64, count: u64) -> Answers {
    let mut random = SmallRng::seed_from_u64(absent);
    let mut surplus = 0;
    for block in 0..count / BLOCK {
        let coins = random.next_u64();
        for i in 0..BLOCK {
            let present = (coins >> i) & 1;
            // Both are computed, so that the choice needs no branch, which would be mispredicted half of the time.
            let indices = [absent + block * BLOCK + i, order.next()];
            let index = indices[present as usize];
            surplus += i64::from(set.contains(key(index))) - present as i64;
        }
    }
    Answers { surplus, failed_changes: 0 }
}

/// Like `half`, but one operation in each block, at a random place, alternately removes the oldest key and inserts
/// a new one.
///
/// Of the keys, the `thread`th thread has each `threads`th, and looks up and removes no others. So it knows which
/// keys are in the filter.
#[inline(never)]
fn mix<S: Set, const BLOCK: u64>(
    set: &S,
    present: &Range<u64>,
    absent: u64,
    count: u64,
    thread: u64,
    threads: u64,
) -> Answers {
    let own = (present.end - present.start) / threads;
    assert_eq!(own * threads, present.end - present.start, "equal shares");
    let (mut oldest, mut newest) = (present.start + thread, present.end + thread);
    // After a removal there is one key less.
    let mut order = Shuffled::new(0..own - 1, 0.0);
    let mut random = SmallRng::seed_from_u64(absent);
    let mut surplus = 0;
    let mut changed = 0;
    for block in 0..count / BLOCK {
        let coins = random.next_u64();
        // The lowest 50 bits are coins.
        let change = ((coins >> 50) * BLOCK) >> 14;
        for i in 0..BLOCK {
            if i == change && block % 2 == 0 {
                changed += u64::from(set.remove(key(oldest)));
                oldest += threads;
            } else if i == change {
                changed += u64::from(set.insert(key(newest)));
                newest += threads;
            } else {
                let present = (coins >> i) & 1;
                let indices = [absent + block * BLOCK + i, oldest + order.next() * threads];
                let index = indices[present as usize];
                surplus += i64::from(set.contains(key(index))) - present as i64;
            }
        }
    }
    Answers { surplus, failed_changes: count / BLOCK - changed }
}

/// Runs `work` on this many threads at once. Returns the time from the first start to the last end, and the
/// results.
pub(crate) fn on_threads<R: Send>(threads: u64, work: impl Fn(u64) -> R + Sync) -> (Duration, Vec<R>) {
    let ready = AtomicUsize::new(0);
    let run = |thread| {
        // The threads spin, so that waking up delays none of their starts.
        ready.fetch_add(1, Ordering::AcqRel);
        while ready.load(Ordering::Acquire) < threads as usize {
            thread::yield_now();
        }
        let start = Instant::now();
        let result = work(thread);
        (start, Instant::now(), result)
    };
    let run = &run;
    let runs: Vec<_> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let first = run(0);
        [first].into_iter().chain(others.into_iter().map(|other| other.join().expect("no panic"))).collect()
    });
    let start = runs.iter().map(|run| run.0).min().expect("a thread");
    let end = runs.iter().map(|run| run.1).max().expect("a thread");
    (end - start, runs.into_iter().map(|run| run.2).collect())
}
