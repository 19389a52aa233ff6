//! What a round and its threads do with a filter of any kind.
//!
//! No two keys of a round are of one class, so that no key is taken for another, except for twins: look-alikes of keys
//! that are always in. Every thread has keys of its own and knows their entries. So each answer about them must be
//! exact, but for the ticks that pass meanwhile.

use std::collections::HashSet;
use std::fmt;
use std::iter;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::kinds::Table;
use crate::support::{Raw, scattered};

/// How many threads work on a filter.
pub(crate) const THREADS: u64 = 4;

/// The most keys of a batch.
pub(crate) const BATCH: u64 = 100;

/// Of how many keys that are always in there are twins.
const TWINNED: usize = 8;

/// How many keys a round has, how many of them are always in, and about how many entries the filter will hold.
pub(crate) struct Sizes {
    pub(crate) keys: u64,
    pub(crate) permanent: u64,
    pub(crate) entries: u64,
}

/// What the threads of a round do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Work {
    /// All operations, on keys of their own.
    Churn,
    /// The same, but each thread inserts as many as it can and removes them again, over and over.
    Spikes,
    /// Race to be the first to add a key.
    AddOnce,
    /// Clear the filter during inserts and removals.
    Clear,
    /// Take out entries of a full filter and put them back. None is refused, because all fitted together before.
    PutBack,
}

/// How many buckets an insert reads before it gives up. In a filter of at most this many, it finds room if there is any.
const SEARCH_BUDGET: usize = 2048;

/// A filter, and what is particular in it.
pub(crate) trait Kind: Sync + Sized {
    type Filter: Table;

    /// Whether the threads also add look-alikes of the keys that are always in.
    const TWINS: bool = false;

    fn new(seed: u64, random: &mut SmallRng) -> Self;

    fn filter(&self) -> &Self::Filter;

    /// An empty filter that tells keys apart as the round's one does.
    fn scratch(&self) -> Self::Filter {
        self.filter().another()
    }

    /// From 95% of the capacity to 5% more entries than there are slots.
    fn sizes(&self, random: &mut SmallRng) -> Sizes {
        let (capacity, (slots, _)) = (self.filter().capacity() as u64, self.filter().slots());
        let entries = random.random_range(capacity * 95 / 100..=slots as u64 * 105 / 100);
        let keys = capacity * random.random_range(30..95) / 100;
        Sizes { keys, permanent: keys * random.random_range(5..90) / 100, entries }
    }

    fn work(&self, random: &mut SmallRng) -> Work {
        let (slots, of_bucket) = self.filter().slots();
        let is_small = slots <= SEARCH_BUDGET * of_bucket;
        let works = [Work::Churn, Work::Churn, Work::AddOnce, Work::Clear, Work::PutBack];
        works[random.random_range(0..if is_small { 5 } else { 4 })]
    }

    /// The number of a new entry.
    fn some_number(&self, _random: &mut SmallRng) -> u64 {
        0
    }

    /// The number of an entry that lives as long as any.
    fn lasting(&self) -> u64 {
        0
    }

    /// Whether an entry with this number lives when the clock shows this tick.
    fn lives(_number: u64, _tick: u64) -> bool {
        true
    }

    /// The tick that has taken effect.
    fn done(&self) -> u64 {
        0
    }

    /// The tick that a thread has passed, or is about to pass.
    fn begun(&self) -> u64 {
        0
    }

    /// Adds an entry if the key has none, in one of the ways that there are.
    fn add(&self, entry: &(Raw, u64), _way: u64) -> Result<bool, Error<Self>> {
        self.filter().insert_if_absent(entry)
    }

    /// Checks an answer to an insert.
    fn check_answer(&self, own: &Own, number: u64, ticks: Ticks, answer: Result<(), &Error<Self>>);

    /// Checks what the filter tells about a key, except whether it is in.
    fn check(_filter: &Self::Filter, _own: &Own) {}

