//! How many times as fast this crate's filter is as others, measured in one run.
//!
//! `cargo bench --bench ratios [-- --quick | --l2 | --large]`
//!
//! On a machine whose speed changes from second to second, an absolute figure says little. The ratio of two says
//! more, if their runs are interleaved. So everything is measured in *rounds*. In each round every subject has one
//! *turn*, a fraction of a second, and each ratio compares two turns of one round. The output shows the median of
//! all rounds, with the min and max in brackets.
//!
//! # What is measured
//! - inserts from empty to 90 % load, and from there to 95 %; removals from there to an empty filter (at 192 MB, to
//!   85 %);
//! - lookups at 90 % load: of present keys, and of absent keys. The order is not that of insertion;
//! - the mix: 90 % lookups of either at random, 5 % removals, 5 % inserts, at 90 % load;
//! - all this on one thread and on two;
//! - the memory and the measured false-positive rate, to show which rates are compared.
//!
//! `support/subject.rs` describes what is compared, and how each subject is set up. `array` is no filter, but any
//! shared array: it loads two words from two random cache lines of a vector of the same size, and changes one of them by
//! compare-exchange for an insert or a removal. The addresses come from the same hash of the same keys. That is the
//! best that a filter of two buckets can reach in memory of that size, without batching. What two threads gain there is
//! the machine's, and the last table shows the filters relative to it.
//!
//! Each subject's answers are checked: all lookups of present keys, all inserts and all removals must succeed, or
//! the run ends. There is one exception, for `atomic-cuckoo-filter` 0.3: while one thread relocates items, its
//! `remove` on another thread sometimes misses a present key. The line below the first table says how often this
//! happened.

mod support;

use std::array;
use std::time::Duration;

use support::array::ARRAY;
use support::by_threads::{Turns, steady};
use support::filled::{Bench, Filled, Sample, Steady};
use support::options::Options;
use support::ours::{DEFAULT_5X14, PLAIN_4X16};
use support::peers::{ATOMIC, SCALABLE};
use support::plan::{STEADY_LOAD, Size, bring_to, items};
use support::report::{Spread, align, median};
use support::subject::{About, Kind};

/// In the order of the tables. The lookups and the mix are those of [`Steady::ALL`].
const OPERATIONS: [&str; 6] = ["insert to 90 %", "insert 90-95 %", "lookup hit", "lookup miss", "mix 90/5/5", "remove"];
const FIRST_STEADY: usize = 2;

/// All that was measured at one size.
struct Results {
    size: Size,
    subjects: [Box<dyn Bench>; 5],
    /// Millions of operations a second, on one thread and on two, of each operation and each subject: in each round.
    mops: [[[Vec<f64>; 5]; OPERATIONS.len()]; 2],
}

