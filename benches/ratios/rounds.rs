//! Inserts and removals, in rounds that compare with each other.

use super::support::filled::{Bench, Sample};
use super::support::plan::{Size, items};

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

impl Change {
    pub(crate) const ALL: [Self; 3] = [Self::To90, Self::To95, Self::Remove];
}

/// How the rounds of changes are made up. With an odd number of rounds, the median is a value that was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    rounds: usize,
    /// How often the tables are filled and emptied.
    cycles: usize,
    /// Into how many parts each of a cycle's three changes is divided.
    slices: usize,
    /// The load to which keys are removed.
    floor: f64,
}

impl Rounds {
    /// A small table is filled and emptied three times for each round. Filling a large one takes many seconds, so
    /// it is filled once, in slices. The slices are assigned to the rounds forwards and backwards in turn, so each
    /// round has its share of low and of high loads.
    pub(crate) fn new(size: Size, rounds: usize) -> Self {
        match size {
            Size::L2 | Size::L3 => Self { rounds, cycles: 3 * rounds, slices: 1, floor: 0.0 },
            Size::Large => Self { rounds, cycles: 1, slices: 4 * rounds, floor: 0.85 },
        }
    }

    /// Fills and empties all filters, interleaved. Returns what each took in each round, for each change.
    pub(crate) fn run(&self, benches: &mut [Box<dyn Bench>], threads: u64) -> Vec<[Vec<Sample>; Change::ALL.len()]> {
        let none = Change::ALL.map(|_| vec![Sample::default(); self.rounds]);
        let mut results = vec![none; benches.len()];
        for cycle in 0..self.cycles {
            for change in Change::ALL {
                for slice in 0..self.slices {
                    let round = self.round(cycle * self.slices + slice);
                    for (bench, result) in benches.iter_mut().zip(&mut results) {
                        result[change as usize][round] += self.slice(bench.as_mut(), change, slice, threads);
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
