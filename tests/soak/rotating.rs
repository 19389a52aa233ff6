//! The soak of a filter that rotates: by hand as fast as possible, by a clock that all threads advance, and when a
//! generation is full.
//!
//! What must be found follows from the promise of the filter. An insert takes effect in a generation `b` that is
//! current during the call, and its key is found until generation `b + g` begins. The threads know two lower bounds
//! for `b`: the generation before the call, and the one in which another thread last missed the key
//! ([`Round::look_for_announced`]).

use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::RotatingCuckooFilter;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::rotating_worker::{BATCH, Worker};
use crate::rounds::{self, THREADS, Tally, key, on_all_threads};
use crate::support::{Identity, Raw};

pub(crate) type Filter = RotatingCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// The owner of the keys that all threads race to add, and of the keys that are in throughout.
pub(crate) const CONTESTED: u64 = THREADS + 1;
const PERMANENT: u64 = THREADS + 2;

/// What makes the filter rotate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// One thread, which refreshes the permanent keys before each rotation.
    Hand,
    /// Ticks, which all threads pass.
    Clock,
    /// Inserts that find the generation full.
    Count,
}

/// A filter, what is done to it, and the data that its threads share.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    pub(crate) by: By,
    rate: f64,
    size: &'static str,
    /// The longest pause between two rotations, in microseconds.
    pub(crate) pause: u64,
    pub(crate) filter: Filter,
    /// The number of the key that a thread is about to insert, and the generation before the insert. See [`pack`].
    pub(crate) announced: [AtomicU64; THREADS as usize],
    /// The number of a key that was missed, and the last generation in which it was missed.
    pub(crate) missed: [AtomicU64; THREADS as usize],
    pub(crate) permanent: Vec<Raw>,
    /// Whether each permanent key was refreshed before each rotation.
    pub(crate) permanent_are_in: AtomicBool,
    pub(crate) tick: AtomicU64,
    /// Inserts that have begun.
    pub(crate) inserts: AtomicU64,
}

/// A key and the generations between which its last insert took effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) key: Raw,
    pub(crate) since: u64,
    pub(crate) until: u64,
    /// How many inserts had begun before it.
    pub(crate) inserts: u64,
}

/// The number of a key and a generation, in one word.
pub(crate) fn pack(number: u64, generation: u64) -> u64 {
    number << 32 | generation
}

pub(crate) fn unpack(word: u64) -> (u64, u64) {
    (word >> 32, word & 0xffff_ffff)
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let by = [By::Hand, By::Clock, By::Count][(seed % 3) as usize];
        let rate: f64 = [0.3, 0.03, 0.001, 1e-6][random.random_range(0..4)];
        let (size, capacity) = match random.random_range(0..12) {
            0..5 => ("a few keys", random.random_range(0..100)),
            5..10 => ("hundreds of keys", random.random_range(100..1100)),
            _ => ("thousands of keys", random.random_range(1000..21_000)),
        };
        let generations = match random.random_range(0..16) {
            0..12 => random.random_range(2..5),
            12..15 => random.random_range(5..17),
            _ => random.random_range(100..256),
        };
        let pause = [0, 0, 30, 1000][random.random_range(0..4)];
        let rate = if generations > 16 { rate.max(1e-3) } else { rate };
        let builder = RotatingCuckooFilter::builder().hasher(BuildHasherDefault::default());
        let builder = builder.generation_capacity(capacity as usize).generations(generations as usize);
        let builder = builder.false_positive_rate(rate).rotate_when_full(by == By::Count);
        let filter: Filter = builder.build().expect("a valid filter");
        let few = (filter.generation_capacity() as u64 / 4).min(32);
        Self {
            seed,
            by,
            rate,
            size,
            pause,
            filter,
            announced: Default::default(),
            missed: Default::default(),
            permanent: (0..few).map(|index| key(seed, PERMANENT, index)).collect(),
            permanent_are_in: AtomicBool::new(by == By::Hand),
            tick: AtomicU64::new(1 + (random.random::<u64>() >> 20)),
            inserts: AtomicU64::new(0),
        }
    }

    fn kinds(&self) -> [String; 2] {
        let generations = match self.generations() {
            2 => "two generations",
            3 => "three generations",
            4 => "four generations",
            _ => "more generations",
        };
        [format!("rate {}, {generations}", self.rate), format!("by {:?}: {}", self.by, self.size)]
    }

    fn run(&self, time: Duration) -> Tally {
        let mut tally = Tally::default();
        self.filter.advance_to(self.tick.load(SeqCst));
        assert!(self.by != By::Hand || self.refresh_permanent(), "the first keys were refused");
        let end = Instant::now() + time;
        let ended = on_all_threads(&mut tally, |id, tally| {
            let mut worker = Worker::new(self, id, tally);
            while Instant::now() < end {
                if self.by == By::Hand && id == 1 { worker.rotate_by_hand() } else { worker.step() }
            }
            worker.ended()
        });
        let rotations = ended.iter().map(|ended| ended.rotations).sum();
        self.check_rotations(rotations);
        tally.rotations += self.filter.generation();
        self.check_first_to_add(ended.iter().flat_map(|ended| ended.added.iter().copied()).collect());
        let expired = ended.iter().map(|ended| ended.expired).sum::<u64>();
        let found = ended.iter().map(|ended| ended.expired_but_found).sum::<u64>() as f64;
        // A full generation takes only keys that look like one in it. So each insert may have led to a pair of
        // look-alikes, of which one is found while the other is refreshed.
        let mistaken = (expired + tally.inserts) as f64 * self.filter.max_false_positive_rate();
        assert!(found <= 10.0 + 4.0 * mistaken, "{found} of {expired} expired keys are found, {mistaken} are expected");
        self.check_expiry(ended.into_iter().flat_map(|ended| ended.lives).collect(), &mut tally);
        tally
    }
}

