//! One set of revoked tokens on many servers: the program. The node itself is in the library.

mod arguments;
mod bench;
mod demo;
mod key;
mod serve;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, Subcommand};
use fleet::log::Log;
use fleet::{EngineSettings, RedisEngine};
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;

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
    Node(Box<arguments::Arguments>),
    /// Lets the fleet go on after its engine has lost something, such as by a restored backup
    Accept(arguments::Engine),
    /// Prints a new key for a fleet
    Key,
    /// Starts a fleet of three nodes on this machine, and shows how it behaves
    Demo,
    /// Measures the figures of the README
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Node(arguments) => node(&arguments),
        Command::Accept(engine) => accept(&engine),
        Command::Key => key::random().map(|key| println!("{key:032x}")),
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

/// Logs go to standard error, with times. `RUST_LOG` chooses what is logged, such as `RUST_LOG=debug`.
fn log(as_json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).with_target(false);
    if as_json { logs.json().init() } else { logs.with_ansi(false).init() }
}

fn node(arguments: &arguments::Arguments) -> Result<(), String> {
    log(arguments.log_json);
    let settings = EngineSettings {
        remember: arguments.remember(),
        // So that one answer may be lost, and the next one still comes in time.
        timeout: (arguments.stale_after / 2).clamp(Duration::from_millis(100), Duration::from_secs(1)),
        ..arguments.engine.settings()
    };
    let engine = RedisEngine::new(settings).map_err(|error| error.to_string())?;
    runtime()?.block_on(serve::run(arguments, Arc::new(engine)))
}

fn accept(engine: &arguments::Engine) -> Result<(), String> {
    let accepting = async { RedisEngine::new(engine.settings())?.accept().await };
    match runtime()?.block_on(accepting).map_err(|error| error.to_string())? {
        Some(loss) => println!("accepted: {loss}. The nodes go on with the log as it is"),
        None => println!("the fleet does not wait for anything"),
    }
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| format!("can't start threads: {error}"))
}
