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
//! - inserts from empty to 90% load, and from there to 95%; removals from there to an empty filter (at 192 MB, to
//!   85%);
//! - lookups at 90% load: of present keys, and of absent keys. The order is not that of insertion;
//! - the mix: 90% lookups of either at random, 5% removals, 5% inserts, at 90% load;
//! - all this on one thread and on two;
//! - the measured false-positive rate, to show which rates are compared.
//!
//! `support/subject.rs` describes what is compared, and how each subject is set up. `array` is no filter, but any
//! shared array: it loads two words from two random cache lines of a vector of the same size, and changes one of them by
//! compare-exchange for an insert or a removal. The addresses come from the same hash of the same keys. That is the
//! best that a filter of two buckets can reach in memory of that size, without batching. What two threads gain there is
//! the machine's.
//!
//! Each subject's answers are checked: all lookups of present keys, all inserts and all removals must succeed, or
//! the run ends. There is one exception, for `atomic-cuckoo-filter` 0.3: while one thread relocates items, its
//! `remove` on another thread sometimes misses a present key. The first lines say how often this
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
const OPERATIONS: [&str; 6] = ["insert to 90%", "insert 90-95%", "lookup hit", "lookup miss", "mix 90/5/5", "remove"];
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
    /// filled once, in slices, and emptied to 85%. The slices are assigned to the rounds forwards and backwards in turn,
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

    fn show(&self) -> String {
        let (size, abouts) = (self.size.name(), self.subjects.each_ref().map(|subject| subject.about()));
        let mut text = format!("## {size}: tables of {} KiB\n\n", self.size.table_bytes() >> 10);
        for (subject, About { name, about, .. }) in self.subjects.iter().zip(abouts) {
            let ((positives, misses), (failed, changes)) = (subject.false_positives(), subject.failed_changes());
            let (mib, rate) = (subject.size().bytes as f64 / 1048576.0, 100.0 * positives as f64 / misses as f64);
            text += &format!("- {name}: {about}, {mib:.2} MiB; {rate:.4}% of absent keys found; ");
            text += &format!("{failed} of {changes} inserts and removals failed in the mix\n");
        }
        text += "\n";
        let names = abouts.map(|about| about.name.to_owned());
        for threads in [1, 2] {
            let title = format!("{size}, threads: {threads}: millions of operations a second");
            text += &show_table(&title, &names, |operation, subject| {
                format!("{:.2}", median(self.mops[threads - 1][operation][subject].iter().copied()))
            });
        }
        let of_kind = |ours: bool| (0..abouts.len()).filter(move |&nth| (abouts[nth].kind == Kind::Ours) == ours);
        let pairs: Vec<_> = of_kind(false).flat_map(|other| of_kind(true).map(move |ours| [ours, other])).collect();
        let of_pairs: Vec<_> =
            pairs.iter().map(|pair| pair.map(|subject| abouts[subject].name).join(" over ")).collect();
        text += &show_table(&format!("{size}, one thread: ours over others"), &of_pairs, |operation, pair| {
            let [ours, other] = pairs[pair];
            self.ratio(operation, (1, ours), (1, other))
        });
        text += &show_table(&format!("{size}: two threads over one"), &names, |operation, subject| {
            self.ratio(operation, (2, subject), (1, subject))
        });
        text
    }
}

/// A line for each operation, and a column for each of these names.
fn show_table(title: &str, names: &[String], cell: impl Fn(usize, usize) -> String) -> String {
    let mut rows: Vec<Vec<String>> = vec![[&[String::new()][..], names].concat()];
    for (operation, name) in OPERATIONS.into_iter().enumerate() {
        let cells = (0..names.len()).map(|column| cell(operation, column));
        rows.push([name.to_owned()].into_iter().chain(cells).collect());
    }
    format!("### {title}\n\n{}", align(&rows, 1))
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (rounds, turn, first) = options.pick((1, 0, 100), (3, 40, 100_000), (7, 120, 100_000));
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