    /// An operation that only filters of this kind have.
    fn other_step(_worker: &mut Worker<'_, Self>) {}

    /// The memory limit of the filter.
    #[cfg(feature = "snapshot")]
    fn memory_limit(&self) -> usize {
        usize::MAX
    }

    /// Loads what was saved of the filter, within its own limit, and checks that it is saved as the same bytes.
    #[cfg(feature = "snapshot")]
    fn reloaded(&self, save: concurrent_cuckoo_filter::Save<'_>) -> Self::Filter {
        let mut bytes = Vec::new();
        save.write_to(&mut bytes).expect("there is memory");
        let loaded = Self::Filter::load_within(&bytes, self.memory_limit()).expect("it was just saved");
        assert!(loaded.saved() == bytes, "a loaded filter is saved as other bytes");
        loaded
    }

    /// Checks what was saved between these ticks, when the threads' keys were as given.
    #[cfg(feature = "snapshot")]
    fn check_saved(&self, loaded: &Self::Filter, own: &[Own], _ticks: Ticks) {
        own.iter().for_each(|own| check_all::<Self>(loaded, own));
    }

    /// The end of a round, with one thread left: all entries of the threads' keys and of those that are always in.
    fn finish(&self, round: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>) {
        round.take_out_every_entry(&[own, permanent].concat());
    }
}

pub(crate) type Error<K> = <<K as Kind>::Filter as Table>::Error;

/// The capacity of a table with so many slots in a bucket: from a few buckets to ten thousand, which are more than one
/// call sweeps.
pub(crate) fn some_capacity(slots: u64, random: &mut SmallRng) -> u64 {
    slots
        * match random.random_range(0..12) {
            0..4 => random.random_range(1..10),
            4..8 => random.random_range(100..300),
            8..11 => random.random_range(1100..6100),
            _ => random.random_range(9000..14_000),
        }
}

/// A key of a round, made from its owner, which is a thread or a purpose, and a number below 2^40. No two are the
/// same.
pub(crate) fn key(seed: u64, owner: u64, index: u64) -> Raw {
    scattered(seed.rotate_left(32) ^ owner << 40 ^ index)
}

/// A key, and the numbers of the entries that a thread has added: the live ones, and some that have expired meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) key: Raw,
    pub(crate) numbers: Vec<u64>,
    /// Whether other threads add entries that look the same. One is always in.
    pub(crate) shared: bool,
}

impl Own {
    fn new(key: Raw) -> Self {
        Self { key, numbers: Vec::new(), shared: false }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (Raw, u64)> {
        self.numbers.iter().map(|&number| (self.key, number))
    }

    /// Checks that the key was correctly found, or not found, between these ticks.
    #[track_caller]
    fn check_found<K: Kind>(&self, ticks: Ticks, found: bool) {
        let lives = |tick| self.shared || self.numbers.iter().any(|&number| K::lives(number, tick));
        let right = if found { lives(ticks.before) } else { !lives(ticks.after) };
        assert!(right, "found: {found}, between the ticks {} and {}: {self:?}", ticks.before, ticks.after);
    }
}

/// The tick that had taken effect before an operation began, and the one that was about to be passed when it had ended.
#[derive(Clone, Copy)]
pub(crate) struct Ticks {
    pub(crate) before: u64,
    pub(crate) after: u64,
}

impl Ticks {
    /// Checks that an entry was kept or removed, or was not, for a reason.
    #[track_caller]
    fn check_lived<K: Kind>(self, number: u64, lived: bool) {
        let right = if lived { K::lives(number, self.before) } else { !K::lives(number, self.after) };
        assert!(right, "{number}: {lived}, between the ticks {} and {}", self.before, self.after);
    }
}

/// Checks all that a filter which nobody changes, and which has no clock, tells about this key.
fn check_all<K: Kind>(filter: &K::Filter, own: &Own) {
    own.check_found::<K>(Ticks { before: 0, after: 0 }, filter.contains(&own.key));
    K::check(filter, own);
}

/// Checks the answer to an insert where a refusal can have two reasons: that the key has as many copies as it may, or
/// that all slots are taken that a search reaches.
#[track_caller]
pub(crate) fn check_refusal<F: Table>(filter: &F, own: &Own, of_copies: bool) {
    let (copies, (_, slots)) = (own.numbers.len(), filter.slots());
    // The two buckets of a few keys are the same.
    let is_right = if of_copies { copies == 2 * slots || copies == slots } else { copies < 2 * slots };
    assert!(is_right || own.shared, "refused for its copies: {of_copies}. {own:?}");
}

/// Runs `work` on all threads, which are numbered from 1. Returns the result of each.
fn on_all_threads<R: Send>(work: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let (begin, work) = (&Barrier::new(THREADS as usize), &work);
    let on_one = move |id| {
        begin.wait();
        work(id)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS).map(|id| scope.spawn(move || on_one(id))).collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        ended.into_iter().map(|ended| ended.unwrap_or_else(|violation| resume_unwind(violation))).collect()
    })
}

