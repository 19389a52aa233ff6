//! How fast the filter is, and whether it keeps its promises, on real keys and your machine.
//!
//! ```text
//! cargo run --release --example throughput
//! cargo run --release --example throughput -- --items 10_000_000 --threads 1,4 --keys FILE --plot FILE.svg
//! ```
//!
//! Takes a list of real keys (disposable e-mail domains, unless you name a file of your own), adds synthetic ones up to
//! the number of items asked for, and times five workloads on a filter that 1, 2, ... threads share: with one call for
//! each key, and those that are of one kind of operation also in batches. Every answer is checked while it is timed: a
//! present key that is not found makes the example fail.
//!
//! - `arguments`: the command line;
//! - `keys`: the keys, real and synthetic;
//! - `crew`: threads that start together, and the clock;
//! - `workload`: the five workloads and what is checked, which is where the filter is used;
//! - `progress`, `report`, `chart`: what you see during and after.

mod arguments;
mod chart;
mod crew;
mod keys;
#[path = "../../benches/support/plot.rs"]
#[allow(dead_code)] // Shared with benchmarks, which draw other kinds of charts.
mod plot;
mod progress;
mod report;
mod workload;

use std::fmt;
use std::io;
use std::process::ExitCode;

use concurrent_cuckoo_filter::{BuildError, InsertBatchError, InsertError};

use crate::arguments::Arguments;
use crate::chart::ChartFile;
use crate::keys::{KeySet, RealKeys, Source};
use crate::progress::Progress;
use crate::report::Report;
use crate::workload::{Calls, Setup};

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            progress::say(format_args!("error: {failure}"));
            ExitCode::from(if matches!(failure, Failure::Argument(_)) { 2 } else { 1 })
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = Source::read(arguments.keys.as_deref())?;
    let mut real = RealKeys::parse(&source)?;
    let items = arguments.items_for(real.len())?;
    real.keep_first(items);

    // Before the keys are made, which takes time: this is where a rate that can't be met shows.
    let setup = Setup { items, rate: arguments.rate, encoding: arguments.encoding() };
    let filter = setup.build()?;

    let chart = arguments.plot.as_deref().map(ChartFile::create).transpose()?;

    let progress = Progress::new();
    let keys = KeySet::generate(&real, items, &progress)?;
    let mut report = Report::begin(&source, &real, &keys, &filter, arguments.rate)?;
    drop(filter);

    for &threads in arguments.thread_counts() {
        for calls in Calls::ALL {
            // A new filter each time, with a hasher of its own: other places, other false positives, other relocations.
            let filter = setup.build()?;
            report.add(workload::run(filter, &keys, threads, calls, arguments.bound(), &progress)?);
        }
    }
    // Before the report ends, but with no say in the verdict.
    let drawn = chart.map_or(Ok(()), |chart| chart.write(report.rows(), report.summary()));
    report.finish().and(drawn)
}

/// Why the example ends early.
enum Failure {
    /// An argument can't be met.
    Argument(String),
    /// The keys can't be had.
    Keys(String),
    Build(BuildError),
    Insert(InsertError),
    /// The filter gave wrong answers.
    Wrong(Vec<String>),
    Threads {
        wanted: usize,
        error: io::Error,
    },
    /// The plot can't be written.
    Plot(String),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(message) | Self::Keys(message) | Self::Plot(message) => f.write_str(message),
            Self::Build(error) => write!(f, "can't build the filter: {error}"),
            Self::Insert(error) => write!(f, "an insert within the filter's capacity was refused: {error}"),
            Self::Wrong(faults) => write!(f, "the filter broke its promise: {}", faults.join("; ")),
            Self::Threads { wanted, error } => {
                write!(f, "can't start {wanted} threads: {error}; give --threads a smaller number")
            }
            Self::Output(error) => write!(f, "can't write the report: {error}"),
        }
    }
}

impl From<InsertError> for Failure {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<InsertBatchError> for Failure {
    fn from(ended: InsertBatchError) -> Self {
        Self::Insert(ended.error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