impl Round {
    pub(crate) fn generations(&self) -> u64 {
        self.filter.generations() as u64
    }

    /// The least number of copies that a generation takes.
    fn capacity(&self) -> u64 {
        // Of the keys that a thread adds in a generation, one may be overtaken by a rotation, and is added twice.
        (self.filter.generation_capacity() as u64).saturating_sub(THREADS)
    }

    /// Refreshes the permanent keys. Returns whether the life of all of them has begun anew.
    pub(crate) fn refresh_permanent(&self) -> bool {
        self.permanent.iter().all(|key| self.filter.insert(key).is_ok())
    }

    /// Looks for the keys that other threads are about to insert. If it misses one that cannot have expired, that
    /// insert takes effect in this generation or later.
    pub(crate) fn look_for_announced(&self) {
        for owner in 0..THREADS {
            let (number, before) = unpack(self.announced[owner as usize].load(SeqCst));
            let generation = self.filter.generation();
            let found = number == 0 || self.filter.contains(&key(self.seed, owner + 1, number));
            if !found && self.filter.generation() < before + self.generations() {
                self.missed[owner as usize].store(pack(number, generation), SeqCst);
            }
        }
    }

    /// Whether a lookup that has ended by now must find a key, because its generation has not expired.
    fn is_young(&self, life: &Life) -> bool {
        self.filter.generation() < life.since + self.generations()
    }

    /// Whether a lookup that has ended by now must find a key, if no thread also rotates by hand.
    pub(crate) fn must_be_found(&self, life: &Life) -> bool {
        // The inserts since then, and those of other threads that were under way, fill no more than the generations
        // after the key's own.
        let inserts = self.inserts.load(SeqCst) - life.inserts + THREADS * BATCH;
        self.is_young(life) || self.by == By::Count && inserts <= (self.generations() - 1) * self.capacity()
    }

    /// Checks that there were as many rotations as the threads know of.
    fn check_rotations(&self, rotations: u64) {
        let generation = self.filter.generation();
        match self.by {
            By::Hand | By::Clock => assert_eq!(generation, rotations, "too many rotations, or too few"),
            By::Count => {
                let inserts = self.inserts.load(SeqCst);
                assert!(generation * self.capacity() <= inserts, "{generation} rotations for {inserts} inserts");
            }
        }
    }

    /// Checks that each contested key was added once in each of its lives. `added` has the keys' numbers, and the
    /// generations before and after each call that added one.
    fn check_first_to_add(&self, mut added: Vec<(u64, u64, u64)>) {
        added.sort_unstable();
        for calls in added.windows(2) {
            let [(one, _, after), (other, before, until)] = [calls[0], calls[1]];
            // The call that began later may take effect first, if a rotation overtook the other.
            let apart = until.saturating_sub(calls[0].1).max(after.saturating_sub(before));
            assert!(one != other || apart >= self.generations(), "key {one} was added twice: {calls:?}");
        }
    }

    /// The end of a round: checks that all keys live as long as they must, and then are gone.
    fn check_expiry(&self, lives: Vec<Life>, tally: &mut Tally) {
        let filter = &self.filter;
        // One rotation more than there are generations, for copies that an insert has left in the spare table.
        for _ in 0..=self.generations() {
            let lost = lives.iter().any(|life| !filter.contains(&life.key) && self.is_young(life));
            assert!(!lost, "a young key was lost");
            tally.lookups += lives.len() as u64;
            filter.rotate();
        }
        assert!(filter.is_empty(), "something outlived all generations");
        for owner in 1..=PERMANENT {
            assert!(
                !(0..10_000).any(|index| filter.contains(&key(self.seed, owner, index))),
                "an expired key is found"
            );
        }
        tally.lookups += PERMANENT * 10_000;
    }
}
