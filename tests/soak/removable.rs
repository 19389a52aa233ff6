//! The soak of one table: of every layout, from one bucket to 200,000 slots, and up to overfull. And the soaks of a filter
//! that grows and shrinks. Some rates are so high that keys are often mistaken for each other, and some are low. The first
//! table holds from all keys down to a thousandth of them. Some filters have a memory limit.

use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::{
    Encoding, GrowableBuilder, GrowableCuckooFilter, GrowableInsertError, InsertError, ReserveError,
};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::kinds::Table;
use crate::rounds::Count::{Merges, Removals};
use crate::rounds::{THREADS, Tally};
use crate::support::{self, Identity, LAYOUTS, Layout, Raw, build};
use crate::worker::{BATCH, Kind, Own, Round, Sizes, Ticks, Work, Worker, check_refusal};

/// Checks how many copies are counted of a key.
fn check_count(own: &Own, count: usize) {
    let known = own.numbers.len();
    assert!(count == known || own.shared && count > known, "{count} copies were counted: {own:?}");
}

pub(crate) struct OneTable {
    layout: Layout,
    size: &'static str,
    filter: support::Filter,
}

impl Kind for OneTable {
    type Filter = support::Filter;

    const TWINS: bool = true;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let layout = LAYOUTS[(seed % LAYOUTS.len() as u64) as usize];
        let slots = layout.2 as u64;
        let (size, capacity) = match random.random_range(0..12) {
            0..4 => ("a few buckets", random.random_range(1..=8 * slots)),
            4..8 => ("hundreds of buckets", slots * random.random_range(100..300)),
            8..11 => ("thousands of buckets", slots * random.random_range(1100..6100)),
            _ => ("200,000 slots", 180_000),
        };
        Self { layout, size, filter: build(capacity, layout.0, layout.1) }
    }

    fn filter(&self) -> &support::Filter {
        &self.filter
    }

    fn names(&self) -> [String; 2] {
        let (encoding, _, slots, bits) = self.layout;
        [format!("{slots} by {bits}, {encoding:?}"), self.size.to_owned()]
    }

    /// From 95 % of the capacity to 5 % more entries than there are slots.
    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let (capacity, (slots, _)) = (self.filter.capacity() as u64, self.filter.slots());
        let entries = random.random_range(capacity * 95 / 100..=slots as u64 * 105 / 100);
        let keys = capacity * random.random_range(50..95) / 100;
        Sizes { keys, permanent: keys * random.random_range(10..90) / 100, entries }
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &InsertError>) {
        if let Err(error) = answer {
            check_refusal(&self.filter, own, matches!(error, InsertError::TooManyCopies { .. }));
        }
    }

    fn check(filter: &support::Filter, own: &Own) {
        let count = filter.count(&own.key);
        check_count(own, count);
        assert!(count <= 2 * filter.slots().1, "more copies were counted than there is room for");
    }
}

type Filter = GrowableCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// A rate, and the encoding, if one is asked for.
const SETTINGS: [(f64, Option<Encoding>); 9] = [
    (0.5, None),
    (0.3, Some(Encoding::Plain)),
    (0.1, None),
    (0.03, Some(Encoding::SemiSorted)),
    (0.01, None),
    (0.001, None),
    (0.001, Some(Encoding::Plain)),
    (2e-4, Some(Encoding::SemiSorted)),
    (1e-6, None),
];

/// How many keys are always in if there are spikes, and how many are in at the height of one.
const RESIDENTS: u64 = 1_000;
const PEAK: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// A filter that grows and shrinks, if `SPIKES` by a thousand times.
pub(crate) struct Growable<const SPIKES: bool> {
    setting: (f64, Option<Encoding>),
    size: &'static str,
    keys: u64,
    limit: Option<usize>,
    /// Without the limit.
    builder: GrowableBuilder<Raw, BuildHasherDefault<Identity>>,
    filter: Filter,
}

impl<const SPIKES: bool> Growable<SPIKES> {
    fn check_limit(&self) {
        let memory = self.filter.stats().memory_usage;
        assert!(self.limit.is_none_or(|limit| memory <= limit), "the memory limit was passed");
    }

    fn check_memory_was_needed(&self, needed: usize, limit: usize) {
        assert!(self.limit == Some(limit) && needed > limit, "it was refused memory that it may take");
        self.check_limit();
    }
}

impl<const SPIKES: bool> Kind for Growable<SPIKES> {
    type Filter = Filter;

