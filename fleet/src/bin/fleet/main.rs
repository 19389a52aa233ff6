//! One set of revoked tokens on many servers: the program. The node itself is in the library.

mod arguments;
mod log;
mod serve;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fleet::{Etcd, Settings};
use tokio::runtime::Runtime;

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
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Node(arguments) => {
            let logs = log::start(arguments.log_json);
            let served = runtime().and_then(|runtime| runtime.block_on(serve::run(&arguments)));
            return served.map_or_else(
                |error| {
                    logs.error(&error);
                    ExitCode::FAILURE
                },
                |()| ExitCode::SUCCESS,
            );
        }
        Command::Accept { fleet, etcd } => accept(Settings { fleet, etcd, ..Settings::new([0; 16]) }),
        Command::Key => arguments::new_key().and_then(|key| say(&key)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where it can't be written, the status says it.
            _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn accept(settings: Settings) -> Result<(), String> {
    let accepted = runtime()?.block_on(fleet::accept(&settings))?;
    for endpoint in accepted.endpoints {
        say(&endpoint)?;
    }
    match accepted.loss {
        Some(loss) => say(&format!("accepted: {loss}. The nodes go on with what the cluster has")),
        None => say("the fleet does not wait for anything"),
    }
}

/// Prints a line to standard output.
fn say(line: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{line}").map_err(|error| format!("can't write to standard output: {error}"))
}

fn runtime() -> Result<Runtime, String> {
    Runtime::new().map_err(|error| format!("can't start threads: {error}"))
}
