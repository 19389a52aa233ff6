//! `segments`: compares a store with one maplet and a store with a filter for each segment.
//!
//! Both have the same keys in the same segments, and each segment has keys from the whole range. In each round each kind
//! of get has one turn with each store, so other load on the machine affects both alike.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use example_support::machine::hardware_threads;
use example_support::option_values::{rate, seconds_up_to, whole_number_in};
use segments::{Error, Event, Options, Store, Strategy};

/// Compares stores of immutable segments: one has a maplet for all segments, the other a filter for each.
///
/// The exit status is 0 if all went well, 1 if an answer was wrong or something failed, and 2 for bad arguments.
#[derive(Debug, Parser)]
#[command(name = "segments", version)]
struct Arguments {
    /// How many keys a store has
    #[arg(long, value_name = "N", default_value = "300_000", value_parser = whole_number_in(1_000..=100_000_000))]
    keys: usize,
    /// How many segments
    #[arg(long, value_name = "N", default_value = "4,16,64", value_delimiter = ',', value_parser = whole_number_in(1..=127))]
    segments: Vec<usize>,
    /// The largest acceptable false-positive rate of the maplet, and of each filter
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = rate)]
    rate: f64,
    /// How long each turn takes; there are six rounds of eight turns
    #[arg(long, value_name = "S", default_value = "0.3", value_parser = seconds_up_to(60.0))]
    seconds: Duration,
}

/// What is read in a turn: present keys, those of the newest segment, absent keys, or present keys while another thread
/// rewrites one segment after the other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Present,
    Newest,
    Absent,
    Beside,
}

const ROUNDS: usize = 5;
const HEADER: &str = "\
| segments | | present | newest | absent | beside rewriting | rewritten | wrong, present | wrong, absent | bits a key |
|---|---|---|---|---|---|---|---|---|---|";

fn main() -> ExitCode {
    match run(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Error> {
    let Arguments { keys, rate, .. } = arguments;
    writeln!(out, "{keys} keys, each in one segment; rate {rate}; medians of {ROUNDS} rounds.")?;
    writeln!(out, "Thousands a second, of {} reading threads; wrong looks in 1,000 gets.\n", hardware_threads())?;
    writeln!(out, "{HEADER}")?;
    for &segments in &arguments.segments {
        let mut rows = Vec::new();
        for (name, strategy) in [("one maplet", Strategy::Maplet), ("a filter for each", Strategy::FilterEach)] {
            rows.push((name, Bench::new(arguments, segments, strategy)?, [const { Vec::new() }; 5]));
        }
        // The first round does not count.
        for round in 0..=ROUNDS {
            for (column, turn) in [Turn::Present, Turn::Newest, Turn::Absent, Turn::Beside].into_iter().enumerate() {
                for (_, bench, speeds) in &mut rows {
                    let (read, rewritten) = bench.take(turn, round)?;
                    if round > 0 {
                        speeds[column].push(read);
                        speeds[4].extend((turn == Turn::Beside).then_some(rewritten));
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
            let bits = bench.store.filter_bytes() as f64 * 8.0 / *keys as f64;
            writeln!(out, "| {segments} | {name} | {speeds} | {present:.2} | {absent:.2} | {bits:.1} |")?;
        }
    }
    Ok(())
}

/// A store in which key `i` is in segment `i % segments`.
struct Bench<'a> {
    store: Store,
    arguments: &'a Arguments,
    segments: usize,
}

impl<'a> Bench<'a> {
    fn new(arguments: &'a Arguments, segments: usize, strategy: Strategy) -> Result<Self, Error> {
        let Arguments { keys, rate, .. } = *arguments;
        let options = Options { strategy, false_positive_rate: rate, most_segments: segments, capacity: keys };
        let store = Store::new(options)?;
        for segment in 0..segments {
            (segment..keys).step_by(segments).for_each(|number| store.put(&key(number), &[b'v'; 100]));
            store.flush()?;
        }
        Ok(Self { store, arguments, segments })
    }

    /// The key at this place of a turn.
    fn key(&self, turn: Turn, index: usize) -> [u8; 8] {
        let keys = self.arguments.keys;
        key(match turn {
            Turn::Present | Turn::Beside => index % keys,
            Turn::Newest => index % (keys / self.segments) * self.segments + self.segments - 1,
            Turn::Absent => keys + index,
        })
    }

    /// One turn of all threads. Returns how many keys they read and how many were rewritten in a second.
    fn take(&self, turn: Turn, round: usize) -> Result<(f64, f64), Error> {
        let rewrite = || {
            let mut positions = (0..self.segments).cycle();
            self.repeat(|| {
                let position = positions.next().expect("a cycle");
                self.store.compact(position..position + 1)?;
                Ok(self.store.segments()[position])
            })
        };
        let read = |thread| {
            let mut indexes = thread * 1_234_567 + round * 7919..;
            let is_wrong = |index| self.store.get(&self.key(turn, index)).is_some() == (turn == Turn::Absent);
            self.repeat(|| match indexes.by_ref().take(64).any(is_wrong) {
                true => Err("a get returned a wrong answer".into()),
                false => Ok(64),
            })
        };
        thread::scope(|scope| {
            let rewriter = (turn == Turn::Beside).then(|| scope.spawn(rewrite));
            let readers: Vec<_> = (0..hardware_threads()).map(|thread| scope.spawn(move || read(thread))).collect();
            let read: Result<f64, Error> = readers.into_iter().map(|reader| reader.join().expect("no panic")).sum();
            Ok((read?, rewriter.map_or(Ok(0.0), |rewriter| rewriter.join().expect("no panic"))?))
        })
    }

    /// Works until the time is over. `work` returns how many keys it has read or written. Returns those of a second.
    fn repeat(&self, mut work: impl FnMut() -> Result<usize, Error>) -> Result<f64, Error> {
        let (begin, mut keys) = (Instant::now(), 0);
        while keys == 0 || begin.elapsed() < self.arguments.seconds {
            keys += work()?;
        }
        Ok(keys as f64 / begin.elapsed().as_secs_f64())
    }

    /// How often 1,000 gets look into a segment that does not have the key.
    fn wrong_looks(&self, turn: Turn) -> f64 {
        let mut wrong = 0;
        for index in 0..100_000 {
            self.store.get_observed(&self.key(turn, index), |event| {
                wrong += u32::from(event == Event::Look { found: false });
            });
        }
        f64::from(wrong) / 100.0
    }
}

/// Different numbers give different keys, all over the range.
fn key(number: usize) -> [u8; 8] {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}
