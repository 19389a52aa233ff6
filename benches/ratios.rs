//! How many times as fast this crate's filter is as others, measured in one run.
//!
//! `cargo bench --bench ratios [-- OPTIONS]`
//!
//! | option | |
//! |---|---|
//! | `--l2` | only the tables of 512 KiB, which fit in the L2 cache |
//! | `--large` | only those of 192 MB |
//! | `--quick` | fewer and shorter rounds, and 512 KiB if `--large` isn't given |
//! | `--csv FILE` | the results also as comma-separated values |
//!
//! On a machine whose speed changes from second to second, an absolute figure says little. The ratio of two says
//! more, if their runs are interleaved. So everything is measured in *rounds*. In each round every subject has one
//! *turn*, a fraction of a second, and each ratio compares two turns of one round. The output shows the median of
//! all rounds, with the min and max in brackets.
//!
//! # What is measured
//! - inserts from empty to 90 % load, from there to 95 %, and both together; removals from there to an empty filter
//!   (at 192 MB, to 85 %);
//! - lookups at 90 % load: of present keys, of absent keys, and of either at random. The order is not that of
//!   insertion;
//! - the mix: 90 % such random lookups, 5 % removals, 5 % inserts, at 90 % load;
//! - all this on one thread and on two;
//! - the memory and the measured false-positive rate, to show which rates are compared.
//!
//! `support/subject.rs` describes what is compared, and how each subject is set up. `limit` is no filter. It loads
//! two words from two random cache lines of a plain vector of the same size, and nothing else. The addresses come
//! from the same hash of the same keys. That is the best that a filter of two buckets can reach in memory of that
//! size, without batching its lookups.
//!
//! Each subject's answers are checked: all lookups of present keys, all inserts and all removals must succeed, or
//! the run ends. There is one exception, for `atomic-cuckoo-filter` 0.3: while one thread relocates items, its
//! `remove` on another thread sometimes misses a present key. The line below the first table says how often this
//! happened.

mod support;

use std::env;
use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use support::files::from_root;
use support::filled::{Bench, Sample, Steady};
use support::plan::{Changes, Rounds, Size, steady_load, subjects};
use support::report::{Spread, align};
use support::subject::Kind;

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    sizes: Vec<Size>,
    rounds: usize,
    /// The length of one subject's turn at lookups.
    turn: Duration,
    /// Whether this run only checks that everything works.
    test: bool,
    csv: Option<String>,
}

impl Options {
    /// `cargo bench` calls with `--bench`; `cargo test` does not, and then this is only a test. `None` if there is
    /// nothing to do.
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let (mut bench, mut test, mut quick, mut l2, mut large, mut csv) = (false, false, false, false, false, None);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--quick" => quick = true,
                "--l2" => l2 = true,
                "--large" => large = true,
                "--csv" => csv = Some(args.next().ok_or("--csv needs the name of a file")?),
                // `cargo bench` passes the same arguments to all benches, and only `filters` can measure by name.
                name if !name.starts_with('-') => return Ok(None),
                _ => eprintln!("ratios: {arg} is not an option of this benchmark"),
            }
        }
        let test = test || !bench;
        let sizes = match (l2, large) {
            (true, false) => vec![Size::L2],
            (false, true) => vec![Size::Large],
            (false, false) if quick => vec![Size::L2],
            _ => vec![Size::L2, Size::Large],
        };
        let (rounds, turn) = match (test, quick) {
            (true, _) => (1, 0),
            (false, true) => (3, 40),
            (false, false) => (7, 120),
        };
        Ok(Some(Self { sizes, rounds, turn: Duration::from_millis(turn), test, csv }))
    }
}

