//! The course of the measurements.

use std::fs;

use super::Plan;
use super::support::filled::Sample;
use super::support::keys::ABSENT;
use super::support::report::median;
use super::systems::{Built, System};
use super::timed::{LookupMix, Turn};

/// The number of parts into which filling and emptying are divided.
const SLICES: u64 = 20;
/// How often lookups of one kind are timed.
const TURNS: usize = 5;
/// Of 256 lookups, how many are of present keys: misses alone, half of each, hits alone.
const SHARES: [u64; 3] = [0, 128, 256];

/// What was measured of one system. Speeds are in millions of operations per second.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) about: &'static str,
    pub(crate) bytes: Option<usize>,
    pub(crate) capacity: u64,
    /// False positives at capacity, and how many absent keys were looked up for that.
    pub(crate) positives: (u64, u64),
    /// All inserts to capacity.
    pub(crate) construction: f64,
    /// The inserts of each slice of the capacity.
    pub(crate) inserts: Vec<f64>,
    /// Lookups at capacity, by [`SHARES`].
    pub(crate) lookups: Vec<f64>,
    /// All removals from capacity.
    pub(crate) removal: Option<f64>,
}

impl Measured {
    pub(crate) fn bits_per_item(&self) -> Option<f64> {
        Some(self.bytes? as f64 * 8.0 / self.capacity as f64)
    }

    pub(crate) fn rate(&self) -> f64 {
        self.positives.0 as f64 / self.positives.1 as f64
    }

    /// The inserts from this percentage of the capacity on, up to 5% more.
    pub(crate) fn inserts_from(&self, percent: usize) -> f64 {
        self.inserts[percent * SLICES as usize / 100]
    }

    /// Measures the systems, and takes the median of some rounds.
    ///
    /// Runs of large tables are interleaved within a round. Small ones would push each other out of the cache. So
    /// there each system has the machine for itself, and its rounds are spread over the whole time.
    pub(crate) fn all(systems: &[System], plan: &Plan) -> Vec<Self> {
        let together = if plan.rounds == 1 { systems.len() } else { 1 };
        let mut rounds = vec![Vec::new(); systems.len()];
        for round in 1..=plan.rounds {
            eprintln!("round {round} of {}", plan.rounds);
            let measured = systems.chunks(together).flat_map(|systems| Self::round(systems, plan));
            rounds.iter_mut().zip(measured).for_each(|(rounds, measured)| rounds.push(measured));
        }
        rounds.iter().map(|rounds| Self::median(rounds)).collect()
    }

    fn median(rounds: &[Self]) -> Self {
        let of_all = |of: fn(&Self) -> &Vec<f64>| {
            (0..of(&rounds[0]).len()).map(|nth| median(rounds.iter().map(|round| of(round)[nth]))).collect()
        };
        Self {
            construction: median(rounds.iter().map(|round| round.construction)),
            inserts: of_all(|round| &round.inserts),
            lookups: of_all(|round| &round.lookups),
            removal: rounds[0].removal.map(|_| median(rounds.iter().filter_map(|round| round.removal))),
            ..rounds[0].clone()
        }
    }

    /// Fills all systems to their capacities, looks keys up, and empties them. Everything is interleaved, a second or so
    /// each, so a machine that becomes slower does so for all of them.
    fn round(systems: &[System], plan: &Plan) -> Vec<Self> {
        let mut all: Vec<_> = systems.iter().map(|system| UnderTest::new(system, plan)).collect();
        for slice in 0..SLICES {
            all.iter_mut().for_each(|one| one.insert(slice));
        }
        for share in SHARES {
            let mut speeds = vec![Vec::new(); all.len()];
            for _ in 0..TURNS {
                all.iter_mut().zip(&mut speeds).for_each(|(one, speeds)| speeds.push(one.look_up(share, plan.lookups)));
            }
            all.iter_mut().zip(speeds).for_each(|(one, speeds)| one.lookups.push(median(speeds)));
        }
        all.iter_mut().for_each(|one| one.measure_rate(plan.rate_lookups));
        for slice in 0..SLICES {
            all.iter_mut().for_each(|one| one.remove(slice));
        }
        all.into_iter().map(|one| one.into_measured(plan)).collect()
    }
}

