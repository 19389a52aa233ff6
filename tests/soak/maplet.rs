//! The soak of a maplet: of every layout, from a few buckets to ten thousand, and up to overfull.
//!
//! No two keys are of one class, so that no key has the values of another. Every thread has keys of its own and knows
//! their values, so each answer about them must be exact. All threads race to own some keys, and look up others whose
//! values one thread replaces.

use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use concurrent_cuckoo_filter::{CuckooMaplet, MapletInsertError, Values};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::maplet_worker::{Own, Worker};
use crate::rounds::{self, THREADS, Tally, key, on_all_threads, shares, some_capacity};
use crate::support::{Identity, MAPLET_LAYOUTS, MapletLayout, Raw};

pub(crate) type Maplet = CuckooMaplet<Raw, BuildHasherDefault<Identity>>;

/// The first value that is replaced.
const FIRST: u16 = 1;

/// What the threads of a round do.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// All operations but `clear`, `absorb`, digests and those by hash.
    Churn,
    /// Clear the maplet during inserts and removals.
    Clear,
}

/// A maplet, what is done to it, and the data that its threads share.
pub(crate) struct Round {
    pub(crate) seed: u64,
    layout: MapletLayout,
    size: &'static str,
    work: Work,
    pub(crate) maplet: Maplet,
    /// About how many pairs the maplet will hold: from 95 % of its capacity to 5 % more than it has slots.
    items: u64,
    of_threads: Vec<Vec<Raw>>,
    pub(crate) contested: Vec<Contested>,
    pub(crate) replaced: Vec<Replaced>,
}

/// A key that all threads race to own. Only its owner gives it a value.
pub(crate) struct Contested {
    pub(crate) key: Raw,
    /// The number of the thread that owns it, or 0.
    pub(crate) owner: AtomicU64,
}

/// A key with two values: 0, which stays, and one that is replaced again and again by one thread.
pub(crate) struct Replaced {
    pub(crate) key: Raw,
    /// How many replacements have begun, and how many have ended.
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Replaced {
    /// The number of the last replacement that has ended. Read before a lookup, it is the first whose value may be
    /// found.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(SeqCst)
    }

    /// The number of the last replacement that has begun. Read after a lookup, it is the last whose value may be found.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(SeqCst)
    }
}

impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layout, size, work, maplet, items, .. } = self;
        write!(f, "{layout:?}, {size}, {work:?} with {items} items, {maplet:?}")
    }
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let layout = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        let (bits, rate, slots, _) = layout;
        let (size, capacity) = some_capacity(slots as u64, &mut random);
        let work = if random.random_ratio(1, 4) { Work::Clear } else { Work::Churn };
        let builder = CuckooMaplet::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(capacity as usize).value_bits(bits).false_positive_rate(rate);
        let maplet: Maplet = builder.build().expect("a valid maplet");
        let (least, most) = (maplet.capacity() as u64 * 95 / 100, maplet.plan().slots as u64 * 105 / 100);
        let items = random.random_range(least..=most);
        let mut keys = distinct(&maplet, seed, maplet.capacity() as u64 * random.random_range(30..90) / 100);
        let contested = keys.split_off(keys.len() - (keys.len() / 8).min(64));
        let replaced = keys.split_off(keys.len() - (keys.len() / 8).min(16));
        let of_threads = shares(&keys);
        let contested = contested.into_iter().map(|key| Contested { key, owner: AtomicU64::new(0) }).collect();
        let new = |key| Replaced { key, begun: AtomicU64::new(0), ended: AtomicU64::new(0) };
        let replaced = replaced.into_iter().filter(|key| take_both(&maplet, key)).map(new).collect();
        Self { seed, layout, size, work, maplet, items, of_threads, contested, replaced }
    }

    fn kinds(&self) -> [String; 2] {
        let (bits, _, slots, fingerprint_bits) = self.layout;
        [format!("{slots} by {fingerprint_bits} and {bits}"), format!("{:?}: {}", self.work, self.size)]
    }

    fn run(&self, steps: u64) -> Tally {
        match self.work {
            Work::Churn => self.churn(steps),
            Work::Clear => self.clear_amid_changes(),
        }
    }
}

