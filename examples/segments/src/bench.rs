//! Gets of present and absent keys with each strategy, interleaved, and the table.
//!
//! All stores have the same keys in the same segments. Each segment has keys from the whole range, like segments
//! that were merged by size. So no segment can be ruled out by its first and last key. In each round each kind of
//! get has one turn with each strategy, so other load on the machine affects all strategies alike.

use std::io::{self, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use example_support::machine::hardware_threads;
use segments::{Looks, Options};

use crate::arguments::Bench;
use crate::failure::Failure;
use crate::subject::{Subject, key};

/// How many gets there are between two reads of the clock.
const STRIDE: usize = 64;
/// For how many keys the looks are counted.
const COUNTED: usize = 100_000;

/// Which keys are read in a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Keys of all segments.
    Present,
    /// Keys of the newest segment.
    Newest,
    Absent,
    /// Keys of all segments, while another thread rewrites the segments one after the other.
    Beside,
}

const TURNS: [Turn; 4] = [Turn::Present, Turn::Newest, Turn::Absent, Turn::Beside];

/// What is measured, and how.
struct Setting<'a> {
    bench: &'a Bench,
    segments: usize,
}

pub(crate) fn run(bench: &Bench, options: &Options) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "stores     {} keys of 16 bytes with values of {} bytes, each in one segment; rate {} %, Bloom filters of {} bits",
        bench.keys,
        bench.value_bytes,
        options.false_positive_rate * 100.0,
        options.engine_bits
    )?;
    writeln!(
        out,
        "machine    hardware threads: {}; reading: {}; medians of {} rounds",
        hardware_threads(),
        bench.threads(),
        bench.rounds
    )?;
    let mut missed = 0;
    for &segments in &bench.segments {
        let directory = tempfile::tempdir().map_err(Failure::Temporary)?;
        let subjects = Subject::all(directory.path(), options, bench.keys, bench.value_bytes, segments)?;
        missed += compare(&Setting { bench, segments }, &subjects, &mut out)?;
    }
    if missed > 0 {
        return Err(Failure::Wrong(format!("{missed} gets gave wrong answers")));
    }
    Ok(())
}

/// Reads in turns, and writes the rows for one number of segments. Returns how many answers were wrong.
fn compare(setting: &Setting<'_>, subjects: &[Subject], out: &mut impl Write) -> Result<u64, Failure> {
    let mut speeds = vec![[const { Vec::new() }; TURNS.len()]; subjects.len()];
    let (mut wrong, mut again, mut rewritten) = (0, 0, vec![Vec::new(); subjects.len()]);
    // The first round does not count.
    for round in 0..=setting.bench.rounds {
        for (index, &turn) in TURNS.iter().enumerate() {
            let mut order: Vec<usize> = (0..subjects.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for subject in order {
                if turn == Turn::Beside && !subjects[subject].compacts() {
                    continue;
                }
                let done = take(setting, &subjects[subject], turn, round)?;
                wrong += done.wrong;
                if round > 0 {
                    speeds[subject][index].push(done.gets as f64 / done.elapsed.as_secs_f64() / 1e3);
                    if turn == Turn::Beside {
                        rewritten[subject].push(done.rewritten as f64 / done.elapsed.as_secs_f64() / 1e3);
                        again += done.looks.again;
                    }
                }
            }
        }
    }

    writeln!(out, "\n{} segments", setting.segments)?;
    writeln!(
        out,
        "{:<40}{:^44}{:^20}{:^22}filter",
        "", "thousand gets a second", "beside a compaction", "wrong looks in 1,000",
    )?;
    writeln!(
        out,
        "{:<40}{:>10}{:>10}{:>10}{:>14}{:>20}{:>11}{:>11}{:>8}",
        "", "present", "newest", "absent", "", "thousand keys a s", "present", "absent", "bits"
    )?;
    for (index, subject) in subjects.iter().enumerate() {
        let looks = [Turn::Present, Turn::Absent].map(|turn| count(setting, subject, turn));
        let [present, absent] =
            looks.map(|looks| looks.map(|looks| looks.map_or("-".into(), |looks| format!("{looks:.2}"))));
        let speeds = speeds[index].each_ref().map(|speeds| number(median(speeds)));
        writeln!(
            out,
            "{:<40}{:>10}{:>10}{:>10}{:>14}{:>20}{:>11}{:>11}{:>8.2}",
            subject.name(),
            speeds[0],
            speeds[1],
            speeds[2],
            speeds[3],
            number(median(&rewritten[index])),
            present?,
            absent?,
            subject.filter_bytes() as f64 * 8.0 / setting.bench.keys as f64,
        )?;
    }
    writeln!(out, "wrong answers: {wrong}; gets that began again beside a compaction: {again}")?;
    out.flush()?;
    Ok(wrong)
}

/// How many segments are looked into without need, in 1,000 gets.
fn count(setting: &Setting<'_>, subject: &Subject, turn: Turn) -> Result<Option<f64>, Failure> {
    let mut looks = Looks::default();
    for number in 0..COUNTED {
        if subject.looks(&key(setting.number(turn, number)), &mut looks)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(looks.wrong as f64 * 1000.0 / COUNTED as f64))
}

impl Setting<'_> {
    /// The number of the key at this place in a turn.
    fn number(&self, turn: Turn, index: usize) -> usize {
        let keys = self.bench.keys;
        match turn {
            Turn::Present | Turn::Beside => index % keys,
            Turn::Newest => {
                // The keys whose number leaves this remainder are in the segment that was written last.
                let last = self.segments.min(keys) - 1;
                let of_it = (keys - last).div_ceil(self.segments);
                index % of_it * self.segments + last
            }
            Turn::Absent => keys + index,
        }
    }
}

