//! The command line.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::engine::redis::{RedisEngine, Settings};
use crate::{bench, demo, node};

/// One set of revoked tokens on many servers.
#[derive(Debug, Parser)]
#[command(name = "fleet", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a node of a fleet
    Node(Box<node::arguments::Arguments>),
    /// Starts a fleet of three nodes on this machine, and shows how it behaves
    Demo,
    /// Measures the figures of the README
    Bench(bench::Arguments),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Node(arguments) => node(&arguments),
        Command::Demo => demo::run(),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn node(arguments: &node::arguments::Arguments) -> Result<(), String> {
    let settings = Settings {
        window: arguments.remember(),
        // So that one answer may be lost, and the next one still comes in time.
        timeout: (arguments.stale_after / 2).clamp(Duration::from_millis(100), Duration::from_secs(1)),
        ..Settings::new(&arguments.engine, &arguments.fleet)
    };
    let engine = RedisEngine::new(settings).map_err(|error| error.to_string())?;
    node::serve::run(arguments, Arc::new(engine))
}
