//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, value_parser};

/// Tells the time in whole seconds. Tests pass a clock that they set.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How many ticks of a filter's clock the longest lifetime has. 14 take 4 bits of each slot.
pub(crate) const TICKS: u64 = 14;

/// Refuses revoked tokens and repeated requests.
#[derive(Parser)]
#[command(name = "web-server", version, args_override_self = true)]
pub struct Options {
    /// Where to listen; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3000")]
    pub listen: SocketAddr,
    /// The directory of the store; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "web-server-data")]
    pub data: PathBuf,
    /// What administrators must send as `Authorization: Bearer TOKEN` to the routes below /revoked; without it, these
    /// routes are open, and only a loopback address can be listened on
    #[arg(long, value_name = "TOKEN", env = "WEB_SERVER_ADMIN_TOKEN", hide_env_values = true)]
    pub admin_token: Option<String>,
    /// How many revoked tokens there may be at a time, including those that have just expired
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub capacity: usize,
    /// The largest acceptable share of the other tokens for which the store is asked
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    pub rate: f64,
    /// How far away the expiry of a token may be, in seconds. A token of unknown expiry is refused for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = value_parser!(u64).range(1..))]
    pub longest_lifetime: u64,
    /// How many identifiers of requests there may be at a time
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub ids: usize,
    /// How long a request is refused at least if its identifier comes again, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..))]
    pub window: u64,
    /// Let requests pass while the store of revoked tokens fails
    #[arg(long)]
    pub tokens_fail_open: bool,
    /// Let requests pass while there is no room for identifiers
    #[arg(long)]
    pub ids_fail_open: bool,
}
