//! The course of the measurements.

use std::fmt;
use std::fs;
use std::ops::Range;

use super::Plan;
use super::support::filled::Sample;
use super::support::keys::ABSENT;
use super::support::report::median;
use super::systems::System;
use super::timed::{Lookups, Timed, Turn};

/// The number of parts into which filling and emptying are divided.
const SLICES: u64 = 20;
/// How often lookups of one kind are timed.
const TURNS: usize = 5;

/// What was measured of one system.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) in_figures: bool,
    pub(crate) bytes: Option<usize>,
    pub(crate) capacity: u64,
    /// False positives at capacity, and how many absent keys were looked up for that.
    pub(crate) positives: (u64, u64),
    /// Millions of operations a second: all inserts to capacity, and all removals from there.
    pub(crate) construction: f64,
    pub(crate) removal: Option<f64>,
    /// Each point: the share of the capacity that is in, and millions of inserts a second.
    pub(crate) inserts: Vec<(f64, f64)>,
    /// The share of hits, and millions of lookups a second at capacity.
    pub(crate) shares: Vec<(f64, f64)>,
}

impl Measured {
    pub(crate) fn bits_per_item(&self) -> Option<f64> {
        Some(self.bytes? as f64 * 8.0 / self.capacity as f64)
    }

    pub(crate) fn rate(&self) -> f64 {
        self.positives.0 as f64 / self.positives.1 as f64
    }

    /// Measures the systems, and takes the median of some rounds, point by point.
    ///
    /// Runs of large tables are interleaved within a round. Small ones would push each other out of the cache. So
    /// there each system has the machine for itself, and its rounds are spread over the whole time.
    pub(crate) fn all(systems: &[System], plan: &Plan) -> Vec<Self> {
        let together = if plan.rounds == 1 { systems.len() } else { 1 };
        let rounds: Vec<Vec<Self>> = (1..=plan.rounds)
            .map(|round| {
                eprintln!("round {round} of {}", plan.rounds);
                systems.chunks(together).flat_map(|systems| Self::round(systems, plan)).collect()
            })
            .collect();
        let rounds_of = |index: usize| rounds.iter().map(|round| &round[index]).collect::<Vec<_>>();
        (0..systems.len()).map(|index| Self::median(&rounds_of(index))).collect()
    }

    fn median(rounds: &[&Self]) -> Self {
        let points = |points: fn(&Self) -> &Vec<(f64, f64)>| -> Vec<(f64, f64)> {
            let median_of = |(index, &(at, _)): (usize, &(f64, f64))| {
                (at, median(rounds.iter().map(|round| points(round)[index].1)))
            };
            points(rounds[0]).iter().enumerate().map(median_of).collect()
        };
        Self {
            construction: median(rounds.iter().map(|round| round.construction)),
            removal: rounds[0].removal.map(|_| median(rounds.iter().filter_map(|round| round.removal))),
            inserts: points(|round| &round.inserts),
            shares: points(|round| &round.shares),
            ..rounds[0].clone()
        }
    }

    /// Fills all systems to their capacities, looks keys up, and empties them. Everything is interleaved, a second or so
    /// each, so a machine that becomes slower does so for all of them.
    fn round(systems: &[System], plan: &Plan) -> Vec<Self> {
        let tell = |what: fmt::Arguments<'_>| {
            if systems.len() > 1 {
                eprintln!("  {what}");
            }
        };
        let mut all: Vec<_> = systems.iter().map(|system| UnderTest::new(system, plan)).collect();
        for slice in 1..=SLICES {
            tell(format_args!("inserts, part {slice} of {SLICES}"));
            all.iter_mut().for_each(|one| one.insert(slice));
        }
        for share in [0, 64, 128, 192, 256] {
            tell(format_args!("lookups, {} % hits", share * 100 / 256));
            let mut speeds = vec![Vec::new(); all.len()];
            for _ in 0..TURNS {
                for (one, speeds) in all.iter_mut().zip(&mut speeds) {
                    speeds.push(one.look_up(share, plan.lookups));
                }
            }
            for (one, speeds) in all.iter_mut().zip(speeds) {
                one.measured.shares.push((share as f64 / 256.0, median(speeds)));
            }
        }
        all.iter_mut().for_each(UnderTest::measure_rate);
        for slice in 1..=SLICES {
            tell(format_args!("removals, part {slice} of {SLICES}"));
            all.iter_mut().for_each(|one| one.remove(slice));
        }
        all.into_iter().map(UnderTest::into_measured).collect()
    }
}

