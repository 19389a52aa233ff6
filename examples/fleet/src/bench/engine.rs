//! What the engine does in a second, and how many bytes that takes on the wire.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use redis::{Client, Connection, Pipeline, Value};

use crate::change::{Agreement, Proposal, Tick, TokenId};
use crate::engine::redis::{RedisEngine, Settings};
use crate::engine::server::Server;
use crate::log::{Head, Log, MessageId, Place};

/// What was measured for one way to use the engine.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) what: String,
    /// Per second.
    pub(crate) messages: f64,
    pub(crate) changes: f64,
    /// Bytes for each change, to the engine and from it.
    pub(crate) sent: f64,
    pub(crate) received: f64,
}

/// How the changes are grouped.
#[derive(Clone, Copy)]
struct Way {
    /// How many changes a message has.
    batch: u64,
    /// Messages that are sent before the answer to the first of them is read.
    in_flight: usize,
}

const WAYS: [Way; 4] = [
    Way { batch: 1, in_flight: 1 },
    Way { batch: 1, in_flight: 1000 },
    Way { batch: 100, in_flight: 1 },
    Way { batch: 100, in_flight: 10 },
];

/// Starts a server in this folder, and measures each way for this long. All changes are durable when they are
/// counted: the server answers when the file has them.
pub(crate) fn measure(folder: &Path, time: Duration) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = Vec::new();
    for way in WAYS {
        let server = Server::start(&folder.join(format!("{}-{}", way.batch, way.in_flight)))?;
        let mut bench = Bench::new(&server)?;
        figures.push(bench.append(way, time)?);
        // The messages that were appended singly and in batches are also read.
        if way.in_flight > 1 {
            figures.push(bench.read(way)?);
        }
    }
    Ok(figures)
}

/// Prints the figures as a Markdown table.
pub(crate) fn print(figures: &[Figure]) {
    println!("| | messages a second | changes a second | bytes a change, to the engine | and from it |");
    println!("|---|---|---|---|---|");
    for figure in figures {
        println!("{figure}");
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, messages, changes, sent, received } = self;
        write!(f, "| {what} | {messages:.0} | {changes:.0} | {sent:.1} | {received:.1} |")
    }
}

struct Bench {
    engine: RedisEngine,
    connection: Connection,
    head: Head,
}

impl Bench {
    fn new(server: &Server) -> Result<Self, Box<dyn Error>> {
        let engine = RedisEngine::new(Settings::new(&server.url(), "fleet"))?;
        let agreement = Agreement {
            schema: "tokens".into(),
            probe: 0,
            capacity: 1 << 40,
            rate: 1_000_000,
            resolution: Duration::from_secs(1),
            longest: Tick::MAX / 4,
        };
        let head = engine.agree(&agreement)?;
        // So that the engine has loaded the script.
        engine.append(head.place(), MessageId([0; 16]), &[])?;
        let connection = Client::open(server.url())?.get_connection_with_timeout(Duration::from_secs(1))?;
        connection.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { engine, connection, head })
    }

    /// Appends tokens that were not revoked before, for this long.
    fn append(&mut self, way: Way, time: Duration) -> Result<Figure, Box<dyn Error>> {
        let place = self.head.place();
        let before = self.traffic()?;
        let (mut messages, start) = (0, Instant::now());
        while start.elapsed() < time {
            if way.in_flight == 1 {
                let proposals = self.proposals(way, messages);
                self.engine.append(place, id(messages), &proposals)?;
            } else {
                let mut pipeline = Pipeline::new();
                for message in (messages..).take(way.in_flight) {
                    pipeline.add_command(self.engine.append_command(place, id(message), &self.proposals(way, message)));
                }
                pipeline.query::<Vec<Value>>(&mut self.connection)?;
            }
            messages += way.in_flight as u64;
        }
        let seconds = start.elapsed().as_secs_f64();
        let Way { batch, in_flight } = way;
        let what = format!("appended, {batch} to a message, {in_flight} in flight");
        self.figure(what, (messages, messages * batch), seconds, before)
    }

    /// Reads all messages.
    fn read(&mut self, way: Way) -> Result<Figure, Box<dyn Error>> {
        let head = self.engine.head(self.head.epoch)?;
        let before = self.traffic()?;
        let start = Instant::now();
        let mut follower = self.engine.follow(Place { position: 0, ..head.place() })?;
        let (mut read, mut changes) = (0, 0);
        while read < head.position {
            for message in follower.next(Duration::from_millis(100))? {
                read = message.position;
                changes += message.changes.len() as u64;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        self.figure(format!("read, {} to a message", way.batch), (read, changes), seconds, before)
    }

    fn figure(
        &mut self,
        what: String,
        (messages, changes): (u64, u64),
        seconds: f64,
        (sent, received): (u64, u64),
    ) -> Result<Figure, Box<dyn Error>> {
        let after = self.traffic()?;
        let changes = changes as f64;
        Ok(Figure {
            what,
            messages: messages as f64 / seconds,
            changes: changes / seconds,
            sent: (after.0 - sent) as f64 / changes,
            received: (after.1 - received) as f64 / changes,
        })
    }

    /// How many bytes the engine has received and sent, by its own count.
    fn traffic(&mut self) -> Result<(u64, u64), Box<dyn Error>> {
        let stats: String = redis::cmd("INFO").arg("stats").query(&mut self.connection)?;
        let count = |name: &str| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.trim().parse().ok()).ok_or(format!("the engine does not report {name}"))
        };
        Ok((count("total_net_input_bytes:")?, count("total_net_output_bytes:")?))
    }

    fn proposals(&self, way: Way, message: u64) -> Vec<Proposal> {
        let numbers = message * way.batch..(message + 1) * way.batch;
        numbers.map(|number| revoke(number, self.head.tick + 100_000)).collect()
    }
}

fn id(message: u64) -> MessageId {
    MessageId((u128::from(message) + 1).to_le_bytes())
}

fn revoke(number: u64, end: Tick) -> Proposal {
    // Each number has a different hash, as tokens have.
    let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut token = [0; 16];
    token[..8].copy_from_slice(&hash.to_le_bytes());
    Proposal::Revoke { token: TokenId(token), hash, until: u64::from(end), end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        if !Server::is_installed() {
            return;
        }
        let figures = measure(folder.path(), Duration::from_millis(1)).unwrap();
        print(&figures);
        assert_eq!(figures.len(), 6);
        for figure in figures {
            // The change itself has 13 bytes. (A tick, which may be among the messages, has 5.)
            let [to, from] = if figure.what.starts_with("read") { [0.0, 12.0] } else { [13.0, 1.0] };
            assert!(figure.messages > 0.0 && figure.sent > to && figure.received > from, "{figure}");
        }
    }

    #[test]
    #[ignore = "measures for some seconds"]
    fn measures() {
        let folder = tempfile::tempdir().unwrap();
        print(&measure(folder.path(), Duration::from_secs(5)).unwrap());
    }
}
