//! What batches gain, in a filter that grows and in one that does not.
//!
//! `cargo bench --bench batches [-- --quick | --l2 | --large]`
//!
//! The subjects are a `ConcurrentCuckooFilter` and a `GrowableCuckooFilter` that has grown. Each takes about the same
//! number of bytes, is three quarters full
//! and has the default rate. On one thread, single operations and batches of 1,024 are interleaved: each ratio
//! compares two slices of one round. The output shows medians, and the median of the ratios with the min and max.

mod support;

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::report::{Spread, align, speed};

/// How many keys a batch has.
const BATCH: usize = 1024;

/// How many keys are timed at a time.
const SLICE: usize = 4 * BATCH;

type Concurrent = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;

/// What the rows are about.
trait Subject {
    fn contains(&self, key: &u64) -> bool;
    fn contains_batch(&self, keys: &[u64], found: &mut Vec<bool>);
    fn insert(&self, key: &u64);
    fn insert_batch(&self, keys: &[u64]);
}

macro_rules! subject {
    ($Filter:ident) => {
        impl Subject for $Filter {
            fn contains(&self, key: &u64) -> bool {
                $Filter::contains(self, key)
            }

            fn contains_batch(&self, keys: &[u64], found: &mut Vec<bool>) {
                $Filter::contains_batch(self, keys, found);
            }

            fn insert(&self, key: &u64) {
                $Filter::insert(self, key).expect("there is room");
            }

            fn insert_batch(&self, keys: &[u64]) {
                assert_eq!($Filter::insert_batch(self, keys), Ok(()));
            }
        }
    };
}

subject!(Concurrent);
subject!(Growable);

/// Nanoseconds a key for single calls and for batches, in each round.
struct Row {
    name: String,
    single: Vec<f64>,
    batched: Vec<f64>,
}

impl Row {
    fn new(filter: &str, operation: &str) -> Self {
        Self { name: format!("{filter}, {operation}"), single: Vec::new(), batched: Vec::new() }
    }

    fn cells(&self) -> Vec<String> {
        let cell = |times: &[f64]| format!("{:.1}", speed(times));
        let ratio = Spread::of_ratios(&self.single, &self.batched).show();
        vec![self.name.clone(), cell(&self.single), cell(&self.batched), ratio]
    }
}

fn time(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e9 / SLICE as f64
}

/// Rows for present and absent keys. The keys in the filter have the numbers below `len`.
fn lookups(name: &str, filter: &impl Subject, len: u64, length: Duration) -> [Row; 2] {
    [("hit", 0..len), ("miss", ABSENT..2 * ABSENT)].map(|(operation, numbers)| {
        let mut row = Row::new(name, operation);
        let mut random = SmallRng::seed_from_u64(17);
        let mut slice = || drawn(&mut random, numbers.clone(), SLICE as u64);
        let mut found = Vec::with_capacity(BATCH);
        let start = Instant::now();
        while start.elapsed() < length || row.single.is_empty() {
            let keys = slice();
            row.single.push(time(|| {
                black_box(keys.iter().filter(|key| filter.contains(key)).count());
            }));
            let keys = slice();
            row.batched.push(time(|| {
                for keys in keys.chunks(BATCH) {
                    found.clear();
                    filter.contains_batch(keys, &mut found);
                    black_box(&found);
                }
            }));
        }
        row
    })
}

/// The numbers of the present keys. The oldest are removed, and new ones come after the last.
struct Window {
    first: u64,
    next: u64,
}

impl Window {
    fn slice(from: &mut u64) -> Vec<u64> {
        *from += SLICE as u64;
        (*from - SLICE as u64..*from).map(key).collect()
    }

    fn new_keys(&mut self) -> Vec<u64> {
        Self::slice(&mut self.next)
    }

    fn old_keys(&mut self) -> Vec<u64> {
        Self::slice(&mut self.first)
    }
}

/// Calls `round` until the time is over.
fn rounds(length: Duration, mut round: impl FnMut()) {
    let start = Instant::now();
    round();
    while start.elapsed() < length {
        round();
    }
}

