//! Measures the filter on real keys and your machine, and checks that it keeps its promises.
//!
//! ```text
//! cargo run --release -p throughput
//! cargo run --release -p throughput -- --items 10_000_000 --threads 1,4 --keys FILE --plot FILE.svg
//! ```
//!
//! Takes a list of real keys (disposable e-mail domains, or a file of your own), and adds synthetic ones up to the
//! number of items. Times five workloads on a filter that 1, 2, ... threads share, with one call for each key. The four
//! workloads of a single operation are also timed in batches. Every answer is checked while it is timed. A present key
//! that is not found makes the example fail.
//!
//! - `arguments`: the command line;
//! - `keys`: the keys, real and synthetic;
//! - `crew`: threads that start together, and the clock;
//! - `workload`: the five workloads and the checks; the filter is used here;
//! - `progress`, `report`, `chart`: what you see during and after the run;
//! - `failure`: why a run ends early.

mod arguments;
mod chart;
mod crew;
mod failure;
mod keys;
mod progress;
mod report;
mod workload;

use std::io;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::chart::ChartFile;
use crate::failure::Failure;
use crate::keys::{KeySet, RealKeys, Source};
use crate::progress::Progress;
use crate::report::Report;
use crate::workload::{Calls, Setup};

fn main() -> ExitCode {
    let arguments = Arguments::from_command_line();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, as `head` has.
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

    // Before the keys are made, which takes time: a rate that can't be met is an error here.
    let setup = Setup { items, rate: arguments.rate, encoding: arguments.encoding() };
    let filter = setup.build()?;

    let chart = arguments.plot.as_deref().map(ChartFile::create).transpose()?;

    let progress = Progress::new();
    let keys = KeySet::generate(&real, items, &progress)?;
    let mut report = Report::begin(&source, &real, &keys, &filter, arguments.rate)?;
    drop(filter);

    for &threads in arguments.thread_counts() {
        for calls in Calls::ALL {
            // A new filter each time, with its own hasher: other buckets, other false positives, other relocations.
            let filter = setup.build()?;
            report.add(workload::run(filter, &keys, threads, calls, arguments.bound(), &progress)?);
        }
    }
    // Before the report ends. A plot that fails doesn't hide a wrong answer.
    let drawn = chart.map_or(Ok(()), |chart| chart.write(report.rows(), report.summary()));
    report.finish().and(drawn)
}
