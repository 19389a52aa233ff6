//! One set of revoked tokens on many servers: the program. The node itself is in the library.

mod arguments;
mod bench;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fleet::{Etcd, Settings};
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
    /// Lets the fleet go on after its cluster has lost something, such as by a restored backup
    Accept {
        /// The name of the fleet
        #[arg(long, value_name = "NAME", default_value = "revoked")]
        fleet: String,

        #[command(flatten)]
        etcd: Etcd,
    },
    /// Prints a new key for a fleet
    Key,
    /// Measures the figures of the README
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Node(arguments) => {
            log(arguments.log_json);
            runtime().and_then(|runtime| runtime.block_on(serve::run(&arguments)))
        }
        Command::Accept { fleet, etcd } => accept(Settings { fleet, etcd, ..Settings::new([0; 16]) }),
        Command::Key => arguments::new_key().map(|key| println!("{key}")),
        Command::Bench(arguments) => runtime().and_then(|runtime| runtime.block_on(bench::run(&arguments))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error. `RUST_LOG` chooses what is logged, such as `RUST_LOG=debug` or `RUST_LOG=info,audit=off`.
fn log(as_json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    if as_json { logs.json().init() } else { logs.with_ansi(false).init() }
}

fn accept(settings: Settings) -> Result<(), String> {
    match runtime()?.block_on(fleet::accept(&settings))? {
        Some(loss) => println!("accepted: {loss}. The nodes go on with what the cluster has"),
        None => println!("the fleet does not wait for anything"),
    }
    Ok(())
}

fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| format!("can't start threads: {error}"))
}
