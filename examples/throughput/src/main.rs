//! Measures the filter and a `HashSet` behind a lock, on real keys and your machine. Checks every answer meanwhile.
//!
//! ```text
//! cargo run --release -p throughput
//! cargo run --release -p throughput -- --items 3000000 --threads 1,4
//! ```

mod keys;
mod measure;
mod report;
mod sets;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Parser;

use crate::keys::{KeySet, lines};
use crate::measure::{Row, round};
use crate::report::Report;
use crate::sets::{Batches, Filter, SetKind, locked_set};

/// A figure of the report is the median of so many rounds.
const ROUNDS: usize = 3;

/// Measures a concurrent cuckoo filter and a HashSet behind a lock on real keys, and checks every answer.
///
/// Inserts the keys, looks up present and absent ones, mixes 90 % lookups with 5 % inserts and 5 % removes, and removes
/// all keys. Does so on 1, 2, ... threads that share one set, and also (except the mix) in batches of the filter. The
/// exit status is 0 if every answer was right, 1 if an answer was wrong or something failed, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "throughput", version)]
struct Arguments {
    /// How many items a set holds: the first N of 8,883 disposable e-mail domains, or all and synthetic ones up to N
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    items: u64,

    /// Numbers of threads, such as `1,6` [default: 1, 2, 4, ... up to the number of hardware threads]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: Vec<u64>,

    /// The largest acceptable false-positive rate of the filter
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    rate: f64,

    /// How many milliseconds a round of lookups or of the mix takes at least; lookups go over all keys at least once
    #[arg(long, value_name = "MS", default_value_t = 100)]
    milliseconds: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut thread_counts: Vec<usize> = arguments.threads.iter().map(|&threads| threads as usize).collect();
    if thread_counts.is_empty() {
        let hardware_threads = available_parallelism().map_or(1, usize::from);
        let powers = (0..usize::BITS).map(|exponent| 1 << exponent);
        thread_counts.extend(powers.take_while(|&threads| threads < hardware_threads).chain([hardware_threads]));
    }
    // A new filter has a new random hasher: other buckets, and other false positives.
    let new_filter = |items| Filter::builder().capacity(items).false_positive_rate(arguments.rate).build();
    new_filter(1)?; // a bad rate is known before the work begins
    let keys = KeySet::new(arguments.items as usize);
    let (present, absent) = (lines(&keys.present), lines(&keys.absent));
    let time = Duration::from_millis(arguments.milliseconds);

    let mut rows = Vec::new();
    for threads in thread_counts {
        let mut group = SetKind::ALL.map(|set| Row { threads, set, rounds: Vec::new() });
        // In turn, so that a change in the machine's load meets all of them.
        for nth in 1..=ROUNDS {
            eprintln!("threads: {threads}; round {nth} of {ROUNDS}");
            for row in &mut group {
                let round = match row.set {
                    SetKind::Filter => round(&new_filter(present.len())?, row, &present, &absent, time)?,
                    SetKind::Batches => round(&Batches(new_filter(present.len())?), row, &present, &absent, time)?,
                    SetKind::HashSet => round(&locked_set(present.len()), row, &present, &absent, time)?,
                };
                row.rounds.push(round);
            }
        }
        rows.extend(group);
    }

    let report = Report {
        keys: &keys.about,
        items: present.len(),
        absent: absent.len(),
        asked_rate: arguments.rate,
        filter: new_filter(present.len())?,
        rows: &rows,
    };
    Ok(io::stdout().write_all(report.text().as_bytes())?)
}
