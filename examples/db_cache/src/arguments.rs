//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use example_support::machine::hardware_threads;
use example_support::option_values::{rate, seconds_up_to, whole_number_in};

const MOST_KEYS: usize = 1_000_000_000;
const MOST_THREADS: usize = 256;
const MOST_SECONDS: f64 = 60.0;
const MOST_MIB: usize = 1 << 20;
const MOST_VALUE_BYTES: usize = 1 << 20;
const MOST_ROUNDS: usize = 1000;
const CACHE_MIB: usize = 64;

/// A key-value database (redb) behind a cuckoo filter, which answers "not there" without touching the database.
///
/// Without a command it makes a temporary database, reads present and absent keys from it with and without the filter,
/// and prints a table. The filter's snapshot is beside the database, under the database's name and `.filter`. The exit
/// status is 0 if all went well, 1 if a key was not there, an answer was wrong or something failed, and 2 for bad
/// arguments.
#[derive(Debug, Parser)]
#[command(name = "db-cache", version)]
pub(crate) struct Arguments {
    /// The database: a file, which is made if it does not exist
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,

    /// How many keys the filter must have room for at least [default: 1_000_000, or more if the database has more]
    #[arg(long, global = true, value_name = "N", value_parser = whole_number_in(1..=MOST_KEYS), allow_negative_numbers = true)]
    pub(crate) capacity: Option<usize>,

    /// The largest acceptable false-positive rate of the filter
    #[arg(long, global = true, value_name = "P", default_value = "0.001", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,

    /// How much memory redb may use for pages of the database, in MiB; `bench` takes several: `8,512`
    /// [default: 64; for `bench` 16,512]
    #[arg(long, global = true, value_name = "MIB", value_parser = whole_number_in(1..=MOST_MIB), value_delimiter = ',', allow_negative_numbers = true)]
    cache_mib: Vec<usize>,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads present and absent keys with and without the filter, and prints a table (the default)
    Bench(Bench),
    /// Prints the values of keys, one a line
    Get {
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Gives a key a value
    Put { key: String, value: String },
    /// Deletes keys and their values
    Delete {
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Puts all keys of a file, one a line, each followed by a tab and its value; `-` for standard input
    Load { file: PathBuf },
    /// Prints the filter's statistics, as JSON
    Stats,
    /// Rebuilds the filter from a scan of all keys, with room for --capacity of them
    Rebuild,
    /// Writes and deletes until it is killed, and prints each step: for the test of crashes
    Churn(Churn),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Bench {
    /// How many keys the database has
    #[arg(long, value_name = "N", default_value = "300_000", value_parser = whole_number_in(1..=MOST_KEYS), allow_negative_numbers = true)]
    pub(crate) keys: usize,

    /// How many different absent keys are looked for
    #[arg(long, value_name = "M", default_value = "10_000_000", value_parser = whole_number_in(1..=MOST_KEYS), allow_negative_numbers = true)]
    pub(crate) absent: usize,

    /// How many bytes a value has
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole_number_in(0..=MOST_VALUE_BYTES), allow_negative_numbers = true)]
    pub(crate) value_bytes: usize,

    /// How many threads read [default: as many as the hardware has]
    #[arg(long, value_name = "T", value_parser = whole_number_in(1..=MOST_THREADS), allow_negative_numbers = true)]
    threads: Option<usize>,

    /// How long each run takes, in seconds; a round has four runs
    #[arg(long, value_name = "S", default_value = "0.3", value_parser = seconds_up_to(MOST_SECONDS), allow_negative_numbers = true)]
    pub(crate) seconds: Duration,

    /// How many rounds there are
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole_number_in(1..=MOST_ROUNDS), allow_negative_numbers = true)]
    pub(crate) rounds: usize,
}

/// The defaults of `bench`, for a command line without a command.
#[derive(Parser)]
struct OnlyBench {
    #[command(flatten)]
    bench: Bench,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Churn {
    /// How many threads write
    #[arg(long, value_name = "T", default_value = "4", value_parser = whole_number_in(1..=MOST_THREADS), allow_negative_numbers = true)]
    pub(crate) threads: usize,

    /// The seed of the random keys and changes
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,

    /// How long to wait between two snapshots, in milliseconds
    #[arg(long, value_name = "MS", default_value = "20")]
    pub(crate) snapshot_every: u64,
}

impl Arguments {
    /// Reads the arguments. Ends the process with status 2 if they are wrong.
    pub(crate) fn from_command_line() -> (Self, Command) {
        let mut arguments = Self::parse();
        let command = arguments.command.take();
        (arguments, command.unwrap_or_else(|| Command::Bench(OnlyBench::parse_from(["db-cache"]).bench)))
    }

    /// The cache size of a command that opens the database once.
    pub(crate) fn cache_mib(&self) -> usize {
        self.cache_mib.first().copied().unwrap_or(CACHE_MIB)
    }

    /// The cache sizes of `bench`: one smaller than the database of its defaults, and one larger.
    pub(crate) fn cache_mibs(&self) -> &[usize] {
        if self.cache_mib.is_empty() { &[16, 512] } else { &self.cache_mib }
    }
}

impl Bench {
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| hardware_threads().min(MOST_THREADS))
    }
}
