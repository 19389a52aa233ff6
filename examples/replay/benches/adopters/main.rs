//! Each adapter beside what its project has today: memory, wrong answers, what is lost, and speed.
//!
//! ```text
//! cargo bench -p replay --bench adopters [-- NAME… | --counts | --quick]
//! ```
//!
//! - A *window* is the number of keys that the project makes room for. Everything is measured after the first window,
//!   so each subject loses as many keys as come.
//! - **Memory** is what is requested from the allocator, once a window has come.
//! - **False positives**: the share of new keys that are called old. 20 million new keys are tried, or two windows.
//! - **Lost**: at 200 moments, a thousand random keys of the last window are looked up. The share that is not found, on
//!   average and at the worst of these moments.
//! - **Speed**: keys that are checked and remembered, in millions per second, on one thread and on two. A share of the
//!   keys came shortly before. The subjects take turns, and a figure is the median of three rounds. The time includes
//!   making the keys, some 10 ns each.
//!
//! `--counts` leaves out the speed. All but the speed can be measured on a busy machine. `--quick` has a tenth of each
//! window, to see that it runs. A NAME leaves out the projects whose names do not begin with it.

#[path = "../../../../benches/counting.rs"]
mod counting;
mod subjects;

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng, rngs::SmallRng};

use crate::counting::counted;
use crate::subjects::{CASES, Case, NewSubject, Subject};

/// How many keys come at a time.
const BLOCK: usize = 64;
/// A figure of speed is the median of so many.
const ROUNDS: usize = 3;
/// At how many moments old keys are looked for, and how many.
const MOMENTS: usize = 200;
const LOOKED_FOR: usize = 1000;

/// The keys of a thread, and room for some of them.
struct Keys {
    first: u64,
    random: SmallRng,
    block: Vec<Vec<u8>>,
    seen: Vec<bool>,
}

impl Keys {
    fn new(thread: usize, bytes: usize) -> Self {
        let block = vec![vec![b'x'; bytes]; BLOCK];
        Self { first: (thread as u64) << 40, random: SmallRng::seed_from_u64(thread as u64), block, seen: Vec::new() }
    }

    /// Makes the key of this number: the same length, and 16 letters that depend on the number.
    fn write(&mut self, place: usize, number: usize) {
        // The finalizer of splitmix64.
        let mut bits = (self.first + number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        for (nth, letter) in self.block[place][..16].iter_mut().enumerate() {
            *letter = b'a' + ((bits >> (4 * nth)) & 15) as u8;
        }
    }

    /// Checks new keys from this number on, and among them a share of keys that came shortly before. Returns how many
    /// of the new ones were called old.
    fn check(&mut self, subject: &Subject, mut number: usize, end: usize, again: f64) -> usize {
        let mut refused = 0;
        let mut is_new = [false; BLOCK];
        while number < end {
            for (place, is_new) in is_new.iter_mut().enumerate() {
                *is_new = number < 2 * BLOCK || again == 0.0 || !self.random.random_bool(again);
                let which = if *is_new { number } else { number - self.random.random_range(1..=BLOCK) };
                self.write(place, which);
                number += usize::from(*is_new);
            }
            self.seen.clear();
            (subject.check_all)(&self.block, &mut self.seen);
            refused += self.seen.iter().zip(is_new).filter(|&(&seen, is_new)| seen && is_new).count();
        }
        refused
    }
}

/// What does not depend on the machine.
struct Counts {
    bytes: usize,
    false_positives: f64,
    /// The share of a window, on average and at worst.
    lost: [f64; 2],
}

impl Counts {
    fn of(case: &Case, new: NewSubject, quick: bool) -> Self {
        let mut keys = Keys::new(0, case.key_bytes);
        keys.seen.reserve(BLOCK);
        let (subject, empty) = counted(|| new(case.window));
        let (_, grown) = counted(|| keys.check(&subject, 0, case.window, 0.0));
        let tried = (2 * case.window).max(if quick { 2_000_000 } else { 20_000_000 });
        let (mut number, mut false_positives, mut lost) = (case.window.next_multiple_of(BLOCK), 0, Vec::new());
        for _ in 0..MOMENTS {
            // Of different lengths, so that the moments fall into all phases of what is cleared again and again.
            let step = keys.random.random_range(tried / MOMENTS / 2..tried / MOMENTS * 3 / 2).next_multiple_of(BLOCK);
            false_positives += keys.check(&subject, number, number + step, 0.0);
            number += step;
            let found = (0..LOOKED_FOR).filter(|_| {
                let age = keys.random.random_range(1..=case.window);
                keys.write(0, number - age);
                (subject.has)(&keys.block[0])
            });
            lost.push(1.0 - found.count() as f64 / LOOKED_FOR as f64);
        }
        let false_positives = false_positives as f64 / (number - case.window) as f64;
        let worst = lost.iter().copied().fold(0.0, f64::max);
        Self { bytes: empty + grown, false_positives, lost: [lost.iter().sum::<f64>() / MOMENTS as f64, worst] }
    }
}

/// Keys a second, of a window after another, or of a million.
fn speed(case: &Case, subject: &Subject, threads: usize) -> f64 {
    let (start, of_one) = (Barrier::new(threads), case.window / threads);
    let measured = case.window.max(1_000_000) / threads;
    let run = |thread| {
        let mut keys = Keys::new(thread, case.key_bytes);
        keys.check(subject, 0, of_one, case.again);
        start.wait();
        let begin = Instant::now();
        keys.check(subject, of_one, of_one + measured, case.again);
        begin.elapsed()
    };
    let times: Vec<Duration> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread has panicked")).collect()
    });
    let slowest = times.iter().max().expect("a thread").as_secs_f64();
    (measured * threads) as f64 / (1.0 - case.again) / slowest
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let (quick, names) = (has("--quick"), arguments.iter().filter(|name| !name.starts_with("--")).collect::<Vec<_>>());
    for case in CASES {
        let case = Case { window: case.window / if quick { 10 } else { 1 }, ..case };
        if !names.is_empty() && !names.iter().any(|name| case.name.starts_with(name.as_str())) {
            continue;
        }
        let percent = 100.0 * case.again;
        println!(
            "\n{}: a window of {} keys of {} bytes; {percent}% come again\n",
            case.name, case.window, case.key_bytes
        );
        println!("| | MB | false positives | lost of the last window: on average | at worst | 1 thread | 2 threads |");
        println!("|---|---|---|---|---|---|---|");
        let counts: Vec<_> = case.subjects.iter().map(|(_, new)| Counts::of(&case, *new, quick)).collect();
        let mut speeds = vec![[Vec::new(), Vec::new()]; counts.len()];
        for round in 0..2 * ROUNDS * usize::from(!has("--counts")) {
            for ((_, new), speeds) in case.subjects.iter().zip(&mut speeds) {
                speeds[round % 2].push(speed(&case, &new(case.window), 1 + round % 2) / 1e6);
            }
        }
        for (((name, _), counts), speeds) in case.subjects.iter().zip(&counts).zip(speeds) {
            let [on_average, at_worst] = counts.lost.map(|share| 100.0 * share);
            print!(
                "| {name} | {:.2} | {:.1e} | {on_average:.1}% | {at_worst:.0}% |",
                counts.bytes as f64 / 1e6,
                counts.false_positives
            );
            for speeds in speeds {
                if speeds.is_empty() { print!(" – |") } else { print!(" {:.2} |", median(speeds)) }
            }
            println!();
        }
    }
}