/// The operations as they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    InsertTo90,
    Insert90To95,
    InsertTo95,
    Steady(Steady),
    Remove,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::InsertTo90,
        Self::Insert90To95,
        Self::InsertTo95,
        Self::Steady(Steady::Hit),
        Self::Steady(Steady::Miss),
        Self::Steady(Steady::Half),
        Self::Steady(Steady::Mix),
        Self::Remove,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::InsertTo90 => "insert to 90 %",
            Self::Insert90To95 => "insert 90-95 %",
            Self::InsertTo95 => "insert to 95 %",
            Self::Steady(Steady::Hit) => "lookup hit",
            Self::Steady(Steady::Miss) => "lookup miss",
            Self::Steady(Steady::Half) => "lookup half hits",
            Self::Steady(Steady::Mix) => "mix 90/5/5",
            Self::Remove => "remove",
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
    fn measure(size: Size, options: &Options) -> Self {
        let table_bytes = if options.test { 8 << 10 } else { size.table_bytes() };
        let mut results = Self { size, subjects: subjects(size, table_bytes), series: Vec::new() };
        // Two threads first, so that one thread has filled the tables for the lookups.
        for threads in [2, 1] {
            eprintln!("{}: inserts and removals, threads: {threads}", size.name());
            let changes = Rounds::new(size, options.rounds).run(&mut results.subjects, threads);
            results.add_changes(threads, changes);
            if threads == 2 {
                results.subjects.iter_mut().for_each(|subject| subject.renew());
            }
        }
        results.subjects.iter_mut().for_each(|subject| steady_load(subject.as_mut()));
        for what in Steady::ALL {
            eprintln!("{}: {}", size.name(), Operation::Steady(what).name());
            results.measure_steady(what, options);
        }
        results
    }

    fn add_changes(&mut self, threads: u64, changes: Vec<Changes>) {
        for (subject, changes) in changes.into_iter().enumerate() {
            if self.subjects[subject].kind() == Kind::Limit {
                continue;
            }
            let mut add = |operation, samples| self.series.push(Series { operation, threads, subject, samples });
            add(Operation::InsertTo95, changes.all_to_95());
            add(Operation::InsertTo90, changes.to_90);
            add(Operation::Insert90To95, changes.to_95);
            add(Operation::Remove, changes.remove);
        }
    }

    fn measure_steady(&mut self, what: Steady, options: &Options) {
        let mut turns = Vec::new();
        for subject in 0..self.subjects.len() {
            for threads in [1, 2] {
                if what == Steady::Mix && self.subjects[subject].kind() == Kind::Limit {
                    continue;
                }
                // A first try shows how many operations fit in a turn.
                let first = if options.test { 100 } else { 100_000 };
                let sample = self.subjects[subject].steady(what, first, threads);
                let count = (options.turn.as_nanos() as f64 / sample.nanoseconds()) as u64;
                turns.push((
                    count.max(first),
                    Series { operation: Operation::Steady(what), threads, subject, samples: Vec::new() },
                ));
            }
        }
        for _ in 0..options.rounds {
            for (count, series) in &mut turns {
                series.samples.push(self.subjects[series.subject].steady(what, *count, series.threads));
            }
        }
        self.series.extend(turns.into_iter().map(|(_, series)| series));
    }

    fn samples(&self, operation: Operation, threads: u64, subject: usize) -> Option<&[Sample]> {
        let wanted =
            |series: &&Series| (series.operation, series.threads, series.subject) == (operation, threads, subject);
        self.series.iter().find(wanted).map(|series| &*series.samples)
    }

    fn mops(&self, operation: Operation, threads: u64, subject: usize) -> Option<Spread> {
        Some(Spread::of(self.samples(operation, threads, subject)?.iter().map(|sample| sample.mops())))
    }

    /// How many times as fast one is as the other, round by round.
    fn ratio(&self, operation: Operation, one: (u64, usize), other: (u64, usize)) -> Option<Spread> {
        let one = self.samples(operation, one.0, one.1)?;
        let other = self.samples(operation, other.0, other.1)?;
        Some(Spread::of(one.iter().zip(other).map(|(one, other)| one.mops() / other.mops())))
    }

    fn of_kind(&self, kind: Kind) -> Vec<usize> {
        (0..self.subjects.len()).filter(|&subject| self.subjects[subject].kind() == kind).collect()
    }

    fn show(&self) -> String {
        let size = self.size.name();
        let all: Vec<usize> = (0..self.subjects.len()).collect();
        let limit = self.of_kind(Kind::Limit)[0];
        let peers = self.of_kind(Kind::Peer);
        let kib = self.subjects[limit].bytes() >> 10;
        let mut text = format!("## {size}: tables of {kib} KiB\n\n{}", self.show_memory());
        for threads in [1, 2] {
            let on = format!("{size}, {threads} thread{}", if threads == 1 { "" } else { "s" });
            let mops =
                |operation, &subject: &usize| Some(format!("{:.2}", self.mops(operation, threads, subject)?.median));
            text += &format!("### {on}: millions of operations a second\n\n");
            text += &self.show_table(&all, |&subject| self.subjects[subject].name().into(), mops);

            // The first of the peers is the one that matters. For the others and the limit, the medians are enough.
            let pairs = |others: &[usize]| -> Vec<(usize, usize)> {
                let ours = self.of_kind(Kind::Ours);
                others.iter().flat_map(|&other| ours.iter().map(move |&ours| (ours, other))).collect()
            };
            let name = |&(ours, other): &(usize, usize)| {
                let short = self.subjects[ours].name().trim_start_matches("ours ");
                format!("{short}/{}", self.subjects[other].name())
            };
            let ratio =
                |operation, &(ours, other): &(usize, usize)| self.ratio(operation, (threads, ours), (threads, other));
            text += &format!("### {on}: ours over others\n\n");
            text += &self.show_table(&pairs(&peers[..1]), name, |operation, pair| Some(ratio(operation, pair)?.show()));
            let rest = [&peers[1..], &[limit]].concat();
            text += &self.show_table(&pairs(&rest), name, |operation, pair| {
                Some(format!("{:.2}", ratio(operation, pair)?.median))
            });
        }
        text += &format!("### {size}: two threads over one\n\n");
        text += &self.show_table(
            &all,
            |&subject| self.subjects[subject].name().into(),
            |operation, &subject| Some(self.ratio(operation, (2, subject), (1, subject))?.show()),
        );
        text
    }

    fn show_memory(&self) -> String {
        let head =
            ["name", "what", "bits", "slots", "MiB", "capacity", "load", "bits/item", "paper's", "false positives"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for subject in self.subjects.iter().filter(|subject| subject.kind() != Kind::Limit) {
            let (positives, misses) = subject.false_positives();
            let rate = positives as f64 / misses as f64;
            let load = subject.capacity() as f64 / subject.slots() as f64;
            rows.push(vec![
                subject.name().into(),
                subject.about().into(),
                subject.fingerprint_bits().to_string(),
                subject.slots().to_string(),
                format!("{:.2}", subject.bytes() as f64 / (1 << 20) as f64),
                subject.capacity().to_string(),
                format!("{:.1} %", 100.0 * load),
                format!("{:.2}", bits_per_item(subject.bytes(), subject.capacity())),
                format!("{:.2}", papers_bits_per_item(rate * load / support::plan::STEADY_LOAD)),
                format!("{:.4} %", 100.0 * rate),
            ]);
        }
        let mut text = align(&rows, 2);
        for subject in &self.subjects {
            if let (failed @ 1.., changes) = subject.failed_changes() {
                text +=
                    &format!("{}: {failed} of {changes} inserts and removals failed in the mix.\n\n", subject.name());
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
        let line = |first: &str, rest: &mut dyn Iterator<Item = String>| {
            [first.to_string()].into_iter().chain(rest).collect::<Vec<_>>()
        };
        let mut rows = vec![line("", &mut columns.iter().map(name))];
        for operation in Operation::ALL {
            let cells: Vec<_> = columns.iter().map(|column| cell(operation, column)).collect();
            if cells.iter().any(Option::is_some) {
                rows.push(line(
                    operation.name(),
                    &mut cells.into_iter().map(|cell| cell.unwrap_or_else(|| "-".into())),
                ));
            }
        }
        align(&rows, 1)
    }

    /// A line for each operation, number of threads and subject: its speed and, for ours, the ratio to each other
    /// subject.
    fn csv(&self) -> String {
        let mut text = String::new();
        for operation in Operation::ALL {
            for threads in [1, 2] {
                for (index, subject) in self.subjects.iter().enumerate() {
                    let Some(mops) = self.mops(operation, threads, index) else { continue };
                    let line = format!("{},{},{threads},{}", self.size.name(), operation.name(), subject.name());
                    let mut add = |of: &str, Spread { median, least, most }: Spread| {
                        text += &format!("{line},{of},{median:.4},{least:.4},{most:.4}\n");
                    };
                    add("Mops/s", mops);
                    for (other, name) in self.subjects.iter().map(|other| other.name()).enumerate() {
                        let ratio = self.ratio(operation, (threads, index), (threads, other));
                        if let (Kind::Ours, true, Some(ratio)) = (subject.kind(), other != index, ratio) {
                            add(&format!("times {name}"), ratio);
                        }
                    }
                    if let (2, Some(ratio)) = (threads, self.ratio(operation, (2, index), (1, index))) {
                        add("times one thread", ratio);
                    }
                }
            }
        }
        for subject in self.subjects.iter().filter(|subject| subject.kind() != Kind::Limit) {
            let (positives, misses) = subject.false_positives();
            let mut add = |of: &str, number: f64| {
                text += &format!("{},memory,,{},{of},{number},,\n", self.size.name(), subject.name());
            };
            add("bits/item", bits_per_item(subject.bytes(), subject.capacity()));
            add("false positives", positives as f64 / misses as f64);
        }
        text
    }
}

fn bits_per_item(bytes: usize, items: u64) -> f64 {
    bytes as f64 * 8.0 / items as f64
}

/// What the paper's semi-sorted filter takes at that rate: buckets of four slots, one bit saved in each slot, and
/// the load of 95.5 % that the paper reports. The 12.6 bits in its comparison of space are this formula's at
/// 0.09 %.
fn papers_bits_per_item(rate: f64) -> f64 {
    let load = 0.955;
    let fingerprint_bits = (8.0 * load / rate).log2();
    (fingerprint_bits - 1.0) / load
}

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            eprintln!("ratios: a name selects from the bench `filters`; nothing to do here");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("ratios: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut csv = String::from("size,operation,threads,subject,what,median,least,most\n");
    for &size in &options.sizes {
        let results = Results::measure(size, &options);
        let text = results.show();
        // The figures of a test mean nothing.
        if !options.test {
            print!("{text}");
        }
        csv += &results.csv();
    }
    let written = options.csv.as_ref().map_or(Ok(()), |file| fs::write(from_root(file), csv));
    if let Err(error) = written {
        eprintln!("ratios: the CSV file: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
