//! A server that rejects revoked tokens, repeated requests, and clients that send too many.
#![allow(missing_debug_implementations, missing_docs, reason = "the library is for the tests of the program")]

pub mod limited;
pub mod revoked;
pub mod seen;
pub mod server;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Parser, value_parser};

/// Tells the time in whole seconds since 1970. Tests pass a clock that they set.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How many ticks of the filter's clock the longest lifetime of a token has. 14 take 4 bits of each slot.
pub(crate) const TICKS: u64 = 14;

/// Rejects revoked tokens, repeated requests, and clients that send too many.
#[derive(Parser)]
#[command(name = "web-server", version, args_override_self = true)]
pub struct Options {
    /// The port of 127.0.0.1 to listen on; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
    /// The directory of the store; made if it does not exist
    #[arg(long, value_name = "DIR", default_value = "web-server-data")]
    pub data: PathBuf,
    /// How many revoked tokens there may be at a time, including those that have just expired
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub capacity: usize,
    /// The largest acceptable share of the other tokens for which the store is asked
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    pub rate: f64,
    /// How far away the expiry of a token may be, in seconds. A token of unknown expiry is rejected for so long
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = value_parser!(u64).range(1..))]
    pub longest_lifetime: u64,
    /// How many identifiers of requests to expect in the window. If more come, the oldest are forgotten early
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub ids: usize,
    /// How long a request is rejected at least if its identifier comes again, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = value_parser!(u64).range(1..))]
    pub window: u64,
    /// How many requests per minute each client may send
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How many of these at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub burst: u32,
    /// How many clients may be active at a time
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub clients: usize,
}
