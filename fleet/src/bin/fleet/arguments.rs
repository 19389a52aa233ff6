//! The command line of a node.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleet::{Etcd, Settings};

/// Where the cluster is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Cluster {
    /// The name of the fleet, which begins its keys. One cluster may have several fleets
    #[arg(long, value_name = "NAME", default_value = "revoked")]
    pub(crate) fleet: String,

    /// The members of etcd: `http://HOST:PORT` or `https://HOST:PORT`, separated by commas
    #[arg(long, value_name = "URLS", env = "FLEET_ETCD", default_value = "http://127.0.0.1:2379")]
    etcd: String,

    /// The user of etcd, with the password in FLEET_ETCD_PASSWORD
    #[arg(long, value_name = "NAME", env = "FLEET_ETCD_USER", requires = "etcd_password")]
    etcd_user: Option<String>,

    // Every user of the machine can read the command line.
    #[arg(long, env = "FLEET_ETCD_PASSWORD", hide = true, hide_env_values = true)]
    etcd_password: Option<String>,

    /// The authority of the members' certificates, in a PEM file, instead of those that the system trusts
    #[arg(long, value_name = "FILE")]
    etcd_authority: Option<PathBuf>,

    /// The certificate that the node shows to etcd, in a PEM file
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    etcd_certificate: Option<PathBuf>,

    /// The key of that certificate, in a PEM file
    #[arg(long, value_name = "FILE", requires = "etcd_certificate")]
    etcd_key: Option<PathBuf>,
}

impl Cluster {
    pub(crate) fn etcd(&self) -> Etcd {
        Etcd {
            login: self.etcd_user.clone().zip(self.etcd_password.clone()),
            authority: self.etcd_authority.clone(),
            certificate: self.etcd_certificate.clone().zip(self.etcd_key.clone()),
            ..Etcd::new(&self.etcd)
        }
    }
}

/// Refuses revoked tokens, as all nodes of the fleet do.
///
/// Durations are seconds, or such as 250ms, 10min or 1day. Prints the addresses it listens on to standard output,
/// everything else to standard error. Ends with status 0 after SIGTERM or ctrl-c, with 1 if something failed, and with 2
/// for bad arguments. On SIGHUP it reads certificates and administrators' tokens again.
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,

    /// Where administrators reach the routes below /revoked [default: where all others are]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) admin_listen: Option<SocketAddr>,

    #[command(flatten)]
    cluster: Cluster,

    /// The name of this node, for logs [default: the address]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// What administrators send as `Authorization: Bearer TOKEN` to the routes below /revoked. Without it they are open,
    /// on a loopback address only
    #[arg(long, value_name = "TOKEN", env = "FLEET_ADMIN_TOKEN", hide_env_values = true)]
    admin_token: Option<String>,

    /// A file with such tokens, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "admin_token")]
    admin_tokens: Option<PathBuf>,

    /// The certificate chain for TLS towards clients, in a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,

    /// The private key of that certificate, in a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The secret key of the fleet, the same on all nodes: 32 hexadecimal digits, such as `fleet key` prints
    #[arg(long, value_name = "HEX", env = "FLEET_KEY", hide_env_values = true, conflicts_with = "key_file",
          value_parser = key)]
    key: Option<[u8; 16]>,

    /// A file with that key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// How many tokens may be revoked at a time
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = number)]
    capacity: usize,

    /// The share of tokens that are not revoked, but still cost a question to etcd (the false-positive rate)
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    rate: f64,

    /// The length of a tick. An ended token takes up room in the filters for one tick at most
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = whole_seconds)]
    resolution: u64,

    /// How far in the future the expiry of a revoked token may be: the longest lifetime of the tokens that you issue. A
    /// token without a known expiry is refused for this long
    #[arg(long, value_name = "TIME", default_value = "86400", value_parser = whole_seconds)]
    longest_lifetime: u64,

    /// How long a revoked token is refused after its expiry. Allow at least as long as other services may still accept the
    /// token because their clocks differ
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = whole_seconds)]
    leeway: u64,

    /// By how much the clocks of the nodes may differ. Tokens are kept for that much longer
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = whole_seconds)]
    clock_margin: u64,

    /// How long a node trusts its filter without word from etcd, up to an hour
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = time)]
    stale_after: Duration,

    /// How long a change may take, up to a minute
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = time)]
    patience: Duration,

    /// After SIGTERM, for how long connections are still taken while /healthz says 503. Longer than the load balancer needs
    /// to notice
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = time)]
    pub(crate) drain: Duration,

    /// When a connection that sends nothing is closed. Longer than the load balancer keeps idle connections
    #[arg(long, value_name = "TIME", default_value = "75", value_parser = time)]
    pub(crate) idle: Duration,

    /// Log in JSON, one object a line
    #[arg(long)]
    pub(crate) log_json: bool,
}