fn insert_all(filter: &impl Subject, keys: &[u64]) {
    keys.iter().for_each(|key| filter.insert(key));
}

fn insert_batches(filter: &impl Subject, keys: &[u64]) {
    keys.chunks(BATCH).for_each(|keys| filter.insert_batch(keys));
}

/// Rows for inserts and removals, for a filter that has both. The present keys have the numbers below `len`.
macro_rules! changes {
    ($name:expr, $filter:expr, $len:expr, $length:expr) => {{
        let (filter, mut inserts, mut removals) = ($filter, Row::new($name, "insert"), Row::new($name, "remove"));
        let mut additions = Row::new($name, "insert_if_absent of absent keys");
        let mut removed = Vec::with_capacity(BATCH);
        let mut keys = Window { first: 0, next: $len };
        rounds($length, || {
            let (one, other) = (keys.old_keys(), keys.old_keys());
            removals.single.push(time(|| one.iter().for_each(|key| assert!(filter.remove(key)))));
            removals.batched.push(time(|| {
                for keys in other.chunks(BATCH) {
                    removed.clear();
                    filter.remove_batch(keys, &mut removed);
                    black_box(&removed);
                }
            }));
            let (one, other) = (keys.new_keys(), keys.new_keys());
            inserts.single.push(time(|| insert_all(filter, &one)));
            inserts.batched.push(time(|| insert_batches(filter, &other)));
            for _ in 0..2 {
                filter.remove_batch(&keys.old_keys(), &mut removed);
            }
            let (one, other) = (keys.new_keys(), keys.new_keys());
            additions.single.push(time(|| {
                black_box(one.iter().filter(|key| filter.insert_if_absent(key).expect("there is room")).count());
            }));
            additions.batched.push(time(|| {
                for keys in other.chunks(BATCH) {
                    removed.clear();
                    black_box(filter.insert_if_absent_batch(keys, &mut removed).expect("there is room"));
                }
            }));
        });
        [inserts, removals, additions]
    }};
}

fn fill(filter: &impl Subject, numbers: Range<u64>) {
    let keys: Vec<u64> = numbers.map(key).collect();
    insert_batches(filter, &keys);
}

/// Fills it in steps, so that no array of all keys is needed.
fn fill_to(filter: &impl Subject, from: u64, to: u64) {
    for start in (from..to).step_by(SLICE) {
        fill(filter, start..to.min(start + SLICE as u64));
    }
}

fn measure(bytes: usize, length: Duration) -> Vec<Row> {
    // The number of keys in this many bytes, in the default layout, three quarters full.
    let len = bytes as u64 * 5 / 8 * 3 / 4;
    let mut rows = Vec::new();

    let filter = Concurrent::builder_with_hasher(HASH).capacity(len as usize * 5 / 4).build().expect("a valid filter");
    fill_to(&filter, 0, len);
    rows.extend(lookups("one table", &filter, len, length));
    rows.extend(changes!("one table", &filter, len, length));
    drop(filter);

    let capacity = len as usize * 5 / 4;
    let builder = Growable::builder_with_hasher(HASH).capacity(capacity / 1000).max_capacity(capacity);
    let filter = builder.build().expect("a valid filter");
    fill_to(&filter, 0, len);
    rows.extend(lookups("growable", &filter, len, length));
    rows.extend(changes!("growable", &filter, len, length));
    drop(filter);
    rows
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let length = Duration::from_millis(match (options.test, options.quick) {
        (true, _) => 1,
        (false, true) => 300,
        (false, false) => 3000,
    });
    for size in options.sizes() {
        // A slice must be small compared with the free room.
        let bytes = if options.test { 1 << 20 } else { options.table_bytes(size) };
        eprintln!("{}", size.name());
        let head = ["", "single", "batched", "batched over single"].map(String::from).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(measure(bytes, length).iter().map(Row::cells)).collect();
        if !options.test {
            println!("## {}: millions of operations a second\n\n{}", size.name(), align(&rows, 1));
        }
    }
}