/// A filter whose answers are checked, and what was measured of it so far.
struct UnderTest<'a> {
    system: &'a System,
    built: Built,
    /// The next number of a key that is never inserted.
    absent: u64,
    /// How much the process has grown while this filter was built and filled.
    resident: usize,
    inserts: Vec<Sample>,
    lookups: Vec<f64>,
    removals: Sample,
    positives: (u64, u64),
}

impl<'a> UnderTest<'a> {
    fn new(system: &'a System, plan: &Plan) -> Self {
        let before = resident_bytes();
        let built = (system.build)(plan.table_bytes);
        let resident = resident_bytes().saturating_sub(before);
        let (inserts, lookups, removals) = (Vec::new(), Vec::new(), Sample::default());
        Self { system, built, absent: ABSENT, resident, inserts, lookups, removals, positives: (0, 0) }
    }

    /// The numbers of a slice's keys. They are removed in the order of their insertion.
    fn keys(&self, slice: u64) -> std::ops::Range<u64> {
        let capacity = self.built.capacity;
        capacity * slice / SLICES..capacity * (slice + 1) / SLICES
    }

    fn insert(&mut self, slice: u64) {
        let before = resident_bytes();
        let turn = self.built.filter.insert(self.keys(slice));
        self.check("inserts", turn);
        self.resident += resident_bytes().saturating_sub(before);
        self.inserts.push(turn.sample);
    }

    fn remove(&mut self, slice: u64) {
        if self.system.removes {
            let turn = self.built.filter.remove(self.keys(slice));
            self.check("removals", turn);
            self.removals += turn.sample;
        }
    }

    /// The measured rate must be close to the formula's. The rate of a single table may differ by some percent, and
    /// chance adds to that.
    fn measure_rate(&mut self, count: u64) {
        self.look_up(0, count);
        if let Some(rate) = self.built.rate {
            let (positives, lookups) = self.positives;
            let expected = rate * lookups as f64;
            let off = (positives as f64 - expected).abs();
            let most = 0.3 * expected + 6.0 * expected.sqrt() + 1.0;
            assert!(off <= most, "{}: {positives} false positives, but {expected:.1} expected", self.system.name);
        }
    }

    /// Times lookups, of which `share` of 256 are of present keys: all keys are in. Millions per second.
    fn look_up(&mut self, share: u64, count: u64) -> f64 {
        let turn = self.built.filter.look_up(&LookupMix {
            present: 0..self.built.capacity,
            absent: self.absent,
            share,
            count,
        });
        self.check("lookups of present keys", turn);
        // The count may be rounded up.
        self.absent += 2 * count;
        self.positives.0 += turn.positives.0;
        self.positives.1 += turn.positives.1;
        turn.sample.mops()
    }

    fn check(&self, what: &str, turn: Turn) {
        let name = &self.system.name;
        assert!(turn.failures == 0, "{name}: {} of {} {what} failed", turn.failures, turn.sample.operations);
    }

    fn into_measured(self, plan: &Plan) -> Measured {
        let Built { filter, bytes, capacity, .. } = self.built;
        if self.system.removes {
            // No key may be found after all were removed.
            let removed = LookupMix { present: 0..1, absent: 0, share: 0, count: capacity.min(10_000) };
            let (found, _) = filter.look_up(&removed).positives;
            assert_eq!(found, 0, "{}: keys found after all were removed", self.system.name);
        }
        let mut construction = Sample::default();
        self.inserts.iter().for_each(|&sample| construction += sample);
        // In a small table, the measurement's own memory would count.
        let resident = (self.resident > 0 && plan.table_bytes >= 16 << 20).then_some(self.resident);
        Measured {
            name: self.system.name.clone(),
            about: self.system.about,
            bytes: bytes.or(resident),
            capacity,
            positives: self.positives,
            construction: construction.mops(),
            inserts: self.inserts.into_iter().map(Sample::mops).collect(),
            lookups: self.lookups,
            removal: self.system.removes.then(|| self.removals.mops()),
        }
    }
}

/// The memory that the process occupies, or 0 if the system does not say: the exact set does not report what it takes.
fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.unwrap_or(0usize) << 10
}
