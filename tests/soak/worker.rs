//! What a round and its threads do with a filter of any kind.
//!
//! No two keys of a round are of one class, so that no key is taken for another, except for twins: look-alikes of keys
//! that are always in. Every thread has keys of its own and knows their entries. So each answer about them must be
//! exact, but for the ticks that pass meanwhile.

use std::collections::HashSet;
use std::fmt;
use std::iter;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::kinds::Table;
use crate::rounds::Count::{Counts, Digests, Inserts, Lookups, Removals};
use crate::rounds::{Pauses, THREADS, Tally, key, on_all_threads, pick};
use crate::support::Raw;

/// The most keys of a batch.
pub(crate) const BATCH: u64 = 100;

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
    /// Whether the threads of a churn race to own some keys.
    const CONTESTS: bool = true;

    fn new(seed: u64, random: &mut SmallRng) -> Self;

    fn filter(&self) -> &Self::Filter;

    /// An empty filter that tells keys apart as the round's one does.
    fn scratch(&self) -> Self::Filter {
        self.filter().another()
    }

    /// The kinds of rounds that this one belongs to. The counts are printed for each.
    fn names(&self) -> [String; 2];

    fn sizes(&self, random: &mut SmallRng) -> Sizes;

    fn work(&self, random: &mut SmallRng) -> Work {
        let (slots, of_bucket) = self.filter().slots();
        let is_small = slots <= SEARCH_BUDGET * of_bucket;
        let works = [Work::Churn, Work::Churn, Work::AddOnce, Work::Clear, Work::PutBack];
        works[random.random_range(0..if is_small { 5 } else { 4 })]
    }

    /// How many steps each thread does, of which a round usually has this many.
    fn steps(&self, usual: u64) -> u64 {
        usual
    }

    /// Takes the keys that only the operations of this kind use.
    fn take_keys(&mut self, _keys: &mut Vec<Raw>) {}

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

    /// Something that takes long, done now and then by one thread, or by another one.
    fn tidy(&self) {}
    fn merge(_worker: &mut Worker<'_, Self>) {}

    /// What others change: how often they have ended that, and begun it. Read before and after a save begins.
    #[cfg(feature = "snapshot")]
    fn changes(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    /// Checks what was saved between these ticks and changes, when the threads' keys were as given.
    #[cfg(feature = "snapshot")]
    fn check_saved(&self, loaded: &Self::Filter, own: &[Own], _ticks: Ticks, _changes: [Vec<(u64, u64)>; 2]) {
        own.iter().for_each(|own| check_all::<Self>(loaded, own));
    }

    /// The part of a thread, and of the first one if another leads.
    fn lead(worker: &mut Worker<'_, Self>, steps: u64, _others: &AtomicU64) {
        (0..steps).for_each(|_| worker.step());
    }

    /// The end of a round, with one thread left: all entries of the threads' keys and of those that are always in.
    fn finish(&self, round: &Round<Self>, own: Vec<Own>, permanent: Vec<Own>, tally: &mut Tally) {
        round.take_out_every_entry(&[own, permanent].concat(), tally);
    }
}

pub(crate) type Error<K> = <<K as Kind>::Filter as Table>::Error;

/// A key, and the numbers of the entries that a thread has added: the live ones, and some that have expired meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) key: Raw,
    pub(crate) numbers: Vec<u64>,
    /// Whether other threads add entries that look the same. One is always in.
    pub(crate) shared: bool,
    /// Among the ends up to this tick, some may be of no entry.
    pub(crate) unsure: u64,
}

impl Own {
    pub(crate) fn new(key: Raw, numbers: Vec<u64>) -> Self {
        Self { key, numbers, shared: false, unsure: 0 }
    }

    pub(crate) fn count(&self, number: u64) -> usize {
        self.numbers.iter().filter(|&&own| own == number).count()
    }

    fn entries(&self) -> impl Iterator<Item = (Raw, u64)> {
        self.numbers.iter().map(|&number| (self.key, number))
    }

