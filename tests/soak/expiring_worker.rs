//! A thread of a soak of a filter whose entries expire.

use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{ExpiringInsertError, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::expiring::Round;
use crate::rounds::{Saves, Tally, pick};
use crate::support::Raw;

/// The most entries that a key has.
const ENTRIES: usize = 3;

/// A key of one thread, and the ends of its entries: the live ones, and some that have expired meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) key: Raw,
    pub(crate) ends: Vec<u64>,
    /// Among the ends up to this tick, some may be of no entry: see [`Worker::keep`].
    unsure: u64,
}

impl Own {
    pub(crate) fn new(key: Raw, ends: Vec<u64>) -> Self {
        Self { key, ends, unsure: 0 }
    }

    /// Whether an entry lives beyond this tick, if that is known.
    #[cfg(feature = "snapshot")]
    fn lives_beyond(&self, tick: u64) -> Option<bool> {
        match self.ends.iter().max() {
            Some(&latest) if latest > tick => (latest > self.unsure).then_some(true),
            _ => Some(false),
        }
    }
}

pub(crate) struct Worker<'a> {
    round: &'a Round,
    id: u64,
    random: SmallRng,
    own: Vec<Own>,
    /// The refreshed keys, if this thread refreshes them.
    refreshed: Vec<Own>,
    /// The ends of the contested entries that this thread has added, and that were live then.
    added: Vec<u64>,
    saves: Saves,
    tally: &'a mut Tally,
}

/// The tick that was passed before an operation began, and the tick that was about to be passed when it had ended.
#[derive(Clone, Copy)]
struct Ticks {
    before: u64,
    after: u64,
}

impl Ticks {
    /// Checks that an entry with this end was kept, or was not, for a reason.
    #[track_caller]
    fn check_kept(self, end: u64, kept: bool) {
        let right = if kept { end > self.before } else { end <= self.after };
        assert!(right, "kept: {kept}, with the end {end} between the ticks {} and {}", self.before, self.after);
    }
}

impl<'a> Worker<'a> {
    pub(crate) fn new(round: &'a Round, id: u64, keys: &[Raw], tally: &'a mut Tally) -> Self {
        let new = |keys: &[Raw]| keys.iter().map(|&key| Own::new(key, Vec::new())).collect();
        let (own, refreshed) = (new(keys), new(if id == 1 { round.refreshed_keys() } else { &[] }));
        let random = SmallRng::seed_from_u64(round.seed ^ id << 56);
        Self { round, id, random, own, refreshed, added: Vec::new(), saves: Saves::new(), tally }
    }

    /// Returns the thread's keys, and the ends of the contested entries that it has added.
    pub(crate) fn ended(mut self) -> (Vec<Own>, Vec<u64>) {
        self.own.append(&mut self.refreshed);
        (self.own, self.added)
    }

    /// Advances the clock, mostly by one tick. Meanwhile this thread does something else.
    pub(crate) fn bring_tick(&mut self) {
        let (round, longest) = (self.round, self.round.filter.plan().lifetime_in_ticks.unwrap());
        if round.pause > 0 {
            thread::sleep(Duration::from_micros(self.random.random_range(0..round.pause)));
        }
        let by = match self.random.random_range(0..256) {
            0 => self.random.random_range(0..1 << 30),
            1 => self.random.random_range(0..2 * longest + 3),
            2..64 => self.random.random_range(1..=1 + longest / 8),
            64..96 => 0,
            _ => 1,
        };
        self.refresh(by);
        round.advance(by);
        (0..round.calls).for_each(|_| round.bring_again());
        self.tally.ticks += u64::from(by > 0);
        (0..self.random.random_range(0..20)).for_each(|_| self.step());
    }

