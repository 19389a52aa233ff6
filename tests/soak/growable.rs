//! The soak of a filter that grows and shrinks. Some rates are so high that keys are often mistaken for each other, and
//! some are low. The first table holds from all keys down to a thousandth of them. Some filters have a memory limit.
//! In some rounds the number of keys rises and falls, and a thread shrinks the filter all the time.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use concurrent_cuckoo_filter::{Encoding, GrowableBuilder, GrowableCuckooFilter, GrowableInsertError, ReserveError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::removable::Ground;
use crate::rounds::{self, Saves, THREADS, Tally, on_all_threads, pick};
use crate::support::{Identity, Raw};

type Filter = GrowableCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// A rate, and the encoding, if one is asked for.
type Setting = (f64, Option<Encoding>);

const SETTINGS: [Setting; 9] = [
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

/// How many keys a batch has.
const BATCH: u64 = 100;

/// What the threads of a round do.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// All operations, on keys of their own and twins of permanent keys. If `reserves`, they also reserve room. If
    /// `spikes`, the threads insert many keys and remove them again, over and over, and one of them shrinks the filter.
    Churn { reserves: bool, spikes: bool },
    /// Race to be the first to add a key.
    AddOnce,
    /// Clear the filter during inserts and removals.
    Clear,
}

/// A filter and what is done to it.
#[derive(Debug)]
pub(crate) struct Round {
    setting: Setting,
    size: &'static str,
    /// The capacity that was asked for the first table.
    first: u64,
    limit: Option<usize>,
    work: Work,
    ground: Ground<Filter>,
}

fn builder((rate, encoding): Setting, first: u64) -> GrowableBuilder<Raw, BuildHasherDefault<Identity>> {
    let builder = GrowableCuckooFilter::builder().hasher(BuildHasherDefault::default());
    let builder = builder.capacity(first as usize).false_positive_rate(rate);
    encoding.map_or(builder.clone(), |encoding| builder.encoding(encoding))
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let setting = SETTINGS[(seed % SETTINGS.len() as u64) as usize];
        let (size, items) = match random.random_range(0..12) {
            0..5 => ("hundreds of keys", random.random_range(20..1020)),
            5..11 => ("thousands of keys", random.random_range(1000..21_000)),
            _ => ("100,000 keys", 100_000),
        };
        let first = items >> random.random_range(0..11);
        let work = match random.random_range(0..8) {
            0 => Work::Churn { reserves: false, spikes: false },
            1 => Work::Churn { reserves: true, spikes: false },
            2..5 => Work::Churn { reserves: false, spikes: true },
            5 => Work::AddOnce,
            _ => Work::Clear,
        };
        let filter = builder(setting, first).build().expect("a valid filter");
        // The limit is often reached during growth.
        let limit =
            random.random_ratio(1, 3).then(|| filter.stats().memory_usage + random.random_range(0..4 * items) as usize);
        let filter = limit.map_or(filter, |limit| {
            builder(setting, first).memory_limit(limit).build().expect("the limit allows the first table")
        });
        Self { setting, size, first, limit, work, ground: Ground { seed, items, filter } }
    }

    fn kinds(&self) -> [String; 2] {
        let (rate, encoding) = self.setting;
        let encoding = encoding.map_or_else(|| "any".to_owned(), |encoding| format!("{encoding:?}"));
        [format!("rate {rate}, {encoding}"), format!("{:?}: {}", self.work, self.size)]
    }

    fn run(&self, steps: u64) -> Tally {
        let tally = match self.work {
            Work::Churn { reserves, spikes } => self.churn(reserves, spikes, steps),
            Work::AddOnce => self.add_once(),
            Work::Clear => self.ground.clear_amid_changes(),
        };
        self.check_limit();
        tally
    }
}

impl Round {
    fn check_limit(&self) {
        let memory = self.ground.filter.stats().memory_usage;
        assert!(self.limit.is_none_or(|limit| memory <= limit), "the memory limit was passed");
    }

    /// Counts an insert. Returns its result, unless it was refused. A refusal must have a reason.
    fn taken<T>(&self, result: Result<T, GrowableInsertError>, tally: &mut Tally) -> Option<T> {
        match &result {
            // Copies and twins can fill a pair of buckets.
            Ok(_) | Err(GrowableInsertError::TooManyCopies { .. } | GrowableInsertError::Full { .. }) => {}
            Err(GrowableInsertError::MemoryLimit { needed, limit, .. }) => {
                assert!(self.limit == Some(*limit) && needed > limit, "it was refused memory that it may take");
                self.check_limit();
            }
            Err(error) => panic!("refused for no reason: {error}"),
        }
        tally.taken(result)
    }