    const TWINS: bool = !SPIKES;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let settings = &SETTINGS[if SPIKES { 4 } else { 0 }..];
        let setting = settings[(seed % settings.len() as u64) as usize];
        let (size, keys) = match random.random_range(0..12) {
            _ if SPIKES => ("spikes", PEAK),
            0..5 => ("hundreds of keys", random.random_range(20..1020)),
            5..11 => ("thousands of keys", random.random_range(1000..21_000)),
            _ => ("100,000 keys", 100_000),
        };
        let first = if SPIKES { random.random_range(0..2 * RESIDENTS) } else { keys >> random.random_range(0..11) };
        let builder = GrowableCuckooFilter::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(first as usize).false_positive_rate(setting.0);
        let builder = if SPIKES { builder.max_capacity(2 * PEAK as usize) } else { builder };
        let builder = setting.1.map_or(builder.clone(), |encoding| builder.encoding(encoding));
        let filter: Filter = builder.clone().build().expect("a valid filter");
        // The limit is often reached during growth.
        let limit = (!SPIKES && random.random_ratio(1, 3))
            .then(|| filter.stats().memory_usage + random.random_range(0..4 * keys) as usize);
        let filter = limit.map_or(filter, |limit| {
            builder.clone().memory_limit(limit).build().expect("the limit allows the first table")
        });
        Self { setting, size, keys, limit, builder, filter }
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }

    fn scratch(&self) -> Filter {
        self.builder.clone().build().expect("as before")
    }

    fn names(&self) -> [String; 2] {
        let (rate, encoding) = self.setting;
        let encoding = encoding.map_or_else(|| "any".to_owned(), |encoding| format!("{encoding:?}"));
        [format!("rate {rate}, {encoding}"), self.size.to_owned()]
    }

    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let keys = self.keys;
        let permanent = if SPIKES { RESIDENTS } else { keys * random.random_range(5..80) / 100 };
        Sizes { keys, permanent, entries: if SPIKES { keys / 2 } else { keys } }
    }

    fn work(&self, random: &mut SmallRng) -> Work {
        let works = [Work::Spikes, Work::Spikes, Work::Spikes, Work::Churn, Work::Churn, Work::AddOnce, Work::Clear];
        if SPIKES { Work::Spikes } else { works[random.random_range(0..works.len())] }
    }

    fn steps(&self, usual: u64) -> u64 {
        // Five spikes.
        if SPIKES { 3 * PEAK } else { usual }
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &GrowableInsertError>) {
        match answer {
            Ok(()) => (),
            Err(GrowableInsertError::MemoryLimit { needed, limit, .. }) => {
                self.check_memory_was_needed(*needed, *limit)
            }
            Err(GrowableInsertError::TooManyCopies { copies, .. }) => {
                assert!(own.shared || *copies == own.numbers.len(), "refused for {copies} copies: {own:?}");
            }
            Err(error) if SPIKES => panic!("refused, although it grows: {error}"),
            // Copies and twins can fill a pair of buckets.
            Err(GrowableInsertError::Full { .. }) => (),
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    fn check(filter: &Filter, own: &Own) {
        check_count(own, filter.count(&own.key));
    }

    /// Reserves room, with a limit.
    fn other_step(worker: &mut Worker<'_, Self>) {
        let round = worker.round;
        if round.kind.limit.is_none() || worker.random.random_ratio(63, 64) {
            return;
        }
        let additional = worker.random.random_range(0..round.quota()) as usize;
        match round.kind.filter.reserve(additional) {
            Ok(()) => assert!(round.kind.filter.capacity() >= additional, "there is no room though it was reserved"),
            Err(ReserveError::MemoryLimit { needed, limit, .. }) => round.kind.check_memory_was_needed(needed, limit),
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    fn tidy(&self) {
        self.filter.shrink_to_fit();
    }

    /// Adds some keys that are in another filter, and removes them again. Or adds all of this filter to another one.
    fn merge(worker: &mut Worker<'_, Self>) {
        let filter = &worker.round.kind.filter;
        let other = worker.round.kind.scratch();
        worker.tally[Merges] += 1;
        if worker.random.random() {
            let absent = worker.own.iter().filter(|own| own.numbers.is_empty() && !own.shared).take(BATCH as usize);
            let entries: Vec<_> = absent.map(|own| (own.key, 0)).collect();
            if other.insert_all(&entries).is_ok() && filter.absorb(&other) == Ok(entries.len() as u64) {
                worker.round.remove_all(&entries, worker.tally);
                return;
            }
            // It was refused after a part of it. Which one is not told.
            entries.iter().for_each(|entry| _ = Table::remove(filter, entry));
            assert!(!SPIKES, "not all was absorbed");
        } else if other.reserve(filter.len()).is_ok() && other.absorb(filter).is_ok() {
            let own = worker.own.iter().filter(|own| !own.shared);
            own.for_each(|own| Self::check(&other, own));
            worker.tally[Removals] += 1;
        } else {
            assert!(!SPIKES, "not all was absorbed");
        }
    }

    /// When all but the permanent keys are removed and it has shrunk, the filter is as small as a fresh one, and holds
    /// the same.
    fn finish(&self, round: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>, tally: &mut Tally) {
        // It grows only if the table is at least a quarter full, to one with at most three times its slots.
        let most = permanent.iter().map(|own| own.numbers.len()).sum::<usize>() as u64
            + THREADS * (3 * round.quota() + 2 * BATCH);
        let (capacity, fresh) = (self.filter.capacity() as u64, self.scratch());
        let may_grow = self.limit.is_some() || capacity <= fresh.capacity() as u64 || capacity <= 12 * most;
        assert!(may_grow, "it grew to {capacity} for {most} keys");
        self.check_limit();
        let copies = |own: &[Own]| -> Vec<_> {
            own.iter().flat_map(|own| own.numbers.iter().map(|&number| (own.key, number))).collect()
        };
        assert_eq!(self.filter.len(), copies(&own).len() + copies(&permanent).len(), "the length is wrong");
        own.iter().for_each(|own| Self::check(&self.filter, own));
        round.remove_all(&copies(&own), tally);
        assert_eq!(fresh.insert_all(&copies(&permanent)), Ok(()), "it grows");
        [&self.filter, &fresh].iter().for_each(|filter| filter.shrink_to_fit());
        assert_eq!(self.filter.digest(), fresh.digest(), "it does not hold what a fresh one holds");
        let (memory, at_first) = (self.filter.stats().memory_usage, fresh.stats().memory_usage);
        assert!(memory <= 2 * at_first, "{memory} bytes after a spike, {at_first} in a fresh filter");
        round.take_out_every_entry(&permanent, tally);
    }
}