    /// Adds entries of the refreshed keys that live beyond a clock advanced by this many ticks, if there can be
    /// any.
    fn refresh(&mut self, by: u64) {
        let (now, longest) = (self.round.done(), self.round.filter.plan().lifetime_in_ticks.unwrap());
        let mut are_in = by < longest;
        if !are_in {
            self.round.say_refreshed(false);
            return;
        }
        let end = now + by + 1 + self.random.random_range(0..(longest - by).min(3));
        for own in &mut self.refreshed {
            own.ends.retain(|&end| end > now);
            if own.ends.iter().any(|&end| end > now + by) {
                continue;
            }
            let added = self.tally.taken(self.round.filter.insert_until(&own.key, Tick::new(end))).is_some();
            if added {
                own.ends.push(end);
            }
            are_in &= added;
        }
        self.round.say_refreshed(are_in);
    }

    /// Looks up a key that always has an entry, although not always the same one.
    fn look_up_refreshed(&mut self) {
        let Some(key) = pick(self.round.refreshed_keys(), &mut self.random) else { return };
        let before = self.round.refreshed();
        let found = self.round.filter.contains(&key);
        self.tally.lookups += 1;
        let was_in = before % 2 == 1 && self.round.refreshed() == before;
        assert!(found || !was_in, "a key that is refreshed before each tick was missed: {key:?}");
    }

    pub(crate) fn step(&mut self) {
        if self.own.is_empty() {
            return self.round.bring_again();
        }
        match self.random.random_range(0..256) {
            0 => self.batches(),
            1..4 => self.round.bring_again(),
            4..24 if self.round.has_contested() => self.add_contested(),
            24..88 => self.insert(),
            88..112 => self.insert_if_absent(),
            112..136 => self.insert_or_renew(),
            136..168 => self.remove(),
            168..208 => self.look_up_refreshed(),
            _ => self.look_up(),
        }
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

    /// An end, mostly of an entry that lives. Now and then it is in the past, or too far away.
    fn some_end(&mut self) -> u64 {
        let now = self.round.done();
        match self.random.random_range(0..32) {
            0 => now.saturating_sub(self.random.random_range(0..3)),
            1 => now + self.round.filter.plan().lifetime_in_ticks.unwrap() + self.random.random_range(0..4),
            2..8 => now + self.round.filter.plan().lifetime_in_ticks.unwrap(),
            _ => now + self.random.random_range(1..=self.round.filter.plan().lifetime_in_ticks.unwrap()),
        }
    }

    /// The result of the operation, and the ticks before and after it.
    fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Ticks) {
        let before = self.round.done();
        let result = operation();
        (result, Ticks { before, after: self.round.begun() })
    }

    /// The result of an insert with this end, or `None` if it was refused. A refusal must have a reason.
    fn taken<R>(&mut self, nth: usize, end: u64, ticks: Ticks, result: Result<R, ExpiringInsertError>) -> Option<R> {
        let (own, longest) = (&self.own[nth], self.round.filter.plan().lifetime_in_ticks.unwrap());
        match result {
            Ok(_) => assert!(end <= ticks.after + longest, "a lifetime that is too long was taken: {end} of {own:?}"),
            Err(ExpiringInsertError::LifetimeTooLong { now, .. }) => {
                let now = now.get();
                assert!((ticks.before..=ticks.after).contains(&now) && end > now + longest, "it was not too long");
            }
            Err(ExpiringInsertError::TooManyCopies { copies, .. }) => {
                let live = own.ends.iter().filter(|&&end| end > ticks.before).count();
                assert!(copies <= live, "refused for {copies} entries of the key: {own:?}");
            }
            // The end of a round checks that there is room when all entries are dead.
            Err(ExpiringInsertError::Full { .. }) => (),
            Err(error) => panic!("refused for no reason: {error}"),
        }
        self.tally.taken(result)
    }

    /// Remembers an entry, and forgets those that no lookup can find any more.
    fn remember(&mut self, nth: usize, end: u64) {
        let done = self.round.done();
        let ends = &mut self.own[nth].ends;
        ends.retain(|&end| end > done);
        ends.push(end);
    }