    /// Checks that the key was correctly found, or not found, between these ticks.
    #[track_caller]
    pub(crate) fn check_found<K: Kind>(&self, ticks: Ticks, found: bool) {
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
    pub(crate) fn check_lived<K: Kind>(self, number: u64, lived: bool) {
        let right = if lived { K::lives(number, self.before) } else { !K::lives(number, self.after) };
        assert!(right, "{number}: {lived}, between the ticks {} and {}", self.before, self.after);
    }
}

/// Checks all that a filter which nobody changes, and which has no clock, tells about this key.
pub(crate) fn check_all<K: Kind>(filter: &K::Filter, own: &Own) {
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

/// A key that all threads race to own: only its owner adds an entry.
struct Contested {
    key: Raw,
    /// The number of the thread that owns it, or 0.
    owner: AtomicU64,
}

/// A filter and what is done to it. Everything follows from the seed.
pub(crate) struct Round<K> {
    seed: u64,
    pub(crate) kind: K,
    pub(crate) work: Work,
    entries: u64,
    of_threads: Vec<Vec<Raw>>,
    permanent: Vec<Raw>,
    contested: Vec<Contested>,
}

impl<K: Kind> fmt::Debug for Round<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, permanent) = (self.of_threads[0].len(), self.permanent.len());
        write!(f, "{:?} with {} entries, {keys} keys of each thread and {permanent} ", self.work, self.entries)?;
        write!(f, "that are always in: {:?}, {:?}", self.kind.names(), self.kind.filter())
    }
}

impl<K: Kind> Round<K> {
    pub(crate) fn new(seed: u64) -> Self {
        let random = &mut SmallRng::seed_from_u64(seed);
        let mut kind = K::new(seed, random);
        let (work, sizes) = (kind.work(random), kind.sizes(random));
        let (scratch, lasting) = (kind.scratch(), kind.lasting());
        let is_new = |key: &Raw| matches!(scratch.insert_if_absent(&(*key, lasting)), Ok(true));
        let all = (0..2 * sizes.keys).map(|index| key(seed, 0, index)).filter(is_new);
        let mut keys: Vec<_> = all.take(sizes.keys as usize).collect();
        kind.take_keys(&mut keys);
        let contested = if K::CONTESTS { (keys.len() / 8).min(64) } else { 0 };
        let contested = keys.split_off(keys.len() - contested);
        let permanent = keys.split_off(keys.len() - keys.len().min(sizes.permanent as usize));
        let each = keys.len() / THREADS as usize;
        let of_threads = (0..THREADS as usize).map(|id| keys[id * each..][..each].to_vec()).collect();
        let contested = contested.into_iter().map(|key| Contested { key, owner: AtomicU64::new(0) }).collect();
        Self { seed, kind, work, entries: sizes.entries, of_threads, permanent, contested }
    }

    /// Runs the threads, each usually for so many steps, and checks every operation. Panics at a violation.
    pub(crate) fn run(&self, steps: u64) -> Tally {
        match self.work {
            Work::Churn | Work::Spikes => self.churn(self.kind.steps(steps)),
            Work::AddOnce => self.add_once(),
            Work::Clear => {
                let mut tally = Tally::default();
                (0..(steps / (self.entries + 1)).clamp(1, 300)).for_each(|_| tally.add(&self.clear_amid_changes()));
                tally
            }
            Work::PutBack => self.put_back(steps / 4),
        }
    }

    /// How many entries a thread has in the filter, on average.
    pub(crate) fn quota(&self) -> u64 {
        self.entries.saturating_sub(self.permanent.len() as u64) / THREADS + 1
    }

    /// Inserts the keys that are always in, each as often as it takes for so many entries, or as there is room for.
    fn fill(&self, entries: u64, tally: &mut Tally) -> Vec<Own> {
        let mut own: Vec<_> = self.permanent.iter().map(|&key| Own::new(key, Vec::new())).collect();
        let mut taken = 0;
        for nth in (0..own.len()).cycle().take(4 * own.len()) {
            if taken < entries && self.insert(&own[nth], self.kind.lasting(), tally) == Some(true) {
                own[nth].numbers.push(self.kind.lasting());
                taken += 1;
            }
        }
        own.retain(|own| !own.numbers.is_empty());
        own
    }

    fn insert(&self, own: &Own, number: u64, tally: &mut Tally) -> Option<bool> {
        let (answer, ticks) = self.timed(|| self.kind.filter().insert(&(own.key, number)));
        self.taken(own, number, ticks, answer, tally).inspect(|&kept| ticks.check_lived::<K>(number, kept))
    }

