//! The settings of a node, and which of them all nodes of its fleet share.

use std::fmt;
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, ExpiringCuckooFilter, StableHashBuilder};

use crate::etcd::Etcd;
use crate::keys::Secret;

/// Only hashes are used, so the type of the keys does not matter.
pub(crate) type Filter = ExpiringCuckooFilter<[u8], StableHashBuilder>;

/// The number of the format of keys and values. Nodes of another one do not start.
const FORMAT: u32 = 3;

/// The settings of a node, which a program can take from its command line.
#[derive(Clone, clap::Args)]
pub struct Settings {
    /// The name of this node, for logs
    #[arg(skip)]
    pub node: String,

    /// Where the cluster is
    #[command(flatten)]
    pub etcd: Etcd,

    /// The name of the fleet, which begins its keys: letters, digits, `.`, `_` and `-`. One cluster may have several fleets
    #[arg(long, value_name = "NAME", default_value = "revoked")]
    pub fleet: String,

    /// A secret that all nodes share, and nobody else has
    #[arg(skip)]
    pub key: [u8; 16],

    /// How many tokens may be revoked at a time
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = number)]
    pub capacity: usize,

    /// The share of tokens that are not revoked, but still cost a question to etcd (the false-positive rate)
    #[arg(long, value_name = "P", default_value = "0.001")]
    pub rate: f64,

    /// The length of a tick, in seconds. An ended token takes up room in the filters for one tick at most
    #[arg(long, value_name = "TIME", default_value = "600", value_parser = seconds)]
    pub resolution: u64,

    /// The longest lifetime of the tokens that you issue, in seconds: how far in the future the expiry of a revoked token
    /// may be. A token without a known expiry is refused for this long
    #[arg(long, value_name = "TIME", default_value = "86400", value_parser = seconds)]
    pub longest_lifetime: u64,

    /// How long a revoked token is refused after its expiry, in seconds. Allow at least as long as other services may still
    /// accept the token because their clocks differ
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub leeway: u64,

    /// By how much the clocks of the nodes may differ, in seconds. Tokens are kept for that much longer
    #[arg(long, value_name = "TIME", default_value = "30", value_parser = seconds)]
    pub clock_margin: u64,

    /// How long a node trusts its filter without an answer from etcd, up to an hour
    #[arg(long, value_name = "TIME", default_value = "2", value_parser = time)]
    pub stale_after: Duration,

    /// How long a change may take, up to a minute
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = time)]
    pub patience: Duration,
}

/// Reads a duration from a command line: seconds, or such as 250ms, 10min or 1day.
///
/// # Errors
/// If it is neither.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.replace('_', "").parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = seconds.or_else(|| humantime::parse_duration(text).ok());
    time.ok_or_else(|| format!("{text:?} is no duration; give seconds, or such as 250ms, 10min or 1day"))
}

fn seconds(text: &str) -> Result<u64, String> {
    match time(text)? {
        time if time.subsec_nanos() == 0 => Ok(time.as_secs()),
        time => Err(format!("{time:?} is not a whole number of seconds")),
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.replace('_', "").parse().map_err(|_| format!("{text:?} is not a whole number"))
}

impl Settings {
    /// The settings of this key that the program has by default.
    pub fn new(key: [u8; 16]) -> Self {
        Self {
            node: "node".into(),
            etcd: Etcd::new("http://127.0.0.1:2379"),
            fleet: "revoked".into(),
            key,
            capacity: 1_000_000,
            rate: 0.001,
            resolution: 600,
            longest_lifetime: 86_400,
            leeway: 60,
            clock_margin: 30,
            stale_after: Duration::from_secs(2),
            patience: Duration::from_secs(10),
        }
    }

    /// Says what is wrong with the settings, if something is.
    pub fn check(&self) -> Result<(), String> {
        let letters = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if self.fleet.is_empty() || self.fleet.len() > 64 || !self.fleet.chars().all(letters) {
            let fleet = &self.fleet;
            return Err(format!("--fleet {fleet:?}: give 1 to 64 ASCII letters, digits, dots, underscores or hyphens"));
        }
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        for (name, given, least, most, unit) in [
            ("--longest-lifetime", self.longest_lifetime, 1, 10 * 366 * 86_400, ""),
            ("--resolution", self.resolution, 1, self.longest_lifetime.min(86_400), ""),
            ("--leeway", self.leeway, 0, 86_400, ""),
            ("--clock-margin", self.clock_margin, 0, 86_400, ""),
            ("--capacity", self.capacity as u64, 1, 1_000_000_000, ""),
            ("--stale-after", millis(self.stale_after), 100, 3_600_000, " ms"),
            ("--patience", millis(self.patience), 100, 60_000, " ms"),
        ] {
            if given < least || given > most {
                return Err(format!("{name} is {given}{unit}; give {least} to {most}{unit}"));
            }
        }
        if !(self.rate > 0.0 && self.rate < 1.0) {
            return Err(format!("--rate is {}; give a number between 0 and 1", self.rate));
        }
        self.filter(1).map(drop).map_err(|error| format!("no filter can have these settings: {error}"))
    }

    /// How often the cluster is asked for its head.
    pub(crate) fn beat(&self) -> Duration {
        (self.stale_after / 8).clamp(Duration::from_millis(10), Duration::from_millis(250))
    }

    /// How long one question to one member may take.
    pub(crate) fn one_try(&self) -> Duration {
        (self.stale_after / 3).clamp(Duration::from_millis(100), Duration::from_secs(1))
    }

    /// The longest time from a revocation until its entry may go, in seconds.
    pub(crate) fn longest(&self) -> u64 {
        self.longest_lifetime + self.leeway + self.clock_margin
    }

    /// The longest time that an entry lives. One tick more, since the first is partly over.
    pub(crate) fn lifetime_in_ticks(&self) -> u64 {
        self.longest().div_ceil(self.resolution) + 1
    }

    /// The tick at which an entry expires that must be found until this time.
    pub(crate) fn tick(&self, end: u64) -> u64 {
        end.saturating_add(self.clock_margin).div_ceil(self.resolution)
    }

    /// An empty filter for this many tokens. There is room beyond that: while the lifetime of a token is extended it
    /// has two entries, ended ones stay for a while, and nodes that revoke at the same time may do some too many.
    pub(crate) fn filter(&self, capacity: usize) -> Result<Filter, BuildError> {
        Filter::builder_with_hasher(StableHashBuilder::with_key(self.key))
            .capacity(capacity.saturating_add(capacity / 32).saturating_add(1000))
            .lifetime_in_ticks(self.lifetime_in_ticks())
            .false_positive_rate(self.rate)
            .build()
    }

    /// What all nodes must have in common. Two agreements are the same if these texts are.
    pub(crate) fn agreement(&self) -> String {
        format!(
            "format {FORMAT}, key {}, capacity {}, rate {}, resolution {} s, longest lifetime {} s, leeway {} s, clock \
             margin {} s",
            Secret::new(self.key).fingerprint(),
            self.capacity,
            self.rate,
            self.resolution,
            self.longest_lifetime,
            self.leeway,
            self.clock_margin
        )
    }
}

/// Leaves out the key.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("node", &self.node).field("fleet", &self.fleet).finish_non_exhaustive()
    }
}
