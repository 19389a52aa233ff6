//! The command line.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use example_support::option_values::{rate, seconds_up_to, whole_number_in};

/// Measures a concurrent cuckoo filter and a HashSet behind a lock on real keys, and checks every answer.
///
/// Inserts the keys, looks up present and absent ones, mixes 90 % lookups with 5 % inserts and 5 % removes, and removes
/// all keys. Does so on 1, 2, ... threads that share one set, with one key a call and (except the mix) in batches. The
/// exit status is 0 if every answer was right, 1 if an answer was wrong or something failed, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "throughput", version)]
pub(crate) struct Arguments {
    /// A file of keys, one a line, any bytes; `-` for standard input [default: 8,883 disposable e-mail domains]
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<PathBuf>,

    /// How many items a set holds, such as `10_000_000`: the first N keys, or all keys and synthetic ones up to N
    /// [default: 1_000_000, or the number of keys if there are more]
    #[arg(long, value_name = "N", value_parser = whole_number_in(1..=1_000_000_000))]
    pub(crate) items: Option<usize>,

    /// Numbers of threads, such as `1,6` [default: 1, 2, 4, ... up to the number of hardware threads]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = whole_number_in(1..=256))]
    threads: Vec<usize>,

    /// The largest acceptable false-positive rate of the filter
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    pub(crate) rate: f64,

    /// How many seconds a round of lookups or of the mix takes at least; lookups go over all keys at least once
    #[arg(long, value_name = "S", default_value = "0.1", value_parser = seconds_up_to(60.0))]
    pub(crate) seconds: Duration,

    /// Also plot throughput against threads, as SVG; an existing file is replaced
    #[arg(long, value_name = "FILE.svg", value_parser = svg_file)]
    pub(crate) plot: Option<PathBuf>,
}

impl Arguments {
    pub(crate) fn thread_counts(&self) -> Vec<usize> {
        if !self.threads.is_empty() {
            return self.threads.clone();
        }
        let powers = (0..usize::BITS).map(|exponent| 1 << exponent);
        powers.take_while(|&threads| threads < hardware_threads()).chain([hardware_threads()]).collect()
    }
}

pub(crate) fn hardware_threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Ends the process with status 2.
pub(crate) fn end_for_bad_argument(message: &str) -> ! {
    Arguments::command().error(ErrorKind::ValueValidation, message).exit()
}

/// Takes only names that end in .svg, so that a slip cannot replace a file of another kind.
fn svg_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    if is_svg { Ok(path) } else { Err("give a file name that ends in .svg".into()) }
}