/// A filter and what is done to it. Everything follows from the seed.
pub(crate) struct Round<K> {
    seed: u64,
    pub(crate) kind: K,
    work: Work,
    entries: u64,
    of_threads: Vec<Vec<Raw>>,
    permanent: Vec<Raw>,
}

impl<K: Kind> fmt::Debug for Round<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, permanent) = (self.of_threads[0].len(), self.permanent.len());
        write!(f, "{:?} with {} entries, {keys} keys of each thread and {permanent} ", self.work, self.entries)?;
        write!(f, "that are always in: {:?}, {:?}", self.kind.filter().plan(), self.kind.filter())
    }
}

impl<K: Kind> Round<K> {
    pub(crate) fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        let kind = K::new(seed, random);
        let (work, sizes) = (kind.work(random), kind.sizes(random));
        let (scratch, lasting) = (kind.scratch(), kind.lasting());
        let is_new = |key: &Raw| matches!(scratch.insert_if_absent(&(*key, lasting)), Ok(true));
        let all = (0..2 * sizes.keys).map(|index| key(seed, 0, index)).filter(is_new);
        let mut keys: Vec<_> = all.take(sizes.keys as usize).collect();
        let permanent = keys.split_off(keys.len() - keys.len().min(sizes.permanent as usize));
        let each = keys.len() / THREADS as usize;
        let of_threads = (0..THREADS as usize).map(|id| keys[id * each..][..each].to_vec()).collect();
        Self { seed, kind, work, entries: sizes.entries, of_threads, permanent }
    }

    /// Runs the threads, each usually for so many steps, and checks every operation. Panics at a violation.
    pub(crate) fn run(&self, steps: u64) {
        match self.work {
            Work::Churn | Work::Spikes => self.churn(steps),
            Work::AddOnce => self.add_once(),
            Work::Clear => {
                (0..(steps / (self.entries + 1)).clamp(1, 300)).for_each(|_| self.clear_amid_changes());
            }
            Work::PutBack => self.put_back(steps / 4),
        }
    }

    /// How many entries a thread has in the filter, on average.
    pub(crate) fn quota(&self) -> u64 {
        self.entries.saturating_sub(self.permanent.len() as u64) / THREADS + 1
    }

    fn random(&self, id: u64) -> SmallRng {
        SmallRng::seed_from_u64(self.seed ^ id << 56)
    }

    /// Inserts the keys that are always in, each as often as it takes for so many entries, or as there is room for.
    fn fill(&self, entries: u64) -> Vec<Own> {
        let mut own: Vec<_> = self.permanent.iter().map(|&key| Own::new(key)).collect();
        let mut taken = 0;
        for nth in (0..own.len()).cycle().take(4 * own.len()) {
            if taken < entries && self.insert(&own[nth], self.kind.lasting()) == Some(true) {
                own[nth].numbers.push(self.kind.lasting());
                taken += 1;
            }
        }
        own.retain(|own| !own.numbers.is_empty());
        own
    }

    /// Returns whether the entry was kept, unless it was refused.
    fn insert(&self, own: &Own, number: u64) -> Option<bool> {
        let (answer, ticks) = self.timed(|| self.kind.filter().insert(&(own.key, number)));
        self.taken(own, number, ticks, answer).inspect(|&kept| ticks.check_lived::<K>(number, kept))
    }

    /// Checks the answer to an insert. Returns it, unless the insert was refused.
    fn taken<T>(&self, own: &Own, number: u64, ticks: Ticks, answer: Result<T, Error<K>>) -> Option<T> {
        self.kind.check_answer(own, number, ticks, answer.as_ref().map(|_| ()));
        answer.ok()
    }

    /// The result of the operation, and the ticks before and after it.
    fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Ticks) {
        let before = self.kind.done();
        let result = operation();
        (result, Ticks { before, after: self.kind.begun() })
    }

    /// Keys that an empty filter cannot tell apart from this one, as far as a search of 100,000 keys finds any. Half of
    /// them try its two buckets in the opposite order. So they move its entry back and forth when they come and go.
    fn alike(&self, of: Raw) -> impl Iterator<Item = Raw> {
        let alone = self.kind.scratch();
        alone.insert(&(of, self.kind.lasting())).expect("it is empty");
        let others = (0..100_000).map(|index| key(self.seed, 1, index));
        iter::once(of).chain(others.filter(move |other| alone.contains(other)))
    }

    fn churn(&self, steps: u64) {
        let mut permanent = self.fill(self.permanent.len() as u64);
        let mut twins = Vec::new();
        for own in permanent.iter_mut().take(if K::TWINS { TWINNED } else { 0 }) {
            own.shared = true;
            twins.extend(self.alike(own.key).map(|key| Own { shared: true, ..Own::new(key) }));
        }
        let own = on_all_threads(|id| {
            let keys = &self.of_threads[id as usize - 1];
            let own = keys.iter().map(|&key| Own::new(key)).chain(twins.iter().cloned()).collect();
            let (random, twins) = (self.random(id), twins.len());
            let mut worker =
                Worker { round: self, id, random, permanent: &permanent, own, twins, entries: 0, filling: true };
            (0..steps).for_each(|nth| worker.step(nth));
            worker.own
        });
        self.kind.finish(self, own.concat(), permanent);
    }

    fn add_once(&self) {
        let filter = self.kind.filter();
        let contested = self.of_threads.concat();
        let permanent = self.fill(self.entries.saturating_sub(contested.len() as u64));
        let won = on_all_threads(|id| {
            let (mut random, number) = (self.random(id), self.kind.lasting());
            let mut won: Vec<Own> = Vec::new();
            for &key in &contested {
                let own = Own { numbers: vec![number], ..Own::new(key) };
                let (added, ticks) = self.timed(|| self.kind.add(&(key, number), id));
                if let Some(added) = self.taken(&Own::new(key), number, ticks, added) {
                    assert!(filter.contains(&key), "a present key was missed");
                    won.extend(added.then_some(own));
                }
                let mut present = permanent.choose(&mut random).into_iter().chain(won.last());
                assert!(present.all(|present| filter.contains(&present.key)), "a present key was missed");
            }
            won
        });
        let won = won.concat();
        let keys: HashSet<_> = won.iter().map(|own| own.key.0).collect();
        assert_eq!(keys.len(), won.len(), "a key was added twice");
        self.kind.finish(self, won, permanent);
    }

    /// One thread clears the filter while others insert and remove.
    fn clear_amid_changes(&self) {
        let filter = self.kind.filter();
        let old = self.fill(self.entries);
        // Each of these may have been added before or after the sweep had passed.
        let fresh = on_all_threads(|id| {
            let mut random = self.random(id);
            match id {
                1 => filter.clear(),
                2 => old.iter().step_by(2).flat_map(Own::entries).for_each(|entry| _ = filter.remove(&entry)),
                _ => {
                    let keys = self.of_threads[id as usize - 1].iter();
                    let entries = keys.map(|&key| (key, self.kind.some_number(&mut random)));
                    let taken = |&(key, number): &_| self.insert(&Own::new(key), number) == Some(true);
                    return entries.filter(taken).collect();
                }
            }
            Vec::new()
        });
        let left = filter.len();
        let removed = fresh.concat().iter().filter(|entry| filter.remove(entry)).count();
        assert_eq!(removed, left, "the length is wrong, or an old key outlived `clear`");
        self.check_empty();
    }

    fn put_back(&self, steps: u64) {
        let (filter, number) = (self.kind.filter(), self.kind.lasting());
        let keys = self.of_threads.concat();
        let entries = keys.iter().cycle().take(8 * keys.len()).map(|&key| (key, number));
        let entries: Vec<_> = entries.take_while(|entry| filter.insert(entry) == Ok(true)).collect();
        on_all_threads(|id| {
            let mut random = self.random(id);
            let own: Vec<_> = entries.iter().skip(id as usize - 1).step_by(THREADS as usize).collect();
            for _ in 0..if own.is_empty() { 0 } else { steps } {
                let entry = own[random.random_range(0..own.len())];
                assert!(filter.remove(entry), "a present key was not removed");
                assert_eq!(filter.insert(entry), Ok(true), "it was in before, so there is room");
                assert!(filter.contains(&own[random.random_range(0..own.len())].0), "a present key was missed");
            }
        });
        let numbers = |key| vec![number; entries.iter().filter(|entry| entry.0 == key).count()];
        let own = keys.iter().map(|&key| Own { numbers: numbers(key), ..Own::new(key) });
        self.kind.finish(self, own.collect(), Vec::new());
    }

    /// Checks that the filter, which nobody uses any more, holds exactly these entries, and so does a snapshot. Then
    /// removes them.
    pub(crate) fn take_out_every_entry(&self, own: &[Own]) {
        let filter = self.kind.filter();
        let entries: Vec<_> = own.iter().flat_map(Own::entries).collect();
        assert_eq!(filter.len(), entries.len(), "the length is wrong");
        own.iter().for_each(|own| check_all::<K>(filter, own));
        #[cfg(feature = "snapshot")]
        {
            let loaded = self.kind.reloaded(filter.begin_save());
            assert_eq!((loaded.len(), loaded.capacity()), (filter.len(), filter.capacity()), "the snapshot differs");
            own.iter().for_each(|own| check_all::<K>(&loaded, own));
            assert!(loaded.remove_all(&entries).iter().all(|&removed| removed), "an entry was not saved");
        }
        self.remove_all(&entries);
        self.check_empty();
    }

    /// Removes entries that are in, half of them by a batch.
    pub(crate) fn remove_all(&self, entries: &[(Raw, u64)]) {
        let (by_batch, one_by_one) = entries.split_at(entries.len() / 2);
        let removed = self.kind.filter().remove_all(by_batch);
        assert!(removed.len() == by_batch.len() && removed.iter().all(|&removed| removed), "an entry was lost");
        assert!(one_by_one.iter().all(|entry| self.kind.filter().remove(entry)), "an entry was lost");
    }

    /// Looks up all keys that the round may have used, and others.
    fn check_empty(&self) {
        let filter = self.kind.filter();
        assert_eq!(filter.len(), 0, "the length is not 0 when all entries are removed");
        let all = 2 * self.of_threads.concat().len().max(filter.capacity()) as u64 + 2;
        let found = (0..2).any(|owner| (0..all).any(|index| filter.contains(&key(self.seed, owner, index))));
        assert!(!found, "there is an entry that no thread knows of");
    }
}

