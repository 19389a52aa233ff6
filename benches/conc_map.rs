//! conc-map-bench: the usual comparison of concurrent maps, with this crate's filters among them.
//!
//! `cargo bench --bench conc_map [-- --quick | --only=ReadHeavy | --out=DIR]`
//!
//! conc-map-bench runs three workloads by `bustle`, the port of libcuckoo's universal benchmark. `bustle` is used as it is.
//! The workloads are those of conc-map-bench, with its sizes: each map is made for 2²⁵ keys, and all threads together do 2²⁵
//! operations. With `--quick` it is 2²⁰.
//!
//! | workload | lookups | inserts | removals | updates | in at first |
//! |---|---|---|---|---|---|
//! | ReadHeavy | 98% | 1% | 1% | – | 3/4 of the keys that it is made for |
//! | Exchange | 10% | 40% | 40% | 10% | the same |
//! | RapidGrow | 5% | 80% | 5% | 10% | none |
//!
//! All have the same keys and the same hash in a round, and zero-sized values. The filters differ in these:
//! - `bustle` asserts that every answer is exact. So the filters have slots of 32 bits, two in a bucket, and a
//!   false-positive rate of some 10⁻⁹. A ReadHeavy run looks up 20 million absent keys. If one of
//!   them is taken for a present key, `bustle` panics. Then the run is repeated with other keys, and the output says how
//!   many were.
//! - An insert is `insert_if_absent`, because `bustle` asks whether the key is new. An update is a lookup, because
//!   there is no value.
//! - The growable filter begins with the size that `bustle` asks for, as all do. (From an empty table, it would need
//!   longer fingerprints than 32 bits for so low a rate.) It can double from there.

#[path = "support/mod.rs"]
mod support;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use ahash::RandomState;
use bustle::{Collection, CollectionHandle, Mix, Workload};
use concurrent_cuckoo_filter::{ConcurrentBuilder, GrowableBuilder};
use support::by_threads::{ByThreads, thread_counts};
use support::exact::{Dash, ExactSet, Locked, Papaya, SccIndex, SccMap};
use support::options::Options;
use support::ours::{self, Fixed, Growable, builder};

/// The share of the capacity that is in at first, and the lookups, inserts, removals and updates in percent.
const WORKLOADS: [(&str, f64, [u8; 4]); 3] =
    [("ReadHeavy", 0.75, [98, 1, 1, 0]), ("Exchange", 0.75, [10, 40, 40, 10]), ("RapidGrow", 0.0, [5, 80, 5, 10])];

/// How often a run is repeated at most, if a false positive ends it.
const TRIES: u8 = 3;

fn fixed(keys: usize) -> ConcurrentBuilder<u64, RandomState> {
    builder().capacity(keys).false_positive_rate(1e-9)
}

/// This is the lowest possible rate, that of the largest size. A smaller table's rate is lower in proportion.
fn growable(keys: usize) -> GrowableBuilder<u64, RandomState> {
    let most = (keys << 7).min(3_300_000_000);
    ours::growable().capacity(keys).max_capacity(most).false_positive_rate(2.42e-7)
}

macro_rules! filter {
    ($Filter:ty, $name:literal, $build:ident) => {
        impl ExactSet for $Filter {
            const NAME: &'static str = $name;
            const BYTES: usize = 5;

            fn with_capacity(keys: usize) -> Self {
                $build(keys).build().expect("a valid filter")
            }

            #[inline]
            fn insert_new(&self, key: u64) -> bool {
                self.insert_if_absent(&key).expect("room")
            }

            #[inline]
            fn update(&self, key: u64) -> bool {
                self.contains(&key)
            }
        }
    };
}
filter!(Fixed, "ours, fixed, 2x32", fixed);
filter!(Growable, "ours, growable, 2x32", growable);

/// A set with the interface of `bustle`.
struct Table<S>(Arc<S>);

impl<S: ExactSet> Collection for Table<S> {
    type Handle = Self;

    fn with_capacity(capacity: usize) -> Self {
        Self(Arc::new(S::with_capacity(capacity)))
    }

    fn pin(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: ExactSet> CollectionHandle for Table<S> {
    type Key = u64;

    fn get(&mut self, key: &u64) -> bool {
        self.0.contains(*key)
    }

    fn insert(&mut self, key: &u64) -> bool {
        self.0.insert_new(*key)
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.0.remove(*key)
    }

    fn update(&mut self, key: &u64) -> bool {
        self.0.update(*key)
    }
}

/// What is run.
struct Plan {
    workload: usize,
    capacity_log2: u8,
}

impl Plan {
    /// Millions of operations a second, and how many runs a false positive has ended before.
    fn run<S: ExactSet>(&self, threads: u64, round: u8) -> (f64, u64) {
        let (_, prefill, [read, insert, remove, update]) = WORKLOADS[self.workload];
        let mut workload = Workload::new(threads as usize, Mix { read, insert, remove, update, upsert: 0 });
        workload.initial_capacity_log2(self.capacity_log2).prefill_fraction(prefill).operations(1.0);
        for attempt in 0..TRIES {
            // The seed chooses the keys.
            workload.seed([round * TRIES + attempt + 1; 32]);
            match catch_unwind(AssertUnwindSafe(|| workload.run_silently::<Table<S>>())) {
                Ok(measured) => return (measured.throughput / 1e6, attempt.into()),
                Err(panic) if attempt + 1 == TRIES || !S::NAME.starts_with("ours") => resume_unwind(panic),
                Err(_) => eprintln!("{}: the run that has panicked is repeated with other keys", S::NAME),
            }
        }
        unreachable!("the last try returns or panics")
    }
}

type Run = fn(&Plan, u64, u8) -> (f64, u64);

fn main() -> io::Result<()> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let (rounds, capacity_log2) = options.pick((1, 10), (3, 20), (3, 25));
    let sets: [(&str, Run); 7] = [
        (Fixed::NAME, Plan::run::<Fixed>),
        (Growable::NAME, Plan::run::<Growable>),
        (Dash::NAME, Plan::run::<Dash>),
        (SccMap::NAME, Plan::run::<SccMap>),
        (SccIndex::NAME, Plan::run::<SccIndex>),
        (Papaya::NAME, Plan::run::<Papaya>),
        (Locked::NAME, Plan::run::<Locked>),
    ];
    let threads = thread_counts();
    for (workload, (title, ..)) in WORKLOADS.into_iter().enumerate() {
        if !options.wants(title) {
            continue;
        }
        let plan = Plan { workload, capacity_log2 };
        let mut rows = sets.map(|(name, _)| (name.to_owned(), vec![Vec::new(); threads.len()])).to_vec();
        let mut repeated = 0;
        for round in 0..rounds {
            for ((_, run), (name, speeds)) in sets.into_iter().zip(&mut rows) {
                eprintln!("{title}, round {} of {rounds}: {name}", round + 1);
                for (&threads, speeds) in threads.iter().zip(speeds) {
                    let (speed, again) = run(&plan, threads, round);
                    speeds.push(speed);
                    repeated += again;
                }
            }
        }
        let about = format!("conc-map-bench, sets for 2^{capacity_log2} keys");
        let result = ByThreads { title: title.into(), about, unit: "operations", threads: &threads, rows, array: None };
        result.show(&options, "target/conc_map", title)?;
        println!("Runs that were repeated, because a false positive ended them: {repeated}\n");
    }
    Ok(())
}