    fn insert(&mut self) {
        let (nth, end) = (self.some(), self.some_end());
        let Own { key, ends, .. } = &self.own[nth];
        if ends.iter().filter(|&&end| end > self.round.done()).count() >= ENTRIES {
            return;
        }
        let (inserted, ticks) = self.timed(|| self.round.filter.insert_until(key, Tick::new(end)));
        if let Some(kept) = self.taken(nth, end, ticks, inserted) {
            ticks.check_kept(end, kept);
            self.remember(nth, end);
        }
    }

    fn insert_if_absent(&mut self) {
        let (nth, end) = (self.some(), self.some_end());
        let (added, ticks) =
            self.timed(|| self.round.filter.insert_if_absent_until(&self.own[nth].key, Tick::new(end)));
        let added = self.taken(nth, end, ticks, added);
        match added {
            Some(true) => {
                ticks.check_kept(end, true);
                self.check(nth, ticks, false);
                self.remember(nth, end);
            }
            // If its end may have passed, that may be the reason.
            Some(false) if end > ticks.after => self.check(nth, ticks, true),
            _ => (),
        }
    }

    fn insert_or_renew(&mut self) {
        let (nth, end) = (self.some(), self.some_end());
        let (is_new, ticks) =
            self.timed(|| self.round.filter.insert_or_renew_until(&self.own[nth].key, Tick::new(end)));
        let Some(is_new) = self.taken(nth, end, ticks, is_new) else { return };
        if is_new {
            ticks.check_kept(end, true);
        }
        let own = &mut self.own[nth];
        match own.ends.iter_mut().max() {
            // It was live throughout, so its end has been put off.
            Some(latest) if *latest > ticks.after => {
                assert!(!is_new, "new, though it was live");
                return *latest = end.max(*latest);
            }
            // If it was live, only the later one of both ends is that of an entry. It is dead when the tick has taken
            // effect that another thread is about to pass. Until then a save can have an earlier moment.
            Some(latest) => {
                assert!(is_new || *latest > ticks.before || end <= ticks.after, "not new, though it was dead");
                own.unsure = own.unsure.max(*latest);
            }
            None => assert!(is_new || end <= ticks.after, "not new, though it was absent"),
        }
        self.remember(nth, end);
    }

    fn remove(&mut self) {
        let nth = self.some();
        // Mostly an end that is there.
        let known = self.own[nth].ends.len() as u64;
        let end = match self.random.random_range(0..8) {
            1.. if known > 0 => self.own[nth].ends[self.random.random_range(0..known) as usize],
            _ => self.some_end(),
        };
        let place = self.own[nth].ends.iter().position(|&known| known == end);
        let (removed, ticks) = self.timed(|| self.round.filter.remove_expiring_at(&self.own[nth].key, Tick::new(end)));
        self.tally.removals += 1;
        match place {
            Some(_) if removed => assert!(end > ticks.before, "an entry was removed that had expired"),
            Some(_) => assert!(end <= ticks.after, "a live entry was not found to be removed"),
            None => assert!(!removed, "an entry was removed that is not there: {end} of {:?}", self.own[nth]),
        }
        if let Some(place) = place {
            self.own[nth].ends.swap_remove(place);
        }
    }

    fn look_up(&mut self) {
        let nth = self.some();
        let (found, ticks) = self.timed(|| self.round.filter.contains(&self.own[nth].key));
        self.tally.lookups += 1;
        self.check(nth, ticks, found);
    }

    /// Checks that a key was correctly found, or not found, between these ticks.
    #[track_caller]
    fn check(&self, nth: usize, Ticks { before, after }: Ticks, found: bool) {
        let own = &self.own[nth];
        if found {
            assert!(own.ends.iter().any(|&end| end > before), "found from {before} on, though it had expired: {own:?}");
        } else {
            assert!(own.ends.iter().all(|&end| end <= after), "missed up to {after}, though it was live: {own:?}");
        }
    }