    fn churn(&self, reserves: bool, spikes: bool, steps: u64) -> Tally {
        let (ground, filter) = (&self.ground, &self.ground.filter);
        let mut tally = Tally::default();
        let share = SmallRng::seed_from_u64(!ground.seed).random_range(0..80) + 10;
        let permanent = ground.fill(ground.items * share / 100, &mut tally);
        let alike = permanent.iter().take(8).flat_map(|&key| {
            let alone = builder(self.setting, self.first).build().expect("as before");
            ground.alike(&alone, key)
        });
        let twins: Vec<_> = alike.chain(permanent.clone()).collect();
        let quota = (ground.items - permanent.len() as u64) / THREADS + 1;
        let held = on_all_threads(&mut tally, |id, tally| {
            let random = SmallRng::seed_from_u64(ground.seed ^ id << 56);
            let mut worker = Worker {
                round: self,
                id,
                random,
                spikes,
                filling: true,
                permanent: &permanent,
                twins: &twins,
                quota,
                held: Vec::new(),
                tally,
            };
            let mut saves = Saves::new();
            for _ in 0..steps {
                worker.step(reserves);
                if spikes && id == 2 && worker.random.random_ratio(1, 200) {
                    filter.shrink_to_fit();
                }
                if id == 1
                    && let Some(began) = saves.due()
                {
                    worker.save();
                    saves.ended(began);
                }
            }
            worker.held
        });
        // It grows only if the table is at least a quarter full, to one with at most three times its slots.
        let most = permanent.len() as u64 + THREADS * (2 * quota + BATCH);
        let capacity = filter.capacity() as u64;
        let first = builder(self.setting, self.first).build().expect("as before").capacity() as u64;
        assert!(reserves || capacity <= first || capacity <= 12 * most, "it grew to {capacity} for {most} keys");
        self.take_out_every_copy(&[permanent, held.concat()].concat(), &mut tally);
        tally
    }

    fn add_once(&self) -> Tally {
        let mut tally = Tally::default();
        let contested = self.ground.items / 4;
        let copies = self.ground.race_to_add(contested, &mut tally, |result, tally| self.taken(result, tally));
        self.take_out_every_copy(&copies, &mut tally);
        tally
    }

    /// The end of a round: checks that the filter, which nobody uses any more, holds exactly these copies. Does the
    /// same with a snapshot.
    fn take_out_every_copy(&self, copies: &[Raw], tally: &mut Tally) {
        let filter = &self.ground.filter;
        assert_eq!(filter.len(), copies.len(), "the length is wrong");
        let mut known = HashMap::new();
        copies.iter().for_each(|key| *known.entry(key.0).or_insert(0) += 1);
        assert!(known.iter().all(|(&key, &known)| filter.count(&Raw(key)) >= known), "a copy was lost");
        tally.counts += known.len() as u64;
        #[cfg(feature = "snapshot")]
        {
            let save = filter.begin_save().expect("there is memory");
            let loaded = reloaded(save);
            assert_eq!((loaded.len(), loaded.capacity()), (filter.len(), filter.capacity()), "the snapshot differs");
            assert!(
                known.keys().all(|&key| loaded.count(&Raw(key)) == filter.count(&Raw(key))),
                "a copy was not saved"
            );
            assert!(copies.iter().all(|key| loaded.remove(key)) && loaded.is_empty(), "a copy was not saved");
            tally.saves += 1;
        }
        self.remove_every_copy(copies, tally);
    }

    fn remove_every_copy(&self, copies: &[Raw], tally: &mut Tally) {
        let filter = &self.ground.filter;
        let (by_batch, one_by_one) = copies.split_at(copies.len() / 2);
        let mut removed = Vec::new();
        filter.remove_batch(by_batch, &mut removed);
        assert!(removed.iter().all(|&removed| removed), "a copy was lost");
        assert!(one_by_one.iter().all(|key| filter.remove(key)), "a copy was lost");
        tally.removals += copies.len() as u64;
        self.ground.check_empty(tally);
    }
}

/// A thread of a churn.
struct Worker<'a> {
    round: &'a Round,
    id: u64,
    random: SmallRng,
    /// Whether the thread inserts many keys and removes them again, in turn, and which of these it does now.
    spikes: bool,
    filling: bool,
    permanent: &'a [Raw],
    twins: &'a [Raw],
    /// How many copies the thread has in the filter, on average.
    quota: u64,
    /// Those copies.
    held: Vec<Raw>,
    tally: &'a mut Tally,
}

