//! Measures the filter and a `HashSet` behind a lock, on real keys and your machine. Checks every answer meanwhile.
//!
//! ```text
//! cargo run --release -p throughput
//! cargo run --release -p throughput -- --items 3_000_000 --threads 1,4 --keys FILE --plot FILE.svg
//! ```
//!
//! - `arguments`: the command line;
//! - `keys`: the keys, real and synthetic;
//! - `sets`: the two sets, and all uses of the filter;
//! - `measure`: threads that start together, the clock, the five workloads and the checks;
//! - `report`, `chart`: what you see after the run.

mod arguments;
mod chart;
mod keys;
mod measure;
mod report;
mod sets;

use std::error::Error;
use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::{Arguments, end_for_bad_argument};
use crate::keys::{KeySet, lines};
use crate::measure::{Row, round};
use crate::report::Report;
use crate::sets::{Filter, LockedSet, SetKind};

/// A figure of the report is the median of so many rounds.
const ROUNDS: usize = 3;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, as `head` has.
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    // A new filter has a new random hasher: other buckets, and other false positives.
    let new_filter = |items| Filter::builder().capacity(items).false_positive_rate(arguments.rate).build();
    // These two come before what takes time.
    if let Err(error) = new_filter(1) {
        end_for_bad_argument(&format!("--rate: {error}"));
    }
    if let Some(path) = &arguments.plot
        && let Err(error) = chart::prepare(path)
    {
        end_for_bad_argument(&format!("can't write the plot to '{}': {error}", path.display()));
    }

    let thread_counts = arguments.thread_counts();
    let progress = ProgressBar::new((thread_counts.len() * ROUNDS * Row::KINDS.len()) as u64);
    progress.set_style(ProgressStyle::with_template("{msg:24} [{bar:32}]")?.progress_chars("=> "));
    progress.set_message("preparing keys");
    progress.tick();
    let keys = KeySet::make(arguments.keys.as_deref(), arguments.items)?;
    let (present, absent) = (lines(&keys.present), lines(&keys.absent));

    let mut rows = Vec::new();
    for &threads in &thread_counts {
        let mut group = Row::KINDS.map(|(set, calls)| Row { threads, set, calls, rounds: Vec::new() });
        // In turn, so that a change in the machine's load meets all of them.
        for _ in 0..ROUNDS {
            for row in &mut group {
                progress.set_message(format!("threads: {threads}; {}", row.set.name()));
                row.rounds.push(match row.set {
                    SetKind::Filter => round(&new_filter(present.len())?, row, &present, &absent, arguments.seconds),
                    SetKind::HashSet => {
                        round(&LockedSet::with_capacity(present.len()), row, &present, &absent, arguments.seconds)
                    }
                });
                progress.inc(1);
            }
        }
        rows.extend(group);
    }
    progress.finish_and_clear();

    let filter = new_filter(present.len())?;
    let report = Report { arguments, keys: &keys, items: present.len(), absent: absent.len(), filter, rows: &rows };
    let drawn = arguments.plot.as_deref().map_or(Ok(()), |path| chart::write(path, &rows, report.summary()));
    let shown = report.write(&mut io::stdout().lock());
    // A wrong answer matters more than a report or a plot that can't be written.
    measure::check(&rows)?;
    shown?;
    drawn
}