/// About this many keys, of which no two are of one class.
fn distinct(maplet: &Maplet, seed: u64, count: u64) -> Vec<Raw> {
    let is_new = |key: &Raw| maplet.insert_if_absent(key, 0).expect("these are fewer than the capacity").is_empty();
    let keys = rounds::distinct(seed, count, is_new);
    maplet.clear();
    keys
}

/// Gives the key the values 0 and [`FIRST`], if there is room for both.
fn take_both(maplet: &Maplet, key: &Raw) -> bool {
    let taken = maplet.insert_batch([(key, 0), (key, FIRST)]);
    if taken.as_ref().is_err_and(|refused| refused.index > 0) {
        assert!(maplet.remove(key, 0), "it was inserted");
    }
    taken.is_ok()
}

impl Round {
    /// The greatest value.
    pub(crate) fn most(&self) -> u16 {
        u16::MAX >> (16 - self.layout.0)
    }

    fn churn(&self, steps: u64) -> Tally {
        let mut tally = Tally::default();
        // How many pairs a thread has in the maplet, on average.
        let quota = self.items.saturating_sub(2 * self.replaced.len() as u64) / THREADS + 1;
        let own = on_all_threads(&mut tally, |id, tally| {
            let mut worker = Worker::new(self, id, &self.of_threads[id as usize - 1], quota, tally);
            (0..steps).for_each(|_| worker.step());
            worker.ended()
        });
        let mut own = own.concat();
        own.extend(self.replaced.iter().map(|replaced| {
            let last = self.replacement(replaced.ended());
            Own { key: replaced.key, values: vec![0, last] }
        }));
        self.take_out_every_pair(&own, &mut tally);
        tally
    }

    /// The value that this replacement gives to a key. It is never 0, and no two in a row are the same, unless values
    /// have one bit.
    fn replacement(&self, number: u64) -> u16 {
        (number % u64::from(self.most())) as u16 + FIRST
    }

    /// Replaces a value of this key. Only one thread may call it.
    pub(crate) fn replace(&self, replaced: &Replaced, tally: &mut Tally) {
        let number = replaced.begun.fetch_add(1, SeqCst) + 1;
        let (old, new) = (self.replacement(number - 1), self.replacement(number));
        tally.replacements += 1;
        assert_eq!(self.maplet.replace(&replaced.key, old, new), Ok(true), "a value was not there to be replaced");
        replaced.ended.store(number, SeqCst);
    }

    /// Looks up a key whose value is being replaced.
    pub(crate) fn look_up_replaced(&self, replaced: &Replaced, tally: &mut Tally) {
        let ended = replaced.ended();
        let values = self.maplet.values(&replaced.key);
        self.check_replaced(values, ended, replaced.begun());
        tally.lookups += 1;
    }

    /// Checks that a key has 0 and the value that one of the replacements from `ended` to `begun` has given to it.
    pub(crate) fn check_replaced(&self, values: Values, ended: u64, begun: u64) {
        assert!(values.len() == 2 && values.contains(0), "{values:?}: 0 and another value");
        // After as many replacements as there are values, they begin again.
        let mut numbers = (ended..=begun).take(self.most().into());
        let possible = numbers.any(|number| values.contains(self.replacement(number)));
        assert!(possible, "{values:?}: a value of another time than from {ended} to {begun}");
    }

    /// Checks that the maplet, which nobody changes, holds exactly these pairs. Then removes them.
    fn take_out_every_pair(&self, own: &[Own], tally: &mut Tally) {
        check_all(&self.maplet, own);
        #[cfg(feature = "snapshot")]
        {
            check_all(&reloaded(self.maplet.begin_save().expect("there is memory")), own);
            tally.saves += 1;
        }
        let pairs: Vec<_> = own.iter().flat_map(|own| own.values.iter().map(|&value| (own.key, value))).collect();
        let (by_batch, one_by_one) = pairs.split_at(pairs.len() / 2);
        let mut removed = Vec::new();
        self.maplet.remove_batch(by_batch.iter().map(|(key, value)| (key, *value)), &mut removed);
        assert!(removed.iter().all(|&removed| removed), "a pair was lost");
        assert!(one_by_one.iter().all(|(key, value)| self.maplet.remove(key, *value)), "a pair was lost");
        tally.lookups += own.len() as u64;
        tally.removals += pairs.len() as u64;
        self.check_empty(tally);
    }