impl Worker<'_> {
    fn step(&mut self, reserves: bool) {
        let (ground, filter) = (&self.round.ground, &self.round.ground.filter);
        match self.random.random_range(0..256) {
            0 => self.insert_batch(),
            1 => {
                let from = self.held.len().saturating_sub(self.random.random_range(0..BATCH) as usize);
                let (keys, mut removed) = (self.held.split_off(from), Vec::new());
                filter.remove_batch(&keys, &mut removed);
                assert!(
                    removed.len() == keys.len() && removed.iter().all(|&removed| removed),
                    "not removed by a batch"
                );
                self.tally.removals += keys.len() as u64;
            }
            2 => {
                let mut keys = self.held.clone();
                keys.truncate(BATCH as usize);
                keys.extend((0..BATCH).filter_map(|_| pick(self.permanent, &mut self.random)));
                let mut found = Vec::new();
                filter.contains_batch(&keys, &mut found);
                assert!(found.len() == keys.len() && found.iter().all(|&found| found), "missed by a batch");
                self.tally.lookups += keys.len() as u64;
            }
            3 if reserves => {
                let additional = self.random.random_range(0..self.quota) as usize;
                match filter.reserve(additional) {
                    Ok(()) => assert!(filter.capacity() >= additional, "there is no room though it was reserved"),
                    Err(ReserveError::MemoryLimit { needed, limit, .. }) => {
                        assert!(self.round.limit == Some(limit) && needed > limit, "memory that it may take");
                    }
                    Err(error) => panic!("refused for no reason: {error}"),
                }
            }
            4..12 => {
                if let Some(key) = pick(&self.held, &mut self.random) {
                    let known = self.held.iter().filter(|&&held| held == key).count();
                    assert!(filter.count(&key) >= known, "copies were not counted");
                    self.tally.counts += 1;
                }
            }
            12..20 => {
                // If it returns `true`, it has added a copy, which is then this thread's.
                if (self.held.len() as u64) < 2 * self.quota {
                    let key = ground.key(self.id, self.random.random_range(0..2 * self.quota));
                    let added = self.round.taken(filter.insert_if_absent(&key), self.tally);
                    self.held.extend(added.and_then(|added| added.then_some(key)));
                }
                for key in pick(self.permanent, &mut self.random).into_iter().chain(pick(&self.held, &mut self.random))
                {
                    self.tally.inserts += 1;
                    assert_eq!(filter.insert_if_absent(&key), Ok(false), "a present key was added");
                }
            }
            _ => self.insert_or_remove(),
        }
        for key in pick(self.permanent, &mut self.random).into_iter().chain(pick(&self.held, &mut self.random)) {
            ground.check_present(key, self.tally);
        }
    }

    fn insert_or_remove(&mut self) {
        let (ground, filter) = (&self.round.ground, &self.round.ground.filter);
        let held = self.held.len() as u64;
        self.filling = if held == 0 { true } else { self.filling && held < 2 * self.quota };
        let inserts = if self.spikes { self.filling } else { held <= self.random.random_range(0..2 * self.quota) };
        if inserts {
            let twin = pick(self.twins, &mut self.random).filter(|_| self.random.random_ratio(1, 4));
            let key = twin.unwrap_or_else(|| ground.key(self.id, self.random.random_range(0..2 * self.quota)));
            let taken = self.round.taken(filter.insert(&key), self.tally);
            self.held.extend(taken.map(|()| key));
        } else {
            let key = self.held.swap_remove(self.random.random_range(0..self.held.len()));
            self.tally.removals += 1;
            assert!(filter.remove(&key), "a present key was not removed");
        }
    }

    fn insert_batch(&mut self) {
        let (ground, filter) = (&self.round.ground, &self.round.ground.filter);
        let room = (2 * self.quota + BATCH).saturating_sub(self.held.len() as u64);
        let len = self.random.random_range(0..BATCH).min(room);
        let keys: Vec<_> = (0..len).map(|_| ground.key(self.id, self.random.random_range(0..2 * self.quota))).collect();
        let inserted = match filter.insert_batch(&keys) {
            Ok(()) => keys.len(),
            Err(refused) => {
                let refusal: Option<()> = self.round.taken(Err(refused.error), self.tally);
                assert!(refusal.is_none() && refused.index < keys.len(), "more went in than there were");
                refused.index
            }
        };
        self.tally.inserts += inserted as u64;
        self.held.extend_from_slice(&keys[..inserted]);
    }

    #[cfg(not(feature = "snapshot"))]
    fn save(&self) {}

    /// Saves while others change the filter. A snapshot has everything that is in throughout, as many times as the
    /// filter. This thread removes a part of it before the snapshot is written.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        let filter = &self.round.ground.filter;
        let save = self.round.ground.filter.begin_save().expect("there is memory");
        let in_it = self.held.clone();
        for _ in 0..self.held.len().min(50) {
            let key = self.held.pop().expect("so many");
            assert!(filter.remove(&key), "a present key was not removed");
            self.tally.removals += 1;
        }
        let loaded = reloaded(save);
        assert!(in_it.iter().chain(self.permanent).all(|key| loaded.contains(key)), "a present key was not saved");
        assert!(in_it.iter().chain(self.permanent).all(|key| loaded.remove(key)), "a copy was not saved");
        self.tally.saves += 1;
    }
}

/// Loads the filter that was saved.
#[cfg(feature = "snapshot")]
fn reloaded(save: concurrent_cuckoo_filter::Save<'_>) -> Filter {
    let mut bytes = Vec::new();
    save.write_to(&mut bytes).expect("there is memory");
    Filter::load(&bytes[..], BuildHasherDefault::default(), usize::MAX).expect("it was just saved")
}
