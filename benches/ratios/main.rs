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

mod rounds;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use rounds::{Change, Rounds};
use support::array::ARRAY;
use support::filled::{Bench, Filled, Sample, Steady};
use support::options::Options;
use support::ours::{DEFAULT_5X14, PLAIN_4X16};
use support::peers::{ATOMIC, SCALABLE};
use support::plan::{STEADY_LOAD, Size, bring_to};
use support::report::{Spread, align, median};
use support::subject::{About, Kind};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    table_bytes: usize,
    rounds: usize,
    /// The length of one subject's turn at lookups.
    turn: Duration,
    /// The number of lookups of a first try, which shows how many fit in a turn.
    first: u64,
}

/// All subjects, empty.
fn subjects(table_bytes: usize) -> Vec<Box<dyn Bench>> {
    vec![
        Filled::boxed(DEFAULT_5X14, table_bytes),
        Filled::boxed(PLAIN_4X16, table_bytes),
        Filled::boxed(ATOMIC, table_bytes),
        Filled::boxed(SCALABLE, table_bytes),
        Filled::boxed(ARRAY, table_bytes),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Change(Change),
    Steady(Steady),
}

impl Operation {
    /// As they are listed.
    const ALL: [Self; 6] = [
        Self::Change(Change::To90),
        Self::Change(Change::To95),
        Self::Steady(Steady::Hit),
        Self::Steady(Steady::Miss),
        Self::Steady(Steady::Mix),
        Self::Change(Change::Remove),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Change(Change::To90) => "insert to 90 %",
            Self::Change(Change::To95) => "insert 90-95 %",
            Self::Change(Change::Remove) => "remove",
            Self::Steady(what) => what.name(),
        }
    }
}

/// The rounds of one operation on one subject with this many threads.
#[derive(Debug)]
struct Series {
    operation: Operation,
    threads: u64,
    subject: usize,
    samples: Vec<Sample>,
}

/// All that was measured at one size.
struct Results {
    size: Size,
    subjects: Vec<Box<dyn Bench>>,
    series: Vec<Series>,
}

impl Results {
    fn measure(size: Size, plan: Plan) -> Self {
        let mut results = Self { size, subjects: subjects(plan.table_bytes), series: Vec::new() };
        // Two threads first, so that one thread has filled the tables for the lookups.
        for threads in [2, 1] {
            eprintln!("{}: inserts and removals, threads: {threads}", size.name());
            results.subjects.iter_mut().for_each(|subject| subject.renew());
            results.measure_changes(Rounds::new(size, plan.rounds), threads);
        }
        results.subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD));
        for what in Steady::ALL {
            eprintln!("{}: {}", size.name(), what.name());
            results.measure_steady(what, plan);
        }
        results
    }

    fn measure_changes(&mut self, rounds: Rounds, threads: u64) {
        for (subject, changes) in rounds.run(&mut self.subjects, threads).into_iter().enumerate() {
            let series = Change::ALL.into_iter().zip(changes).map(|(change, samples)| Series {
                operation: Operation::Change(change),
                threads,
                subject,
                samples,
            });
            self.series.extend(series);
        }
    }

    fn measure_steady(&mut self, what: Steady, plan: Plan) {
        let mut turns = Vec::new();
        for subject in 0..self.subjects.len() {
            for threads in [1, 2] {
                let sample = self.subjects[subject].steady(what, plan.first, threads);
                let count = (plan.turn.as_nanos() as f64 / sample.nanoseconds()) as u64;
                let operation = Operation::Steady(what);
                turns.push((count.max(plan.first), Series { operation, threads, subject, samples: Vec::new() }));
            }
        }
        for _ in 0..plan.rounds {
            for (count, series) in &mut turns {
                series.samples.push(self.subjects[series.subject].steady(what, *count, series.threads));
            }
        }
        self.series.extend(turns.into_iter().map(|(_, series)| series));
    }

    /// Millions of operations a second, in each round.
    fn mops(&self, operation: Operation, threads: u64, subject: usize) -> Option<Vec<f64>> {
        let wanted =
            |series: &&Series| (series.operation, series.threads, series.subject) == (operation, threads, subject);
        let series = self.series.iter().find(wanted)?;
        Some(series.samples.iter().map(|sample| sample.mops()).collect())
    }

    /// How many times as fast one is as the other, round by round.
    fn ratio(&self, operation: Operation, one: (u64, usize), other: (u64, usize)) -> Option<String> {
        let (one, other) = (self.mops(operation, one.0, one.1)?, self.mops(operation, other.0, other.1)?);
        Some(Spread::of_ratios(&one, &other).show())
    }

    /// The gain by a second thread, as a multiple of what the array gains by it in the same round.
    fn relative_to_array(&self, operation: Operation, subject: usize) -> Option<String> {
        let array = self.subjects.iter().position(|subject| subject.about().kind == Kind::Array)?;
        let gain = |subject| {
            let (two, one) = (self.mops(operation, 2, subject)?, self.mops(operation, 1, subject)?);
            Some(two.iter().zip(one).map(|(two, one)| two / one).collect::<Vec<_>>())
        };
        Some(Spread::of_ratios(&gain(subject)?, &gain(array)?).show())
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
            text += &self.show_table(
                &all,
                |&subject| name(subject).into(),
                |operation, &subject| {
                    let mops = self.mops(operation, threads, subject)?;
                    Some(format!("{:.2}", median(mops)))
                },
            );
            text += &format!("### {on}: ours over others\n\n");
            text += &self.show_table(
                &pairs,
                |&(ours, other)| format!("{}/{}", name(ours).trim_start_matches("ours "), name(other)),
                |operation, &(ours, other)| self.ratio(operation, (threads, ours), (threads, other)),
            );
        }
        text += &format!("### {size}: two threads over one\n\n");
        text += &self.show_table(
            &all,
            |&subject| name(subject).into(),
            |operation, &subject| self.ratio(operation, (2, subject), (1, subject)),
        );
        text += &format!("### {size}: the same, relative to the array\n\n");
        text += &self.show_table(
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

    /// A line for each operation for which there is something to show.
    fn show_table<C>(
        &self,
        columns: &[C],
        name: impl Fn(&C) -> String,
        cell: impl Fn(Operation, &C) -> Option<String>,
    ) -> String {
        let mut rows: Vec<Vec<String>> = vec![[String::new()].into_iter().chain(columns.iter().map(name)).collect()];
        for operation in Operation::ALL {
            let cells = columns.iter().map(|column| cell(operation, column).unwrap_or_else(|| "-".into()));
            rows.push([operation.name().to_owned()].into_iter().chain(cells).collect());
        }
        align(&rows, 1)
    }
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
        let results = Results::measure(size, Plan { table_bytes, rounds, turn: Duration::from_millis(turn), first });
        let text = results.show();
        // The figures of a test mean nothing.
        if !options.test {
            print!("{text}");
        }
    }
}