impl Arguments {
    pub(crate) fn settings(&self) -> Result<Settings, String> {
        let address = self.admin_listen.unwrap_or(self.listen);
        if self.admin_tokens()?.is_empty() && !address.ip().is_loopback() {
            return Err(format!(
                "{address} can be reached from other machines, and without an administrators' token anyone who reaches \
                 the node may revoke and restore tokens; set FLEET_ADMIN_TOKEN, or give --admin-tokens FILE, or \
                 --admin-listen 127.0.0.1:PORT"
            ));
        }
        for (name, given, most) in [("--idle", self.idle, 3600), ("--drain", self.drain, 600)] {
            if given > Duration::from_secs(most) || (name == "--idle" && given < Duration::from_millis(100)) {
                return Err(format!("{name} is {given:?}; give {most} s at most, and 100 ms at least for --idle"));
            }
        }
        let key = match (self.key, &self.key_file) {
            (Some(key), _) => key,
            (None, Some(path)) => key(read(path)?.trim()).map_err(|error| format!("{}: {error}", path.display()))?,
            (None, None) => {
                return Err(
                    "there is no key, and all nodes of a fleet need the same secret one; make one with `fleet \
                            key`, and set FLEET_KEY to it, or give --key-file FILE"
                        .into(),
                );
            }
        };
        let settings = Settings {
            node: self.node.clone().unwrap_or_else(|| self.listen.to_string()),
            etcd: self.cluster.etcd(),
            fleet: self.cluster.fleet.clone(),
            capacity: self.capacity,
            rate: self.rate,
            resolution: self.resolution,
            longest_lifetime: self.longest_lifetime,
            leeway: self.leeway,
            clock_margin: self.clock_margin,
            stale_after: self.stale_after,
            patience: self.patience,
            ..Settings::new(key)
        };
        settings.check().map(|()| settings)
    }

    /// The administrators' tokens, as they are now.
    pub(crate) fn admin_tokens(&self) -> Result<Vec<String>, String> {
        let Some(path) = &self.admin_tokens else { return Ok(self.admin_token.iter().cloned().collect()) };
        let text = read(path)?;
        let tokens: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if tokens.is_empty() { Err(format!("{} has no token", path.display())) } else { Ok(tokens) }
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("can't read {}: {error}", path.display()))
}

/// A new key.
pub(crate) fn new_key() -> Result<String, String> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(key)))
}

fn key(text: &str) -> Result<[u8; 16], String> {
    let is_hex = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let key = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
    key.map(u128::to_be_bytes)
        .ok_or_else(|| format!("give 32 hexadecimal digits; this has {} characters", text.chars().count()))
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.replace('_', "").parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.or_else(|| humantime::parse_duration(text).ok());
    time.ok_or_else(|| format!("{text:?} is no duration; give seconds, or such as 250ms, 10min or 1day"))
}

fn whole_seconds(text: &str) -> Result<u64, String> {
    match time(text)? {
        time if time.subsec_nanos() == 0 => Ok(time.as_secs()),
        time => Err(format!("{time:?} is not a whole number of seconds")),
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
