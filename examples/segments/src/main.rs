//! `segments`: compares a store with one maplet and a store with a filter for each segment.
//!
//! Both have the same keys in the same segments, and each segment has keys from the whole range. In each round each kind
//! of get has one turn with each store, so other load on the machine affects both alike.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use segments::{Event, Options, Store, Strategy};

/// Compares stores of immutable segments: one has a maplet for all segments, the other a filter for each.
#[derive(Debug, Parser)]
#[command(name = "segments", version)]
struct Arguments {
    /// How many keys a store has
    #[arg(long, value_name = "N", default_value = "300000", value_parser = clap::value_parser!(u64).range(1000..))]
    keys: u64,
    /// How many segments
    #[arg(long, value_name = "N", default_value = "4,16,64", value_delimiter = ',',
          value_parser = clap::value_parser!(u64).range(1..128))]
    segments: Vec<u64>,
    /// The largest acceptable false-positive rate of the maplet, and of each filter
    #[arg(long, value_name = "P", default_value_t = 0.001)]
    rate: f64,
    /// How many milliseconds each turn takes; there are six rounds of six turns
    #[arg(long, value_name = "MS", default_value_t = 300)]
    milliseconds: u64,
}

/// What is read in a turn: present keys, absent keys, or present keys while another thread rewrites one segment after
/// the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Present,
    Absent,
    Beside,
}

const ROUNDS: usize = 5;
const HEADER: &str = "\
| segments | | present | absent | beside rewriting | rewritten | wrong, present | wrong, absent | bits a key |
|---|---|---|---|---|---|---|---|---|";

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let Arguments { keys, segments, rate, milliseconds } = Arguments::parse();
    let threads = thread::available_parallelism()?.get();
    println!("{keys} keys, each in one segment; rate {rate}; medians of {ROUNDS} rounds.");
    println!("Thousands a second, of {threads} reading threads; wrong looks in 1,000 gets.\n\n{HEADER}");
    for segments in segments {
        let mut rows = Vec::new();
        for (name, strategy) in [("one maplet", Strategy::Maplet), ("a filter for each", Strategy::FilterEach)] {
            let (false_positive_rate, most_segments) = (rate, segments as usize);
            let options = Options { strategy, false_positive_rate, most_segments, capacity: keys as usize };
            let bench = Bench { store: Store::new(options)?, keys, segments, threads, milliseconds };
            for segment in 0..segments {
                let numbers = (segment..keys).step_by(segments as usize);
                numbers.for_each(|number| bench.store.put(&key(number), &[b'v'; 100]));
                bench.store.flush()?;
            }
            rows.push((name, bench, [const { Vec::new() }; 4]));
        }
        // The first round does not count.
        for round in 0..=ROUNDS {
            for (column, turn) in [Turn::Present, Turn::Absent, Turn::Beside].into_iter().enumerate() {
                for (_, bench, speeds) in &mut rows {
                    let (read, rewritten) = bench.take(turn, round as u64);
                    if round > 0 {
                        speeds[column].push(read);
                        speeds[3].extend((turn == Turn::Beside).then_some(rewritten));
                    }
                }
            }
        }
        for (name, bench, speeds) in rows {
            let median = |mut speeds: Vec<f64>| {
                speeds.sort_by(f64::total_cmp);
                format!("{:.0}", speeds[ROUNDS / 2] / 1e3)
            };
            let speeds = speeds.map(median).join(" | ");
            let [present, absent] = [Turn::Present, Turn::Absent].map(|turn| bench.wrong_looks(turn));
            let bits = bench.store.filter_bytes() as f64 * 8.0 / keys as f64;
            println!("| {segments} | {name} | {speeds} | {present:.2} | {absent:.2} | {bits:.1} |");
        }
    }
    Ok(())
}

/// A store in which key `i` is in segment `i % segments`.
struct Bench {
    store: Store,
    keys: u64,
    segments: u64,
    threads: usize,
    milliseconds: u64,
}

impl Bench {
    /// The key at this place of a turn.
    fn key(&self, turn: Turn, index: u64) -> [u8; 8] {
        key(if turn == Turn::Absent { self.keys + index } else { index % self.keys })
    }

    /// One turn of all threads. Returns how many keys they read and how many were rewritten in a second.
    fn take(&self, turn: Turn, round: u64) -> (f64, f64) {
        let rewrite = || {
            let mut positions = (0..self.segments as usize).cycle();
            self.repeat(|| {
                let position = positions.next().expect("a cycle");
                self.store.compact(position..position + 1).expect("a segment like it");
                self.store.segments()[position]
            })
        };
        let read = |thread: usize| {
            let mut indexes = thread as u64 * 1_234_567 + round * 7919..;
            self.repeat(|| {
                for index in indexes.by_ref().take(64) {
                    let found = self.store.get(&self.key(turn, index)).is_some();
                    assert_eq!(found, turn != Turn::Absent, "a get returned a wrong answer");
                }
                64
            })
        };
        thread::scope(|scope| {
            let rewriter = (turn == Turn::Beside).then(|| scope.spawn(rewrite));
            let readers: Vec<_> = (0..self.threads).map(|thread| scope.spawn(move || read(thread))).collect();
            let read = readers.into_iter().map(|reader| reader.join().expect("right answers")).sum();
            (read, rewriter.map_or(0.0, |rewriter| rewriter.join().expect("no panic")))
        })
    }

    /// Works until the time is over. `work` returns how many keys it has read or written. Returns those of a second.
    fn repeat(&self, mut work: impl FnMut() -> usize) -> f64 {
        let (begin, mut keys) = (Instant::now(), 0);
        while keys == 0 || begin.elapsed() < Duration::from_millis(self.milliseconds) {
            keys += work();
        }
        keys as f64 / begin.elapsed().as_secs_f64()
    }

    /// How often 1,000 gets look into a segment that does not have the key.
    fn wrong_looks(&self, turn: Turn) -> f64 {
        let mut wrong = 0;
        for index in 0..100_000 {
            let count = |event| wrong += u32::from(event == Event::Look { found: false });
            self.store.get_observed(&self.key(turn, index), count);
        }
        f64::from(wrong) / 100.0
    }
}

/// Different numbers give different keys, all over the range.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}
