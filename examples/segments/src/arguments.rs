//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use example_support::machine::hardware_threads;
use example_support::option_values::{rate, seconds_up_to, whole_number_in};
use segments::Strategy;

const MOST_KEYS: usize = 100_000_000;
const MOST_THREADS: usize = 256;
const MOST_SECONDS: f64 = 60.0;
const MOST_MIB: usize = 1 << 20;
const MOST_VALUE_BYTES: usize = 1 << 20;
const MOST_ROUNDS: usize = 1000;
const MOST_SEGMENTS: usize = 250;

/// A key-value store of immutable segments (files of lsm-tree), with a choice of how a get finds the segment of a
/// key.
///
/// Without a command it makes temporary stores of 4, 16 and 64 segments. It reads from them with one maplet for all
/// segments, with a filter for each, and with the engine's own filters, and prints a table. The exit status is 0 if
/// all went well. It is 1 if a key was not there, an answer was wrong or something failed, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "segments", version)]
pub(crate) struct Arguments {
    /// The store: a directory, which is made if it does not exist
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub(crate) path: Option<PathBuf>,

    /// How a get finds the segments that may have a key
    #[arg(long, global = true, value_enum, default_value = "maplet")]
    pub(crate) strategy: Which,

    /// The largest acceptable false-positive rate of the maplet, or of each filter
    #[arg(long, global = true, value_name = "P", default_value = "0.001", value_parser = rate, allow_negative_numbers = true)]
    pub(crate) rate: f64,

    /// Bits for each key in the engine's own Bloom filters
    #[arg(long, global = true, value_name = "N", default_value = "15", value_parser = whole_number_in(1..=100), allow_negative_numbers = true)]
    pub(crate) engine_bits: usize,

    /// How much memory the engine may use for blocks, in MiB
    #[arg(long, global = true, value_name = "MIB", default_value = "512", value_parser = whole_number_in(1..=MOST_MIB), allow_negative_numbers = true)]
    pub(crate) cache_mib: usize,

    #[command(subcommand)]
    command: Option<Command>,
}

/// A strategy, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// One maplet for all segments
    Maplet,
    /// A cuckoo filter for each segment
    Filters,
    /// The Bloom filters that the engine has in each segment
    Engine,
}

impl Which {
    pub(crate) fn strategy(self) -> Strategy {
        match self {
            Self::Maplet => Strategy::Maplet,
            Self::Filters => Strategy::FilterEach,
            Self::Engine => Strategy::Engine,
        }
    }
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Reads with each strategy, interleaved, and prints a table (the default)
    Bench(Bench),
    /// Prints the values of keys, one on each line
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
    /// Writes what is in memory to a segment, and lists the segments
    Flush,
    /// Merges all segments into one, and lists it
    Compact,
    /// Writes, flushes and compacts until it is killed, and reports each step: for the test of crashes
    Churn(Churn),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Bench {
    /// How many keys a store has
    #[arg(long, value_name = "N", default_value = "300_000", value_parser = whole_number_in(1..=MOST_KEYS), allow_negative_numbers = true)]
    pub(crate) keys: usize,

    /// How many bytes a value has
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole_number_in(0..=MOST_VALUE_BYTES), allow_negative_numbers = true)]
    pub(crate) value_bytes: usize,

    /// How many segments
    #[arg(long, value_name = "N", default_value = "4,16,64", value_delimiter = ',', value_parser = whole_number_in(1..=MOST_SEGMENTS), allow_negative_numbers = true)]
    pub(crate) segments: Vec<usize>,

    /// How many threads read [default: one for each hardware thread]
    #[arg(long, value_name = "T", value_parser = whole_number_in(1..=MOST_THREADS), allow_negative_numbers = true)]
    threads: Option<usize>,

    /// How long each turn takes; a round has fifteen turns
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
    #[arg(long, value_name = "T", default_value = "2", value_parser = whole_number_in(1..=MOST_THREADS), allow_negative_numbers = true)]
    pub(crate) threads: usize,

    /// The seed from which the keys and changes are drawn
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
}

impl Arguments {
    /// Reads the arguments. Ends the process with status 2 if they are not valid.
    pub(crate) fn from_command_line() -> (Self, Command) {
        let mut arguments = Self::parse();
        let command = arguments.command.take();
        (arguments, command.unwrap_or_else(|| Command::Bench(OnlyBench::parse_from(["segments"]).bench)))
    }
}

impl Bench {
    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| hardware_threads().min(MOST_THREADS))
    }
}
