//! What could keep this crate's filters from scaling, each by itself.
//!
//! | row | one operation of a thread |
//! |---|---|
//! | any shared array | loads two random words, and changes one of them by compare-exchange: what the machine allows |
//! | the array, under locks | the same while it holds one of 1,024 locks, which are as large as stripes |
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

use std::error::Error;
use std::hint::spin_loop;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter};

use super::Plan;
use super::support::array::SharedArray;
use super::support::by_threads::ByThreads;
use super::support::filled::{Sample, on_new_threads, on_prepared_threads};
use super::support::hash::HASH;
use super::support::keys::key;
use super::support::ours::{builder, of_size};
use super::support::subject::Subject;

type Fixed = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;

/// How many keys a batch has.
const BATCH: u64 = 1024;
/// The most keys that an empty filter is filled with.
const MOST_FILLED: u64 = 2_000_000;
/// The most keys that a growable filter is made for.
const MOST_GROWN: u64 = 30_000_000;
/// As many locks as our tables have.
const LOCKS: usize = 1024;

/// One lock, in as many bytes as our tables have for a lock and its version counter.
#[derive(Default)]
#[repr(align(16))]
struct Lock(AtomicBool);

/// The array, with locks beside it.
struct Array {
    array: SharedArray,
    locks: Vec<Lock>,
    /// The number of the next thread's first key.
    next: AtomicU64,
}

impl Array {
    fn new(bytes: usize) -> Self {
        let locks = (0..LOCKS).map(|_| Lock::default()).collect();
        Self { array: SharedArray::build(bytes), locks, next: AtomicU64::new(0) }
    }

    /// How many of `count` changes were made: all.
    #[inline(never)]
    fn changes(&self, count: u64) -> u64 {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first..first + count).map(|number| u64::from(self.array.insert(key(number)))).sum()
    }

    #[inline(never)]
    fn locked_changes(&self, count: u64) -> u64 {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let change = |number: u64| {
            let Lock(lock) = &self.locks[HASH.hash_one(number) as usize % LOCKS];
            while lock.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
                spin_loop();
            }
            let changed = self.array.insert(key(number));
            let freed = lock.compare_exchange(true, false, Ordering::Release, Ordering::Relaxed);
            u64::from(changed && freed.is_ok())
        };
        (first..first + count).map(change).sum()
    }
}

/// How keys come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Single,
    IfAbsent,
    OneCounter,
    WithLen,
    Batched,
}

/// A filter in which keys come and go.
trait Changed: Sync {
    fn of_keys(keys: u64) -> Self;
    /// Removes and inserts every `by`th key, from these numbers on. Returns how many changes succeeded.
    fn churn(&self, how: How, oldest: u64, newest: u64, by: u64, pairs: u64) -> u64;
    /// Inserts every `by`th key of these.
    fn fill(&self, numbers: Range<u64>, by: u64) -> u64;
    /// Inserts all of these, in batches.
    fn load(&self, numbers: Range<u64>);
}

macro_rules! changed {
    ($Filter:ty, $builder:expr) => {
        impl Changed for $Filter {
            fn of_keys(keys: u64) -> Self {
                let builder = $builder;
                builder.capacity(keys as usize).build().expect("a valid filter")
            }

            #[inline(never)]
            fn churn(&self, how: How, oldest: u64, newest: u64, by: u64, pairs: u64) -> u64 {
                let remove = |nth: u64| u64::from(self.remove(&key(oldest + nth * by)));
                let insert = |nth: u64| u64::from(self.insert(&key(newest + nth * by)).is_ok());
                match how {
                    How::Single | How::OneCounter => (0..pairs).map(|nth| remove(nth) + insert(nth)).sum(),
                    How::IfAbsent => {
                        let insert = |nth: u64| self.insert_if_absent(&key(newest + nth * by)).is_ok();
                        (0..pairs).map(|nth| remove(nth) + u64::from(insert(nth))).sum()
                    }
                    How::WithLen => (0..pairs).map(|nth| remove(nth) + insert(nth) * u64::from(self.len() > 0)).sum(),
                    How::Batched => {
                        let (mut keys, mut removed, mut done) = (Vec::new(), Vec::new(), 0);
                        for start in (0..pairs).step_by(BATCH as usize) {
                            let batch = start..pairs.min(start + BATCH);
                            keys.clear();
                            keys.extend(batch.clone().map(|nth| key(oldest + nth * by)));
                            removed.clear();
                            self.remove_batch(&keys, &mut removed);
                            done += removed.iter().map(|&removed| u64::from(removed)).sum::<u64>();
                            keys.clear();
                            keys.extend(batch.clone().map(|nth| key(newest + nth * by)));
                            self.insert_batch(&keys).expect("room");
                            done += batch.end - batch.start;
                        }
                        done
                    }
                }
            }

            #[inline(never)]
            fn fill(&self, numbers: Range<u64>, by: u64) -> u64 {
                numbers.step_by(by as usize).map(|number| u64::from(self.insert(&key(number)).is_ok())).sum()
            }

            fn load(&self, numbers: Range<u64>) {
                for start in numbers.clone().step_by(BATCH as usize) {
                    let keys: Vec<u64> = (start..numbers.end.min(start + BATCH)).map(key).collect();
                    self.insert_batch(&keys).expect("room");
                }
            }
        }
    };
}
changed!(Fixed, builder());
changed!(Growable, GrowableCuckooFilter::builder().hasher(HASH));

/// Filters, and the numbers of the keys that each of them holds.
struct Churned<F>(Vec<(F, Range<u64>)>);

