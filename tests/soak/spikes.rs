//! The soak of a filter that has to recover from spikes: over and over it grows to a million keys and shrinks to a
//! thousand again. Meanwhile its threads look keys up, count, save, take digests, and merge filters.
//!
//! After each spike the filter must be as small as a fresh one, and hold the same.

use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::{Encoding, GrowableCuckooFilter};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::rounds::{self, THREADS, Tally, key, on_all_threads};
use crate::support::{Identity, Raw};

type Filter = GrowableCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// How many keys are always in.
const RESIDENTS: u64 = 1_000;

/// How many keys are in at the height of a spike.
const PEAK: u64 = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

/// How many keys come and go with each thread.
const SHARE: u64 = (PEAK - RESIDENTS) / THREADS;

/// How many spikes a round has.
const SPIKES: u64 = 5;

/// How many of its keys a thread inserts or removes between two pieces of other work.
const PIECE: u64 = SHARE / 10;

/// A rate, and the encoding, if one is asked for.
const SETTINGS: [(f64, Option<Encoding>); 5] = [
    (0.03, None),
    (0.001, None),
    (0.001, Some(Encoding::Plain)),
    (2e-4, Some(Encoding::SemiSorted)),
    (1e-5, Some(Encoding::Plain)),
];

/// A filter.
#[derive(Debug)]
pub(crate) struct Round {
    seed: u64,
    setting: (f64, Option<Encoding>),
    filter: Filter,
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let setting = SETTINGS[(seed % SETTINGS.len() as u64) as usize];
        let capacity = SmallRng::seed_from_u64(seed).random_range(0..2 * RESIDENTS) as usize;
        let builder = GrowableCuckooFilter::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(capacity).max_capacity(2 * PEAK as usize).false_positive_rate(setting.0);
        let builder = setting.1.map_or(builder.clone(), |encoding| builder.encoding(encoding));
        Self { seed, setting, filter: builder.build().expect("a valid filter") }
    }

    fn kinds(&self) -> [String; 2] {
        let (rate, encoding) = self.setting;
        let encoding = encoding.map_or_else(|| "any".to_owned(), |encoding| format!("{encoding:?}"));
        [format!("rate {rate}, {encoding}"), format!("{SPIKES} spikes to {PEAK} keys")]
    }

    fn run(&self, _steps: u64) -> Tally {
        let mut tally = Tally::default();
        let fresh = self.filter.empty_like().expect("there is memory");
        for filter in [&self.filter, &fresh] {
            (0..RESIDENTS).for_each(|index| filter.insert(&self.resident(index)).expect("it grows"));
            filter.shrink_to_fit();
        }
        let digest = fresh.digest().expect("there is memory");
        for spike in 0..SPIKES {
            on_all_threads(&mut tally, |id, tally| {
                let random = SmallRng::seed_from_u64(self.seed ^ id << 56 ^ spike << 48);
                Worker { round: self, id, spike, random, held: 0..0, tally }.work();
            });
            let filter = &self.filter;
            filter.shrink_to_fit();
            assert_eq!(filter.len(), RESIDENTS as usize, "the length is wrong");
            assert_eq!(filter.digest().expect("there is memory"), digest, "it does not hold what a fresh one holds");
            let (memory, at_first) = (filter.stats().memory_usage, fresh.stats().memory_usage);
            assert!(memory <= 2 * at_first, "{memory} bytes after a spike, {at_first} in a fresh filter");
        }
        tally
    }
}

impl Round {
    fn resident(&self, index: u64) -> Raw {
        key(self.seed, 0, index)
    }
}

/// A thread during a spike.
struct Worker<'a> {
    round: &'a Round,
    id: u64,
    spike: u64,
    random: SmallRng,
    /// The numbers of its keys that are in.
    held: std::ops::Range<u64>,
    tally: &'a mut Tally,
}

