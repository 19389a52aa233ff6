//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use example_support::option_values::{rate, whole_number_from, whole_number_in};
use tokens::expiry::Lifetimes;

use crate::failure::Failure;
use crate::wall_clock::WallClock;

/// Refuses revoked tokens and repeated requests, with two cuckoo filters in front of an exact store.
///
/// Prints the address that it listens on to standard output, and everything else to standard error. Ends with status 0
/// after SIGTERM or ctrl-c, when both filters are saved, with 1 if something failed, and with 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "web-server", version, args_override_self = true)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,

    /// The directory of the store, the snapshots and the key; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "web-server-data")]
    pub(crate) data: PathBuf,

    /// The secret key of the filters' hash, 16 bytes; made if it does not exist [default: DIR/key]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// What administrators must send as `Authorization: Bearer TOKEN` to the routes below /revoked and /jobs.
    /// Without it these routes are open, and only a loopback address can be listened on
    // From the environment if possible: every user of the machine can read the command line.
    #[arg(long, value_name = "TOKEN", env = "WEB_SERVER_ADMIN_TOKEN", hide_env_values = true)]
    pub(crate) admin_token: Option<String>,

    /// How many revoked tokens there may be at a time, including those that have just expired
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole_number_from(1))]
    pub(crate) capacity: usize,

    /// The largest acceptable share of the other tokens for which the store is asked
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    pub(crate) rate: f64,

    /// How far away the expiry of a revoked token may be, in seconds: the longest lifetime of the tokens that you
    /// issue. A token of unknown expiry is refused for so long
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = whole_number_from(1))]
    longest_lifetime: usize,

    /// How long a revoked token is refused after its expiry, in seconds: at least as long as others may still accept
    /// it, because they allow for clocks that differ
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    leeway: u64,

    /// Into how many ticks the filter divides the longest lifetime. An expired token takes up room for one tick at
    /// most; 13 ticks take 4 bits of each token's slot, 61 take 6, 253 take 8
    #[arg(long, value_name = "N", default_value = "13", value_parser = whole_number_in(1..=65_533))]
    ticks: usize,

    /// How long a request's identifier is refused at least if it comes again, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = whole_number_from(1))]
    window: usize,

    /// How many generations of identifiers there are; with G of them, one is remembered for G/(G-1) windows at most
    #[arg(long, value_name = "G", default_value = "5", value_parser = whole_number_in(2..=255))]
    pub(crate) generations: usize,

    /// How many requests with an identifier there may be in one generation
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole_number_from(1))]
    pub(crate) ids: usize,

    /// The largest acceptable share of new identifiers that are taken for repeated ones
    #[arg(long, value_name = "P", default_value = "0.00001", value_parser = rate)]
    pub(crate) ids_rate: f64,

    /// A file of tokens to revoke before the first request, one a line, each alone or with its expiry: `TOKEN EXPIRY`;
    /// a large one is loaded fastest if it is sorted
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,

    /// How often to save the filters while serving, in seconds; 0 to save them only at the end
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    snapshot_every: u64,

    /// The most memory that the server takes for each filter when it loads a snapshot, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024")]
    snapshot_limit: usize,

    /// The longest body of POST /revoked/bulk, in MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    bulk_limit: usize,

    /// How much memory the store uses as a cache, in MiB
    #[arg(long, value_name = "MIB", default_value = "64")]
    store_cache: usize,

    /// How much to delay each question to the store, in milliseconds: as if it were on another machine
    #[arg(long, value_name = "MS", default_value = "0")]
    store_delay: u64,

    /// Ask the store about every token, not only about those that the filter finds: for comparison
    #[arg(long)]
    pub(crate) no_filter: bool,

    /// For tests: the time is when this file was modified, and not what the machine's clock shows
    #[arg(long, value_name = "FILE", hide = true)]
    clock_file: Option<PathBuf>,

    /// How long to wait at the end for requests that are under way, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    grace: u64,
}

impl Arguments {
    /// Reads the arguments. Ends the process with status 2 if they are wrong.
    pub(crate) fn from_command_line() -> Self {
        let arguments = Self::parse();
        if arguments.admin_token.is_none() && !arguments.listen.ip().is_loopback() {
            let error = format!(
                "--listen {} can be reached from other machines, and without an admin token anyone who reaches the \
                 server may revoke and reinstate tokens; set WEB_SERVER_ADMIN_TOKEN, or listen on 127.0.0.1",
                arguments.listen
            );
            clap::Error::raw(clap::error::ErrorKind::MissingRequiredArgument, error + "\n").exit();
        }
        arguments
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.key_file.clone().unwrap_or_else(|| self.data.join("key"))
    }

    /// How long a generation is the current one, in seconds. An identifier stays for the rest of the period in which it
    /// came, and for `g - 1` more: so for `g - 1` periods at least, and `g` at most.
    pub(crate) fn period(&self) -> u64 {
        self.window.div_ceil(self.generations - 1) as u64
    }

    pub(crate) fn lifetimes(&self) -> Lifetimes {
        Lifetimes { longest: self.longest_lifetime as u64, leeway: self.leeway, keeper: "server" }
    }

    /// How long a token may be in the filter, in seconds. There is one tick to spare, so that it does no harm if the
    /// clock is set back a little between two runs.
    pub(crate) fn longest_in_filter(&self) -> u64 {
        let Lifetimes { longest, leeway, .. } = self.lifetimes();
        longest.saturating_add(leeway).saturating_add(self.resolution())
    }

    /// The length of a tick of the filter of revoked tokens, in seconds.
    pub(crate) fn resolution(&self) -> u64 {
        let Lifetimes { longest, leeway, .. } = self.lifetimes();
        longest.saturating_add(leeway).div_ceil(self.ticks as u64)
    }

    pub(crate) fn wall_clock(&self) -> Result<WallClock, Failure> {
        let file = self.clock_file.as_deref();
        WallClock::new(file).map_err(|error| Failure::file("read", file.unwrap_or("the clock".as_ref()), error))
    }

    pub(crate) fn snapshot_every(&self) -> Option<Duration> {
        (self.snapshot_every > 0).then(|| Duration::from_secs(self.snapshot_every))
    }

    pub(crate) fn snapshot_limit(&self) -> usize {
        self.snapshot_limit.saturating_mul(1 << 20)
    }

    pub(crate) fn bulk_limit(&self) -> usize {
        self.bulk_limit.saturating_mul(1 << 20)
    }

    pub(crate) fn store_cache(&self) -> usize {
        self.store_cache.saturating_mul(1 << 20)
    }

    pub(crate) fn store_delay(&self) -> Duration {
        Duration::from_millis(self.store_delay)
    }

    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}
