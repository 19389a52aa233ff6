//! Lookups a second, by the number of threads that share a filter.
//!
//! `cargo bench --bench threads [-- --quick | --l2 | --large | --out=DIR]`
//!
//! Half of the lookups are of present keys, and nothing is changed meanwhile. The load is 90 %. The subjects have turns,
//! as in `ratios`, and the table shows the median of all rounds. The charts go to `target/threads`, or to `DIR`, as SVG
//! and CSV.

#[path = "support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use ahash::RandomState;
use parking_lot::RwLock;
use plot::{Axis, Chart, Series, Style};
use support::filled::{Bench, Filled, Steady};
use support::hash::HASH;
use support::options::Options;
use support::ours::{Default5x14, Ours};
use support::peers::{AtomicCuckooFilter, LockedScalable};
use support::plan::{STEADY_LOAD, bring_to};
use support::report::{align, median};
use support::subject::{Kind, Subject};

/// More threads than the machine has cores show what happens when some of them have to wait.
const THREADS: [u64; 4] = [1, 2, 3, 4];

/// The standard library's set in a lock: exact.
struct LockedHashSet(RwLock<HashSet<u64, RandomState>>);

impl Subject for LockedHashSet {
    const NAME: &'static str = "HashSet";
    const ABOUT: &'static str = "RwLock<HashSet>";
    const KIND: Kind = Kind::Peer;

    fn build(table_bytes: usize) -> Self {
        // A key and a byte for each place; seven eighths are taken at most.
        let places = 1 << (table_bytes / (size_of::<u64>() + 1)).ilog2();
        Self(RwLock::new(HashSet::with_capacity_and_hasher(places * 7 / 8, HASH)))
    }

    fn slots(&self) -> u64 {
        self.0.read().capacity() as u64
    }

    fn fingerprint_bits(&self) -> u32 {
        u64::BITS
    }

    fn bytes(&self) -> usize {
        self.0.read().capacity() * 8 / 7 * (size_of::<u64>() + 1)
    }

    #[inline]
    fn insert(&self, key: u64) -> bool {
        self.0.write().insert(key)
    }

    #[inline]
    fn contains(&self, key: u64) -> bool {
        self.0.read().contains(&key)
    }

    #[inline]
    fn remove(&self, key: u64) -> bool {
        self.0.write().remove(&key)
    }
}

/// Millions of lookups a second of each subject, on each number of threads.
fn measure(subjects: &mut [Box<dyn Bench>], rounds: usize, turn: Duration, first: u64) -> Vec<[f64; THREADS.len()]> {
    subjects.iter_mut().for_each(|subject| bring_to(subject.as_mut(), STEADY_LOAD));
    let mut speeds = vec![THREADS.map(|_| Vec::new()); subjects.len()];
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
    speeds.into_iter().map(|speeds| speeds.map(median)).collect()
}

fn chart(size: &str, subjects: &[Box<dyn Bench>], speeds: &[[f64; THREADS.len()]]) -> Chart {
    let series = subjects.iter().zip(speeds).enumerate().map(|(number, (subject, speeds))| Series {
        name: subject.about().to_owned(),
        points: THREADS.into_iter().map(|threads| threads as f64).zip(*speeds).collect(),
        style: Style::nth(number),
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    Chart {
        title: "Lookups of all threads together".to_owned(),
        subtitle: format!("{size}, half of them of present keys; a machine with {cores} cores"),
        x: Axis::linear("threads"),
        y: Axis::linear("million lookups a second"),
        series: series.collect(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse() else { return Ok(()) };
    let (rounds, turn, first) = match (options.test, options.quick) {
        (true, _) => (1, 0, 100),
        (false, true) => (5, 50, 100_000),
        (false, false) => (15, 150, 100_000),
    };
    let out = options.value("--out").unwrap_or("target/threads");
    // Relative to the root of the workspace. Cargo runs a benchmark in the folder of its package.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(out);
    for size in options.sizes() {
        let bytes = options.table_bytes(size);
        let mut subjects = [
            Filled::<Ours<Default5x14>>::boxed(bytes),
            Filled::<AtomicCuckooFilter>::boxed(bytes),
            Filled::<LockedScalable>::boxed(bytes),
            Filled::<LockedHashSet>::boxed(bytes),
        ];
        let speeds = measure(&mut subjects, rounds, Duration::from_millis(turn), first);
        let chart = chart(&format!("tables of {} KiB or less", bytes >> 10), &subjects, &speeds);
        let svg = chart.svg()?;
        // The figures of a test mean nothing.
        if options.test {
            continue;
        }
        let head = [String::new()].into_iter().chain(THREADS.map(|threads| format!("threads: {threads}")));
        let rows = subjects.iter().zip(&speeds).map(|(subject, speeds)| {
            [subject.about().to_owned()].into_iter().chain(speeds.map(|speed| format!("{speed:.1}"))).collect()
        });
        let rows: Vec<Vec<String>> = [head.collect()].into_iter().chain(rows).collect();
        println!("## {}: million lookups a second\n\n{}", size.name(), align(&rows, 1));
        fs::create_dir_all(&folder)?;
        let file = folder.join(format!("threads_{}", size.name().replace(' ', "_").to_lowercase()));
        fs::write(file.with_extension("csv"), chart.csv())?;
        fs::write(file.with_extension("svg"), svg)?;
    }
    Ok(())
}