impl<F: Changed> Churned<F> {
    /// Each with so many keys, or some fewer.
    fn new(filters: impl IntoIterator<Item = F>, keys: u64, threads: u64) -> Self {
        // So that a thread's keys are always its own, with any of the numbers of threads.
        let keys = keys / 64 * 64;
        let part = |thread: u64| keys * thread / threads;
        let fill = |filter: &F| {
            on_new_threads(threads, |thread| filter.load(part(thread)..part(thread + 1)));
        };
        Self(filters.into_iter().inspect(fill).map(|filter| (filter, 0..keys)).collect())
    }

    /// Each thread removes its oldest keys and inserts new ones, `pairs` of them. If there is more than one filter, each
    /// thread has one of its own.
    fn run(&mut self, how: How, pairs: u64, threads: u64, prepare: impl Fn(&F, u64) + Sync) -> Sample {
        let Self(filters) = self;
        let count = filters.len() as u64;
        // Of the keys of a filter, each thread has every `by`th.
        let by = threads.div_ceil(count);
        let of = |thread: u64| &filters[(thread % count) as usize];
        let (time, done) = on_prepared_threads(
            threads,
            |thread| prepare(&of(thread).0, thread),
            |thread| {
                let (filter, present) = of(thread);
                let first = thread / count;
                filter.churn(how, present.start + first, present.end + first, by, pairs)
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
fn fill<F: Changed>(keys: u64, start_with: u64, count: u64, threads: u64) -> Sample {
    let mut sample = Sample::default();
    while sample.operations < count {
        let filter = F::of_keys(start_with);
        let (time, done) = on_new_threads(threads, |thread| filter.fill(thread..keys, threads));
        assert_eq!(done.iter().sum::<u64>(), keys, "room");
        sample += Sample { operations: keys, time };
    }
    sample
}

/// All tables of one size.
struct Tables {
    array: Array,
    shared: Churned<Fixed>,
    own: Churned<Fixed>,
    growable: Churned<Growable>,
    grown: Churned<Growable>,
    filled: u64,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Array,
    LockedArray,
    Shared(How),
    Own,
    Growable,
    Grown,
    Filling,
    Growing,
}

const ROWS: [(&str, Work); 12] = [
    ("any shared array", Work::Array),
    ("the array, under locks", Work::LockedArray),
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
        let filter = of_size(bytes, 5, |keys| builder().capacity(keys).build().expect("a valid filter"));
        let made_for = filter.capacity() as u64;
        let keys = made_for * 4 / 5;
        let grows_to = (made_for / 2).min(MOST_GROWN);
        let own = (0..threads).map(|_| Fixed::of_keys(made_for / threads));
        Self {
            array: Array::new(bytes),
            shared: Churned::new([filter], keys, threads),
            own: Churned::new(own, keys / threads, threads),
            // About as many bytes, or far more than are in a cache: here a key takes up to twice as many bits.
            growable: Churned::new([Growable::of_keys(grows_to)], grows_to * 4 / 5, threads),
            grown: Churned::new([Growable::of_keys(0)], grows_to * 4 / 5, threads),
            filled: keys.min(MOST_FILLED),
        }
    }

    /// About `count` operations of all threads, in equal shares.
    fn run(&mut self, work: Work, count: u64, threads: u64) -> Sample {
        let (each, pairs) = (count / threads + 1, count / threads / 2 + 1);
        let array = &self.array;
        let turn = AtomicU64::new(0);
        let (time, done) = match work {
            Work::Array => on_new_threads(threads, |_| array.changes(each)),
            Work::LockedArray => on_new_threads(threads, |_| array.locked_changes(each)),
            Work::Shared(how @ How::OneCounter) => {
                return self.shared.run(how, pairs, threads, |filter, thread| share_a_counter(filter, &turn, thread));
            }
            Work::Shared(how) => return self.shared.run(how, pairs, threads, |_, _| ()),
            Work::Own => return self.own.run(How::Single, pairs, threads, |_, _| ()),
            Work::Growable => return self.growable.run(How::Single, pairs, threads, |_, _| ()),
            Work::Grown => return self.grown.run(How::Single, pairs, threads, |_, _| ()),
            Work::Filling => return fill::<Fixed>(self.filled, self.filled, count, threads),
            Work::Growing => return fill::<Growable>(self.filled, 0, count, threads),
        };
        Sample { operations: done.iter().sum(), time }
    }

    /// One turn, in millions of operations a second.
    fn turn(&mut self, work: Work, threads: u64, plan: &Plan) -> f64 {
        // A first try shows how many operations fit in a turn.
        let first = self.run(work, 16 * BATCH, threads).mops();
        self.run(work, (plan.turn.as_micros() as f64 * first) as u64 + 1, threads).mops()
    }
}

/// Times the threads, interleaved in the same rounds, and shows a table and a chart.
pub(crate) fn measure(bytes: usize, plan: &Plan, folder: &Path) -> Result<(), Box<dyn Error>> {
    let size = format!("{} KiB", bytes >> 10);
    eprintln!("writers: filling tables of {size}");
    let mut tables = Tables::new(bytes, *plan.threads.last().expect("a number of threads"));
    let mut rows = ROWS.map(|(name, _)| (name.to_owned(), vec![Vec::new(); plan.threads.len()])).to_vec();
    for round in 0..plan.rounds {
        eprintln!("writers, {size}: round {} of {}", round + 1, plan.rounds);
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
        result.chart().svg()?;
        return Ok(());
    }
    result.show(folder, &format!("writers {size}"))
}
