//! The cost of a concurrent writer to readers.
//!
//! One thread looks keys up. Another thread removes the oldest key and inserts a new one, again and again, at 95%
//! load, where most inserts relocate. The control has the same two threads, but the writer works on a second filter
//! of the same kind. So both put the same load on the machine, and the ratio of the two shows the cost of *sharing*
//! the filter: cache lines that the writer has modified, and lookups that were invalidated and retried.
//!
//! With two threads this says nothing about many readers. But no reader writes anything that another one reads, so
//! each reader pays for the writers alone. `src/guide/scaling.md` says what to expect.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::keys::{ABSENT, Shuffled, key};
use crate::support::options::Options;
use crate::support::ours::{DEFAULT_5X14, PLAIN_4X16};
use crate::support::peers::ATOMIC;
use crate::support::plan::Size;
use crate::support::report::{Spread, median};
use crate::support::subject::{Built, Set, Subject};

/// How full the filters are while the writer is at work.
const LOAD: f64 = 0.95;

/// The share of the keys that the writer changes. The reader looks up the others, which stay.
const CHURN: f64 = 0.2;

/// How many lookups are made between two readings of the clock.
const SLICE: u64 = 10_000;

/// A filter and the numbers of the keys that come and go in it.
struct Shared<S> {
    name: &'static str,
    set: S,
    /// The keys with numbers below this stay.
    staying: u64,
    oldest: AtomicU64,
    next: AtomicU64,
}

impl<S: Set> Shared<S> {
    fn new(subject: &Subject<S>, bytes: usize) -> Self {
        let Built { set, size } = (subject.build)(bytes);
        let len = (size.slots as f64 * LOAD) as u64;
        (0..len).for_each(|index| assert!(set.insert(key(index)), "room for {len}"));
        let staying = (len as f64 * (1.0 - CHURN)) as u64;
        Self { name: subject.about.name, set, staying, oldest: staying.into(), next: len.into() }
    }

    /// Removes and inserts until `stop` is set. Returns how many keys came and went.
    fn churn(&self, stop: &AtomicBool) -> u64 {
        let (from, mut oldest) = (self.oldest.load(Ordering::Relaxed), self.oldest.load(Ordering::Relaxed));
        let mut next = self.next.load(Ordering::Relaxed);
        while !stop.load(Ordering::Relaxed) {
            // A race in another crate may make it miss a key. What matters here is the work.
            self.set.remove(key(oldest));
            self.set.insert(key(next));
            oldest += 1;
            next += 1;
        }
        self.oldest.store(oldest, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
        oldest - from
    }
}

/// What was done in one turn, in millions per second.
struct Turn {
    lookups: f64,
    /// Keys that came and went.
    changes: f64,
}

/// Looks keys up in one filter while the other thread churns `written`.
fn turn<S: Set>(read: &Shared<S>, written: &Shared<S>, hits: bool, absent: u64, time: Duration) -> Turn {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let began = Instant::now();
        let writer = scope.spawn(|| written.churn(&stop));
        // The writer is at work before the clock starts.
        thread::sleep(time / 10);
        let mut order = Shuffled::new(0..read.staying, absent as f64 / 7.0 % 1.0);
        let mut lookups = 0;
        let start = Instant::now();
        while start.elapsed() < time {
            if hits {
                let found = (0..SLICE).filter(|_| read.set.contains(key(order.next()))).count() as u64;
                assert_eq!(found, SLICE, "{}: a key was missed", read.name);
            } else {
                let first = ABSENT + absent + lookups;
                let found = (first..first + SLICE).filter(|&index| read.set.contains(key(index))).count() as u64;
                assert!(found < SLICE / 20, "{}: {found} false positives", read.name);
            }
            lookups += SLICE;
        }
        let lookups = lookups as f64 / start.elapsed().as_secs_f64() / 1e6;
        stop.store(true, Ordering::Relaxed);
        let changes = writer.join().expect("no panic") as f64 / began.elapsed().as_secs_f64() / 1e6;
        Turn { lookups, changes }
    })
}

/// A row for hits and one for misses.
fn measure<S: Set>(subject: &Subject<S>, bytes: usize, rounds: usize, time: Duration) -> [Vec<String>; 2] {
    let (one, other) = (Shared::new(subject, bytes), Shared::new(subject, bytes));
    [true, false].map(|hits| {
        let (mut apart, mut beside) = (Vec::new(), Vec::new());
        for round in 0..rounds as u64 {
            let absent = round << 33;
            apart.push(turn(&one, &other, hits, absent, time));
            beside.push(turn(&one, &one, hits, absent + (1 << 32), time));
        }
        let lookups = |turns: &[Turn]| turns.iter().map(|turn| turn.lookups).collect::<Vec<_>>();
        let changes = median(beside.iter().map(|turn| turn.changes));
        let (apart, beside) = (lookups(&apart), lookups(&beside));
        vec![
            format!("{} {}", one.name, if hits { "hit" } else { "miss" }),
            format!("{:.1}", median(apart.iter().copied())),
            format!("{:.1}", median(beside.iter().copied())),
            Spread::of_ratios(&beside, &apart).show(),
            format!("{changes:.2}"),
        ]
    })
}

pub(crate) fn table(size: Size, options: &Options) -> (&'static str, Vec<Vec<String>>) {
    let (rounds, time) =
        options.pick((1, Duration::from_millis(1)), (3, Duration::from_millis(60)), (9, Duration::from_millis(200)));
    let bytes = options.table_bytes(size);
    let mut rows = vec![["", "writer apart", "beside", "beside over apart", "writes"].map(String::from).to_vec()];
    rows.extend(measure(&DEFAULT_5X14, bytes, rounds, time));
    rows.extend(measure(&PLAIN_4X16, bytes, rounds, time));
    rows.extend(measure(&ATOMIC, bytes, rounds, time));
    ("lookups of one thread, while another writes (removals, each with an insert), millions a second", rows)
}
