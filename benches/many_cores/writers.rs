//! What could keep this crate's filters from scaling, each by itself.
//!
//! | row | one operation of a thread |
//! |---|---|
//! | any shared array | loads two random words, and changes one of them by compare-exchange: what the machine allows |
//! | ours | removes the thread's oldest key, or inserts a new one, alternately; the default filter, which has four fifths of its capacity |
//! | `insert_if_absent` | the same, where inserts lock a stripe too |
//! | one counter | the same, where all threads count their changes in one place. (A filter has a place for each core, and threads get them in turn. So threads that come and go can share one.) |
//! | with `len` | the same, and `len` after each insert: it reads the counts of all threads |
//! | batched | the same, 1,024 removals and 1,024 inserts at a time |
//! | a filter for each thread | the same. All together have as many bytes. It is also what threads do that each own a part of the keys |
//! | growable | the same in a growable filter that keeps the size that it began with: each change locks a bucket |
//! | growable, began empty | the same in one that has grown to this size: it has as few locks as at first |
//! | filling | inserts into an empty fixed filter, of two million keys at most |
//! | growing | inserts into an empty growable filter: each 32 buckets that it grows by change the state, which all threads read |
//!
//! The speed is that of all threads together. Compare what ours gain by threads with what the array gains in the same run.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::Plan;
use super::support::array::SharedArray;
use super::support::by_threads::ByThreads;
use super::support::filled::{Sample, on_new_threads};
use super::support::keys::key;
use super::support::ours::{BATCH, Fixed, Growable, Ours, default_5x14, fill};
use super::support::subject::Set;

/// The most keys that an empty filter is filled with.
const MOST_FILLED: u64 = 2_000_000;
/// The most keys that a growable filter is made for.
const MOST_GROWN: u64 = 30_000_000;
/// How keys come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Single,
    IfAbsent,
    OneCounter,
    WithLen,
    Batched,
}

/// Removes and inserts every `by`th key, from these numbers on. Returns how many changes succeeded.
#[inline(never)]
fn churn<F: Ours>(filter: &F, how: How, oldest: u64, newest: u64, by: u64, pairs: u64) -> u64 {
    let remove = |nth: u64| u64::from(filter.remove(key(oldest + nth * by)));
    let insert = |nth: u64| u64::from(filter.insert(key(newest + nth * by)));
    match how {
        How::Single | How::OneCounter => (0..pairs).map(|nth| remove(nth) + insert(nth)).sum(),
        How::IfAbsent => {
            // It does not add a key that looks like one that is in, and then has done what it should.
            let insert = |nth: u64| {
                filter.insert_if_absent(key(newest + nth * by));
                1
            };
            (0..pairs).map(|nth| remove(nth) + insert(nth)).sum()
        }
        How::WithLen => (0..pairs).map(|nth| remove(nth) + insert(nth) * u64::from(filter.len() > 0)).sum(),
        How::Batched => {
            let (mut keys, mut removed, mut done) = (Vec::new(), Vec::new(), 0);
            for start in (0..pairs).step_by(BATCH) {
                let batch = start..pairs.min(start + BATCH as u64);
                keys.clear();
                keys.extend(batch.clone().map(|nth| key(oldest + nth * by)));
                removed.clear();
                filter.remove_batch(&keys, &mut removed);
                done += removed.iter().map(|&removed| u64::from(removed)).sum::<u64>();
                keys.clear();
                keys.extend(batch.clone().map(|nth| key(newest + nth * by)));
                filter.insert_batch(&keys);
                done += batch.end - batch.start;
            }
            done
        }
    }
}

/// Filters, and the numbers of the keys that each of them holds.
struct Churned<F>(Vec<(F, Range<u64>)>);

