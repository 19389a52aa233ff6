//! What a node needs to know. What all nodes share is in etcd ([`crate::records::Shared`]).

use std::time::Duration;

use crate::etcd::Etcd;

/// What a node needs to know. What all nodes share is in etcd: `fleet found`.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Where the cluster is.
    #[command(flatten)]
    pub etcd: Etcd,

    /// The name of the fleet, with which its keys begin
    #[arg(long, value_name = "NAME", default_value = "revoked", value_parser = fleet_name)]
    pub fleet: String,

    /// The name of this node, for logs
    #[arg(long, value_name = "NAME", env = "FLEET_NODE", default_value = "node")]
    pub node: String,

    /// The share of the other tokens for which etcd is asked
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    pub rate: f64,

    /// How long a node trusts its filter without an answer from etcd
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub stale_after: Duration,

    /// How long a change may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub patience: Duration,
}

impl Settings {
    /// Default settings, with the members of etcd at these addresses, separated by commas.
    pub fn new(etcd: &str) -> Self {
        Self {
            etcd: Etcd::new(etcd),
            fleet: "revoked".into(),
            node: "node".into(),
            rate: 0.001,
            stale_after: Duration::from_secs(2),
            patience: Duration::from_secs(10),
        }
    }

    /// How long one member may take at first.
    pub(crate) fn one_try(&self) -> Duration {
        (self.stale_after / 3).clamp(Duration::from_millis(50), Duration::from_secs(1))
    }
}

/// The name of a fleet.
///
/// # Errors
/// If it is empty, or has other characters than letters, digits, dots, underscores and hyphens.
pub fn fleet_name(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_name) {
        return Ok(text.into());
    }
    Err("give letters, digits, dots, underscores and hyphens".into())
}

/// A duration: a number of seconds, or such as 250ms, 10min or 1day.
///
/// # Errors
/// If it is neither.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let duration = seconds.or_else(|| humantime::parse_duration(text).ok());
    let duration = duration.filter(|duration| *duration <= Duration::from_secs(3600));
    duration.ok_or_else(|| "give seconds, or such as 250ms or 10s, up to an hour".into())
}
