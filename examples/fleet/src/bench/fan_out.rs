//! How long it takes until many followers have a change, and how many followers the engine can serve.
//!
//! The followers have no filters. Each has a connection and a thread of its own, so the engine is what is measured.
//! The engine does everything with one thread: it appends each change once, and sends it to each follower. So its
//! work grows with the number of followers, and the time of that thread limits the number.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{client, hash, settings};
use crate::change::{Proposal, TokenId};
use crate::engine::server::Server;
use crate::log::{Log, MessageId, Place};

/// What was measured with this many followers.
struct Figure {
    followers: usize,
    /// The time from the acknowledgement until the last follower has the change, in milliseconds: the median and
    /// the 99th percentile.
    median: f64,
    late: f64,
    /// The share of one processor that the engine used.
    busy: f64,
}

pub(super) fn measure(folder: &Path, followers: &[usize], pace: usize, time: Duration) -> Result<(), String> {
    let figures = followers
        .iter()
        .map(|&number| run(&folder.join(number.to_string()), number, pace, time))
        .collect::<Result<Vec<_>, String>>()?;
    println!("{pace} changes a second, each a message of its own\n");
    println!(
        "| followers | until the last has it: median, ms | 99 %, ms | engine, share of a processor | µs for each follower |"
    );
    println!("|---|---|---|---|---|");
    let mut of_last = 0.0;
    for figure in &figures {
        let more = figure.followers - figures[0].followers;
        let each = if more > 0 {
            of_last = (figure.busy - figures[0].busy) / more as f64;
            format!("{:.1}", of_last * 1e6 / pace as f64)
        } else {
            "–".into()
        };
        println!("| {} | {:.2} | {:.2} | {:.3} | {each} |", figure.followers, figure.median, figure.late, figure.busy);
    }
    if of_last > 0.0 {
        let most = (1.0 - figures[0].busy) / of_last;
        println!("\nAt {pace} messages a second, the engine's one thread has time for some {most:.0} followers.");
    }
    Ok(())
}

fn run(folder: &Path, followers: usize, pace: usize, time: Duration) -> Result<Figure, String> {
    let text = |error: crate::log::EngineError| error.to_string();
    let server = Server::start(folder).map_err(|error| error.to_string())?;
    let engine = client(&server)?;
    let settings = settings("fan-out", 10_000_000);
    let head = engine.agree(&settings.agreement()).map_err(text)?;
    let from = Place { epoch: head.epoch, position: head.position };

    let begin = Instant::now();
    let count = (pace as f64 * time.as_secs_f64()) as u64;
    // When the last follower had each message, in microseconds since `begin`.
    let seen: Arc<Vec<AtomicU64>> = Arc::new((0..=count).map(|_| AtomicU64::new(0)).collect());
    let is_over = Arc::new(AtomicBool::new(false));
    let threads = (0..followers)
        .map(|_| {
            let (mut follower, seen, is_over) =
                (engine.follow(from).map_err(text)?, Arc::clone(&seen), Arc::clone(&is_over));
            let follow = move || -> Result<u64, String> {
                let mut last = 0;
                while !is_over.load(Ordering::Relaxed) || last < count {
                    for message in follower.next(Duration::from_millis(500)).map_err(text)? {
                        last = message.position - from.position;
                        let now = begin.elapsed().as_micros() as u64;
                        if let Some(seen) = seen.get(last as usize) {
                            seen.fetch_max(now, Ordering::Relaxed);
                        }
                    }
                }
                Ok(last)
            };
            thread::Builder::new().stack_size(256 << 10).spawn(follow).map_err(|error| error.to_string())
        })
        .collect::<Result<Vec<_>, String>>()?;
    // Until every follower has asked once.
    thread::sleep(Duration::from_millis(500 + followers as u64));

    let busy_before = processor_time(&server);
    let start = Instant::now();
    let mut acknowledged = vec![0; count as usize + 1];
    for number in 0..count {
        let due = start + Duration::from_secs_f64(number as f64 / pace as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        let proposal = Proposal::Revoke {
            token: TokenId(u128::from(hash(number)).to_le_bytes()),
            hash: hash(number),
            until: head.now / 1000 + 3600,
            end: head.tick + 8,
        };
        let appended = engine.append(from, MessageId(id), &[proposal]).map_err(text)?;
        if let Some(at) = acknowledged.get_mut((appended.position - from.position) as usize) {
            *at = begin.elapsed().as_micros() as u64;
        }
    }
    let took = start.elapsed();
    let busy = (processor_time(&server) - busy_before).as_secs_f64() / took.as_secs_f64();
    is_over.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a follower has panicked".to_owned())??;
    }
    let mut delays: Vec<u64> = (1..=count as usize)
        .map(|number| seen[number].load(Ordering::Relaxed).saturating_sub(acknowledged[number]))
        .collect();
    delays.sort_unstable();
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).map_or(0.0, |&delay| delay as f64 / 1e3);
    Ok(Figure { followers, median: at(0.5), late: at(0.99), busy })
}

/// How long the engine's one thread has run on a processor, or 0 where the system does not report it.
fn processor_time(server: &Server) -> Duration {
    let told = server.process().and_then(|process| fs::read_to_string(format!("/proc/{process}/schedstat")).ok());
    let nanoseconds = told.and_then(|told| told.split(' ').next()?.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_default())
}
