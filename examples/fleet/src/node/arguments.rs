//! The command line of a node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process;
use std::time::Duration;

use example_support::option_values::{rate, seconds_up_to, whole_number_from};
use tokens::expiry::Lifetimes;

use super::key;
use super::settings::Settings;
use super::step::LeftOut;

/// Refuses revoked tokens, as all nodes of the fleet do.
///
/// Prints the address it listens on to standard output, everything else to standard error. Ends with status 0 after
/// SIGTERM or ctrl-c, with 1 if something failed, and with 2 for bad arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,

    /// The name of the fleet. One engine may have several fleets
    #[arg(long, value_name = "NAME", default_value = "revoked")]
    pub(crate) fleet: String,

    /// Where the engine is: `redis://[USER:PASSWORD@]HOST:PORT`
    // Or in the environment: it may contain a password, and every user of the machine can read the command line.
    #[arg(
        long,
        value_name = "URL",
        env = "FLEET_ENGINE_URL",
        hide_env_values = true,
        default_value = "redis://127.0.0.1:6379"
    )]
    pub(crate) engine: String,

    /// The name of this node; no two nodes of a fleet may have the same name [default: the address and the process]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// What administrators must send as `Authorization: Bearer TOKEN` to the routes below /revoked. Without it
    /// these routes are open, and the node listens on a loopback address only
    #[arg(long, value_name = "TOKEN", env = "FLEET_ADMIN_TOKEN", hide_env_values = true)]
    pub(crate) admin_token: Option<String>,

    /// The secret key of the filters' hash, the same on all nodes: 32 hexadecimal digits
    #[arg(long, value_name = "HEX", env = "FLEET_KEY", hide_env_values = true, conflicts_with = "key_file",
          value_parser = key::from_hex)]
    key: Option<[u8; 16]>,

    /// A file with the 16 bytes of that key; made if it does not exist
    #[arg(long, value_name = "FILE", default_value = "fleet.key")]
    key_file: PathBuf,

    /// How many tokens may be revoked at a time
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = whole_number_from(1))]
    capacity: usize,

    /// The share of tokens that are not revoked, but still cost a question to the engine (the false-positive rate)
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    rate: f64,

    /// The length of a tick, in seconds. An expired token takes up room for one tick at most. At each tick nodes
    /// compare their digests, and one may write a snapshot
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = whole_number_from(1))]
    resolution: usize,

    /// How far in the future the expiry of a revoked token may be, in seconds: the longest lifetime of the tokens
    /// that you issue. A token without a known expiry is refused for this long
    #[arg(long, value_name = "SECONDS", default_value = "86400", value_parser = whole_number_from(1))]
    longest_lifetime: usize,

    /// How long a revoked token is refused after its expiry, in seconds. Allow at least as long as other services
    /// may still accept the token because their clocks differ
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    leeway: u64,

    /// How long a node trusts its filter without word from the engine, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds_up_to(3600.0))]
    pub(crate) stale_after: Duration,

    /// How long a request to revoke or restore a token may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds_up_to(60.0))]
    patience: Duration,

    /// How long the engine remembers the identifiers of changes, in seconds. It must be more than twice as long as
    /// a request may take, so that no change counts twice
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = whole_number_from(1))]
    remember: usize,

    /// The least age of the newest snapshot at which the next one is written, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds_up_to(1e7))]
    snapshot_every: Duration,

    /// How many snapshots are kept
    #[arg(long, value_name = "N", default_value = "3", value_parser = whole_number_from(2))]
    snapshots: usize,

    /// The most memory that a filter from a snapshot may take, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = whole_number_from(1))]
    memory_limit: usize,

    /// For tests: leaves out a step
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "STEP", hide = true)]
    leave_out: Vec<super::step::Step>,
}

impl Arguments {
    pub(crate) fn settings(&self) -> Result<Settings, String> {
        if self.admin_token.is_none() && !self.listen.ip().is_loopback() {
            return Err(format!(
                "--listen {} can be reached from other machines, and without an admin token anyone who reaches the \
                 node may revoke and restore tokens; set FLEET_ADMIN_TOKEN, or listen on 127.0.0.1",
                self.listen
            ));
        }
        if self.remember() <= 2 * self.patience {
            return Err(format!(
                "--remember {} is not more than twice --patience {}: a change that is sent again could count twice; \
                 give a larger --remember, or a smaller --patience",
                self.remember,
                self.patience.as_secs_f64()
            ));
        }
        let key = match self.key {
            Some(key) => key,
            None => key::read_or_create(&self.key_file)?,
        };
        Ok(Settings {
            node: self.node.clone().unwrap_or_else(|| format!("{}/{}", self.listen, process::id())),
            key,
            capacity: self.capacity,
            rate: self.rate,
            resolution: self.resolution as u64,
            lifetimes: Lifetimes { longest: self.longest_lifetime as u64, leeway: self.leeway, keeper: "fleet" },
            stale_after: self.stale_after,
            // Several questions fit into the time after which the node is stale.
            beat: (self.stale_after / 8).clamp(Duration::from_millis(10), Duration::from_millis(250)),
            patience: self.patience,
            snapshot_every: self.snapshot_every,
            snapshots: self.snapshots,
            memory_limit: self.memory_limit.saturating_mul(1 << 20),
        })
    }

    pub(crate) fn remember(&self) -> Duration {
        Duration::from_secs(self.remember as u64)
    }

    pub(crate) fn left_out(&self) -> LeftOut {
        #[cfg(debug_assertions)]
        return LeftOut(self.leave_out.clone());
        #[cfg(not(debug_assertions))]
        LeftOut::default()
    }
}
