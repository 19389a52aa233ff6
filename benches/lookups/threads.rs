//! Lookups of several threads that share a set.
//!
//! Half of the lookups are of present keys, and nothing is changed meanwhile. The load is 90 %. The array shows what the
//! machine allows: it loads two random words.

use std::io;
use std::time::Duration;

use crate::support::array::ARRAY;
use crate::support::by_threads::{ByThreads, Turns, steady};
use crate::support::exact::{Locked, exact};
use crate::support::filled::{Filled, Steady};
use crate::support::options::Options;
use crate::support::ours::DEFAULT_5X14;
use crate::support::peers::{ATOMIC, SCALABLE};
use crate::support::plan::{STEADY_LOAD, Size, bring_to};

/// More threads than the machine has cores show what happens when some of them have to wait.
const THREADS: [u64; 4] = [1, 2, 3, 4];

pub(crate) fn measure(size: Size, options: &Options) -> io::Result<()> {
    let (rounds, turn, first) = options.pick((1, 0, 100), (5, 50, 100_000), (15, 150, 100_000));
    let bytes = options.table_bytes(size);
    let mut subjects = [
        Filled::boxed(DEFAULT_5X14, bytes),
        Filled::boxed(ATOMIC, bytes),
        Filled::boxed(SCALABLE, bytes),
        Filled::boxed(exact::<Locked>(), bytes),
        Filled::boxed(ARRAY, bytes),
    ];
    subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD));
    let turns = Turns { rounds, turn: Duration::from_millis(turn), first };
    let speeds = steady(&mut subjects, &[Steady::Half], &THREADS, turns);
    let speeds = speeds.into_iter().map(|mut speeds| speeds.remove(0));
    let lookups = ByThreads {
        title: "Lookups".into(),
        about: format!("tables of {} KiB or less, half of the lookups of present keys", bytes >> 10),
        unit: "lookups",
        threads: &THREADS,
        rows: subjects.iter().map(|subject| subject.about().about.to_owned()).zip(speeds).collect(),
        array: Some(subjects.len() - 1),
    };
    let file = if size == Size::L2 { "threads".into() } else { format!("threads_{}", size.name()) };
    lookups.show(options, "target/lookups", &file)
}
