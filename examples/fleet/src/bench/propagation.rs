//! How long it takes from the acknowledgement on one node until all other nodes refuse the token.
//!
//! Three nodes run in this process, without HTTP. Each has connections of its own to a real engine. One thread for
//! each node asks its filter again and again, with pauses of 50 µs. This is the precision of the result, and the
//! pause is part of the measured time.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::{client, settings};
use crate::engine::server::Server;
use crate::node::life::Answer;
use crate::node::{Node, Started};

const BETWEEN: Duration = Duration::from_micros(50);

/// A token that must be refused from that moment on, and where to report how long it took.
type Awaited = (u64, Instant, Sender<Duration>);

pub(super) fn measure(folder: &Path, pace: usize, time: Duration) -> Result<(), String> {
    let server = Server::start(folder).map_err(|error| error.to_string())?;
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let started: Vec<Started> = ["a", "b", "c"]
        .into_iter()
        .map(|name| Node::start(settings(name, 1_000_000), Arc::new(client(&server)?), Default::default()))
        .collect::<Result<_, String>>()?;
    let ready = Instant::now();
    while !started.iter().all(|started| started.node.answer(0) == Answer::Absent) {
        if ready.elapsed() > Duration::from_secs(60) {
            return Err("the nodes are not ready".into());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let observers: Vec<_> = started.iter().map(|started| observe(Arc::clone(&started.node))).collect();

    let (told, delays) = mpsc::channel();
    let until = started[0].node.time().map_err(|error| error.0)? + 3600;
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for number in 0..(pace as f64 * time.as_secs_f64()) as u64 {
        let due = begin + Duration::from_secs_f64(number as f64 / pace as f64);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let place = (number % 3) as usize;
        let node = Arc::clone(&started[place].node);
        let others: Vec<_> = (0..3).filter(|other| *other != place).map(|other| observers[other].clone()).collect();
        let told = told.clone();
        tasks.push(runtime.spawn(async move {
            let token = format!("token-{number}");
            let asked = Instant::now();
            let answer = node.revoke(&token, until).await;
            let acknowledged = Instant::now();
            let (seen, all) = mpsc::channel();
            for other in others {
                let _ = other.send((node.hash(&token), acknowledged, seen.clone()));
            }
            let _ = told.send((answer.is_ok(), acknowledged - asked, all));
        }));
    }
    drop(told);
    let (mut waits, mut delays_to_all, mut failed) = (Vec::new(), Vec::new(), 0);
    for (is_done, wait, all) in delays {
        if !is_done {
            failed += 1;
            continue;
        }
        waits.push(wait);
        delays_to_all.push((0..2).filter_map(|_| all.recv().ok()).max().unwrap_or_default());
    }
    let number = waits.len();
    println!("{number} changes, {pace} a second, three nodes; {failed} failed\n");
    println!("| | median, ms | 99 %, ms | longest, ms |");
    println!("|---|---|---|---|");
    print("from the request to the acknowledgement", &mut waits);
    print("from the acknowledgement to the refusal on both others", &mut delays_to_all);
    Ok(())
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: f64| {
        let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    };
    println!("| {what} | {:.2} | {:.2} | {:.2} |", at(0.5), at(0.99), at(1.0));
}

/// A thread that asks this node's filter for tokens until it refuses them.
fn observe(node: Arc<Node>) -> Sender<Awaited> {
    let (sender, receiver): (_, Receiver<Awaited>) = mpsc::channel();
    thread::spawn(move || {
        let mut awaited: Vec<Awaited> = Vec::new();
        loop {
            if awaited.is_empty() {
                let Ok(next) = receiver.recv() else { return };
                awaited.push(next);
            }
            awaited.extend(receiver.try_iter());
            awaited.retain(|(hash, since, seen)| {
                let is_refused = node.answer(*hash) == Answer::Perhaps;
                if is_refused {
                    let _ = seen.send(since.elapsed());
                }
                !is_refused
            });
            if !awaited.is_empty() {
                thread::sleep(BETWEEN);
            }
        }
    });
    sender
}
