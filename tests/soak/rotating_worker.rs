//! A thread of a soak of a filter that rotates.

use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{Advance, InsertError};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::rotating::{By, CONTESTED, Life, Round, pack, unpack};
use crate::rounds::{Saves, THREADS, Tally, key, pick};
use crate::support::Raw;

/// The most keys in a batch.
pub(crate) const BATCH: u64 = 100;

/// The most keys that a thread remembers.
const REMEMBERED: usize = 200;

/// What a thread knows at the end.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) lives: Vec<Life>,
    /// The contested keys that it has added: their numbers, and the generations before and after each call.
    pub(crate) added: Vec<(u64, u64, u64)>,
    /// Lookups of keys that had expired. Each such key is looked up once. Also the number of those that were found.
    pub(crate) expired: u64,
    pub(crate) expired_but_found: u64,
    /// The rotations that it has caused.
    pub(crate) rotations: u64,
}

pub(crate) struct Worker<'a> {
    round: &'a Round,
    id: u64,
    random: SmallRng,
    /// The number of its next key.
    next: u64,
    known: Ended,
    saves: Saves,
    tally: &'a mut Tally,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(round: &'a Round, id: u64, tally: &'a mut Tally) -> Self {
        let random = SmallRng::seed_from_u64(round.seed ^ id << 56);
        Self { round, id, random, next: 1, known: Ended::default(), saves: Saves::new(), tally }
    }

    pub(crate) fn ended(self) -> Ended {
        self.known
    }

    /// Rotates once, after a pause. The permanent keys are refreshed before, so all of them are in throughout.
    pub(crate) fn rotate_by_hand(&mut self) {
        let round = self.round;
        if round.pause > 0 {
            thread::sleep(Duration::from_micros(self.random.random_range(0..round.pause)));
        }
        if !round.refresh_permanent() {
            // The generation is full.
            round.permanent_are_in.store(false, SeqCst);
        }
        let before = round.filter.generation();
        assert_eq!(round.filter.rotate(), before + 1, "the number of the generation is wrong");
        self.known.rotations += 1;
        round.look_for_announced();
    }

    pub(crate) fn step(&mut self) {
        match self.random.random_range(0..256) {
            0 => self.insert_batch(),
            1..4 => self.look_up_batch(),
            4..24 => self.add_contested(),
            24..64 => self.refresh(),
            64..128 => self.insert_new(),
            128..136 if self.round.by == By::Clock => self.bring_tick(),
            136..144 => self.round.look_for_announced(),
            _ => {}
        }
        self.look_up_one();
        self.look_up_permanent();
        if self.id == 2
            && let Some(began) = self.saves.due()
        {
            self.save();
            self.saves.ended(began);
        }
    }

    /// Counts an insert. Returns its result, unless it was refused. A refusal needs a full generation.
    fn taken<T>(&mut self, result: Result<T, InsertError>) -> Option<T> {
        if let Err(error) = &result {
            let InsertError::Full { len, capacity, .. } = *error else { panic!("refused for no reason: {error}") };
            assert!(self.round.by != By::Count, "it rotates when it is full: {error}");
            // Other threads may not have counted yet what they have added.
            assert!(len + THREADS as usize > capacity, "refused where there is room: {error}");
        }
        self.tally.taken(result)
    }

    fn remember(&mut self, life: Life) {
        if self.known.lives.len() < REMEMBERED {
            self.known.lives.push(life);
        } else {
            let place = self.random.random_range(0..REMEMBERED);
            self.known.lives[place] = life;
        }
    }

    /// Adds a new key, with `insert` or `insert_if_absent`.
    fn insert_new(&mut self) {
        let round = self.round;
        let key = key(round.seed, self.id, self.next);
        let slot = self.id as usize - 1;
        let inserts = round.inserts.fetch_add(1, SeqCst);
        let before = round.filter.generation();
        round.announced[slot].store(pack(self.next, before), SeqCst);
        let added = if self.random.random_bool(0.5) {
            round.filter.insert(&key).map(|()| true)
        } else {
            round.filter.insert_if_absent(&key)
        };
        if let Some(true) = self.taken(added) {
            let since = match unpack(round.missed[slot].load(SeqCst)) {
                (number, generation) if number == self.next => generation.max(before),
                _ => before,
            };
            self.remember(Life { key, since, until: round.filter.generation(), inserts });
        }
        self.next += 1;
    }

    /// Adds a key that this thread has inserted before. Either its life begins anew, or it is in already.
    fn refresh(&mut self) {
        let round = self.round;
        let lives = self.known.lives.len() as u64;
        if lives == 0 {
            return;
        }
        let place = self.random.random_range(0..lives) as usize;
        let life = self.known.lives[place];
        let inserts = round.inserts.fetch_add(1, SeqCst);
        if self.random.random_ratio(1, 4) {
            // If it is absent, its last known insert is no longer the last one.
            let added = self.taken(round.filter.insert_if_absent(&life.key));
            if added.is_none_or(|added| added) {
                assert!(!round.must_be_found(&life), "a young key was taken for absent");
                self.known.lives.swap_remove(place);
            }
        } else {
            let before = round.filter.generation();
            let taken = self.taken(round.filter.insert(&life.key));
            // If it is refused, it may have been added to a generation that has ended since.
            let until = round.filter.generation();
            let since = if taken.is_some() { before } else { life.since };
            let inserts = if taken.is_some() { inserts } else { life.inserts };
            self.known.lives[place] = Life { key: life.key, since, until, inserts };
        }
    }

    /// Adds a key that all threads try to add.
    fn add_contested(&mut self) {
        let round = self.round;
        // All threads use the same few keys, which change with time.
        let number = round.filter.generation() / (2 * round.generations()) * 8 + self.random.random_range(0..8);
        round.inserts.fetch_add(1, SeqCst);
        let before = round.filter.generation();
        let added = round.filter.insert_if_absent(&key(round.seed, CONTESTED, number));
        if let Some(true) = self.taken(added) {
            self.known.added.push((number, before, round.filter.generation()));
        }
    }

    fn insert_batch(&mut self) {
        let round = self.round;
        let len = self.random.random_range(1..=BATCH);
        let keys: Vec<_> = (self.next..self.next + len).map(|number| key(round.seed, self.id, number)).collect();
        self.next += len;
        let inserts = round.inserts.fetch_add(len, SeqCst);
        let before = round.filter.generation();
        let inserted = match round.filter.insert_batch(&keys) {
            Ok(inserted) => {
                assert_eq!(inserted, keys.len(), "a batch was not finished");
                inserted
            }
            Err(refused) => {
                assert!(self.taken::<()>(Err(refused.error)).is_none() && refused.inserted < keys.len());
                refused.inserted
            }
        };
        self.tally.inserts += inserted as u64;
        let until = round.filter.generation();
        keys[..inserted].iter().for_each(|&key| self.remember(Life { key, since: before, until, inserts }));
    }

    fn look_up_batch(&mut self) {
        let lives = &self.known.lives;
        let (keys, mut found): (Vec<Raw>, _) = (lives.iter().map(|life| life.key).collect(), Vec::new());
        self.round.filter.contains_batch(&keys, &mut found);
        let lost = lives.iter().zip(&found).any(|(life, found)| !found && self.round.must_be_found(life));
        assert!(found.len() == keys.len() && !lost, "a young key was lost, or missed by a batch");
        self.tally.lookups += keys.len() as u64;
    }

    /// Looks up one of its keys, and forgets it if it has expired.
    fn look_up_one(&mut self) {
        let (round, lives) = (self.round, self.known.lives.len() as u64);
        if lives == 0 {
            return;
        }
        let place = self.random.random_range(0..lives) as usize;
        let life = self.known.lives[place];
        let generation = round.filter.generation();
        let found = round.filter.contains(&life.key);
        self.tally.lookups += 1;
        assert!(found || !round.must_be_found(&life), "a young key was lost, or missed");
        // One generation more, for an insert that all generations have overtaken.
        if generation > life.until + round.generations() {
            self.known.lives.swap_remove(place);
            self.known.expired += 1;
            self.known.expired_but_found += u64::from(found);
        }
    }

    fn look_up_permanent(&mut self) {
        let round = self.round;
        let Some(key) = pick(&round.permanent, &mut self.random) else { return };
        let found = if self.random.random_ratio(1, 4) {
            // Reads the flag only now: if the keys are no longer in, this call must not add one.
            round.permanent_are_in.load(SeqCst) && round.filter.insert_if_absent(&key) == Ok(false)
        } else {
            round.filter.contains(&key)
        };
        self.tally.lookups += 1;
        assert!(found || !round.permanent_are_in.load(SeqCst), "a key that is refreshed in each period was missed");
    }

    /// Advances the clock, mostly by one tick.
    fn bring_tick(&mut self) {
        let (round, generations) = (self.round, self.round.generations());
        if round.pause > 0 && self.random.random_ratio(1, 4) {
            thread::sleep(Duration::from_micros(self.random.random_range(0..round.pause)));
        }
        let by = match self.random.random_range(0..64) {
            0 => self.random.random_range(0..generations + 3),
            1..32 => 0,
            _ => 1,
        };
        let tick = round.tick.fetch_add(by, SeqCst) + by;
        if let Advance::Forward { ticks } = round.filter.advance_to(tick) {
            self.known.rotations += ticks.min(generations);
        }
        assert!(round.filter.now().is_some_and(|now| now >= tick), "the tick has not taken effect");
        if self.random.random_ratio(1, 16) {
            let behind = round.filter.advance_to(tick - 1);
            assert!(matches!(behind, Advance::Behind { by } if by > 0), "the clock has gone back: {behind:?}");
        }
        round.look_for_announced();
    }

    #[cfg(not(feature = "snapshot"))]
    fn save(&self) {}

    /// Saves while others change the filter. The loaded filter has all keys that live until the snapshot is
    /// written. They expire in it when they would have in the original.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        use std::hash::BuildHasherDefault;

        use crate::rotating::Filter;

        let (round, mut bytes) = (self.round, Vec::new());
        let before = round.filter.generation();
        round.filter.save(&mut bytes).expect("there is memory");
        let written = round.filter.generation();
        let loaded = Filter::load(&bytes[..], BuildHasherDefault::default(), usize::MAX).expect("it was just saved");
        let moment = loaded.generation();
        assert!((before..=written).contains(&moment), "saved in generation {moment}, not {before} to {written}");
        let lives: Vec<_> = self.known.lives.iter().filter(|life| written < life.since + round.generations()).collect();
        for generation in moment..moment + round.generations() {
            let live = |life: &&&Life| generation < life.since + round.generations();
            let saved = lives.iter().filter(live).all(|life| loaded.contains(&life.key));
            assert!(saved, "a young key was not saved");
            loaded.rotate();
        }
        assert!(loaded.is_empty(), "a key in the snapshot does not expire");
        self.tally.saves += 1;
    }
}
