//! How long a single operation of a writer takes at worst.
//!
//! `cargo bench --bench progress --features snapshot [-- --quick | --size=SIZE | --only=PART]`, where `SIZE` is
//! `small`, `l2` or `large`, and `PART` is `changes`, `refused` or `several`.
//!
//! Four and eight threads work on one filter, at 95 to 99 % load, and each operation is timed by itself, by two
//! clocks. Processor time shows how much work it was. The wall clock also counts what the operation waited for, and
//! how long its thread was not on a processor. With more threads than cores, the scheduler causes the longest of
//! these times. The output shows, in microseconds, the average, the times within which 99.9 % and 99.99 % of the
//! operations end, and the longest. The first row is the time of the clocks themselves. Without the feature
//! `snapshot`, the beginning of saves is left out.

mod churn;
mod refused;
mod several;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use churn::{Churn, SETTINGS};
use refused::{Full, GROWABLE_INSERTS, INSERTS, Insert, Refused, Removable};
use support::clock::Times;
use support::options::Options;
use support::report::align;

/// The name of a size, and how large the table is. In a small one, no search ends because of its budget.
const SIZES: [(&str, usize); 3] = [("small", 2048 * 8), ("l2", 512 << 10), ("large", 64 << 20)];

/// The rows of a table, below their headings.
struct Report(Vec<Vec<String>>);

impl Report {
    fn new() -> Self {
        let head = ["", "threads"].into_iter().chain(Times::HEAD).map(String::from).collect();
        Self(vec![head])
    }

    fn add(&mut self, name: &str, threads: u64, times: &Times) {
        if times.count() > 0 {
            let of = [name.to_owned(), threads.to_string()];
            self.0.push(of.into_iter().chain(times.row()).collect());
        }
    }

    fn print(&self, title: &str, options: &Options) {
        if !options.test {
            println!("## {title}: microseconds\n\n{}", align(&self.0, 1));
        }
    }
}

/// The operations of several threads on one table.
fn changes(bytes: usize, size: &str, time: Duration, options: &Options) {
    for setting in SETTINGS {
        let mut report = Report::new();
        let mut nothing = Times::default();
        (0..100_000).for_each(|_| nothing.time(|| ()));
        report.add("nothing", 1, &nothing);
        let churn = Churn::new(bytes, setting);
        for threads in [1, 4, 8] {
            eprintln!("{size}, {}, {} threads", setting.name, threads);
            churn.run(threads, time).named().iter().for_each(|(name, times)| report.add(name, threads, times));
            #[cfg(feature = "snapshot")]
            report.add("a save's beginning", threads, &churn.saves(threads, time));
        }
        let (name, load) = (setting.name, setting.load * 100.0);
        report.print(&format!("{size}: one table, {name}, at {load:.0} % load"), options);
    }
}

/// Inserts that are refused.
fn refusals(bytes: usize, time: Duration, options: &Options) {
    let (filter, growable) = (Refused::new(bytes), Refused::growable(bytes));
    let mut report = Report::new();
    for (name, insert) in INSERTS {
        refused_beside_writers(&filter, name, insert, time, &mut report);
    }
    for (name, insert) in GROWABLE_INSERTS {
        refused_beside_writers(&growable, name, insert, time, &mut report);
    }
    report.print(&format!("an insert that is refused, {} buckets", bytes / 8), options);
}

fn refused_beside_writers<F: Removable>(
    filter: &Refused<F>,
    name: &str,
    insert: Insert<F>,
    time: Duration,
    report: &mut Report,
) {
    for writers in [0, 1, 3, 7] {
        eprintln!("{name}, refused beside {writers} writers");
        report.add(name, writers + 1, &filter.run(insert, writers, 100_000, time));
    }
}

/// Inserts into a table that is full everywhere.
fn full(bytes: usize, size: &str, time: Duration, options: &Options) {
    let mut report = Report::new();
    eprintln!("{size}, full");
    report.add("an insert", 1, &Full::new(bytes).run(100_000, time));
    report.print(&format!("{size}: a table that is full everywhere"), options);
}

/// Filters that grow.
fn several(bytes: usize, size: &str, options: &Options) {
    let mut report = Report::new();
    for threads in [4, 8] {
        eprintln!("{size}, growth, {threads} threads");
        let (inserts, reserve) = several::growth(bytes, threads);
        report.add("insert, while the filter grows", threads, &inserts);
        report.add("reserve, a doubling", 1, &reserve);
    }
    report.print(&format!("{size}: filters that grow"), options);
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let time = Duration::from_millis(match (options.test, options.quick) {
        (true, _) => 2,
        (false, true) => 1000,
        (false, false) => 10_000,
    });
    let only = options.value("--size");
    let wanted = |size: &str| only.map_or(!options.quick && !options.test || size == "small", |only| only == size);
    let part = options.value("--only");
    let wants = |name: &str| part.is_none_or(|part| part == name);
    for (size, bytes) in SIZES.into_iter().filter(|(size, _)| wanted(size)) {
        if wants("changes") {
            changes(bytes, size, time, &options);
        }
        if wants("refused") && size == "small" {
            refusals(bytes, time, &options);
            refusals(bytes / 32, time, &options);
        }
        if wants("refused") {
            full(bytes, size, time, &options);
        }
        if wants("several") {
            several(bytes, size, &options);
        }
    }
}