    fn check_empty(&self, tally: &mut Tally) {
        assert!(self.maplet.is_empty(), "the length is not 0 when all pairs are removed");
        let all = 0..2 * self.maplet.capacity() as u64 + 2;
        tally.lookups += all.end;
        let found = all.map(|index| key(self.seed, 0, index)).any(|key| self.maplet.contains(&key));
        assert!(!found, "there is a pair that no thread knows of");
    }

    /// A round in which one thread clears the maplet while others insert and remove.
    fn clear_amid_changes(&self) -> Tally {
        let (maplet, most) = (&self.maplet, u64::from(self.most()));
        let mut tally = Tally::default();
        let values = move |key: Raw| [key.0 % (most + 1), key.0 / 7 % (most + 1)].map(|value| (key, value as u16));
        let put_in = |keys: &[Raw], tally: &mut Tally| {
            let pairs = keys.iter().flat_map(|&key| values(key));
            pairs.filter(|(key, value)| taken(tally, maplet.insert(key, *value)).is_some()).collect::<Vec<_>>()
        };
        let old = put_in(&self.of_threads[0], &mut tally);
        // Each of these may have been added before or after the sweep had passed.
        let fresh = on_all_threads(&mut tally, |id, tally| {
            match id {
                1 => maplet.clear(),
                2 => old.iter().step_by(2).for_each(|(key, value)| {
                    let [(_, one), (_, other)] = values(*key);
                    let found = maplet.values(key);
                    assert!(found.iter().all(|found| found == one || found == other), "{found:?}: never in");
                    maplet.remove(key, *value);
                    tally.lookups += 1;
                    tally.removals += 1;
                }),
                _ => return put_in(&self.of_threads[id as usize - 1], tally),
            }
            Vec::new()
        });
        let left = maplet.len();
        let removed = fresh.iter().flatten().filter(|(key, value)| maplet.remove(key, *value)).count();
        tally.removals += fresh.iter().flatten().count() as u64;
        assert_eq!(removed, left, "the length is wrong, or an old pair outlived `clear`");
        self.check_empty(&mut tally);
        tally
    }
}

/// Counts an insert. Returns its result, unless there was no room.
pub(crate) fn taken<T>(tally: &mut Tally, result: Result<T, MapletInsertError>) -> Option<T> {
    if let Err(error) = &result {
        let no_room = matches!(error, MapletInsertError::Full { .. } | MapletInsertError::TooManyCopies { .. });
        assert!(no_room, "refused for no reason: {error}");
    }
    tally.taken(result)
}

/// Checks that the maplet, which nobody changes, holds exactly these pairs.
fn check_all(maplet: &Maplet, own: &[Own]) {
    let pairs: usize = own.iter().map(|own| own.values.len()).sum();
    assert_eq!(maplet.len(), pairs, "the length is wrong");
    for own in own {
        own.check_values(maplet.values(&own.key));
        for &value in &own.values {
            assert_eq!(maplet.count(&own.key, value), own.count(value), "{own:?}: copies of {value}");
        }
    }
    let mut answers: Vec<Values> = Vec::new();
    maplet.values_batch(own.iter().map(|own| &own.key), &mut answers);
    assert_eq!(answers.len(), own.len(), "as many answers as keys");
    own.iter().zip(answers).for_each(|(own, values)| own.check_values(values));
}

/// Loads the maplet that was saved.
#[cfg(feature = "snapshot")]
pub(crate) fn reloaded(save: concurrent_cuckoo_filter::Save<'_>) -> Maplet {
    let mut bytes = Vec::new();
    save.write_to(&mut bytes).expect("there is memory");
    Maplet::load(&bytes[..], BuildHasherDefault::default(), usize::MAX).expect("it was just saved")
}
