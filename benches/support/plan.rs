//! How much is measured, and in which order.

use super::filled::{Bench, Filled, Sample};
use super::limit::Limit;
use super::ours::{Default5x14, Ours, Plain4x16, SemiSorted4x17};
use super::peers::{AtomicCuckooFilter, LockedCuckoofilter, LockedScalable};
use super::subject::Kind;

/// The size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Fits in the L2 cache of one core.
    L2,
    /// Fits in no cache. 192 MB is also the size in the paper's evaluation.
    Large,
}

impl Size {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::L2 => "L2",
            Self::Large => "192MB",
        }
    }

    pub(crate) fn table_bytes(self) -> usize {
        match self {
            Self::L2 => 512 << 10,
            Self::Large => 192 << 20,
        }
    }
}

/// How full the table is for everything that needs a constant load.
pub(crate) const STEADY_LOAD: f64 = 0.9;

/// All subjects, empty. `cuckoofilter` is not among the large ones. It cannot have the rate of the others, so it is
/// included once, for reference.
pub(crate) fn subjects(size: Size, table_bytes: usize) -> Vec<Box<dyn Bench>> {
    let mut subjects = vec![
        Filled::<Ours<Default5x14>>::boxed(table_bytes),
        Filled::<Ours<Plain4x16>>::boxed(table_bytes),
        Filled::<Ours<SemiSorted4x17>>::boxed(table_bytes),
        Filled::<AtomicCuckooFilter>::boxed(table_bytes),
        Filled::<LockedScalable>::boxed(table_bytes),
    ];
    if size == Size::L2 {
        subjects.push(Filled::<LockedCuckoofilter>::boxed(table_bytes));
    }
    subjects.push(Filled::<Limit>::boxed(table_bytes));
    subjects
}

/// The operations that change the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Inserts from empty to 90 % load.
    To90,
    /// Inserts from there to 95 % load.
    To95,
    /// Removals from there on.
    Remove,
}

/// The results of some rounds of changes.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    pub(crate) to_90: Vec<Sample>,
    pub(crate) to_95: Vec<Sample>,
    pub(crate) remove: Vec<Sample>,
}

impl Changes {
    /// From empty to 95 % load.
    pub(crate) fn all_to_95(&self) -> Vec<Sample> {
        let mut all = self.to_90.clone();
        all.iter_mut().zip(&self.to_95).for_each(|(all, more)| *all += *more);
        all
    }
}

/// How the rounds of changes are made up. With an odd number of rounds, the median is a value that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub(crate) rounds: usize,
    /// How often the tables are filled and emptied.
    pub(crate) cycles: usize,
    /// Into how many parts each of a cycle's three changes is divided.
    pub(crate) slices: usize,
    /// The load to which keys are removed.
    pub(crate) floor: f64,
}

impl Rounds {
    /// A small table is filled and emptied three times for each round. Filling a large one takes many seconds, so
    /// it is filled once, in slices. The slices are assigned to the rounds forwards and backwards in turn, so each
    /// round has its share of low and of high loads.
    pub(crate) fn new(size: Size, rounds: usize) -> Self {
        match size {
            Size::L2 => Self { rounds, cycles: 3 * rounds, slices: 1, floor: 0.0 },
            Size::Large => Self { rounds, cycles: 1, slices: 4 * rounds, floor: 0.85 },
        }
    }

    /// Fills and empties all filters, interleaved. Returns what each took in each round.
    pub(crate) fn run(&self, benches: &mut [Box<dyn Bench>], threads: u64) -> Vec<Changes> {
        let none = vec![Sample::default(); self.rounds];
        let none = Changes { to_90: none.clone(), to_95: none.clone(), remove: none };
        let mut results = vec![none; benches.len()];
        for cycle in 0..self.cycles {
            for change in [Change::To90, Change::To95, Change::Remove] {
                for slice in 0..self.slices {
                    let round = self.round(cycle * self.slices + slice);
                    for (bench, result) in benches.iter_mut().zip(&mut results) {
                        if bench.kind() != Kind::Limit {
                            result.of(change)[round] += self.slice(bench.as_mut(), change, slice, threads);
                        }
                    }
                }
            }
        }
        results
    }

    fn slice(&self, bench: &mut dyn Bench, change: Change, slice: usize, threads: u64) -> Sample {
        let (from, to) = match change {
            Change::To90 => (0.0, 0.9),
            Change::To95 => (0.9, 0.95),
            Change::Remove => (0.95, self.floor),
        };
        let load = from + (to - from) * (slice + 1) as f64 / self.slices as f64;
        let len = items(bench, load);
        if change == Change::Remove { bench.remove_to(len, threads) } else { bench.insert_to(len, threads) }
    }

    /// 0 1 2 2 1 0 0 1 2 …
    fn round(&self, number: usize) -> usize {
        let (turn, place) = (number / self.rounds, number % self.rounds);
        if turn % 2 == 0 { place } else { self.rounds - 1 - place }
    }
}

impl Changes {
    fn of(&mut self, change: Change) -> &mut [Sample] {
        match change {
            Change::To90 => &mut self.to_90,
            Change::To95 => &mut self.to_95,
            Change::Remove => &mut self.remove,
        }
    }
}

/// The number of items at that load: an even number, so that two threads have equal shares.
fn items(bench: &dyn Bench, load: f64) -> u64 {
    (bench.slots() as f64 * load / 2.0) as u64 * 2
}

/// Brings the filter to the load for everything that needs a constant load.
pub(crate) fn steady_load(bench: &mut dyn Bench) {
    let len = items(bench, STEADY_LOAD);
    if bench.len() < len {
        bench.insert_to(len, 1);
    } else {
        bench.remove_to(len, 1);
    }
}