impl<F: Ours> Churned<F> {
    /// Each with so many keys, or some fewer.
    fn new(filters: impl IntoIterator<Item = F>, keys: u64, threads: u64) -> Self {
        // So that a thread's keys are always its own, with any of the numbers of threads.
        let keys = keys / 64 * 64;
        let part = |thread: u64| keys * thread / threads;
        let by_all = |filter: &F| {
            on_new_threads(threads, |_| (), |thread| fill(filter, part(thread)..part(thread + 1)));
        };
        Self(filters.into_iter().inspect(by_all).map(|filter| (filter, 0..keys)).collect())
    }

    /// Each thread removes its oldest keys and inserts new ones, `pairs` of them. If there is more than one filter, each
    /// thread has one of its own.
    fn run(&mut self, how: How, pairs: u64, threads: u64, prepare: impl Fn(&F, u64) + Sync) -> Sample {
        let Self(filters) = self;
        let count = filters.len() as u64;
        // Of the keys of a filter, each thread has every `by`th.
        let by = threads.div_ceil(count);
        let of = |thread: u64| &filters[(thread % count) as usize];
        let (time, done) = on_new_threads(
            threads,
            |thread| prepare(&of(thread).0, thread),
            |thread| {
                let (filter, present) = of(thread);
                let first = thread / count;
                churn(filter, how, present.start + first, present.end + first, by, pairs)
            },
        );
        let operations = 2 * pairs * threads;
        // `insert_if_absent` does not add a key that looks like one that is in. So later a removal finds nothing.
        let failed = operations - done.iter().sum::<u64>();
        assert!(failed <= operations / 200 + 8, "{failed} of {operations} changes failed ({how:?})");
        for (_, present) in filters.iter_mut().take(threads as usize) {
            *present = present.start + pairs * by..present.end + pairs * by;
        }
        Sample { operations, time }
    }
}

/// Before the threads start, lets all of them count in one place: between each two of them, other threads get the places.
fn share_a_counter(filter: &Fixed, turn: &AtomicU64, thread: u64) {
    let places = thread::available_parallelism().map_or(1, usize::from).next_power_of_two();
    while turn.load(Ordering::Acquire) != thread {
        thread::yield_now();
    }
    filter.record_negatives(0);
    for _ in 1..places {
        thread::scope(|scope| _ = scope.spawn(|| filter.record_negatives(0)));
    }
    turn.store(thread + 1, Ordering::Release);
}

/// Fills new filters for so many keys, until there were at least `count` inserts.
fn filling<F: Ours>(keys: u64, start_with: u64, count: u64, threads: u64) -> Sample {
    let mut sample = Sample::default();
    while sample.operations < count {
        let filter = F::of_keys(start_with as usize);
        let (time, done) = on_new_threads(threads, |_| (), |thread| insert_each(&filter, thread..keys, threads));
        assert_eq!(done.iter().sum::<u64>(), keys, "room");
        sample += Sample { operations: keys, time };
    }
    sample
}

/// Inserts every `by`th key of these.
#[inline(never)]
fn insert_each<S: Set>(set: &S, numbers: Range<u64>, by: u64) -> u64 {
    numbers.step_by(by as usize).map(|number| u64::from(set.insert(key(number)))).sum()
}

/// All tables of one size.
struct Tables {
    array: SharedArray,
    /// The number of the next key that changes the array.
    next: AtomicU64,
    shared: Churned<Fixed>,
    own: Churned<Fixed>,
    growable: Churned<Growable>,
    grown: Churned<Growable>,
    filled: u64,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Array,
    Shared(How),
    Own,
    Growable,
    Grown,
    Filling,
    Growing,
}

const ROWS: [(&str, Work); 11] = [
    ("any shared array", Work::Array),
    ("ours", Work::Shared(How::Single)),
    ("insert_if_absent", Work::Shared(How::IfAbsent)),
    ("one counter", Work::Shared(How::OneCounter)),
    ("with len", Work::Shared(How::WithLen)),
    ("batched", Work::Shared(How::Batched)),
    ("a filter for each thread", Work::Own),
    ("growable", Work::Growable),
    ("growable, began empty", Work::Grown),
    ("filling", Work::Filling),
    ("growing", Work::Growing),
];

