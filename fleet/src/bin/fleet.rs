//! One set of revoked tokens on many servers: the program. The node itself is in the library.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Parser;
use fleet::http::{Service, router};
use fleet::{Clock, Epoch, Etcd, Node, Settings, SharedArguments, accept, change, duration, fleet_name, found};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::SignalStream;
use tokio_stream::{Stream, StreamExt};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// How long to wait at the end for running requests.
const GRACE: Duration = Duration::from_secs(10);

/// Counts the lines of the log that had no room.
static LOST: OnceLock<ErrorCounter> = OnceLock::new();

/// One set of revoked tokens on many servers.
#[derive(Debug, Parser)]
#[command(name = "fleet", version)]
enum Command {
    /// Runs a node
    ///
    /// Durations are seconds, or such as 250ms, 10min or 1day. Prints the address it listens on to standard output, and
    /// everything else to standard error; RUST_LOG chooses what is logged. Ends with status 0 after SIGTERM or ctrl-c.
    Node(Box<Arguments>),
    /// Founds a fleet, once, before its nodes start
    Found {
        #[command(flatten)]
        of: Of,
        /// Changes the settings of a fleet that is there. Its nodes join again
        #[arg(long)]
        change: bool,
    },
    /// Lets a fleet go on after its cluster has lost something, such as by a restored backup
    Accept {
        #[command(flatten)]
        of: Of,
        /// The cluster that the fleet was in, all of whose members have been stopped for good
        #[arg(long, value_name = "CLUSTER")]
        from: Option<String>,
    },
}

/// Which fleet, and its settings.
#[derive(Debug, clap::Args)]
struct Of {
    #[command(flatten)]
    etcd: Etcd,
    /// The name of the fleet, with which its keys begin
    #[arg(long, value_name = "NAME", default_value = "revoked", value_parser = fleet_name)]
    fleet: String,
    #[command(flatten)]
    settings: SharedArguments,
}

#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    listen: SocketAddr,
    /// What administrators send as `Authorization: Bearer TOKEN` to /revoked. Without it, everybody may revoke, on a
    /// loopback address only
    #[arg(long, value_name = "TOKEN", env = "FLEET_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,
    /// After SIGTERM, for how long requests are still taken while /healthz answers 503. Longer than the load balancer needs
    /// to notice
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    drain: Duration,
    /// Log in JSON, one object a line
    #[arg(long)]
    log_json: bool,
    /// How many lines of the log may wait to be written. Further lines are lost, and counted
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    log_lines: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Command::parse() {
        Command::Node(arguments) => {
            let _written_at_the_end = start_log(arguments.log_json, arguments.log_lines);
            serve(*arguments).await.inspect_err(|error| tracing::error!("{error}"))
        }
        Command::Found { of, change: false } => say(found(&of.etcd, &of.fleet, &of.settings).await),
        Command::Found { of, change: true } => say(change(&of.etcd, &of.fleet, &of.settings).await),
        Command::Accept { of, from } => say(accept(&of.etcd, &of.fleet, from.as_deref(), &of.settings).await),
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

fn say(epoch: Result<Epoch, String>) -> Result<(), String> {
    let epoch = epoch?;
    let line = format!("epoch {} in cluster {}: {:?}", epoch.number, epoch.cluster, epoch.settings);
    writeln!(io::stdout(), "{line}").map_err(|error| format!("can't write to standard output: {error}"))
}

/// The log, on standard error. A thread writes it, from a queue: if a disk is full or the reader of a pipe has stopped, lines
/// are lost and counted, and nothing else happens.
fn start_log(as_json: bool, lines: usize) -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(lines).lossy(true).finish(io::stderr());
    _ = LOST.set(writer.error_counter());
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_writer(writer).log_internal_errors(false).with_env_filter(filter);
    if as_json {
        logs.json().init()
    } else {
        logs.with_ansi(false).init()
    }
    guard
}

fn lost_lines() -> u64 {
    LOST.get().map_or(0, |lost| lost.dropped_lines() as u64)
}

/// Serves until a signal.
async fn serve(arguments: Arguments) -> Result<(), String> {
    if arguments.admin_token.is_none() && !arguments.listen.ip().is_loopback() {
        return Err(format!(
            "{} can be reached from other machines, and without an administrators' token everybody who reaches the node may \
             revoke tokens: set FLEET_ADMIN_TOKEN",
            arguments.listen
        ));
    }
    let node = Arc::new(Node::new(arguments.settings, Clock::default())?);
    let service = Service::new(Arc::clone(&node), arguments.admin_token, lost_lines);
    // Before the address is printed: a process that reads it may send a signal at once.
    let mut signals = signals().map_err(|error| format!("can't catch signals: {error}"))?;
    let listen = |error: io::Error| format!("can't listen on {}: {error}", arguments.listen);
    let listener = TcpListener::bind(arguments.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    // Whether anybody reads it does not matter.
    _ = writeln!(io::stdout(), "listening on http://{address}").and_then(|()| io::stdout().flush());
    let (drained, has_drained) = oneshot::channel::<()>();
    let requests = axum::serve(listener, router(Arc::clone(&service)));
    let requests = requests.with_graceful_shutdown(async { _ = has_drained.await });
    let end = async {
        signals.next().await;
        tracing::info!("ending: /healthz says so, and requests are taken for {:?} more", arguments.drain);
        service.end();
        // Until load balancers have noticed. A second signal ends that sooner.
        _ = timeout(arguments.drain, signals.next()).await;
        _ = drained.send(());
        sleep(GRACE).await;
    };
    // All in this one task: whichever ends, the process ends with it.
    tokio::select! {
        served = requests => served.map_err(|error| error.to_string()),
        () = end => Ok(()),
        never = node.run() => match never {},
        () = report_lost_lines() => Ok(()),
    }
}

/// SIGTERM and ctrl-c, from now on.
fn signals() -> io::Result<impl Stream<Item = ()> + Unpin> {
    let [terminate, interrupt] = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    Ok(SignalStream::new(terminate).merge(SignalStream::new(interrupt)))
}

/// Says in the log that lines were lost.
async fn report_lost_lines() {
    let mut reported = 0;
    loop {
        sleep(Duration::from_secs(1)).await;
        let lost = lost_lines();
        if lost > reported {
            tracing::warn!(lost, "lines of this log were lost, because they were not read in time");
            reported = lost;
        }
    }
}
