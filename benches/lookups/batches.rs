//! The speedup by batches, and by huge pages.
//!
//! Inserts are from empty to 75% of the slots, those of absent keys to 80%, lookups at 90%, and removals from there
//! on. Single and batched slices alternate, so that both meet the same loads. Key generation is timed too.

use std::hint::black_box;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::Encoding;

use crate::support::keys::{ABSENT, Shuffled, key};
use crate::support::options::Options;
use crate::support::ours::{BATCH, Fixed, builder, of_size};
use crate::support::plan::Size;
use crate::support::report::{Spread, median};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Contains,
    Insert,
    InsertIfAbsent,
    Remove,
}

/// Runs an operation with these keys, one by one. Returns for how many the answer was `true`.
#[inline(never)]
fn single(filter: &Fixed, operation: Operation, keys: &[u64]) -> usize {
    let keys = keys.iter();
    match operation {
        Operation::Contains => keys.filter(|key| filter.contains(*key)).count(),
        Operation::Insert => keys.filter(|key| filter.insert(*key).is_ok()).count(),
        Operation::InsertIfAbsent => keys.filter(|key| filter.insert_if_absent(*key).expect("room")).count(),
        Operation::Remove => keys.filter(|key| filter.remove(*key)).count(),
    }
}

/// [`single`] in a batch.
#[inline(never)]
fn batched(filter: &Fixed, operation: Operation, keys: &[u64], answers: &mut Vec<bool>) -> usize {
    answers.clear();
    match operation {
        Operation::Contains => filter.contains_batch(keys, answers),
        Operation::Insert => {
            filter.insert_batch(keys).expect("room");
            return keys.len();
        }
        Operation::InsertIfAbsent => _ = filter.insert_if_absent_batch(keys, answers).expect("room"),
        Operation::Remove => filter.remove_batch(keys, answers),
    }
    answers.iter().filter(|&&answer| answer).count()
}

/// What is timed of one filter.
struct Run<'a> {
    name: &'a str,
    filter: &'a Fixed,
    rounds: usize,
    answers: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Run<'_> {
    /// The speed of an operation with this many keys, in millions per second, and for how many the answer was `true`.
    fn time(
        &mut self,
        operation: Operation,
        in_batches: bool,
        count: u64,
        next: &mut dyn FnMut() -> u64,
    ) -> (f64, usize) {
        let (mut keys, mut yes, start) = (Vec::with_capacity(BATCH), 0, Instant::now());
        for first in (0..count).step_by(BATCH) {
            keys.clear();
            keys.extend((first..count.min(first + BATCH as u64)).map(|_| key(next())));
            yes += if in_batches {
                batched(self.filter, operation, &keys, &mut self.answers)
            } else {
                single(self.filter, operation, &keys)
            };
        }
        (count as f64 / start.elapsed().as_secs_f64() / 1e6, black_box(yes))
    }

    /// Adds a row: in each round, two slices of this many keys. `right` is the share of the answers `true`.
    fn row(
        &mut self,
        name: &str,
        operation: Operation,
        slice: u64,
        next: &mut dyn FnMut() -> u64,
        right: impl Fn(f64) -> bool,
    ) {
        let mut speeds = [Vec::new(), Vec::new()];
        for round in 0..2 * self.rounds {
            let (speed, yes) = self.time(operation, round % 2 == 1, slice, next);
            let share = yes as f64 / slice as f64;
            assert!(right(share), "{}, {name}: a share of {share} was answered `true`", self.name);
            speeds[round % 2].push(speed);
        }
        let ratio = Spread::of_ratios(&speeds[1], &speeds[0]).show();
        let [single, batched] = speeds.map(|speeds| format!("{:.1}", median(speeds)));
        self.rows.push(vec![format!("{}, {name}", self.name), single, batched, ratio]);
    }
}

/// The rows of an empty filter.
fn measure(name: &str, filter: &Fixed, rounds: usize, turn: Duration) -> Vec<Vec<String>> {
    let slots = filter.plan().slots as u64;
    let mut run = Run { name, filter, rounds, answers: Vec::with_capacity(BATCH), rows: Vec::new() };
    let (all, mostly) = (|share| share == 1.0, |share| share > 0.99);
    let mut last = 0;
    let mut new = || {
        last += 1;
        last - 1
    };
    let slice = |share: u64| slots * share / 100 / (2 * rounds as u64);
    run.row("insert", Operation::Insert, slice(75), &mut new, all);
    run.row("insert_if_absent", Operation::InsertIfAbsent, slice(5), &mut new, mostly);
    let len = slots * 9 / 10;
    let more = len - 2 * rounds as u64 * (slice(75) + slice(5));
    assert_eq!(run.time(Operation::Insert, true, more, &mut new).1 as u64, more);

    let (mut present, mut absent) = (Shuffled::new(0..len, 0.0), ABSENT);
    let mut absent = || {
        absent += 1;
        absent
    };
    // A first try shows how many lookups fit in a turn. A look-alike of a key may have kept it from being inserted.
    for (name, next, right) in [
        ("hit", &mut (|| present.next()) as &mut dyn FnMut() -> u64, mostly as fn(f64) -> bool),
        ("miss", &mut absent, |share| share < 0.01),
    ] {
        let (speed, _) = run.time(Operation::Contains, false, 16 * BATCH as u64, next);
        let slice = ((turn.as_micros() as f64 * speed) as u64).max(BATCH as u64);
        run.row(name, Operation::Contains, slice, next, right);
    }
    let mut first = 0;
    let mut oldest = || {
        first += 1;
        first - 1
    };
    run.row("remove", Operation::Remove, slice(5), &mut oldest, mostly);
    run.rows
}

pub(crate) fn table(size: Size, options: &Options) -> (&'static str, Vec<Vec<String>>) {
    let (bytes, (rounds, turn)) = (options.table_bytes(size), options.pick((1, 0), (3, 20), (7, 60)));
    let mut rows = vec![["", "single", "batched", "batched over single"].map(String::from).to_vec()];
    for huge in [false, true].into_iter().filter(|&huge| !huge || size == Size::Large) {
        let suffix = if huge { ", huge pages" } else { "" };
        let plain = builder().encoding(Encoding::Plain).false_positive_rate(0.000_125);
        for (name, slots, builder) in [("5x14", 5, builder()), ("4x16", 4, plain)] {
            let builder = builder.huge_pages(huge);
            let filter = of_size(bytes, slots, |capacity| builder.clone().capacity(capacity).build().expect("valid"));
            rows.extend(measure(&format!("{name}{suffix}"), &filter, rounds, Duration::from_millis(turn)));
        }
    }
    ("millions of operations a second", rows)
}