/// A thread of a churn.
pub(crate) struct Worker<'a, K> {
    pub(crate) round: &'a Round<K>,
    pub(crate) id: u64,
    pub(crate) random: SmallRng,
    permanent: &'a [Own],
    /// The thread's keys, and at the end the twins of keys that are always in.
    pub(crate) own: Vec<Own>,
    twins: usize,
    /// How many entries its keys have.
    entries: u64,
    /// Whether the thread, if its work is in spikes, inserts now.
    filling: bool,
}

impl<K: Kind> Worker<'_, K> {
    fn filter(&self) -> &K::Filter {
        self.round.kind.filter()
    }

    fn step(&mut self, nth: u64) {
        match self.random.random_range(0..256) {
            _ if self.own.is_empty() => (),
            0 => self.insert_batch(),
            1 => self.remove_batch(),
            2 => self.look_up_batch(),
            3..11 => self.insert_if_absent(),
            11..20 => {
                let (at, number) = self.some_entry();
                self.remove(at, number);
            }
            64..128 => K::other_step(self),
            _ => self.insert_or_remove(),
        }
        self.look_up();
        // In so many steps, because a save takes as long as some steps for each key.
        let keys = (self.own.len() + self.permanent.len()) as u64;
        if self.id == 2 && nth % (keys + 100) == 99 {
            #[cfg(feature = "snapshot")]
            self.save();
        }
    }

    /// One of its keys, of which there must be any. Now and then a twin.
    pub(crate) fn some(&mut self) -> usize {
        let from = if self.twins > 0 && self.random.random_ratio(1, 4) { self.own.len() - self.twins } else { 0 };
        self.random.random_range(from..self.own.len())
    }

    fn some_entry(&mut self) -> (usize, u64) {
        (self.some(), self.round.kind.some_number(&mut self.random))
    }

    /// The same for an insert. In spikes no key gets copies, which could fill its buckets.
    fn some_new_entry(&mut self) -> (usize, u64) {
        let (at, number) = self.some_entry();
        let absent = if self.round.work == Work::Spikes { self.some_that(false) } else { None };
        (absent.unwrap_or(at), number)
    }

    /// Some key that has an entry or has none, if there is one.
    fn some_that(&mut self, has_entry: bool) -> Option<usize> {
        let (first, len) = (self.some(), self.own.len());
        (first..first + len).map(|at| at % len).find(|&at| {
            self.forget_the_dead(at);
            self.own[at].numbers.is_empty() != has_entry
        })
    }

    /// Forgets entries that no lookup can find any more.
    fn forget_the_dead(&mut self, at: usize) {
        let (done, numbers) = (self.round.kind.done(), &mut self.own[at].numbers);
        let before = numbers.len();
        numbers.retain(|&number| K::lives(number, done));
        self.entries -= (before - numbers.len()) as u64;
    }

    /// Remembers an entry.
    fn remember(&mut self, at: usize, number: u64) {
        self.forget_the_dead(at);
        self.own[at].numbers.push(number);
        self.entries += 1;
    }

    fn insert_or_remove(&mut self) {
        let most = 2 * self.round.quota();
        self.filling = if self.entries == 0 { true } else { self.filling && self.entries < most };
        let spikes = self.round.work == Work::Spikes;
        let inserts = if spikes { self.filling } else { self.entries <= self.random.random_range(0..most) };
        if inserts {
            let (at, number) = self.some_new_entry();
            if self.round.insert(&self.own[at], number).is_some() {
                self.remember(at, number);
            }
        } else if let Some(at) = self.some_that(true) {
            let number = *self.own[at].numbers.choose(&mut self.random).expect("it has an entry");
            self.remove(at, number);
        }
    }

    /// Removes an entry that the key may have or not.
    fn remove(&mut self, at: usize, number: u64) {
        let own = &mut self.own[at];
        let place = own.numbers.iter().position(|&own| own == number);
        if place.is_none() && own.shared {
            return;
        }
        let (removed, ticks) = self.round.timed(|| self.round.kind.filter().remove(&(own.key, number)));
        match place {
            Some(place) => {
                ticks.check_lived::<K>(number, removed);
                own.numbers.swap_remove(place);
                self.entries -= 1;
            }
            None => assert!(!removed, "{number} was removed, and is not there: {own:?}"),
        }
    }

    fn insert_if_absent(&mut self) {
        let (at, number) = self.some_entry();
        let own = &self.own[at];
        let (added, ticks) = self.round.timed(|| self.filter().insert_if_absent(&(own.key, number)));
        match self.round.taken(own, number, ticks, added) {
            Some(true) => {
                ticks.check_lived::<K>(number, true);
                assert!(!own.shared, "a twin of a present key was added");
                own.check_found::<K>(ticks, false);
                self.remember(at, number);
            }
            // If its end may have passed, that may be the reason.
            Some(false) if K::lives(number, ticks.after) => own.check_found::<K>(ticks, true),
            _ => (),
        }
    }

    fn look_up(&mut self) {
        // Often one that has twins, which move it.
        let some = if self.twins > 0 && self.random.random() { TWINNED } else { self.permanent.len() };
        let permanent = self.random.random_range(0..some.max(1));
        let own = if self.own.is_empty() { 0 } else { self.some() };
        let closely = self.random.random_ratio(1, 4);
        for own in self.permanent.get(permanent).into_iter().chain(self.own.get(own)) {
            let (found, ticks) = self.round.timed(|| self.filter().contains(&own.key));
            own.check_found::<K>(ticks, found);
            if closely {
                K::check(self.filter(), own);
            }
        }
    }

    fn insert_batch(&mut self) {
        let room = (2 * self.round.quota() + BATCH).saturating_sub(self.entries);
        let len = self.random.random_range(0..BATCH).min(room);
        let mut new: Vec<_> = (0..len).map(|_| self.some_new_entry()).collect();
        if self.round.work == Work::Spikes {
            new.sort_unstable();
            new.dedup_by_key(|&mut (at, _)| at);
        }
        let entries: Vec<_> = new.iter().map(|&(at, number)| (self.own[at].key, number)).collect();
        let (answer, ticks) = self.round.timed(|| self.filter().insert_all(&entries));
        let inserted = answer.as_ref().map_or_else(|(inserted, _)| *inserted, |()| new.len());
        // None is forgotten yet, because the batch may be refused for those that were live when it began.
        for &(at, number) in &new[..inserted] {
            self.own[at].numbers.push(number);
            self.entries += 1;
        }
        if let Err((_, error)) = answer {
            let (at, number) = new[inserted];
            self.round.taken::<()>(&self.own[at], number, ticks, Err(error));
        }
    }

    /// Some of the thread's entries, and some that it may not have.
    fn remove_batch(&mut self) {
        let (mut entries, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..self.random.random_range(0..BATCH) {
            let (at, any) = self.some_entry();
            let own = &mut self.own[at];
            let number = own.numbers.choose(&mut self.random).copied().filter(|_| any % 8 < 7).unwrap_or(any);
            let place = own.numbers.iter().position(|&own| own == number);
            if place.is_some() || !own.shared {
                entries.push((own.key, number));
                expected.push(place.is_some());
            }
            if let Some(place) = place {
                own.numbers.swap_remove(place);
                self.entries -= 1;
            }
        }
        let (removed, ticks) = self.round.timed(|| self.filter().remove_all(&entries));
        assert_eq!(removed.len(), entries.len(), "as many answers as keys");
        for (((_, number), expected), removed) in iter::zip(iter::zip(&entries, expected), removed) {
            assert!(expected || !removed, "an entry was removed that is not there: {entries:?}");
            if expected {
                ticks.check_lived::<K>(*number, removed);
            }
        }
    }

    fn look_up_batch(&mut self) {
        let asked: Vec<_> = (0..self.random.random_range(0..BATCH)).map(|_| self.some()).collect();
        let own = || asked.iter().map(|&at| &self.own[at]).chain(self.permanent.iter().take(BATCH as usize));
        let keys: Vec<_> = own().map(|own| own.key).collect();
        let (found, ticks) = self.round.timed(|| self.filter().contains_all(&keys));
        assert_eq!(found.len(), keys.len(), "as many answers as keys");
        iter::zip(own(), found).for_each(|(own, found)| own.check_found::<K>(ticks, found));
    }

    /// Saves while others change the filter. This thread's entries are in the snapshot as they are now, although it
    /// changes some of them before the snapshot is written.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        let kind = &self.round.kind;
        let (save, ticks) = self.round.timed(|| kind.filter().begin_save());
        let then: Vec<_> = self.own.iter().chain(self.permanent).cloned().collect();
        let changes = if self.own.is_empty() { 0 } else { self.random.random_range(0..500) };
        for _ in 0..changes {
            self.insert_or_remove();
            let (at, number) = self.some_entry();
            self.remove(at, number);
        }
        kind.check_saved(&kind.reloaded(save), &then, ticks);
    }
}
