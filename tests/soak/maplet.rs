//! The soak of a maplet: of every layout, from a few buckets to ten thousand, and up to overfull. One thread replaces
//! values of some keys again and again, and the others look them up.

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use concurrent_cuckoo_filter::{CuckooMaplet, MapletInsertError, Values};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::kinds::Table;
use crate::rounds::Count::{Lookups, Replacements};
use crate::rounds::some_capacity;
use crate::support::{Identity, MAPLET_LAYOUTS, MapletLayout, Raw};
use crate::worker::{Kind, Own, Round, Sizes, Ticks, Worker, check_refusal};

type Filter = CuckooMaplet<Raw, BuildHasherDefault<Identity>>;

/// How often a thread replaces a value, or looks it up, before it does something else. So some do both at the same time.
const REPEATS: u64 = 8;

/// The first value that is replaced.
const FIRST: u16 = 1;

pub(crate) struct Maplet {
    layout: MapletLayout,
    size: &'static str,
    maplet: Filter,
    replaced: Vec<Replaced>,
}

/// A key with two values: 0, which stays, and one that is replaced again and again by one thread.
struct Replaced {
    key: Raw,
    /// How many replacements have begun, and how many have ended.
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Maplet {
    /// The greatest value.
    fn most(&self) -> u16 {
        u16::MAX >> (16 - self.layout.0)
    }

    /// Gives the key the values 0 and [`FIRST`], if there is room for both.
    fn take_both(&self, key: &Raw) -> bool {
        let taken = self.maplet.insert_batch([(key, 0), (key, FIRST)]);
        if taken.as_ref().is_err_and(|refused| refused.index > 0) {
            assert!(self.maplet.remove(key, 0), "it was inserted");
        }
        taken.is_ok()
    }

    /// The value that this replacement gives to a key. It is never 0, and no two in a row are the same, unless values
    /// have one bit.
    fn replacement(&self, number: u64) -> u16 {
        (number % u64::from(self.most())) as u16 + FIRST
    }

    /// Checks that a key has 0 and the value that one of the replacements from `ended` to `begun` has given to it.
    fn check_replaced(&self, values: Values, ended: u64, begun: u64) {
        assert!(values.len() == 2 && values.contains(0), "{values:?}: 0 and another value");
        // After as many replacements as there are values, they begin again.
        let mut numbers = (ended..=begun).take(self.most().into());
        let possible = numbers.any(|number| values.contains(self.replacement(number)));
        assert!(possible, "{values:?}: a value of another time than from {ended} to {begun}");
    }

    fn replaced_keys(&self) -> impl Iterator<Item = &Raw> {
        self.replaced.iter().map(|replaced| &replaced.key)
    }

    fn check_all_replaced(&self, values: impl IntoIterator<Item = Values>, [before, after]: [Vec<(u64, u64)>; 2]) {
        let mut checked = 0;
        for ((values, (ended, _)), (_, begun)) in values.into_iter().zip(before).zip(after) {
            self.check_replaced(values, ended, begun);
            checked += 1;
        }
        assert_eq!(checked, self.replaced.len(), "as many answers as keys");
    }

    /// How many replacements of each key have ended, and how many have begun.
    fn replacements(&self) -> Vec<(u64, u64)> {
        self.replaced.iter().map(|key| (key.ended.load(SeqCst), key.begun.load(SeqCst))).collect()
    }
}

impl Kind for Maplet {
    type Filter = Filter;

    fn new(seed: u64, random: &mut SmallRng) -> Self {
        let layout = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        let (bits, rate, slots, _) = layout;
        let (size, capacity) = some_capacity(slots as u64, random);
        let builder = CuckooMaplet::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(capacity as usize).value_bits(bits).false_positive_rate(rate);
        Self { layout, size, maplet: builder.build().expect("a valid maplet"), replaced: Vec::new() }
    }

    fn filter(&self) -> &Filter {
        &self.maplet
    }

    fn names(&self) -> [String; 2] {
        let (bits, _, slots, fingerprint_bits) = self.layout;
        [format!("{slots} by {fingerprint_bits} and {bits}"), self.size.to_owned()]
    }

    /// From 95 % of the capacity to 5 % more entries than there are slots.
    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let (capacity, (slots, _)) = (self.maplet.capacity() as u64, self.maplet.slots());
        let entries = random.random_range(capacity * 95 / 100..=slots as u64 * 105 / 100);
        let keys = capacity * random.random_range(30..90) / 100;
        Sizes { keys, permanent: keys * random.random_range(5..50) / 100, entries }
    }

