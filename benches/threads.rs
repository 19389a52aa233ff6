//! Lookups a second, by the number of threads that share a filter.
//!
//! `cargo bench --bench threads [-- --quick | --l2 | --large | --out=DIR]`
//!
//! Half of the lookups are of present keys, and nothing is changed meanwhile. The load is 90 %. The subjects have turns,
//! as in `ratios`, and the table shows the median of all rounds. The array shows what the machine allows: it loads two random
//! words. The charts go to `target/threads`, or to `DIR`, as SVG and CSV.

#[path = "support/mod.rs"]
mod support;

use std::error::Error;
use std::time::Duration;

use support::array::SharedArray;
use support::by_threads::ByThreads;
use support::exact::{Exact, Locked};
use support::filled::{Bench, Filled, Steady};
use support::options::Options;
use support::ours::{Default5x14, Ours};
use support::peers::{AtomicCuckooFilter, LockedScalable};
use support::plan::{STEADY_LOAD, bring_to};

/// More threads than the machine has cores show what happens when some of them have to wait.
const THREADS: [u64; 4] = [1, 2, 3, 4];

/// Millions of lookups a second in each round: of each subject, on each number of threads.
fn measure(subjects: &mut [Box<dyn Bench>], rounds: usize, turn: Duration, first: u64) -> Vec<Vec<Vec<f64>>> {
    subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD));
    let mut speeds = vec![vec![Vec::new(); THREADS.len()]; subjects.len()];
    let mut counts = vec![[first; THREADS.len()]; subjects.len()];
    // The first round shows how many lookups fit in a turn.
    for round in 0..=rounds {
        for ((subject, speeds), counts) in subjects.iter_mut().zip(&mut speeds).zip(&mut counts) {
            for ((threads, speeds), count) in THREADS.into_iter().zip(speeds).zip(counts) {
                let sample = subject.steady(Steady::Half, *count, threads);
                if round == 0 {
                    *count = ((turn.as_nanos() as f64 / sample.nanoseconds()) as u64).max(first);
                } else {
                    speeds.push(sample.mops());
                }
            }
        }
    }
    speeds
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let (rounds, turn, first) = match (options.test, options.quick) {
        (true, _) => (1, 0, 100),
        (false, true) => (5, 50, 100_000),
        (false, false) => (15, 150, 100_000),
    };
    for size in options.sizes() {
        let bytes = options.table_bytes(size);
        let mut subjects = [
            Filled::<Ours<Default5x14>>::boxed(bytes),
            Filled::<AtomicCuckooFilter>::boxed(bytes),
            Filled::<LockedScalable>::boxed(bytes),
            Filled::<Exact<Locked>>::boxed(bytes),
            Filled::<SharedArray>::boxed(bytes),
        ];
        let speeds = measure(&mut subjects, rounds, Duration::from_millis(turn), first);
        let lookups = ByThreads {
            title: "Lookups".into(),
            about: format!("tables of {} KiB or less, half of the lookups of present keys", bytes >> 10),
            unit: "lookups",
            threads: &THREADS,
            rows: subjects.iter().map(|subject| subject.about().to_owned()).zip(speeds).collect(),
            array: Some(subjects.len() - 1),
        };
        // The figures of a test mean nothing, but drawing them must succeed.
        if options.test {
            lookups.chart().svg()?;
        } else {
            lookups.show(&options.out("target/threads"), &format!("threads_{}", size.name()))?;
        }
    }
    Ok(())
}
