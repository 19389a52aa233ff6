//! `db-cache`: a key-value database with a filter in front of it, on the command line.
//!
//! ```text
//! cargo run --release -p db-cache                               # the table of the README
//! cargo run --release -p db-cache -- --path my.redb put apple red
//! cargo run --release -p db-cache -- --path my.redb get apple
//! cargo run --release -p db-cache -- --help
//! ```
//!
//! - `arguments`: the command line;
//! - `bench`: gets with and without the filter, and the table;
//! - `bulk`: many keys from a file;
//! - `churn`: writes until it is killed, for the test of crashes.

mod arguments;
mod bench;
mod bulk;
mod churn;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use db_cache::{Cache, CacheError, Opened, Options, RedbError, RedbStore};
use indicatif::HumanCount;

use crate::arguments::{Arguments, Command};

/// With fewer keys than this, a filter is not worth making smaller: it is 1.7 MB.
const LEAST_CAPACITY: usize = 1_000_000;

fn main() -> ExitCode {
    let (arguments, command) = Arguments::from_command_line();
    match run(&arguments, command) {
        Ok(code) => code,
        // Whoever read the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Nobody to tell it to is no reason to panic.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(if matches!(failure, Failure::Argument(_)) { 2 } else { 1 })
        }
    }
}

fn run(arguments: &Arguments, command: Command) -> Result<ExitCode, Failure> {
    if let Command::Bench(bench) = &command {
        bench::run(bench, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(path) = &arguments.path else {
        return Err(Failure::Argument("no database was named; give --path FILE".into()));
    };
    let capacity = arguments.capacity.unwrap_or(LEAST_CAPACITY);
    let cache = open(path, arguments.cache_mib(), capacity, arguments.rate)?;
    let mut out = io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    match command {
        Command::Bench(_) => {}
        Command::Get { keys } => {
            for key in keys {
                match cache.get(key.as_bytes())? {
                    Some(value) => {
                        out.write_all(&value)?;
                        out.write_all(b"\n")?;
                    }
                    None => {
                        out.flush()?;
                        writeln!(io::stderr(), "no such key: {key}")?;
                        code = ExitCode::FAILURE;
                    }
                }
            }
        }
        Command::Put { key, value } => {
            let added = cache.put(key.as_bytes(), value.as_bytes())?;
            writeln!(out, "{}", if added { "added" } else { "replaced" })?;
        }
        Command::Delete { keys } => {
            for key in keys {
                let deleted = cache.delete(key.as_bytes())?;
                writeln!(out, "{}", if deleted { "deleted" } else { "no such key" })?;
            }
        }
        Command::Load { file } => {
            let read = bulk::load(&cache, &file)?;
            cache.snapshot()?;
            writeln!(out, "{read}")?;
        }
        Command::Stats => {
            writeln!(out, "{}", serde_json::to_string_pretty(&cache.stats()).map_err(io::Error::from)?)?;
        }
        Command::Rebuild => {
            cache.rebuild(capacity)?;
            cache.snapshot()?;
            let filter = cache.filter();
            let [capacity, len] = [filter.capacity(), filter.len()].map(|keys| HumanCount(keys as u64));
            writeln!(out, "room for {capacity} keys, {len} taken")?;
        }
        Command::Churn(churn) => {
            drop(out);
            return churn::run(&cache, &churn).map(|()| ExitCode::SUCCESS);
        }
    }
    out.flush()?;
    // A scan need not be made twice.
    if matches!(cache.opened(), Opened::Rebuilt { .. }) {
        cache.snapshot()?;
    }
    Ok(code)
}

/// Opens a database and its filter, whose snapshot lies beside it.
fn open(path: &Path, cache_mib: usize, capacity: usize, rate: f64) -> Result<Cache<RedbStore>, Failure> {
    let store =
        RedbStore::open(path, cache_mib << 20).map_err(|error| Failure::Open { path: path.to_owned(), error })?;
    let mut snapshot = OsString::from(path);
    snapshot.push(".filter");
    let options = Options { capacity, false_positive_rate: rate, snapshot: Some(snapshot.into()) };
    Ok(Cache::open(store, options)?)
}

/// Why the program ends early.
enum Failure {
    /// An argument can't be met.
    Argument(String),
    Open {
        path: PathBuf,
        error: RedbError,
    },
    Cache(CacheError<RedbError>),
    Store(RedbError),
    /// The file of keys can't be used.
    Input(String),
    /// The cache gave wrong answers.
    Wrong(String),
    Threads(io::Error),
    Temporary(io::Error),
    Output(io::Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(message) | Self::Input(message) | Self::Wrong(message) => f.write_str(message),
            Self::Open { path, error } => {
                write!(f, "can't open the database '{}': {error}; give --path another file", path.display())
            }
            Self::Cache(error @ CacheError::Full(_)) => {
                write!(f, "{error}: db-cache --path FILE rebuild --capacity N")
            }
            Self::Cache(error) => error.fmt(f),
            Self::Store(error) => write!(f, "the database failed: {error}"),
            Self::Threads(error) => write!(f, "can't start a thread: {error}; give --threads a smaller number"),
            Self::Temporary(error) => {
                write!(f, "can't make a directory for a temporary database: {error}; give --path FILE")
            }
            Self::Output(error) => write!(f, "can't write the output: {error}"),
        }
    }
}

impl From<CacheError<RedbError>> for Failure {
    fn from(error: CacheError<RedbError>) -> Self {
        Self::Cache(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