    /// Counts an insert. Returns its answer, unless it was refused.
    fn taken<T>(
        &self,
        own: &Own,
        number: u64,
        ticks: Ticks,
        answer: Result<T, Error<K>>,
        tally: &mut Tally,
    ) -> Option<T> {
        self.kind.check_answer(own, number, ticks, answer.as_ref().map(|_| ()));
        tally.taken(answer)
    }

    /// The result of the operation, and the ticks before and after it.
    fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Ticks) {
        let before = self.kind.done();
        let result = operation();
        (result, Ticks { before, after: self.kind.begun() })
    }

    /// Keys that an empty filter cannot tell apart from this one, as far as a search of 100,000 keys finds any. Half of
    /// them try its two buckets in the opposite order. So they move its entry back and forth when they come and go.
    fn alike(&self, of: Raw) -> Vec<Raw> {
        let alone = self.kind.scratch();
        alone.insert(&(of, self.kind.lasting())).expect("it is empty");
        let others = (0..100_000).map(|index| key(self.seed, 1, index));
        iter::once(of).chain(others.filter(|other| alone.contains(other))).collect()
    }

    fn churn(&self, steps: u64) -> Tally {
        let mut tally = Tally::default();
        let mut permanent = self.fill(self.permanent.len() as u64, &mut tally);
        let mut twins = Vec::new();
        for own in permanent.iter_mut().take(if K::TWINS { 8 } else { 0 }) {
            own.shared = true;
            twins.extend(self.alike(own.key).into_iter().map(|key| Own { shared: true, ..Own::new(key, Vec::new()) }));
        }
        let others = AtomicU64::new(THREADS - 1);
        let own = on_all_threads(&mut tally, |id, tally| {
            let _leaves = Leaves(&others, u64::from(id != 1));
            let keys = &self.of_threads[id as usize - 1];
            let mut worker = Worker {
                round: self,
                id,
                random: SmallRng::seed_from_u64(self.seed ^ id << 56),
                permanent: &permanent,
                own: keys.iter().map(|&key| Own::new(key, Vec::new())).chain(twins.iter().cloned()).collect(),
                twins: twins.len(),
                entries: 0,
                filling: true,
                won: Vec::new(),
                pauses: Pauses::new(),
                tally,
            };
            K::lead(&mut worker, steps, &others);
            worker.own.append(&mut worker.won);
            worker.own
        });
        self.kind.finish(self, own.concat(), permanent, &mut tally);
        tally
    }

    fn add_once(&self) -> Tally {
        let (mut tally, filter) = (Tally::default(), self.kind.filter());
        let contested = self.of_threads.concat();
        let permanent = self.fill(self.entries.saturating_sub(contested.len() as u64), &mut tally);
        let won = on_all_threads(&mut tally, |id, tally| {
            let mut random = SmallRng::seed_from_u64(self.seed ^ id << 56);
            let mut won: Vec<Own> = Vec::new();
            for &key in &contested {
                let (own, number) = (Own::new(key, Vec::new()), self.kind.lasting());
                let (added, ticks) = self.timed(|| self.kind.add(&(key, number), id));
                if let Some(added) = self.taken(&own, number, ticks, added, tally) {
                    assert!(filter.contains(&key), "a present key was missed");
                    won.extend(added.then(|| Own::new(key, vec![number])));
                }
                for present in
                    permanent.get(random.random_range(0..permanent.len().max(1))).into_iter().chain(won.last())
                {
                    assert!(filter.contains(&present.key), "a present key was missed");
                }
                tally[Lookups] += 3;
            }
            won
        });
        let won = won.concat();
        let keys: HashSet<_> = won.iter().map(|own| own.key.0).collect();
        assert_eq!(keys.len(), won.len(), "a key was added twice");
        self.kind.finish(self, won, permanent, &mut tally);
        tally
    }

    /// A round in which one thread clears the filter while others insert and remove.
    fn clear_amid_changes(&self) -> Tally {
        let (mut tally, filter) = (Tally::default(), self.kind.filter());
        let old = self.fill(self.entries, &mut tally);
        // Each of these may have been added before or after the sweep had passed.
        let fresh = on_all_threads(&mut tally, |id, tally| {
            let mut random = SmallRng::seed_from_u64(self.seed ^ id << 56);
            match id {
                1 => filter.clear(),
                2 => old.iter().step_by(2).flat_map(Own::entries).for_each(|entry| {
                    tally[Removals] += 1;
                    filter.remove(&entry);
                }),
                _ => {
                    let keys = self.of_threads[id as usize - 1].iter();
                    let entries = keys.map(|&key| (key, self.kind.some_number(&mut random)));
                    let taken =
                        |&(key, number): &_| self.insert(&Own::new(key, Vec::new()), number, tally) == Some(true);
                    return entries.filter(taken).collect();
                }
            }
            Vec::new()
        });
        let (left, fresh) = (filter.len(), fresh.concat());
        let removed = fresh.iter().filter(|entry| filter.remove(entry)).count();
        tally[Removals] += fresh.len() as u64;
        assert_eq!(removed, left, "the length is wrong, or an old key outlived `clear`");
        self.check_empty(&mut tally);
        tally
    }

    fn put_back(&self, steps: u64) -> Tally {
        let (mut tally, filter, number) = (Tally::default(), self.kind.filter(), self.kind.lasting());
        let keys = self.of_threads.concat();
        let entries = keys.iter().cycle().take(8 * keys.len()).map(|&key| (key, number));
        let entries: Vec<_> = entries.take_while(|entry| tally.taken(filter.insert(entry)) == Some(true)).collect();
        on_all_threads(&mut tally, |id, tally| {
            let mut random = SmallRng::seed_from_u64(self.seed ^ id << 56);
            let own: Vec<_> = entries.iter().skip(id as usize - 1).step_by(THREADS as usize).collect();
            for _ in 0..if own.is_empty() { 0 } else { steps } {
                let entry = own[random.random_range(0..own.len())];
                assert!(filter.remove(entry), "a present key was not removed");
                assert_eq!(tally.taken(filter.insert(entry)), Some(true), "it was in before, so there is room");
                assert!(filter.contains(&own[random.random_range(0..own.len())].0), "a present key was missed");
            }
            tally[Removals] += steps;
            tally[Lookups] += steps;
        });
        let own =
            keys.iter().map(|&key| Own::new(key, vec![number; entries.iter().filter(|entry| entry.0 == key).count()]));
        self.kind.finish(self, own.collect(), Vec::new(), &mut tally);
        tally
    }

    /// Checks that the filter, which nobody uses any more, holds exactly these entries, and so does a snapshot. Then
    /// removes them.
    pub(crate) fn take_out_every_entry(&self, own: &[Own], tally: &mut Tally) {
        let filter = self.kind.filter();
        let entries: Vec<_> = own.iter().flat_map(Own::entries).collect();
        assert_eq!(filter.len(), entries.len(), "the length is wrong");
        own.iter().for_each(|own| check_all::<K>(filter, own));
        tally[Lookups] += own.len() as u64;
        #[cfg(feature = "snapshot")]
        {
            let loaded = reloaded(filter, filter.begin_save());
            assert_eq!((loaded.len(), loaded.capacity()), (filter.len(), filter.capacity()), "the snapshot differs");
            own.iter().for_each(|own| check_all::<K>(&loaded, own));
            assert!(loaded.remove_all(&entries).iter().all(|&removed| removed), "an entry was not saved");
            tally[crate::rounds::Count::Saves] += 1;
        }
        self.remove_all(&entries, tally);
        self.check_empty(tally);
    }

    /// Removes entries that are in, half of them by a batch.
    pub(crate) fn remove_all(&self, entries: &[(Raw, u64)], tally: &mut Tally) {
        let (by_batch, one_by_one) = entries.split_at(entries.len() / 2);
        let removed = self.kind.filter().remove_all(by_batch);
        assert!(removed.len() == by_batch.len() && removed.iter().all(|&removed| removed), "an entry was lost");
        assert!(one_by_one.iter().all(|entry| self.kind.filter().remove(entry)), "an entry was lost");
        tally[Removals] += entries.len() as u64;
    }

    /// Looks up all keys that the round may have used, and others.
    fn check_empty(&self, tally: &mut Tally) {
        let filter = self.kind.filter();
        assert_eq!(filter.len(), 0, "the length is not 0 when all entries are removed");
        let all = 2 * self.of_threads.concat().len().max(filter.capacity()) as u64 + 2;
        let found = (0..2).any(|owner| (0..all).any(|index| filter.contains(&key(self.seed, owner, index))));
        assert!(!found, "there is an entry that no thread knows of");
        tally[Lookups] += 2 * all;
    }
}

