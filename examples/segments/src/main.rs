//! `segments`: a key-value store of immutable segments, on the command line.
//!
//! ```text
//! cargo run --release -p segments                               # the table of the README
//! cargo run --release -p segments -- --path store put apple red
//! cargo run --release -p segments -- --path store get apple
//! cargo run --release -p segments -- --help
//! ```
//!
//! - `arguments`: the command line;
//! - `bench`: gets with each strategy, interleaved, and the table; `subject`: what the bench reads from;
//! - `churn`: writes until it is killed, for the test of crashes;
//! - `failure`: why the program ends early.

mod arguments;
mod bench;
mod churn;
mod failure;
mod subject;

use std::io::{self, Write};
use std::process::ExitCode;

use segments::{Options, Store};

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let (arguments, command) = Arguments::from_command_line();
    match run(&arguments, command) {
        Ok(code) => code,
        // The reader of the output has closed it, as `head` does.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // If standard error is closed, that is no reason to panic.
            let _ = writeln!(io::stderr(), "error: {failure}");
            ExitCode::from(if matches!(failure, Failure::Argument(_)) { 2 } else { 1 })
        }
    }
}

fn options(arguments: &Arguments) -> Options {
    Options {
        false_positive_rate: arguments.rate,
        engine_bits: u8::try_from(arguments.engine_bits).unwrap_or(u8::MAX),
        cache_bytes: (arguments.cache_mib as u64) << 20,
        ..Options::new(arguments.strategy.strategy())
    }
}

fn run(arguments: &Arguments, command: Command) -> Result<ExitCode, Failure> {
    if let Command::Bench(bench) = &command {
        bench::run(bench, &options(arguments))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(path) = &arguments.path else {
        return Err(Failure::Argument("no store was named; give --path DIRECTORY".into()));
    };
    let open = |options| Store::open(path, options).map_err(|error| Failure::Open { path: path.clone(), error });
    if let Command::Churn(churn) = &command {
        let store = open(churn::options(options(arguments)))?;
        return churn::run(&store, churn).map(|()| ExitCode::SUCCESS);
    }
    let store = open(options(arguments))?;
    let mut out = io::stdout().lock();
    let mut code = ExitCode::SUCCESS;
    match command {
        Command::Bench(_) | Command::Churn(_) => {}
        Command::Get { keys } => {
            for key in keys {
                match store.get(key.as_bytes())? {
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
            store.put(key.as_bytes(), value.as_bytes())?;
            store.maintain()?;
        }
        Command::Delete { keys } => {
            for key in keys {
                store.delete(key.as_bytes())?;
            }
        }
        Command::Flush => {
            store.flush()?;
            list(&store, &mut out)?;
        }
        Command::Compact => {
            store.flush()?;
            store.compact(0..store.segments().len())?;
            list(&store, &mut out)?;
        }
    }
    out.flush()?;
    Ok(code)
}

/// Prints a line for each segment. Saves the maplet first, because the segments have changed.
fn list(store: &Store, out: &mut impl Write) -> Result<(), Failure> {
    store.save()?;
    for segment in store.segments() {
        writeln!(out, "segment {}, slot {}: {} keys", segment.number, segment.slot, segment.keys)?;
    }
    Ok(())
}
