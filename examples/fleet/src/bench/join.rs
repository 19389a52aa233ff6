//! How long a node takes to join from a snapshot in the engine, and how much memory that takes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{client, hash, settings};
use crate::engine::server::Server;
use crate::log::{Log, Place, Snapshots};
use crate::node::Node;
use crate::node::life::Answer;

pub(super) fn measure(folder: &Path, keys: &[usize]) -> Result<(), String> {
    println!(
        "| tokens | snapshot, MB | written in, s | joined in, s | filter, MB | bits a token | the process grew by, MB |"
    );
    println!("|---|---|---|---|---|---|---|");
    for &keys in keys {
        run(&folder.join(keys.to_string()), keys)?;
    }
    Ok(())
}

fn run(folder: &Path, keys: usize) -> Result<(), String> {
    let server = Server::start(folder).map_err(|error| error.to_string())?;
    let engine = client(&server)?;
    let settings = settings("joins", keys);
    let head = engine.agree(&settings.agreement()).map_err(|error| error.to_string())?;
    // The snapshot contains the first message of the log, the tick.
    let place = Place { epoch: head.epoch, position: 1 };
    let begin = Instant::now();
    let info = {
        let filter = settings.filter().map_err(|error| error.to_string())?;
        filter.advance_to(head.tick.into());
        let end = |number: u64| head.tick + 2 + (number % 140) as u32;
        let inserted =
            filter.insert_hash_until_batch((0..keys as u64).map(|number| (hash(number), end(number).into())));
        inserted.map_err(|error| error.to_string())?;
        let digest = filter.digest().map_err(|error| error.to_string())?;
        let begun = filter.begin_save().map_err(|error| error.to_string())?;
        let mut save = Some(begun.position(place.position));
        let written = engine.write(place, digest, "seed", 3, &mut |to| match save.take() {
            Some(save) => save.write_to(to),
            None => Err(std::io::Error::other("it was written before")),
        });
        written.map_err(|error| error.to_string())?
    };
    let written = begin.elapsed();
    let before = resident("VmRSS:");

    let begin = Instant::now();
    let started = Node::start(settings, Arc::new(client(&server)?), Default::default())?;
    // Until it answers with certainty that a token is not revoked.
    while !(0..)
        .map(|number| hash(u64::MAX - number))
        .take(100)
        .any(|absent| started.node.answer(absent) == Answer::Absent)
    {
        if begin.elapsed() > Duration::from_secs(600) {
            return Err("the node does not become ready".into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    let joined = begin.elapsed();
    if (0..1000).any(|number| started.node.answer(hash(number)) != Answer::Perhaps) {
        return Err("the node lacks tokens of the snapshot".into());
    }
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    let filter = started.node.memory().unwrap_or_default();
    let process = resident("VmRSS:").zip(before).map(|(after, before)| megabytes(after.saturating_sub(before)));
    println!(
        "| {keys} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} | {} |",
        megabytes(info.bytes as usize),
        written.as_secs_f64(),
        joined.as_secs_f64(),
        megabytes(filter),
        filter as f64 * 8.0 / keys as f64,
        process.map_or("–".into(), |process| format!("{process:.1}"))
    );
    Ok(())
}

/// The memory of this process as the system reports it, in bytes.
fn resident(line: &str) -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status.lines().find_map(|found| found.strip_prefix(line))?;
    kilobytes.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kilobytes| kilobytes * 1024)
}