    /// Adds a key that all threads race to add with the same end.
    fn add_contested(&mut self) {
        let end = self.round.done() + self.random.random_range(1..=self.round.filter.plan().lifetime_in_ticks.unwrap());
        let key = self.round.contested_key(end);
        let (added, ticks) = self.timed(|| self.round.filter.insert_if_absent_until(&key, Tick::new(end)));
        // If it had expired by then, no thread or several threads may have added it.
        if self.tally.taken(added) == Some(true) && end > ticks.after {
            self.added.push(end);
        }
    }

    /// Looks up all keys in one batch. Some of them then get an entry and lose it.
    fn batches(&mut self) {
        let filter = &self.round.filter;
        let mut found = Vec::new();
        let ((), ticks) =
            self.timed(|| filter.contains_batch(self.own.iter().map(|own| &own.key).collect::<Vec<_>>(), &mut found));
        assert_eq!(found.len(), self.own.len());
        self.tally.lookups += found.len() as u64;
        (0..).zip(found).for_each(|(nth, found)| self.check(nth, ticks, found));

        let end = self.round.done() + filter.plan().lifetime_in_ticks.unwrap();
        let entries: Vec<_> = self.own.iter().take(100).map(|own| (&own.key, Tick::new(end))).collect();
        let inserted = match filter.insert_until_batch(entries.iter().copied(), &mut Vec::new()) {
            Ok(_) => entries.len(),
            Err(refused) => {
                assert!(!matches!(
                    refused.error,
                    ExpiringInsertError::ClockNotSet | ExpiringInsertError::LifetimeTooLong { .. }
                ));
                refused.index
            }
        };
        let mut removed = Vec::new();
        let ((), ticks) =
            self.timed(|| filter.remove_expiring_at_batch(entries.iter().copied().take(inserted), &mut removed));
        assert_eq!(removed.len(), inserted);
        assert!(end <= ticks.after || removed.iter().all(|&removed| removed), "a live entry was not removed");
        self.tally.inserts += inserted as u64;
        self.tally.removals += inserted as u64;
    }

    #[cfg(not(feature = "snapshot"))]
    fn save(&self) {}

    /// Saves while others change the filter. The loaded filter has exactly the live entries of this thread's keys.
    /// They expire when they should, by the old clock or by a new one.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        use std::hash::BuildHasherDefault;

        use crate::expiring::Filter;

        let (round, mut bytes) = (self.round, Vec::new());
        let (saved, ticks) = self.timed(|| round.filter.save(&mut bytes));
        saved.expect("there is memory");
        let loaded = Filter::load(&bytes[..], BuildHasherDefault::default(), usize::MAX).expect("it was just saved");
        let moment = loaded.now().expect("the clock has a tick").get();
        assert!((ticks.before..=ticks.after).contains(&moment), "saved at {moment}");
        let mut again = Vec::new();
        loaded.save(&mut again).expect("there is memory");
        assert!(again == bytes, "a loaded filter is saved as other bytes");

        // The number that the round's present tick has from here on.
        let first = if self.random.random_bool(0.5) { moment } else { self.random.random_range(0..1000) };
        if first != moment {
            loaded.restart_clock(Tick::new(first));
        }
        let longest = loaded.plan().lifetime_in_ticks.unwrap();
        let mut passed = 0;
        while passed <= 2 * longest + 2 {
            for own in &self.own {
                let Some(live) = own.lives_beyond(moment + passed) else { continue };
                assert_eq!(loaded.contains(&own.key), live, "{own:?}, saved at {moment}, {passed} ticks later");
            }
            passed += self.random.random_range(1..=longest.div_ceil(2));
            loaded.advance_to(Tick::new(first + passed));
        }
        assert_eq!(loaded.live_len(), 0, "an entry in the snapshot does not expire");
        self.tally.saves += 1;
    }
}
