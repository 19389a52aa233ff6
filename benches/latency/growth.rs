//! Lookups and inserts while a filter grows from a thousand keys.
//!
//! One thread inserts, another looks up present and absent keys in turn. Each begins 500,000 operations a second, if it
//! can, so it needs a core for itself. `scalable_cuckoo_filter` in a lock grows by adding filters. A third subject does
//! nothing: its figures are those of the clock and of the machine.

use std::hash::BuildHasher;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::RwLock;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use scalable_cuckoo_filter::ScalableCuckooFilterBuilder;

use crate::support::hash::HASH;
use crate::support::keys::{ABSENT, key};
use crate::support::ours;
use crate::support::subject::{Set, set};

/// The number of keys at first.
const FEW: u64 = 1000;

/// The share of lookups of absent keys that may be answered `true`.
const RATE: f64 = 0.001;

/// From one operation of a thread to the next.
const PACE: Duration = Duration::from_micros(2);

const QUANTILES: [(&str, f64); 4] = [("50%", 0.5), ("99%", 0.99), ("99.9%", 0.999), ("longest", 1.0)];

struct Nothing;
set!(Nothing, |_nothing, _key| true, true, true);

/// The operations of one thread.
struct Paced {
    due: Instant,
    nanoseconds: Histogram<u64>,
    /// The longest time from when an operation was due to its end.
    latest: Duration,
}

impl Paced {
    fn new(start: Instant) -> Self {
        Self { due: start, nanoseconds: Histogram::new(3).expect("three digits"), latest: Duration::ZERO }
    }

    /// Waits until it is time, and runs the operation.
    fn run<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        while Instant::now() < self.due {
            spin_loop();
        }
        let begin = Instant::now();
        let result = operation();
        let end = Instant::now();
        self.nanoseconds += (end - begin).as_nanos() as u64;
        self.latest = self.latest.max(end - self.due);
        self.due += PACE;
        result
    }
}

/// The times of the lookups and of the inserts, and how many present keys were not found.
fn run(filter: &impl Set, keys: u64) -> ([Paced; 2], u64) {
    (0..FEW).for_each(|number| assert!(filter.insert(key(number)), "there is room"));
    // The keys of all numbers below this are in.
    let (present, start) = (AtomicU64::new(FEW), Instant::now() + PACE);
    let (mut lookups, mut inserts, mut lost) = (Paced::new(start), Paced::new(start), 0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in FEW..keys {
                assert!(inserts.run(|| filter.insert(key(number))), "it grows");
                // Seldom, so that the two threads do not wait for the line that they share.
                if number % 64 == 63 {
                    present.store(number + 1, Ordering::Release);
                }
            }
        });
        for nth in 0.. {
            if writer.is_finished() {
                break;
            }
            // A number below `present`, at random.
            let number = ((key(nth) >> 32) * present.load(Ordering::Acquire)) >> 32;
            lost += u64::from(!lookups.run(|| filter.contains(key(number))));
            lookups.run(|| filter.contains(key(ABSENT + nth)));
        }
    });
    ([lookups, inserts], lost)
}

pub(crate) fn table(keys: u64) -> Vec<Vec<String>> {
    let growable = ours::growable().false_positive_rate(RATE).capacity(FEW as usize).build().expect("a valid filter");
    let scalable = ScalableCuckooFilterBuilder::new().initial_capacity(FEW as usize).false_positive_probability(RATE);
    let scalable = scalable.hasher(HASH.build_hasher()).rng(SmallRng::seed_from_u64(1)).finish();
    let runs = [
        ("growable", run(&growable, keys)),
        ("scalable, RwLock", run(&RwLock::new(scalable), keys)),
        ("nothing", run(&Nothing, keys)),
    ];
    assert_eq!(runs[0].1.1, 0, "present keys were not found");
    let head = ["", "operations"]
        .into_iter()
        .chain(QUANTILES.map(|(name, _)| name))
        .chain(["latest, since due", "present, not found"]);
    let mut rows = vec![head.map(String::from).collect::<Vec<_>>()];
    for (name, (operations, lost)) in runs {
        for ((operation, lost), Paced { nanoseconds, latest, .. }) in
            [("lookup", lost.to_string()), ("insert", "–".into())].into_iter().zip(operations)
        {
            let quantile = |(_, quantile)| format!("{:.1}", nanoseconds.value_at_quantile(quantile) as f64 / 1e3);
            let latest = format!("{:.1}", latest.as_secs_f64() * 1e6);
            let figures =
                [nanoseconds.len().to_string()].into_iter().chain(QUANTILES.map(quantile)).chain([latest, lost]);
            rows.push([format!("{operation}: {name}")].into_iter().chain(figures).collect());
        }
    }
    rows
}