/// A filter whose answers are checked, and what was measured of it so far.
struct UnderTest<'a> {
    system: &'a System,
    plan: &'a Plan,
    filter: Box<dyn Timed>,
    /// The rate by the formula.
    rate: Option<f64>,
    /// The next number of a key that is never inserted.
    absent: u64,
    inserts: Sample,
    removals: Sample,
    /// How much the process has grown while this filter was built and filled.
    resident: Option<usize>,
    measured: Measured,
}

impl<'a> UnderTest<'a> {
    fn new(system: &'a System, plan: &'a Plan) -> Self {
        let before = resident_bytes();
        let built = (system.build)(plan.table_bytes);
        let measured = Measured {
            name: system.name.clone(),
            about: system.about,
            in_figures: system.in_figures,
            bytes: built.bytes,
            capacity: built.capacity,
            positives: (0, 0),
            construction: 0.0,
            removal: None,
            inserts: Vec::new(),
            shares: Vec::new(),
        };
        Self {
            system,
            plan,
            filter: built.filter,
            rate: built.rate,
            absent: ABSENT,
            inserts: Sample::default(),
            removals: Sample::default(),
            resident: growth(before, resident_bytes()),
            measured,
        }
    }

    /// The keys of a slice. They are removed in the order of their insertion.
    fn keys(&self, slice: u64) -> Range<u64> {
        let capacity = self.measured.capacity;
        capacity * (slice - 1) / SLICES..capacity * slice / SLICES
    }

    fn insert(&mut self, slice: u64) {
        let before = resident_bytes();
        let turn = self.filter.insert(self.keys(slice));
        self.check("inserts", turn);
        self.resident = self.resident.zip(growth(before, resident_bytes())).map(|(so_far, more)| so_far + more);
        self.measured.inserts.push(((slice as f64 - 0.5) / SLICES as f64, turn.sample.mops()));
        self.inserts += turn.sample;
    }

    fn remove(&mut self, slice: u64) {
        if self.system.removes && self.system.in_figures {
            let turn = self.filter.remove(self.keys(slice));
            self.check("removals", turn);
            self.removals += turn.sample;
        }
    }

    /// The measured rate must be close to the formula's. The rate of a single table may differ by some percent, and
    /// chance adds to that.
    fn measure_rate(&mut self) {
        self.look_up(0, self.plan.rate_lookups);
        if let Some(rate) = self.rate {
            let (positives, lookups) = self.measured.positives;
            let expected = rate * lookups as f64;
            let off = (positives as f64 - expected).abs();
            let most = 0.3 * expected + 6.0 * expected.sqrt() + 1.0;
            assert!(off <= most, "{}: {positives} false positives, but {expected:.1} expected", self.system.name);
        }
    }

    /// Times lookups, of which `share` of 256 are of present keys: all keys are in. Millions a second.
    fn look_up(&mut self, share: u64, count: u64) -> f64 {
        let lookups = Lookups { present: 0..self.measured.capacity, absent: self.absent, share, count };
        // It may be rounded up.
        self.absent += 2 * count;
        let turn = self.filter.look_up(&lookups);
        self.check("lookups of present keys", turn);
        self.measured.positives.0 += turn.positives.0;
        self.measured.positives.1 += turn.positives.1;
        turn.sample.mops()
    }

    fn check(&self, what: &str, turn: Turn) {
        let name = &self.system.name;
        assert!(turn.failures == 0, "{name}: {} of {} {what} failed", turn.failures, turn.sample.operations);
    }

    fn into_measured(mut self) -> Measured {
        self.measured.construction = self.inserts.mops();
        if self.removals.operations > 0 {
            self.measured.removal = Some(self.removals.mops());
            // No key may be found after all were removed.
            let count = self.measured.capacity.min(10_000);
            let (found, _) = self.filter.look_up(&Lookups { present: 0..1, absent: 0, share: 0, count }).positives;
            assert_eq!(found, 0, "{}: keys found after all were removed", self.system.name);
        }
        // In a small table, the measurement's own memory would count.
        let resident = self.resident.filter(|_| self.plan.table_bytes >= 16 << 20);
        self.measured.bytes = self.measured.bytes.or(resident);
        self.measured
    }
}

/// The memory that the process occupies, if the system says: the exact set does not report what it takes.
fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(kib.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
}

fn growth(before: Option<usize>, after: Option<usize>) -> Option<usize> {
    Some(after?.saturating_sub(before?))
}