/// Takes a thread off the number of those that work, even if it fails.
struct Leaves<'a>(&'a AtomicU64, u64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, SeqCst);
    }
}

/// Loads what was saved of the filter, and checks that it is saved as the same bytes.
#[cfg(feature = "snapshot")]
fn reloaded<F: Table>(_filter: &F, save: concurrent_cuckoo_filter::Save<'_>) -> F {
    let mut bytes = Vec::new();
    save.write_to(&mut bytes).expect("there is memory");
    let loaded = F::loaded(&bytes);
    assert!(loaded.saved() == bytes, "a loaded filter is saved as other bytes");
    loaded
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
    /// The contested keys that it owns.
    won: Vec<Own>,
    pauses: Pauses,
    pub(crate) tally: &'a mut Tally,
}

impl<K: Kind> Worker<'_, K> {
    fn filter(&self) -> &K::Filter {
        self.round.kind.filter()
    }

    pub(crate) fn step(&mut self) {
        match self.random.random_range(0..256) {
            64..128 => K::other_step(self),
            _ if self.own.is_empty() => (),
            0 => self.insert_batch(),
            1 => self.remove_batch(),
            2 => self.look_up_batch(),
            3..11 => self.insert_if_absent(),
            11..20 => {
                let (at, number) = self.some_entry();
                self.remove(at, number);
            }
            20..36 if !self.round.contested.is_empty() => self.contend(),
            _ => self.insert_or_remove(),
        }
        self.look_up();
        if let Some(began) = self.pauses.over() {
            match self.id {
                1 => self.round.kind.tidy(),
                #[cfg(feature = "snapshot")]
                2 => self.save(),
                #[cfg(not(feature = "snapshot"))]
                2 => (),
                3 => {
                    self.filter().digest();
                    self.tally[Digests] += 1;
                }
                _ => K::merge(self),
            }
            self.pauses.begin(began);
        }
    }

    pub(crate) fn timed<R>(&self, operation: impl FnOnce() -> R) -> (R, Ticks) {
        self.round.timed(operation)
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
    pub(crate) fn remember(&mut self, at: usize, number: u64) {
        self.forget_the_dead(at);
        self.own[at].numbers.push(number);
        self.entries += 1;
    }

    pub(crate) fn taken<T>(&mut self, at: usize, number: u64, ticks: Ticks, answer: Result<T, Error<K>>) -> Option<T> {
        self.round.taken(&self.own[at], number, ticks, answer, self.tally)
    }

    fn insert_or_remove(&mut self) {
        let most = 2 * self.round.quota();
        self.filling = if self.entries == 0 { true } else { self.filling && self.entries < most };
        let spikes = self.round.work == Work::Spikes;
        let inserts = if spikes { self.filling } else { self.entries <= self.random.random_range(0..most) };
        if inserts {
            let (at, number) = self.some_new_entry();
            if self.round.insert(&self.own[at], number, self.tally).is_some() {
                self.remember(at, number);
            }
        } else if let Some(at) = self.some_that(true) {
            let nth = self.random.random_range(0..self.own[at].numbers.len());
            self.remove(at, self.own[at].numbers[nth]);
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
        self.tally[Removals] += 1;
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
        let (added, ticks) = self.timed(|| self.filter().insert_if_absent(&(self.own[at].key, number)));
        match self.taken(at, number, ticks, added) {
            Some(true) => {
                ticks.check_lived::<K>(number, true);
                assert!(!self.own[at].shared, "a twin of a present key was added");
                self.own[at].check_found::<K>(ticks, false);
                self.remember(at, number);
            }
            // If its end may have passed, that may be the reason.
            Some(false) if K::lives(number, ticks.after) => self.own[at].check_found::<K>(ticks, true),
            _ => (),
        }
    }

    /// Tries to own a key, or gives it up. While a thread owns a key, no other can.
    fn contend(&mut self) {
        let contested = &self.round.contested[self.random.random_range(0..self.round.contested.len())];
        let (key, number) = (contested.key, self.round.kind.some_number(&mut self.random));
        if let Some(at) = self.won.iter().position(|won| won.key == key) {
            let won = self.won.swap_remove(at);
            // From now on another thread can own it as soon as the entry is removed.
            contested.owner.store(0, SeqCst);
            self.tally[Removals] += 1;
            assert!(self.filter().remove(&(key, won.numbers[0])), "the owner's entry was not removed");
            return;
        }
        let own = Own::new(key, Vec::new());
        let (added, ticks) = self.timed(|| self.filter().insert_if_absent(&(key, number)));
        if self.round.taken(&own, number, ticks, added, self.tally) == Some(true) {
            assert_eq!(contested.owner.swap(self.id, SeqCst), 0, "two threads own a key");
            self.won.push(Own::new(key, vec![number]));
        }
    }

    fn look_up(&mut self) {
        // Often one that has twins, which move it.
        let some = if self.twins > 0 && self.random.random() { 8 } else { self.permanent.len() };
        let permanent = self.random.random_range(0..some.max(1));
        let own = if self.own.is_empty() { 0 } else { self.some() };
        let won = self.random.random_range(0..self.won.len().max(1));
        let closely = self.random.random_ratio(1, 4);
        let looked_up = self.permanent.get(permanent).into_iter().chain(self.own.get(own)).chain(self.won.get(won));
        for own in looked_up {
            let (found, ticks) = self.timed(|| self.filter().contains(&own.key));
            own.check_found::<K>(ticks, found);
            self.tally[Lookups] += 1;
            if closely {
                K::check(self.round.kind.filter(), own);
                self.tally[Counts] += 1;
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
        let (answer, ticks) = self.timed(|| self.filter().insert_all(&entries));
        let inserted = answer.as_ref().map_or_else(|(inserted, _)| *inserted, |()| new.len());
        self.tally[Inserts] += inserted as u64;
        // None is forgotten yet, because the batch may be refused for those that were live when it began.
        for &(at, number) in &new[..inserted] {
            self.own[at].numbers.push(number);
            self.entries += 1;
        }
        if let Err((_, error)) = answer {
            let (at, number) = new[inserted];
            self.taken::<()>(at, number, ticks, Err(error));
        }
    }

    /// Some of the thread's entries, and some that it may not have.
    fn remove_batch(&mut self) {
        let (mut entries, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..self.random.random_range(0..BATCH) {
            let (at, any) = self.some_entry();
            let own = &mut self.own[at];
            let number = pick(&own.numbers, &mut self.random).filter(|_| any % 8 < 7).unwrap_or(any);
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
        let (removed, ticks) = self.timed(|| self.filter().remove_all(&entries));
        self.tally[Removals] += removed.len() as u64;
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
        let (found, ticks) = self.timed(|| self.filter().contains_all(&keys));
        assert_eq!(found.len(), keys.len(), "as many answers as keys");
        iter::zip(own(), found).for_each(|(own, found)| own.check_found::<K>(ticks, found));
        self.tally[Lookups] += keys.len() as u64;
    }

    /// Saves while others change the filter. This thread's entries are in the snapshot as they are now, although it
    /// changes some of them before the snapshot is written.
    #[cfg(feature = "snapshot")]
    fn save(&mut self) {
        let kind = &self.round.kind;
        let before = kind.changes();
        let (save, ticks) = self.timed(|| kind.filter().begin_save());
        let after = kind.changes();
        let then: Vec<_> = self.own.iter().chain(self.permanent).chain(&self.won).cloned().collect();
        let changes = if self.own.is_empty() { 0 } else { self.random.random_range(0..500) };
        for _ in 0..changes {
            self.insert_or_remove();
            let (at, number) = self.some_entry();
            self.remove(at, number);
        }
        kind.check_saved(&reloaded(kind.filter(), save), &then, ticks, [before, after]);
        self.tally[crate::rounds::Count::Saves] += 1;
    }
}
