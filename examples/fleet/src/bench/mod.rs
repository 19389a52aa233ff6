//! The figures of the README, each from a command.
//!
//! - `engine`: what the engine does in a second, and how many bytes that takes on the wire;
//! - `apply`: what a node applies in a second; `prepared`: the engine that `apply` reads from;
//! - `propagation`: how long a change takes from one node to the others;
//! - `fan_out`: how long a change takes to many followers, and what that costs the engine;
//! - `join`: how long it takes to join, and how much memory.

mod apply;
pub(crate) mod engine;
mod fan_out;
mod join;
mod prepared;
mod propagation;

use std::time::Duration;

use clap::ValueEnum;
use example_support::option_values::{seconds_up_to, whole_number_from};
use tokens::expiry::Lifetimes;

use crate::engine::redis::{RedisEngine, Settings as EngineSettings};
use crate::engine::server::Server;
use crate::node::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Changes a second through the engine, durable
    Engine,
    /// Changes a second that a node applies
    Apply,
    /// From the acknowledgement on one node to the refusal on all others
    Propagation,
    /// From the engine to many followers
    FanOut,
    /// The time to join, and the memory
    Join,
}

/// Measures the figures of the README, with a redis-server of its own.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,

    /// How long each way to use the engine, and the propagation, are measured
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds_up_to(3600.0))]
    seconds: Duration,

    /// How many tokens are revoked when a node joins
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1_000_000,10_000_000",
          value_parser = whole_number_from(1))]
    keys: Vec<usize>,

    /// How many changes a second are sent while the propagation is measured
    #[arg(long, value_name = "N", default_value = "500", value_parser = whole_number_from(1))]
    pace: usize,

    /// How many followers there are in each run of the fan-out
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,10,100,300",
          value_parser = whole_number_from(1))]
    followers: Vec<usize>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let wanted = |part| arguments.only.is_empty() || arguments.only.contains(&part);
    if wanted(Part::Engine) {
        println!("## Through the engine, durable\n");
        let figures = engine::measure(&folder.path().join("engine"), arguments.seconds);
        engine::print(&figures.map_err(|error| error.to_string())?);
    }
    if wanted(Part::Apply) {
        println!("\n## What a node applies\n");
        apply::measure()?;
    }
    if wanted(Part::Propagation) {
        println!("\n## From the acknowledgement on one node to the refusal on both others\n");
        propagation::measure(&folder.path().join("propagation"), arguments.pace, arguments.seconds)?;
    }
    if wanted(Part::FanOut) {
        println!("\n## From the engine to many followers\n");
        let folder = folder.path().join("fan-out");
        // A fifth of the pace, because all followers share this machine with the engine.
        fan_out::measure(&folder, &arguments.followers, arguments.pace.div_ceil(5), arguments.seconds)?;
    }
    if wanted(Part::Join) {
        println!("\n## Joining\n");
        join::measure(&folder.path().join("join"), &arguments.keys)?;
    }
    Ok(())
}

/// The settings of the nodes that are measured: ends in ticks of ten minutes, up to a day.
fn settings(node: &str, capacity: usize) -> Settings {
    Settings {
        node: node.into(),
        key: *b"not a secret key",
        capacity,
        rate: 0.001,
        resolution: 600,
        lifetimes: Lifetimes { longest: 86_400, leeway: 60, keeper: "fleet" },
        stale_after: Duration::from_secs(2),
        beat: Duration::from_millis(250),
        patience: Duration::from_secs(10),
        snapshot_every: Duration::from_secs(3600),
        snapshots: 3,
        memory_limit: usize::MAX >> 1,
    }
}

fn client(server: &Server) -> Result<RedisEngine, String> {
    RedisEngine::new(EngineSettings::new(&server.url(), "fleet")).map_err(|error| error.to_string())
}

/// A different hash for each number, as tokens have.
fn hash(number: u64) -> u64 {
    let x = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ (x >> 31)
}
