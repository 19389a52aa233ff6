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
//! - `churn`: writes until it is killed, for the test of crashes;
//! - `database`: how the database and its filter are opened;
//! - `failure`: why the program ends early.

mod arguments;
mod bench;
mod bulk;
mod churn;
mod database;
mod failure;

use std::io::{self, Write};
use std::process::ExitCode;

use db_cache::Opened;
use indicatif::HumanCount;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

/// A smaller filter is not worth it: with room for so many keys it takes 1.7 MB.
const LEAST_CAPACITY: usize = 1_000_000;

fn main() -> ExitCode {
    let (arguments, command) = Arguments::from_command_line();
    match run(&arguments, command) {
        Ok(code) => code,
        // The reader of the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // If nobody reads standard error either, that is no reason to panic.
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
    let cache = database::open(path, arguments.cache_mib(), capacity, arguments.rate)?;
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
    // So that the scan need not be made again.
    if matches!(cache.opened(), Opened::Rebuilt { .. }) {
        cache.snapshot()?;
    }
    Ok(code)
}
