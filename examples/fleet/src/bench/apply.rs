//! How many messages a node's applier applies in a second. The messages are in memory already. The filter is half
//! full at the end.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::prepared::Prepared;
use super::{hash, settings};
use crate::change::Change;
use crate::log::Message;
use crate::node::Node;

/// A tick of ten minutes in this decade.
const NOW: u32 = 3_000_000;

pub(super) fn measure() -> Result<(), String> {
    println!("| | messages a second | changes a second |");
    println!("|---|---|---|");
    for (messages, changes) in [(2_000_000, 1), (100_000, 100)] {
        let mut rates = Vec::new();
        for _ in 0..3 {
            rates.push(run(messages, changes)?);
        }
        rates.sort_by(f64::total_cmp);
        let rate = rates[1];
        println!("| {changes} to a message, median of three | {rate:.0} | {:.0} |", rate * changes as f64);
    }
    Ok(())
}

/// Messages a second.
fn run(messages: u64, changes: u64) -> Result<f64, String> {
    let tick = Message { position: 1, changes: vec![Change::Tick { now: NOW }], at: 0 };
    let insert = |number| Change::Insert { hash: hash(number), end: NOW + 1 + (number % 144) as u32 };
    let inserts = (0..messages).map(|message| Message {
        position: message + 2,
        changes: (message * changes..(message + 1) * changes).map(insert).collect(),
        at: 0,
    });
    let all = [tick].into_iter().chain(inserts).collect();
    let settings = settings("measured", (2 * messages * changes) as usize);
    let engine = Arc::new(Prepared::new(all, NOW));
    let start = Instant::now();
    let started = Node::start(settings, engine, Default::default())?;
    while started.node.position() < Some(messages + 1) {
        thread::sleep(Duration::from_millis(1));
        if start.elapsed() > Duration::from_secs(600) {
            return Err("the node does not apply its messages".into());
        }
    }
    Ok(messages as f64 / start.elapsed().as_secs_f64())
}