    fn take_keys(&mut self, keys: &mut Vec<Raw>) {
        for key in keys.split_off(keys.len() - (keys.len() / 8).min(16)) {
            if self.take_both(&key) {
                self.replaced.push(Replaced { key, begun: AtomicU64::new(0), ended: AtomicU64::new(0) });
            }
        }
    }

    fn some_number(&self, random: &mut SmallRng) -> u64 {
        // Mostly one of a few, so that a key has some of them several times.
        let values = if random.random_ratio(3, 4) { 3 } else { 1 << 16 };
        random.random_range(0..values) & u64::from(self.most())
    }

    fn check_answer(&self, own: &Own, _: u64, _: Ticks, answer: Result<(), &MapletInsertError>) {
        match answer {
            Ok(()) => (),
            Err(MapletInsertError::TooManyCopies { .. }) => check_refusal(&self.maplet, own, true),
            Err(MapletInsertError::Full { .. }) => check_refusal(&self.maplet, own, false),
            Err(error) => panic!("refused for no reason: {error}"),
        }
    }

    fn check(maplet: &Filter, own: &Own) {
        let mut values = own.numbers.clone();
        values.sort_unstable();
        values.dedup();
        let found = maplet.values(&own.key);
        assert!(found.iter().map(u64::from).eq(values.iter().copied()), "{own:?}: found {found:?}");
        for value in values {
            assert_eq!(maplet.count(&own.key, value as u16), own.count(value), "{own:?}: copies of {value}");
        }
    }

    /// Replaces a value that a key may have or not. And replaces a value of one of the keys that all look up, or looks
    /// them up.
    fn other_step(worker: &mut Worker<'_, Self>) {
        let kind = &worker.round.kind;
        if !worker.own.is_empty() {
            let (at, [old, new]) = (worker.some(), [(); 2].map(|()| kind.some_number(&mut worker.random)));
            let own = &mut worker.own[at];
            let held = own.numbers.iter().position(|&own| own == old);
            worker.tally[Replacements] += 1;
            let replaced = kind.maplet.replace(&own.key, old as u16, new as u16);
            assert_eq!(replaced, Ok(held.is_some()), "{own:?}: replacing {old} by {new}");
            if let Some(held) = held {
                own.numbers[held] = new;
            }
        }
        let number = worker.random.random_range(0..kind.replaced.len().max(1));
        let Some(replaced) = kind.replaced.get(number) else { return };
        if worker.id == 1 {
            for _ in 0..REPEATS {
                let number = replaced.begun.fetch_add(1, SeqCst) + 1;
                let (old, new) = (kind.replacement(number - 1), kind.replacement(number));
                assert_eq!(kind.maplet.replace(&replaced.key, old, new), Ok(true), "a value was not there");
                replaced.ended.store(number, SeqCst);
            }
            worker.tally[Replacements] += REPEATS;
        } else if worker.random.random_ratio(31, 32) {
            for _ in 0..REPEATS {
                let ended = replaced.ended.load(SeqCst);
                let values = kind.maplet.values(&replaced.key);
                kind.check_replaced(values, ended, replaced.begun.load(SeqCst));
            }
            worker.tally[Lookups] += REPEATS;
        } else {
            let (before, mut values) = (kind.replacements(), Vec::<Values>::new());
            kind.maplet.values_batch(kind.replaced_keys(), &mut values);
            kind.check_all_replaced(values, [before, kind.replacements()]);
            worker.tally[Lookups] += kind.replaced.len() as u64;
        }
    }

    #[cfg(feature = "snapshot")]
    fn changes(&self) -> Vec<(u64, u64)> {
        self.replacements()
    }

    #[cfg(feature = "snapshot")]
    fn check_saved(&self, loaded: &Filter, own: &[Own], _: Ticks, changes: [Vec<(u64, u64)>; 2]) {
        own.iter().for_each(|own| crate::worker::check_all::<Self>(loaded, own));
        self.check_all_replaced(self.replaced_keys().map(|key| loaded.values(key)), changes);
    }

    fn finish(&self, round: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>, tally: &mut crate::rounds::Tally) {
        let last = |replaced: &Replaced| u64::from(self.replacement(replaced.ended.load(SeqCst)));
        let replaced = self.replaced.iter().map(|replaced| Own::new(replaced.key, vec![0, last(replaced)]));
        let own: Vec<_> = own.into_iter().chain(permanent).chain(replaced).collect();
        let mut values: Vec<Values> = Vec::new();
        self.maplet.values_batch(own.iter().map(|own| &own.key), &mut values);
        assert!(
            values.into_iter().eq(own.iter().map(|own| self.maplet.values(&own.key))),
            "a batch finds other values"
        );
        round.take_out_every_entry(&own, tally);
    }
}
