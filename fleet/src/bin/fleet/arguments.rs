//! The command line of a node.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fleet::node::LeftOut;
use fleet::{EngineSettings, Settings};

use super::key;

/// Where the log is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Engine {
    /// The name of the fleet. One engine may have several fleets
    #[arg(long, value_name = "NAME", default_value = "revoked")]
    pub(crate) fleet: String,

    /// Where the engine's master is: `redis://[USER:PASSWORD@]HOST:PORT`, `rediss://…` for TLS, or
    /// `redis+sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]/MASTER`
    // Or in the environment: it may contain a password, and every user of the machine can read the command line.
    #[arg(
        long = "engine",
        value_name = "URL",
        env = "FLEET_ENGINE_URL",
        hide_env_values = true,
        default_value = "redis://127.0.0.1:6379"
    )]
    pub(crate) url: String,
}

impl Engine {
    pub(crate) fn settings(&self) -> EngineSettings {
        EngineSettings::new(&self.url, &self.fleet)
    }
}

/// Refuses revoked tokens, as all nodes of the fleet do.
///
/// Durations are seconds, or such as 250ms, 10min or 1day. Prints the address it listens on to standard output,
/// everything else to standard error. Ends with status 0 after SIGTERM or ctrl-c, with 1 if something failed, and with
/// 2 for bad arguments.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,

    #[command(flatten)]
    pub(crate) engine: Engine,

    /// The name of this node, for logs and metrics. A random number is added to it [default: the address]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// What administrators must send as `Authorization: Bearer TOKEN` to the routes below /revoked. Without it
    /// these routes are open, and the node listens on a loopback address only
    #[arg(long, value_name = "TOKEN", env = "FLEET_ADMIN_TOKEN", hide_env_values = true)]
    pub(crate) admin_token: Option<String>,

    /// The certificate chain for TLS towards clients, in a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The private key of that certificate, in a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The secret key of the filters' hash, the same on all nodes: 32 hexadecimal digits, such as `fleet key` prints
    #[arg(long, value_name = "HEX", env = "FLEET_KEY", hide_env_values = true, conflicts_with = "key_file",
          value_parser = key::from_hex)]
    key: Option<[u8; 16]>,

    /// A file with the 16 bytes of that key; made if it does not exist
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// A folder in which the node keeps the furthest place of the log that it knows. Then it notices if the engine lost
    /// something while no node was running. Each node needs a folder of its own
    #[arg(long, value_name = "FOLDER")]
    state_folder: Option<PathBuf>,

    /// Go on without asking an operator when the engine has lost something that a node knew. Otherwise the fleet
    /// answers 503 until `fleet accept`
    #[arg(long)]
    accept_loss: bool,

    /// How many tokens may be revoked at a time
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = number)]
    capacity: usize,

    /// The share of tokens that are not revoked, but still cost a question to the engine (the false-positive rate)
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    rate: f64,

    /// The length of a tick. An expired token takes up room for one tick at most. At each tick nodes compare their
    /// digests, and one may write a snapshot
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = whole_seconds)]
    resolution: u64,

    /// How far in the future the expiry of a revoked token may be: the longest lifetime of the tokens that you issue.
    /// A token without a known expiry is refused for this long
    #[arg(long, value_name = "TIME", default_value = "86400", value_parser = whole_seconds)]
    longest_lifetime: u64,

    /// How long a revoked token is refused after its expiry. Allow at least as long as other services may still accept
    /// the token because their clocks differ
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = time)]
    leeway: Duration,

    /// By how much the engine's clock may differ from this machine's. If it differs by more, or jumps by more, the node
    /// answers 503 until it is right again. Entries are kept for that much longer
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = whole_seconds)]
    clock_margin: u64,

    /// How long a node trusts its filter without word from the engine, up to an hour
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = time)]
    pub(crate) stale_after: Duration,

    /// How long a request to revoke or restore a token may take, up to a minute
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = time)]
    patience: Duration,

    /// How long the engine remembers the identifiers of changes. It must be more than twice as long as a request may
    /// take, so that no change counts twice
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = whole_seconds)]
    remember: u64,

    /// The least age of the newest snapshot at which the next one is written
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = time)]
    snapshot_every: Duration,

    /// How many snapshots are kept
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u64).range(2..))]
    snapshots: u64,

    /// The most memory that a filter from a snapshot may take, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024", value_parser = number)]
    memory_limit: usize,

    /// Log in JSON, one object a line
    #[arg(long)]
    pub(crate) log_json: bool,

    /// For tests: leaves out a step
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "STEP", hide = true)]
    leave_out: Vec<fleet::node::Step>,
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
        for (name, given, most) in [("--stale-after", self.stale_after, 3600), ("--patience", self.patience, 60)] {
            if given.is_zero() || given > Duration::from_secs(most) {
                return Err(format!("{name} is {given:?}; give more than 0, and {most} s at most"));
            }
        }
        let key = match (self.key, &self.key_file) {
            (Some(key), _) => key,
            (None, Some(file)) => key::read_or_create(file)?,
            (None, None) => {
                return Err(
                    "there is no key, and all nodes of a fleet need the same secret one; make one with `fleet \
                            key`, and set FLEET_KEY to it, or give --key-file FILE"
                        .into(),
                );
            }
        };
        if let Some(folder) = &self.state_folder {
            std::fs::create_dir_all(folder).map_err(|error| format!("can't create {}: {error}", folder.display()))?;
        }
        Ok(Settings {
            node: self.node.clone().unwrap_or_else(|| self.listen.to_string()),
            capacity: self.capacity,
            rate: self.rate,
            resolution: self.resolution,
            longest_lifetime: self.longest_lifetime,
            leeway: self.leeway.as_secs(),
            clock_margin: Duration::from_secs(self.clock_margin),
            stale_after: self.stale_after,
            patience: self.patience,
            snapshot_every: self.snapshot_every,
            snapshots: self.snapshots as usize,
            memory_limit: self.memory_limit.saturating_mul(1 << 20),
            accepts_loss: self.accept_loss,
            place_file: self.state_folder.as_ref().map(|folder| folder.join("place.json")),
            ..Settings::new(key)
        })
    }

    pub(crate) fn remember(&self) -> Duration {
        Duration::from_secs(self.remember)
    }

    pub(crate) fn left_out(&self) -> LeftOut {
        #[cfg(debug_assertions)]
        return LeftOut(self.leave_out.clone());
        #[cfg(not(debug_assertions))]
        LeftOut::default()
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.replace('_', "").parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.or_else(|| humantime::parse_duration(text).ok());
    time.ok_or_else(|| format!("{text:?} is no duration; give seconds, or such as 250ms, 10min or 1day"))
}

fn whole_seconds(text: &str) -> Result<u64, String> {
    match time(text)? {
        time if time.subsec_nanos() == 0 && !time.is_zero() => Ok(time.as_secs()),
        time => Err(format!("{time:?} is not a whole number of seconds from 1 on")),
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.replace('_', "").parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{text:?} is not a whole number from 1 on"))
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| *rate > 0.0 && *rate < 1.0);
    rate.ok_or_else(|| format!("{text:?} is not a number between 0 and 1"))
}
