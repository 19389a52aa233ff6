//! Lookups of several threads that share a set.
//!
//! Half of the lookups are of present keys, and nothing is changed meanwhile. The load is 90 %. The array shows what the
//! machine allows: it loads two random words.

use std::io;
use std::time::Duration;

use crate::support::array::ARRAY;
use crate::support::by_threads::ByThreads;
use crate::support::exact::{Locked, exact};
use crate::support::filled::{Bench, Filled, Steady};
use crate::support::options::Options;
use crate::support::ours::DEFAULT_5X14;
use crate::support::peers::{ATOMIC, SCALABLE};
use crate::support::plan::{STEADY_LOAD, Size, bring_to};

/// More threads than the machine has cores show what happens when some of them have to wait.
const THREADS: [u64; 4] = [1, 2, 3, 4];

/// Millions of lookups a second in each round: of each subject, on each number of threads.
fn speeds(subjects: &mut [Box<dyn Bench>], rounds: usize, turn: Duration, first: u64) -> Vec<Vec<Vec<f64>>> {
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

pub(crate) fn measure(size: Size, options: &Options) -> io::Result<()> {
    let (rounds, turn, first) = match (options.test, options.quick) {
        (true, _) => (1, 0, 100),
        (false, true) => (5, 50, 100_000),
        (false, false) => (15, 150, 100_000),
    };
    let bytes = options.table_bytes(size);
    let mut subjects = [
        Filled::boxed(DEFAULT_5X14, bytes),
        Filled::boxed(ATOMIC, bytes),
        Filled::boxed(SCALABLE, bytes),
        Filled::boxed(exact::<Locked>(), bytes),
        Filled::boxed(ARRAY, bytes),
    ];
    let speeds = speeds(&mut subjects, rounds, Duration::from_millis(turn), first);
    let lookups = ByThreads {
        title: "Lookups".into(),
        about: format!("tables of {} KiB or less, half of the lookups of present keys", bytes >> 10),
        unit: "lookups",
        threads: &THREADS,
        rows: subjects.iter().map(|subject| subject.about().about.to_owned()).zip(speeds).collect(),
        array: Some(subjects.len() - 1),
    };
    // The figures of a test mean nothing, but drawing them must succeed.
    if options.test {
        lookups.chart().svg();
        return Ok(());
    }
    let file = if size == Size::L2 { "threads".into() } else { format!("threads_{}", size.name()) };
    lookups.show(&options.out("target/lookups"), &file)
}
