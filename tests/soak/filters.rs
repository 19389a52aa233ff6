//! Filters of keys that stay until they are removed: of one table, from a few buckets to ten thousand and up to overfull;
//! of tables that grow and shrink; and with values.

use concurrent_cuckoo_filter::{
    Encoding, GrowableBuilder, GrowableCuckooFilter, GrowableInsertError, InsertError, MapletInsertError,
};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::address_limit::has_ranges;
use crate::kinds::{self, Hasher, Table};
use crate::support::{self, LAYOUTS, MAPLET_LAYOUTS, Raw, build};
use crate::worker::{BATCH, Kind, Own, Round, Sizes, THREADS, Ticks, Work, Worker, check_refusal, some_capacity};

/// Checks how many copies are counted of a key.
fn check_count(own: &Own, count: usize) {
    let known = own.numbers.len();
    assert!(count == known || own.shared && count > known, "{count} copies were counted: {own:?}");
}

pub(crate) struct OneTable(support::Filter);

impl Kind for OneTable {
    type Filter = support::Filter;

    const TWINS: bool = true;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let (encoding, rate, slots, _) = LAYOUTS[(seed % LAYOUTS.len() as u64) as usize];
        Self(build(some_capacity(slots as u64, random), encoding, rate))
    }

    fn filter(&self) -> &support::Filter {
        &self.0
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &InsertError>) {
        if let Err(error) = answer {
            check_refusal(&self.0, own, matches!(error, InsertError::TooManyCopies { .. }));
        }
    }

    fn check(filter: &support::Filter, own: &Own) {
        let count = filter.count(&own.key);
        check_count(own, count);
        assert!(count <= 2 * filter.slots().1, "more copies were counted than there is room for");
    }
}

pub(crate) struct Maplet(kinds::Maplet);