impl Results {
    fn measure(size: Size, table_bytes: usize, turns: Turns) -> Self {
        let subjects = [
            Filled::boxed(DEFAULT_5X14, table_bytes),
            Filled::boxed(PLAIN_4X16, table_bytes),
            Filled::boxed(ATOMIC, table_bytes),
            Filled::boxed(SCALABLE, table_bytes),
            Filled::boxed(ARRAY, table_bytes),
        ];
        let mut results = Self { size, subjects, mops: Default::default() };
        // Two threads first, so that one thread has filled the tables for the lookups.
        for threads in [2, 1] {
            eprintln!("{}: inserts and removals, threads: {threads}", size.name());
            results.subjects.iter_mut().for_each(|subject| subject.renew());
            results.measure_changes(turns.rounds, threads);
        }
        results.subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD));
        for (nth, what) in Steady::ALL.into_iter().enumerate() {
            eprintln!("{}: {}", size.name(), what.name());
            for (subject, mut speeds) in steady(&mut results.subjects, &[what], &[1, 2], turns).into_iter().enumerate()
            {
                for (thread, speeds) in speeds.remove(0).into_iter().enumerate() {
                    results.mops[thread][FIRST_STEADY + nth][subject] = speeds;
                }
            }
        }
        results
    }

    /// Fills and empties all filters, interleaved.
    ///
    /// A small table is filled and emptied three times for each round. Filling a large one takes many seconds, so it is
    /// filled once, in slices, and emptied to 85 %. The slices are assigned to the rounds forwards and backwards in turn,
    /// so each round has its share of low and of high loads.
    fn measure_changes(&mut self, rounds: usize, threads: u64) {
        let (cycles, slices, floor) =
            if self.size == Size::Large { (1, 4 * rounds, 0.85) } else { (3 * rounds, 1, 0.0) };
        // The number of the operation, and between which loads it is.
        let changes = [(0, 0.0, 0.9), (1, 0.9, 0.95), (OPERATIONS.len() - 1, 0.95, floor)];
        let mut samples: [[Vec<Sample>; 5]; 3] =
            array::from_fn(|_| array::from_fn(|_| vec![Sample::default(); rounds]));
        for cycle in 0..cycles {
            for ((_, from, to), samples) in changes.iter().zip(&mut samples) {
                for slice in 0..slices {
                    let number = cycle * slices + slice;
                    // 0 1 2 2 1 0 0 1 2 …
                    let (turn, place) = (number / rounds, number % rounds);
                    let round = if turn % 2 == 0 { place } else { rounds - 1 - place };
                    let load = from + (to - from) * (slice + 1) as f64 / slices as f64;
                    for (bench, samples) in self.subjects.iter_mut().zip(samples.iter_mut()) {
                        let len = items(bench.as_ref(), load);
                        let removes = to < from;
                        samples[round] +=
                            if removes { bench.remove_to(len, threads) } else { bench.insert_to(len, threads) };
                    }
                }
            }
        }
        for ((operation, ..), samples) in changes.into_iter().zip(samples) {
            self.mops[threads as usize - 1][operation] =
                samples.map(|samples| samples.into_iter().map(Sample::mops).collect());
        }
    }

    /// How many times as fast one is as the other, round by round. (Each is a number of threads and a subject.)
    fn ratio(&self, operation: usize, one: (usize, usize), other: (usize, usize)) -> String {
        let of = |(threads, subject): (usize, usize)| &self.mops[threads - 1][operation][subject];
        Spread::of_ratios(of(one), of(other)).show()
    }

    /// The gain by a second thread, as a multiple of what the array gains by it in the same round.
    fn relative_to_array(&self, operation: usize, subject: usize) -> String {
        let array = self.subjects.len() - 1;
        let gain = |subject: usize| -> Vec<f64> {
            let [one, two] = self.mops.each_ref().map(|mops| &mops[operation][subject]);
            two.iter().zip(one).map(|(two, one)| two / one).collect()
        };
        Spread::of_ratios(&gain(subject), &gain(array)).show()
    }

    fn show(&self) -> String {
        let size = self.size.name();
        let all: Vec<usize> = (0..self.subjects.len()).collect();
        let (ours, others): (Vec<usize>, Vec<usize>) =
            all.iter().partition(|&&subject| self.subjects[subject].about().kind == Kind::Ours);
        let pairs: Vec<(usize, usize)> =
            others.iter().flat_map(|&other| ours.iter().map(move |&ours| (ours, other))).collect();
        let name = |subject: usize| self.subjects[subject].about().name;
        let mut text = format!("## {size}: tables of {} KiB\n\n", self.size.table_bytes() >> 10);
        text += &self.show_memory();
        for threads in [1, 2] {
            let on = format!("{size}, {threads} thread{}", if threads == 1 { "" } else { "s" });
            text += &format!("### {on}: millions of operations a second\n\n");
            text += &show_table(
                &all,
                |&subject| name(subject).into(),
                |operation, &subject| {
                    format!("{:.2}", median(self.mops[threads - 1][operation][subject].iter().copied()))
                },
            );
            text += &format!("### {on}: ours over others\n\n");
            text += &show_table(
                &pairs,
                |&(ours, other)| format!("{}/{}", name(ours).trim_start_matches("ours "), name(other)),
                |operation, &(ours, other)| self.ratio(operation, (threads, ours), (threads, other)),
            );
        }
        text += &format!("### {size}: two threads over one\n\n");
        text += &show_table(
            &all,
            |&subject| name(subject).into(),
            |operation, &subject| self.ratio(operation, (2, subject), (1, subject)),
        );
        text += &format!("### {size}: the same, relative to the array\n\n");
        text += &show_table(
            &all,
            |&subject| name(subject).into(),
            |operation, &subject| self.relative_to_array(operation, subject),
        );
        text
    }

    fn show_memory(&self) -> String {
        let head = ["name", "what", "bits", "slots", "MiB", "capacity", "load", "bits/item", "false positives"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for subject in self.subjects.iter().filter(|subject| subject.about().kind != Kind::Array) {
            let (positives, misses) = subject.false_positives();
            let (About { name, about, .. }, size) = (subject.about(), subject.size());
            let capacity = size.capacity as f64;
            rows.push(vec![
                name.into(),
                about.into(),
                size.fingerprint_bits.to_string(),
                size.slots.to_string(),
                format!("{:.2}", size.bytes as f64 / (1 << 20) as f64),
                size.capacity.to_string(),
                format!("{:.1} %", 100.0 * capacity / size.slots as f64),
                format!("{:.2}", size.bytes as f64 * 8.0 / capacity),
                format!("{:.4} %", 100.0 * positives as f64 / misses as f64),
            ]);
        }
        let mut text = align(&rows, 2);
        for subject in &self.subjects {
            if let (failed @ 1.., changes) = subject.failed_changes() {
                let name = subject.about().name;
                text += &format!("{name}: {failed} of {changes} inserts and removals failed in the mix.\n\n");
            }
        }
        text
    }
}

/// A line for each operation.
fn show_table<C>(columns: &[C], name: impl Fn(&C) -> String, cell: impl Fn(usize, &C) -> String) -> String {
    let mut rows: Vec<Vec<String>> = vec![[String::new()].into_iter().chain(columns.iter().map(name)).collect()];
    for (operation, name) in OPERATIONS.into_iter().enumerate() {
        let cells = columns.iter().map(|column| cell(operation, column));
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
    align(&rows, 1)
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (rounds, turn, first) = match (options.test, options.quick) {
        (true, _) => (1, 0, 100),
        (false, true) => (3, 40, 100_000),
        (false, false) => (7, 120, 100_000),
    };
    for size in options.sizes() {
        let table_bytes = options.table_bytes(size);
        let turns = Turns { rounds, turn: Duration::from_millis(turn), first };
        let results = Results::measure(size, table_bytes, turns);
        let text = results.show();
        // The figures of a test mean nothing.
        if !options.test {
            print!("{text}");
        }
    }
}
