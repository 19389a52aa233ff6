//! A thread of a soak of a maplet.

use std::sync::atomic::Ordering::SeqCst;

use concurrent_cuckoo_filter::{MapletInsertError, Values};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::maplet::{Replaced, Round, taken};
use crate::rounds::{Saves, THREADS, Tally, pick};
use crate::support::Raw;

/// The most keys of a batch.
const BATCH: u64 = 100;

/// A key of one thread, and its values, each as often as the key has it.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) key: Raw,
    pub(crate) values: Vec<u16>,
}

impl Own {
    pub(crate) fn count(&self, value: u16) -> usize {
        self.values.iter().filter(|&&own| own == value).count()
    }

    #[track_caller]
    pub(crate) fn check_values(&self, found: Values) {
        let mut values = self.values.clone();
        values.sort_unstable();
        values.dedup();
        assert!(found.iter().eq(values), "{self:?}: found {found:?}");
    }
}

pub(crate) struct Worker<'a> {
    round: &'a Round,
    id: u64,
    random: SmallRng,
    own: Vec<Own>,
    /// How many pairs the thread has in the maplet, on average.
    quota: u64,
    /// How many it has now.
    pairs: u64,
    /// The numbers of the contested keys that it owns.
    won: Vec<usize>,
    saves: Saves,
    tally: &'a mut Tally,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(round: &'a Round, id: u64, keys: &[Raw], quota: u64, tally: &'a mut Tally) -> Self {
        let own = keys.iter().map(|&key| Own { key, values: Vec::new() }).collect();
        let random = SmallRng::seed_from_u64(round.seed ^ id << 56);
        Self { round, id, random, own, quota, pairs: 0, won: Vec::new(), saves: Saves::new(), tally }
    }

    /// Returns the thread's keys, and the contested ones that it owns.
    pub(crate) fn ended(mut self) -> Vec<Own> {
        self.own.extend(won(self.round, self.id, &self.won));
        self.own
    }

    pub(crate) fn step(&mut self) {
        if !self.own.is_empty() {
            match self.random.random_range(0..256) {
                0 => self.insert_batch(),
                1 => self.remove_batch(),
                2 => self.look_up_batch(),
                3..11 => self.insert_if_absent(),
                11..40 => self.replace(),
                40..60 => self.remove_any(),
                60..70 => self.count(),
                _ => self.insert_or_remove(),
            }
        }
        if !self.round.contested.is_empty() && self.random.random_ratio(1, 8) {
            self.contend();
        }
        let number = self.random.random_range(0..self.round.replaced.len().max(1));
        if let Some(replaced) = self.round.replaced.get(number) {
            if self.id == 1 {
                self.round.replace(replaced, self.tally);
            } else {
                self.round.look_up_replaced(replaced, self.tally);
            }
        }
        self.look_up();
        if self.id == 2
            && let Some(began) = self.saves.due()
        {
            self.save();
            self.saves.ended(began);
        }
    }

    fn some(&mut self) -> usize {
        self.random.random_range(0..self.own.len())
    }

    fn some_value(&mut self) -> u16 {
        // Mostly one of a few, so that a key has some of them several times.
        let values = if self.random.random_ratio(3, 4) { 3 } else { 1 << 16 };
        self.random.random_range(0..values) as u16 & self.round.most()
    }

    fn put_in(&mut self, at: usize, value: u16) {
        self.own[at].values.push(value);
        self.pairs += 1;
    }

    fn insert_or_remove(&mut self) {
        let (at, value) = (self.some(), self.some_value());
        if self.pairs <= self.random.random_range(0..2 * self.quota) {
            let result = self.round.maplet.insert(&self.own[at].key, value);
            if let Err(error) = &result {
                let (copies, slots) = (self.own[at].values.len(), self.round.maplet.plan().layout.slots_per_bucket);
                let of_copies = matches!(error, MapletInsertError::TooManyCopies { .. });
                // The two buckets of a few keys are the same.
                let is_right = if of_copies { copies == 2 * slots || copies == slots } else { copies < 2 * slots };
                assert!(is_right, "{error}: {:?}", self.own[at]);
            }
            if taken(self.tally, result).is_some() {
                self.put_in(at, value);
            }
        } else if let Some(value) = self.own[at].values.pop() {
            self.pairs -= 1;
            self.tally.removals += 1;
            assert!(self.round.maplet.remove(&self.own[at].key, value), "a value was not removed");
        }
    }

    /// Removes a value that the key may have or not.
    fn remove_any(&mut self) {
        let (at, value) = (self.some(), self.some_value());
        let own = &mut self.own[at];
        let held = own.values.iter().position(|&own| own == value);
        self.tally.removals += 1;
        assert_eq!(self.round.maplet.remove(&own.key, value), held.is_some(), "{own:?}: removing {value}");
        if let Some(held) = held {
            own.values.swap_remove(held);
            self.pairs -= 1;
        }
    }

    /// Replaces a value that the key may have or not.
    fn replace(&mut self) {
        let (at, old, new) = (self.some(), self.some_value(), self.some_value());
        let own = &mut self.own[at];
        let held = own.values.iter().position(|&own| own == old);
        self.tally.replacements += 1;
        let replaced = self.round.maplet.replace(&own.key, old, new);
        assert_eq!(replaced, Ok(held.is_some()), "{own:?}: replacing {old} by {new}");
        if let Some(held) = held {
            own.values[held] = new;
        }
    }

    fn insert_if_absent(&mut self) {
        let (at, value) = (self.some(), self.some_value());
        let found = self.round.maplet.insert_if_absent(&self.own[at].key, value);
        // The key has a value, so it needs no room.
        assert!(found.is_ok() || self.own[at].values.is_empty(), "{found:?}");
        if let Some(found) = taken(self.tally, found) {
            self.own[at].check_values(found);
            if found.is_empty() {
                self.put_in(at, value);
            }
        }
    }

    fn count(&mut self) {
        let (at, value) = (self.some(), self.some_value());
        self.tally.counts += 1;
        let own = &self.own[at];
        assert_eq!(self.round.maplet.count(&own.key, value), own.count(value), "{own:?}: copies of {value}");
    }

    fn look_up(&mut self) {
        let maplet = &self.round.maplet;
        if !self.own.is_empty() {
            let at = self.some();
            let own = &self.own[at];
            own.check_values(maplet.values(&own.key));
            assert_eq!(maplet.contains(&own.key), !own.values.is_empty(), "{own:?}");
            self.tally.lookups += 2;
        }
        if let Some(number) = pick(&self.won, &mut self.random) {
            won(self.round, self.id, &[number]).for_each(|own| own.check_values(maplet.values(&own.key)));
            self.tally.lookups += 1;
        }
    }

    /// Tries to own a key, or gives it up. While a thread owns a key, no other can.
    fn contend(&mut self) {
        let (maplet, value) = (&self.round.maplet, value_of(self.round, self.id));
        let number = self.random.random_range(0..self.round.contested.len());
        let contested = &self.round.contested[number];
        if let Some(at) = self.won.iter().position(|&won| won == number) {
            self.won.swap_remove(at);
            // From now on another thread can own it as soon as the value is removed.
            contested.owner.store(0, SeqCst);
            self.tally.removals += 1;
            assert!(maplet.remove(&contested.key, value), "the owner's value was not removed");
            return;
        }
        let Some(found) = taken(self.tally, maplet.insert_if_absent(&contested.key, value)) else { return };
        if found.is_empty() {
            assert_eq!(contested.owner.swap(self.id, SeqCst), 0, "two threads own a key");
            self.won.push(number);
        } else {
            let mut others = (1..=THREADS).filter(|&id| id != self.id);
            let is_of_another = others.any(|id| found.contains(value_of(self.round, id)));
            assert!(found.len() == 1 && is_of_another, "{found:?}: it has the value of one other owner");
        }
    }

    fn insert_batch(&mut self) {
        let room = (2 * self.quota + BATCH).saturating_sub(self.pairs);
        let len = self.random.random_range(0..BATCH).min(room);
        let new: Vec<_> = (0..len).map(|_| (self.some(), self.some_value())).collect();
        let pairs = new.iter().map(|&(at, value)| (&self.own[at].key, value));
        let inserted = match self.round.maplet.insert_batch(pairs) {
            Ok(()) => new.len(),
            Err(refused) => {
                taken::<()>(self.tally, Err(refused.error));
                assert!(refused.index < new.len(), "more went in than there were");
                refused.index
            }
        };
        self.tally.inserts += inserted as u64;
        new[..inserted].iter().for_each(|&(at, value)| self.put_in(at, value));
    }

    /// Some of the thread's pairs, and some pairs that it may not have.
    fn remove_batch(&mut self) {
        let mut pairs = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..self.random.random_range(0..BATCH) {
            let (at, any) = (self.some(), self.some_value());
            let last = self.own[at].values.last().copied().filter(|_| self.random.random_bool(0.5));
            let value = last.unwrap_or(any);
            let held = self.own[at].values.iter().rposition(|&own| own == value);
            if let Some(held) = held {
                self.own[at].values.remove(held);
                self.pairs -= 1;
            }
            pairs.push((self.own[at].key, value));
            expected.push(held.is_some());
        }
        let mut removed = Vec::new();
        self.round.maplet.remove_batch(pairs.iter().map(|(key, value)| (key, *value)), &mut removed);
        self.tally.removals += pairs.len() as u64;
        assert_eq!(removed, expected, "removing {pairs:?}");
    }

    fn look_up_batch(&mut self) {
        let asked: Vec<_> = (0..self.random.random_range(0..BATCH)).map(|_| self.some()).collect();
        let keys: Vec<_> = asked.iter().map(|&at| self.own[at].key).collect();
        let mut answers = Vec::new();
        self.round.maplet.values_batch(&keys, &mut answers);
        let mut found = Vec::new();
        self.round.maplet.contains_batch(&keys, &mut found);
        assert!(answers.len() == asked.len() && found.len() == asked.len(), "as many answers as keys");
        for ((at, values), found) in asked.into_iter().zip(answers).zip(found) {
            self.own[at].check_values(values);
            assert_eq!(found, !self.own[at].values.is_empty(), "{:?}", self.own[at]);
        }
        // The same for keys whose values change meanwhile.
        let replaced = &self.round.replaced;
        let ended: Vec<_> = replaced.iter().map(Replaced::ended).collect();
        let mut answers = Vec::new();
        self.round.maplet.values_batch(replaced.iter().map(|replaced| &replaced.key), &mut answers);
        assert_eq!(answers.len(), replaced.len(), "as many answers as keys");
        for ((replaced, ended), values) in replaced.iter().zip(ended).zip(answers) {
            self.round.check_replaced(values, ended, replaced.begun());
        }
        self.tally.lookups += (2 * keys.len() + replaced.len()) as u64;
    }

    #[cfg(not(feature = "snapshot"))]
    fn save(&self) {}

    /// Saves while others change the maplet. This thread's pairs are in the snapshot as they are now, although it
    /// changes some of them before the snapshot is written.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        let ended: Vec<_> = self.round.replaced.iter().map(Replaced::ended).collect();
        let save = self.round.maplet.begin_save().expect("there is memory");
        let begun: Vec<_> = self.round.replaced.iter().map(Replaced::begun).collect();
        let then: Vec<_> = self.own.iter().cloned().chain(won(self.round, self.id, &self.won)).collect();
        for _ in 0..self.own.len().min(50) {
            self.remove_any();
            self.replace();
            self.insert_or_remove();
        }
        let loaded = crate::maplet::reloaded(save);
        for own in then {
            own.check_values(loaded.values(&own.key));
            let counted = own.values.iter().all(|&value| loaded.count(&own.key, value) == own.count(value));
            assert!(counted, "{own:?}: it was not saved as often");
        }
        for ((replaced, ended), begun) in self.round.replaced.iter().zip(ended).zip(begun) {
            self.round.check_replaced(loaded.values(&replaced.key), ended, begun);
        }
        for contested in &self.round.contested {
            assert!(loaded.values(&contested.key).len() <= 1, "two owners of a key were saved");
        }
        self.tally.saves += 1;
    }
}

/// The value by which a thread owns keys. If values have one bit, some threads have the same.
fn value_of(round: &Round, id: u64) -> u16 {
    id as u16 & round.most()
}

/// The contested keys with these numbers, which this thread owns.
fn won(round: &Round, id: u64, numbers: &[usize]) -> impl Iterator<Item = Own> {
    let value = value_of(round, id);
    numbers.iter().map(move |&number| Own { key: round.contested[number].key, values: vec![value] })
}