impl Tables {
    fn new(bytes: usize, threads: u64) -> Self {
        let filter = default_5x14(bytes);
        let made_for = filter.capacity() as u64;
        let keys = made_for * 4 / 5;
        let grows_to = (made_for / 2).min(MOST_GROWN);
        let own = (0..threads).map(|_| Fixed::of_keys((made_for / threads) as usize));
        Self {
            array: SharedArray::new(bytes),
            next: AtomicU64::new(0),
            shared: Churned::new([filter], keys, threads),
            own: Churned::new(own, keys / threads, threads),
            // About as many bytes, or far more than are in a cache: here a key takes up to twice as many bits.
            growable: Churned::new([Growable::of_keys(grows_to as usize)], grows_to * 4 / 5, threads),
            grown: Churned::new([Growable::of_keys(0)], grows_to * 4 / 5, threads),
            filled: keys.min(MOST_FILLED),
        }
    }

    /// About `count` operations of all threads, in equal shares.
    fn run(&mut self, work: Work, count: u64, threads: u64) -> Sample {
        let (each, pairs) = (count / threads + 1, count / threads / 2 + 1);
        let turn = AtomicU64::new(0);
        let (time, done) = match work {
            Work::Array => on_new_threads(
                threads,
                |_| (),
                |_| {
                    let first = self.next.fetch_add(each, Ordering::Relaxed);
                    insert_each(&self.array, first..first + each, 1)
                },
            ),
            Work::Shared(how @ How::OneCounter) => {
                return self.shared.run(how, pairs, threads, |filter, thread| share_a_counter(filter, &turn, thread));
            }
            Work::Shared(how) => return self.shared.run(how, pairs, threads, |_, _| ()),
            Work::Own => return self.own.run(How::Single, pairs, threads, |_, _| ()),
            Work::Growable => return self.growable.run(How::Single, pairs, threads, |_, _| ()),
            Work::Grown => return self.grown.run(How::Single, pairs, threads, |_, _| ()),
            Work::Filling => return filling::<Fixed>(self.filled, self.filled, count, threads),
            Work::Growing => return filling::<Growable>(self.filled, 0, count, threads),
        };
        Sample { operations: done.iter().sum(), time }
    }

    /// One turn, in millions of operations a second.
    fn turn(&mut self, work: Work, threads: u64, plan: &Plan) -> f64 {
        // A first try shows how many operations fit in a turn.
        let first = self.run(work, 16 * BATCH as u64, threads).mops();
        self.run(work, (plan.turns.turn.as_micros() as f64 * first) as u64 + 1, threads).mops()
    }
}

/// Times the threads, interleaved in the same rounds, and shows a table and a chart.
pub(crate) fn measure(bytes: usize, plan: &Plan, folder: &Path) -> io::Result<()> {
    let size = format!("{} KiB", bytes >> 10);
    eprintln!("writers: filling tables of {size}");
    let mut tables = Tables::new(bytes, *plan.threads.last().expect("a number of threads"));
    let mut rows = ROWS.map(|(name, _)| (name.to_owned(), vec![Vec::new(); plan.threads.len()])).to_vec();
    for round in 0..plan.turns.rounds {
        eprintln!("writers, {size}: round {} of {}", round + 1, plan.turns.rounds);
        for ((_, work), (_, speeds)) in ROWS.into_iter().zip(&mut rows) {
            for (&threads, speeds) in plan.threads.iter().zip(speeds) {
                speeds.push(tables.turn(work, threads, plan));
            }
        }
    }
    let result = ByThreads {
        title: "Writers".into(),
        about: format!("tables of {size}"),
        unit: "changes",
        threads: &plan.threads,
        rows,
        array: Some(0),
    };
    // The figures of a test mean nothing, but drawing them must succeed.
    if plan.test {
        result.chart().svg();
        return Ok(());
    }
    result.show(folder, &format!("writers {size}"))
}