/// What was done in a turn.
#[derive(Default)]
struct Done {
    gets: u64,
    elapsed: Duration,
    wrong: u64,
    looks: Looks,
    rewritten: u64,
}

/// One turn, of all threads.
fn take(setting: &Setting<'_>, subject: &Subject, turn: Turn, round: usize) -> Result<Done, Failure> {
    let threads = setting.bench.threads();
    let barrier = Barrier::new(threads + 1);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let compaction = (turn == Turn::Beside).then(|| scope.spawn(|| subject.compact_until(&stop)));
        let mut readers = Vec::new();
        for thread in 0..threads {
            let barrier = &barrier;
            readers.push(scope.spawn(move || {
                barrier.wait();
                read(setting, subject, turn, thread * setting.bench.keys / threads + round * 7919)
            }));
        }
        let begin = Instant::now();
        barrier.wait();
        let mut done = Done::default();
        for reader in readers {
            let Ok(counts) = reader.join() else {
                stop.store(true, Ordering::Relaxed);
                return Err(Failure::Wrong("a reading thread has panicked".into()));
            };
            let counts = counts?;
            done.gets += counts.gets;
            done.wrong += counts.wrong;
            done.looks.again += counts.looks.again;
        }
        done.elapsed = begin.elapsed();
        stop.store(true, Ordering::Relaxed);
        if let Some(compaction) = compaction {
            let Ok(keys) = compaction.join() else {
                return Err(Failure::Wrong("the compacting thread has panicked".into()));
            };
            done.rewritten = keys?;
        }
        Ok(done)
    })
}

/// One turn, of one thread.
fn read(setting: &Setting<'_>, subject: &Subject, turn: Turn, first: usize) -> Result<Done, Failure> {
    let mut done = Done::default();
    let right = (turn != Turn::Absent).then_some(setting.bench.value_bytes);
    let begin = Instant::now();
    loop {
        for step in 0..STRIDE {
            let key = key(setting.number(turn, first + done.gets as usize + step));
            done.wrong += u64::from(subject.get(&key, &mut done.looks)? != right);
        }
        done.gets += STRIDE as u64;
        if begin.elapsed() >= setting.bench.seconds {
            return Ok(done);
        }
    }
}

fn number(value: f64) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.1}") }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
