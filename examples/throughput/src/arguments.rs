//! The command line.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Parser, ValueEnum};
use concurrent_cuckoo_filter::Encoding;
use indicatif::HumanCount;

use crate::failure::Failure;

const DEFAULT_ITEMS: usize = 1_000_000;
/// All keys are held in memory, at some 40 bytes each.
const MOST_ITEMS: usize = 1_000_000_000;
const MOST_THREADS: usize = 256;
const MOST_SECONDS: f64 = 60.0;

/// Measures a concurrent cuckoo filter on real keys, and checks every answer.
///
/// Inserts the keys, looks up present and absent ones, mixes 90 % lookups with 5 % inserts and 5 % removes, and removes
/// all keys. Does each of these on 1, 2, ... threads that share one filter, with one key a call and (except the mix) in
/// batches. Writes progress to standard error and the report to standard output. The exit status is 0 if every answer
/// was right, 1 if an answer was wrong or something failed, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "throughput", version)]
pub(crate) struct Arguments {
    /// A file of keys, one a line, any bytes; `-` for standard input [default: 8,883 disposable e-mail domains]
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,

    /// How many items the filter holds, such as `10_000_000`: the first N keys, or all keys and synthetic ones up to N
    /// [default: 1_000_000, or the number of keys if there are more]
    #[arg(long, value_name = "N", value_parser = parse_items, allow_negative_numbers = true)]
    items: Option<usize>,

    /// Numbers of threads: `8` for 1, 2, 4 and 8; `1,6` for these two; `8,` for 8 alone
    /// [default: up to the number of hardware threads]
    #[arg(long, value_name = "LIST|MAX", value_parser = parse_threads, allow_negative_numbers = true)]
    threads: Option<ThreadCounts>,

    /// The largest acceptable false-positive rate
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = parse_rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,

    /// How the filter stores fingerprints [default: the one that needs less memory at this rate]
    #[arg(long, value_enum, value_name = "ENCODING")]
    encoding: Option<EncodingName>,

    /// How long to measure each workload at least, in seconds; each goes over all keys at least once
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = parse_seconds, allow_negative_numbers = true)]
    seconds: Duration,

    /// Also plot throughput against threads, as SVG; an existing file is replaced
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(parse_plot))]
    pub(crate) plot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EncodingName {
    Plain,
    SemiSorted,
}

/// A type of its own, since clap takes a `Vec` for an option that is given several times.
#[derive(Clone, Debug)]
struct ThreadCounts(Vec<usize>);

impl Arguments {
    /// Reads the arguments. Ends the process with status 2 if they are wrong.
    pub(crate) fn from_command_line() -> Self {
        let mut arguments = Self::parse();
        arguments.threads.get_or_insert_with(|| ThreadCounts::up_to(hardware_threads().min(MOST_THREADS)));
        arguments
    }

    /// How many items to run with, given the number of real keys.
    pub(crate) fn items_for(&self, real: usize) -> Result<usize, Failure> {
        let items = self.items.unwrap_or(real.max(DEFAULT_ITEMS));
        if items > MOST_ITEMS {
            return Err(Failure::Keys(format!(
                "there are {} keys, and the limit is {}; run on the first N of them with --items N",
                HumanCount(items as u64),
                HumanCount(MOST_ITEMS as u64)
            )));
        }
        Ok(items)
    }

    pub(crate) fn thread_counts(&self) -> &[usize] {
        self.threads.as_ref().map_or(&[], |counts| &counts.0)
    }

    pub(crate) fn encoding(&self) -> Option<Encoding> {
        self.encoding.map(|name| match name {
            EncodingName::Plain => Encoding::Plain,
            EncodingName::SemiSorted => Encoding::SemiSorted,
        })
    }

    pub(crate) fn bound(&self) -> Duration {
        self.seconds
    }
}

impl ThreadCounts {
    /// The powers of two up to `most`, and `most`.
    fn up_to(most: usize) -> Self {
        let mut counts: Vec<usize> =
            (0..usize::BITS).map(|exponent| 1 << exponent).take_while(|&count| count < most).collect();
        counts.push(most);
        Self(counts)
    }
}

/// How many threads this machine runs at the same time.
pub(crate) fn hardware_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

// The errors of these parsers say only what would be right. clap puts the argument and its value in front.

fn parse_items(text: &str) -> Result<usize, String> {
    match text.replace('_', "").parse() {
        Ok(items) if (1..=MOST_ITEMS).contains(&items) => Ok(items),
        _ => Err(format!("give a whole number from 1 to {}, such as 10_000_000", HumanCount(MOST_ITEMS as u64))),
    }
}

fn parse_threads(text: &str) -> Result<ThreadCounts, String> {
    // A comma at the end marks a list of one number. Without it, one number is a maximum.
    let list = text.strip_suffix(',').unwrap_or(text);
    let counts: Vec<usize> = list
        .split(',')
        .map(|count| match count.trim().parse() {
            Ok(count) if (1..=MOST_THREADS).contains(&count) => Ok(count),
            _ => Err(format!(
                "'{count}' is no number of threads; give whole numbers from 1 to {MOST_THREADS}: \
                 8 for 1, 2, 4 and 8, or a list such as 1,6"
            )),
        })
        .collect::<Result<_, _>>()?;
    Ok(match counts[..] {
        [most] if !text.contains(',') => ThreadCounts::up_to(most),
        _ => ThreadCounts(counts),
    })
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("give a number above 0 and below 1, such as 0.001 for one in a thousand".into()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=MOST_SECONDS).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("give a number of seconds from 0 to {MOST_SECONDS}, such as 0.5")),
    }
}

/// Takes only names that end in .svg, so that a slip cannot replace a file of another kind.
fn parse_plot(path: PathBuf) -> Result<PathBuf, String> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg")) {
        Ok(path)
    } else {
        Err("give a file name that ends in .svg".into())
    }
}