impl Worker<'_> {
    /// Inserts its share, and removes it again.
    fn work(&mut self) {
        let filter = &self.round.filter;
        while self.held.end < SHARE {
            let next = self.held.end..(self.held.end + PIECE).min(SHARE);
            // The first half one by one.
            let half = next.start.midpoint(next.end);
            for number in next.start..half {
                filter.insert(&self.own(number)).expect("it grows");
                self.held.end = number + 1;
                self.look();
            }
            let batch: Vec<_> = (half..next.end).map(|number| self.own(number)).collect();
            assert_eq!(filter.insert_batch(&batch), Ok(()), "a batch was refused");
            self.held.end = next.end;
            self.tally.inserts += next.end - next.start;
            self.other_work();
        }
        while self.held.start < SHARE {
            let next = self.held.start..(self.held.start + PIECE).min(SHARE);
            let half = next.start.midpoint(next.end);
            for number in next.start..half {
                self.held.start = number + 1;
                assert!(filter.remove(&self.own(number)), "a present key was not removed");
                self.look();
            }
            let (batch, mut removed): (Vec<_>, _) =
                ((half..next.end).map(|number| self.own(number)).collect(), Vec::new());
            self.held.start = next.end;
            filter.remove_batch(&batch, &mut removed);
            assert!(removed.len() == batch.len() && removed.iter().all(|&removed| removed), "not removed by a batch");
            self.tally.removals += next.end - next.start;
            if self.id == 1 {
                filter.shrink_to_fit();
            }
            self.other_work();
        }
    }

    /// A key of this thread.
    fn own(&self, number: u64) -> Raw {
        key(self.round.seed, self.id, self.spike * PEAK + number)
    }

    /// Looks for two keys that are in.
    fn look(&mut self) {
        let own = (!self.held.is_empty()).then(|| self.random.random_range(self.held.clone()));
        let resident = self.round.resident(self.random.random_range(0..RESIDENTS));
        for key in own.map(|number| self.own(number)).into_iter().chain([resident]) {
            self.tally.lookups += 1;
            assert!(self.round.filter.contains(&key), "a present key was missed");
        }
    }

    fn other_work(&mut self) {
        let filter = &self.round.filter;
        let residents: Vec<_> = (0..RESIDENTS).map(|index| self.round.resident(index)).collect();
        let mut found = Vec::new();
        filter.contains_batch(&residents, &mut found);
        assert!(found.iter().all(|&found| found), "a batch missed a present key");
        self.tally.lookups += RESIDENTS;
        for key in &residents[..100] {
            assert!(filter.count(key) > 0, "a copy was not counted");
            self.tally.inserts += 1;
            assert_eq!(filter.insert_if_absent(key), Ok(false), "a present key was added");
        }
        self.tally.counts += 100;
        match self.id {
            1 => {}
            2 => self.save(),
            3 => {
                filter.digest().expect("there is memory");
                self.tally.digests += 1;
            }
            _ => self.merge(),
        }
    }

    #[cfg(not(feature = "snapshot"))]
    fn save(&self) {}

    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        let mut bytes = Vec::new();
        self.round.filter.save(&mut bytes).expect("there is memory");
        let loaded = Filter::load(&bytes[..], BuildHasherDefault::default(), usize::MAX).expect("it was just saved");
        self.check_copy(&loaded);
        self.tally.saves += 1;
    }

    /// Adds some keys that are in another filter, and removes them again. Or adds all of this filter to another one.
    fn merge(&mut self) {
        const FEW: u64 = 100;
        let filter = &self.round.filter;
        let other = filter.empty_like().expect("there is memory");
        self.tally.merges += 1;
        if self.random.random() {
            let keys: Vec<_> = (0..FEW).map(|number| self.own(SHARE + number)).collect();
            assert_eq!(other.insert_batch(&keys), Ok(()), "a batch was refused");
            assert_eq!(filter.absorb(&other), Ok(FEW), "not all was absorbed");
            assert!(keys.iter().all(|key| filter.remove(key)), "a present key was not removed");
            self.tally.removals += FEW;
        } else {
            other.reserve(filter.len()).expect("there is memory");
            assert_eq!(other.absorb(filter), Ok(other.len() as u64), "not all was absorbed");
            self.check_copy(&other);
        }
    }

    /// Checks what was copied while others changed the filter, but not this thread.
    fn check_copy(&mut self, copy: &Filter) {
        let residents = (0..RESIDENTS).map(|index| self.round.resident(index));
        let own = self.held.clone().map(|number| self.own(number));
        assert!(residents.chain(own).all(|key| copy.remove(&key)), "a copy is missing");
        self.tally.removals += RESIDENTS + (self.held.end - self.held.start);
    }
}