impl Kind for Maplet {
    type Filter = kinds::Maplet;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let layout = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        Self(kinds::maplet(some_capacity(layout.2 as u64, random) as usize, layout))
    }

    fn filter(&self) -> &kinds::Maplet {
        &self.0
    }

    fn some_number(&self, random: &mut SmallRng) -> u64 {
        // Mostly one of a few, so that a key has some of them several times.
        let values = if random.random_ratio(3, 4) { 3 } else { 1 << 16 };
        random.random_range(0..values) % (1 << self.0.plan().layout.payload_bits)
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &MapletInsertError>) {
        match answer {
            Ok(()) => (),
            Err(MapletInsertError::TooManyCopies { .. }) => check_refusal(&self.0, own, true),
            Err(MapletInsertError::Full { .. }) => check_refusal(&self.0, own, false),
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    fn check(maplet: &kinds::Maplet, own: &Own) {
        let mut values = own.numbers.clone();
        values.sort_unstable();
        values.dedup();
        let found = maplet.values(&own.key);
        assert!(found.iter().map(u64::from).eq(values.iter().copied()), "{own:?}: found {found:?}");
        for value in values {
            let count = own.numbers.iter().filter(|&&own| own == value).count();
            assert_eq!(maplet.count(&own.key, value as u16), count, "{own:?}: copies of {value}");
        }
    }

    /// Replaces a value that a key may have or not.
    fn other_step(worker: &mut Worker<'_, Self>) {
        let kind = &worker.round.kind;
        let (at, [old, new]) = (worker.some(), [(); 2].map(|()| kind.some_number(&mut worker.random)));
        let own = &mut worker.own[at];
        let held = own.numbers.iter().position(|&own| own == old);
        let replaced = kind.0.replace(&own.key, old as u16, new as u16);
        assert_eq!(replaced, Ok(held.is_some()), "{own:?}: replacing {old} by {new}");
        if let Some(held) = held {
            own.numbers[held] = new;
        }
    }
}

/// A rate, and the encoding, if one is asked for. At the highest rates keys are often mistaken for each other.
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

/// Its first table holds from all keys down to a thousandth of them.
pub(crate) struct Growable {
    keys: u64,
    limit: Option<usize>,
    /// Without the limit.
    builder: GrowableBuilder<Raw, Hasher>,
    filter: kinds::Growable,
}

impl Growable {
    fn check_limit(&self) {
        let memory = self.filter.stats().memory_usage;
        assert!(self.limit.is_none_or(|limit| memory <= limit), "the memory limit was passed");
    }
}

impl Kind for Growable {
    type Filter = kinds::Growable;

    const TWINS: bool = true;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let (rate, encoding) = SETTINGS[(seed % SETTINGS.len() as u64) as usize];
        let keys = match random.random_range(0..12) {
            0..5 => random.random_range(20..1020),
            5..11 => random.random_range(1000..21_000),
            _ => 100_000,
        };
        let builder = GrowableCuckooFilter::builder().hasher(Hasher::default()).false_positive_rate(rate);
        let builder = builder.capacity(keys as usize >> random.random_range(0..11));
        let builder = encoding.map_or(builder.clone(), |encoding| builder.encoding(encoding));
        // The limit is often reached during growth.
        let least = builder.plan().expect("a valid filter").memory_usage;
        let limit = random.random_ratio(1, 3).then(|| least + random.random_range(0..4 * keys) as usize);
        let limited = limit.map_or(builder.clone(), |limit| builder.clone().memory_limit(limit));
        Self { keys, limit, builder, filter: limited.build().expect("the limit allows the first table") }
    }

    fn filter(&self) -> &kinds::Growable {
        &self.filter
    }

    #[cfg(feature = "snapshot")]
    fn memory_limit(&self) -> usize {
        self.limit.unwrap_or(usize::MAX)
    }

    fn scratch(&self) -> kinds::Growable {
        self.builder.clone().build().expect("as before")
    }

    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let permanent = self.keys * random.random_range(5..80) / 100;
        Sizes { keys: self.keys, permanent, entries: self.keys }
    }

    fn work(&self, random: &mut SmallRng) -> Work {
        let works = [Work::Spikes, Work::Spikes, Work::Spikes, Work::Churn, Work::Churn, Work::AddOnce, Work::Clear];
        works[random.random_range(0..works.len())]
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &GrowableInsertError>) {
        match answer {
            // Copies and twins can fill a pair of buckets.
            Ok(()) | Err(GrowableInsertError::Full { .. }) => (),
            Err(GrowableInsertError::MemoryLimit { needed, limit, .. }) => {
                assert!(self.limit == Some(*limit) && needed > limit, "it was refused memory that it may take");
                self.check_limit();
            }
            Err(GrowableInsertError::TooManyCopies { copies, .. }) => {
                assert!(own.shared || *copies == own.numbers.len(), "refused for {copies} copies: {own:?}");
            }
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    fn check(filter: &kinds::Growable, own: &Own) {
        check_count(own, filter.count(&own.key));
    }

    fn other_step(worker: &mut Worker<'_, Self>) {
        if worker.id == 1 && worker.random.random_ratio(1, 64) {
            worker.round.kind.filter.shrink_to_fit();
        }
    }

    /// When all but the permanent keys are removed and it has shrunk, the filter is as small as a fresh one, and holds
    /// the same.
    fn finish(&self, round: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>) {
        let entries = |own: &[Own]| -> Vec<_> { own.iter().flat_map(Own::entries).collect() };
        // It grows only if the table is at least a quarter full, to one with at most three times its slots.
        let most = entries(&permanent).len() as u64 + THREADS * (3 * round.quota() + 2 * BATCH);
        let (capacity, fresh) = (self.filter.capacity() as u64, self.scratch());
        let may_grow = self.limit.is_some() || capacity <= fresh.capacity() as u64 || capacity <= 12 * most;
        assert!(may_grow, "it grew to {capacity} for {most} keys");
        self.check_limit();
        assert_eq!(self.filter.len(), entries(&own).len() + entries(&permanent).len(), "the length is wrong");
        own.iter().for_each(|own| Self::check(&self.filter, own));
        round.remove_all(&entries(&own));
        // Further copies of a key come last: the larger a table, the more of them it may hold.
        let nth_copies = |nth| permanent.iter().filter_map(move |own| own.entries().nth(nth));
        let all: Vec<_> =
            (0..).map(|nth| nth_copies(nth).collect()).take_while(|copies: &Vec<_>| !copies.is_empty()).collect();
        assert_eq!(fresh.insert_all(&all.concat()), Ok(()), "it grows");
        [&self.filter, &fresh].iter().for_each(|filter| filter.shrink_to_fit());
        assert_eq!(self.filter.digest(), fresh.digest(), "it does not hold what a fresh one holds");
        let (memory, at_first) = (self.filter.stats().memory_usage, fresh.stats().memory_usage);
        // The first page of words stays, and what a table needs as soon as it grows. Without a range of addresses, so do all
        // segments below 128 KiB.
        let stays = if has_ranges() { 8 << 10 } else { 256 << 10 };
        assert!(memory <= 2 * at_first + stays, "{memory} bytes after a spike, {at_first} in a fresh filter");
        round.take_out_every_entry(&permanent);
    }
}
