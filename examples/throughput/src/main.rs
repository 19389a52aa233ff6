//! Checks the filter's answers on this machine, and measures it beside other sets:
//!
//! ```sh
//! cargo run --release -p throughput
//! cargo run --release -p throughput -- --keys 3000000 --threads 1,4
//! ```

mod measure;
mod sets;

use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Duration;

use clap::Parser;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use crate::measure::{Keys, OPERATIONS, Round, round};
use crate::sets::{ATOMIC_CUCKOO, BATCHES, BLOOM, FILTER, LOCKED, PAPAYA, RATE, SCC, Set};

/// Checks the answers of a concurrent cuckoo filter on this machine, and measures it beside other sets.
///
/// Fills each set with the same keys, looks up present and absent keys, and removes all keys. The exit status is 0 if
/// every answer was right, 1 if one was wrong, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// How many keys a set has: the first of 8,883 e-mail domains, then addresses at them
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    keys: u32,

    /// Numbers of threads, such as `1,6` [default: 1, and the number of hardware threads]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Vec<u16>,

    /// Only check the answers, of 20,000 keys. The speeds mean little
    #[arg(long, conflicts_with = "keys")]
    quick: bool,
}

/// A set with its type hidden.
struct Subject<'k> {
    name: &'static str,
    bits_per_key: f64,
    /// Measures one round on this many threads.
    round: Box<dyn Fn(usize, Duration) -> Result<Round, String> + 'k>,
}

impl<'k> Subject<'k> {
    fn new<S: Sync + 'k>(set: Set<S>, keys: &'k Keys) -> Self {
        let present: Vec<&str> = keys.present.iter().map(String::as_str).collect();
        let mut filled = None;
        let mut fill = || (set.insert)(filled.insert((set.new)(present.len())), &present);
        let bytes = allocation_counter::measure(|| _ = fill()).bytes_current;
        let bits_per_key = bytes as f64 * 8.0 / present.len() as f64;
        Self { name: set.name, bits_per_key, round: Box::new(move |threads, time| round(&set, keys, threads, time)) }
    }
}

/// No key occurs twice.
fn keys(count: usize) -> Keys {
    // `examples/data/README.md` says where the list comes from. No domain is in it twice, and none has an `@`.
    let domains: Vec<&str> = include_str!("../../data/disposable-email-domains.txt").lines().collect();
    let address = |number: usize| format!("user{number}@{}", domains[number % domains.len()]);
    let present = (0..count).map(|number| domains.get(number).map_or_else(|| address(number), ToString::to_string));
    // Enough to measure the rate of a filter.
    let absent = (count..count + count.max(100_000)).map(address);
    Keys { present: present.collect(), absent: absent.collect() }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("wrong answers: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let (count, rounds, time) = if arguments.quick { (20_000, 1, 0) } else { (arguments.keys as usize, 3, 100) };
    let hardware_threads = available_parallelism().map_or(1, usize::from);
    let mut thread_counts: Vec<usize> = arguments.threads.iter().map(|&threads| threads.into()).collect();
    if thread_counts.is_empty() {
        thread_counts = vec![1, hardware_threads];
        thread_counts.dedup();
    }

    let keys = keys(count);
    // A table for decoding, which all filters of the process share, is allocated with the first one.
    drop((FILTER.new)(1));
    let subjects = [
        Subject::new(FILTER, &keys),
        Subject::new(BATCHES, &keys),
        Subject::new(ATOMIC_CUCKOO, &keys),
        Subject::new(BLOOM, &keys),
        Subject::new(SCC, &keys),
        Subject::new(PAPAYA, &keys),
        Subject::new(LOCKED, &keys),
    ];
    let bytes: usize = keys.present.iter().map(String::len).sum();
    println!("{count} keys of {:.1} bytes on average, such as {}.", bytes as f64 / count as f64, keys.absent[0]);
    println!("Filters may find {}% of absent keys. The last three sets are exact.", RATE * 100.0);
    println!("Millions of operations per second, all threads together. Hardware threads: {hardware_threads}.");

    let mut checked = 0;
    for threads in thread_counts {
        eprintln!("\nmeasuring {rounds} rounds; threads: {threads} ...");
        let mut measured: Vec<Vec<Round>> = subjects.iter().map(|_| Vec::new()).collect();
        // The sets take turns, so that a change in the machine's load meets all of them.
        for _ in 0..rounds {
            for (subject, measured) in subjects.iter().zip(&mut measured) {
                measured.push((subject.round)(threads, Duration::from_millis(time))?);
            }
        }
        checked += measured.iter().flatten().map(|round| round.checked).sum::<usize>();
        println!("\n{}", table(threads, &subjects, &measured));
    }
    println!("\nEvery answer was right: no present key was missed in {checked} operations, and no exact set found an");
    println!("absent key.");
    Ok(())
}

fn table(threads: usize, subjects: &[Subject<'_>], measured: &[Vec<Round>]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    let title = format!("threads: {threads}");
    table.set_header([&[&*title][..], &OPERATIONS, &["bits per key", "absent keys found"]].concat());
    for (subject, rounds) in subjects.iter().zip(measured) {
        let found = rounds.iter().map(|round| round.false_positives).sum::<f64>() / rounds.len() as f64;
        let mut row = vec![subject.name.to_owned()];
        for operation in 0..OPERATIONS.len() {
            let mut speeds: Vec<f64> = rounds.iter().filter_map(|round| round.speeds[operation]).collect();
            speeds.sort_by(f64::total_cmp);
            row.push(speeds.get(speeds.len() / 2).map_or_else(|| "-".into(), |median| format!("{median:.1}")));
        }
        row.push(format!("{:.1}", subject.bits_per_key));
        row.push(if found > 0.0 { format!("{:.3}%", found * 100.0) } else { "none".into() });
        table.add_row(row);
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}
