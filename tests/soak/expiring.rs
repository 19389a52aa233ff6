//! The soak of a filter whose entries expire one by one, with a clock that advances while all threads work.
//!
//! Every thread has keys of its own, and knows the ends of their entries. No two keys are of one class, so that no
//! key is found by another's entry. Each lookup that ends before `advance_to(e)` begins must find an entry with the
//! end `e`. No lookup that begins after `advance_to(e)` has returned may find it. So the round keeps two ticks: the
//! last one that a thread was about to pass ([`Round::begun`]), and the last one that took effect
//! ([`Round::done`]).

use std::fmt;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, ExpiringInsertError, Tick};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::expiring_worker::{Own, Worker};
use crate::rounds::{self, THREADS, Tally, key, on_all_threads, shares, some_capacity};
use crate::support::{Identity, MAPLET_LAYOUTS, Raw};

pub(crate) type Filter = ExpiringCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// The most keys that all threads race to add.
const CONTESTED: usize = 64;

/// A filter, what is done to it, and the data that its threads share.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    size: &'static str,
    /// The longest pause between two ticks, in microseconds.
    pub(crate) pause: u64,
    /// How many more calls pass each tick. Each call sweeps a part of the table.
    pub(crate) calls: u64,
    pub(crate) filter: Filter,
    keys: Keys,
    begun: AtomicU64,
    done: AtomicU64,
    /// Raised each time the refreshed keys begin or cease to be in throughout. While it is odd, they are in.
    refreshed: AtomicU64,
}

/// The keys of a round. They follow from its seed.
struct Keys {
    of_threads: Vec<Vec<Raw>>,
    /// The keys that all threads race to add. Each is used again when its last entry has expired.
    contested: Vec<Raw>,
    /// The keys that always have a live entry: the clock's thread adds a new one before the old one dies.
    refreshed: Vec<Raw>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of_threads, contested, refreshed } = self;
        let of_each = of_threads[0].len();
        write!(f, "{of_each} of each thread, {} contested and {} refreshed", contested.len(), refreshed.len())
    }
}

impl rounds::Round for Round {
    fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        // A layout with this many bits for an end. The lifetimes may be shorter.
        let (bits, rate, slots, _) = MAPLET_LAYOUTS[(seed % MAPLET_LAYOUTS.len() as u64) as usize];
        let least = 1 << (bits - 1);
        let longest = least + random.random_range(0..least) + u64::from(random.random_bool(0.5)) * (least - 1);
        let longest = longest.clamp(1, (1 << bits) - 1);
        let (size, capacity) = some_capacity(slots as u64, &mut random);
        let builder = ExpiringCuckooFilter::builder().hasher(BuildHasherDefault::default());
        let builder = builder.capacity(capacity as usize).lifetime_in_ticks(longest).false_positive_rate(rate);
        let filter: Filter = builder.build().expect("a valid filter");
        // From half full if all keys have an entry, to overfull if many have several.
        let keys = filter.capacity() as u64 * random.random_range(50..100) / 100;
        let (pause, calls) = ([0, 0, 30, 1000][random.random_range(0..4)], [0, 1, 10, 100][random.random_range(0..4)]);
        let tick = random.random::<u64>() >> [20, 50][random.random_range(0..2)];
        filter.advance_to(Tick::new(tick));
        let mut keys = distinct(&filter, seed, keys);
        // Enough keys that none can have two entries at a time.
        let contested = longest as usize + 1;
        let contested = if contested <= CONTESTED.min(keys.len() / 4) { contested } else { 0 };
        let contested = keys.split_off(keys.len() - contested);
        let refreshed = keys.split_off(keys.len() - (keys.len() / 8).min(16));
        let of_threads = shares(&keys);
        let keys = Keys { of_threads, contested, refreshed };
        let (begun, done, refreshed) = (AtomicU64::new(tick), AtomicU64::new(tick), AtomicU64::new(0));
        Self { seed, size, pause, calls, filter, keys, begun, done, refreshed }
    }

    fn kinds(&self) -> [String; 2] {
        let filter = &self.filter;
        let (slots, fingerprint_bits) = (filter.plan().layout.slots_per_bucket, filter.plan().layout.fingerprint_bits);
        let lag = match (1u64 << filter.plan().layout.payload_bits) - filter.plan().lifetime_in_ticks.unwrap() {
            1 => "the longest lifetimes",
            _ => "shorter lifetimes",
        };
        let layout = format!("{slots} by {fingerprint_bits} and {}", filter.plan().layout.payload_bits);
        [format!("{layout}, {lag}"), format!("{} µs, {} calls: {}", self.pause, self.calls, self.size)]
    }

    fn run(&self, steps: u64) -> Tally {
        let mut tally = Tally::default();
        let working = AtomicU64::new(THREADS - 1);
        let ended = on_all_threads(&mut tally, |id, tally| {
            let mut worker = Worker::new(self, id, &self.keys.of_threads[id as usize - 1], tally);
            if id == 1 {
                while working.load(SeqCst) > 0 {
                    worker.bring_tick();
                }
            } else {
                let _leaves = Leaves(&working);
                (0..steps).for_each(|_| worker.step());
            }
            worker.ended()
        });
        let (mut own, mut added) = (Vec::new(), Vec::new());
        for (of_one, added_by_one) in ended {
            own.extend(of_one);
            added.extend(added_by_one);
        }
        added.sort_unstable();
        assert!(added.windows(2).all(|two| two[0] != two[1]), "a contested key was added twice: {added:?}");
        // One entry of each such key may be left.
        let left = added.into_iter().filter(|&end| end > self.done());
        own.extend(left.map(|end| Own::new(self.contested_key(end), vec![end])));
        self.check_the_rest(own, &mut tally);
        tally
    }
}

/// Takes a thread off the number of those that work, even if it fails.
struct Leaves<'a>(&'a AtomicU64);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// About this many keys, of which no two are of one class.
fn distinct(filter: &Filter, seed: u64, count: u64) -> Vec<Raw> {
    let end = filter.now().expect("the clock has a tick").get() + filter.plan().lifetime_in_ticks.unwrap();
    let keys = rounds::distinct(seed, count, |key| filter.insert_if_absent_until(key, Tick::new(end)) == Ok(true));
    filter.clear();
    keys
}

impl Round {
    /// Lookups that end from now on may miss entries that expire at this tick or before.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(SeqCst)
    }

    /// Lookups that begin from now on must not find entries that expire at this tick or before.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(SeqCst)
    }

    pub(crate) fn refreshed_keys(&self) -> &[Raw] {
        &self.keys.refreshed
    }

    /// Sets whether the refreshed keys are in from now on.
    pub(crate) fn say_refreshed(&self, are_in: bool) {
        let times = self.refreshed.load(SeqCst);
        self.refreshed.store(times + u64::from((times % 2 == 1) != are_in), SeqCst);
    }

    /// Lets a lookup check that a refreshed key was in throughout. It was if the number is odd, and is the same
    /// before and after.
    pub(crate) fn refreshed(&self) -> u64 {
        self.refreshed.load(SeqCst)
    }

    /// Advances the clock by this many ticks.
    pub(crate) fn advance(&self, by: u64) {
        let tick = self.begun.fetch_add(by, SeqCst) + by;
        let advance = self.filter.advance_to(Tick::new(tick));
        self.done.fetch_max(tick, SeqCst);
        let expected = if by == 0 { Advance::Current } else { Advance::Forward { ticks: by } };
        // Another thread may have passed the same tick first.
        assert!(advance == expected || advance == Advance::Current, "{advance:?} is not {expected:?}");
    }

    /// Passes the tick again that another thread has passed, or is about to pass.
    pub(crate) fn bring_again(&self) {
        let tick = self.begun();
        let advance = self.filter.advance_to(Tick::new(tick));
        self.done.fetch_max(tick, SeqCst);
        assert!(self.filter.now() >= Some(Tick::new(tick)), "the tick has not taken effect: {advance:?}");
    }

    /// Whether there are keys that all threads race to add.
    pub(crate) fn has_contested(&self) -> bool {
        !self.keys.contested.is_empty()
    }

    /// The contested key whose entry is to expire at this tick.
    pub(crate) fn contested_key(&self, end: u64) -> Raw {
        self.keys.contested[(end % self.keys.contested.len() as u64) as usize]
    }

    /// The end of a round, with one thread left. All entries are there and expire when they should. Then there is
    /// room again.
    fn check_the_rest(&self, mut own: Vec<Own>, tally: &mut Tally) {
        let filter = &self.filter;
        let now = self.done();
        assert_eq!(
            (filter.now().map(Tick::get), self.begun()),
            (Some(now), now),
            "the clock shows another tick than passed"
        );
        let longest = filter.plan().lifetime_in_ticks.unwrap();
        for step in (0..=longest).step_by(1.max(longest as usize / 20)).chain([longest]) {
            filter.advance_to(Tick::new(now + step));
            own.iter_mut().for_each(|own| own.ends.retain(|&end| end > now + step));
            let live: usize = own.iter().map(|own| own.ends.len()).sum();
            assert_eq!(filter.live_len(), live, "the entries that are left are not those that were inserted");
            for own in &own {
                assert_eq!(filter.contains(&own.key), !own.ends.is_empty(), "{own:?} in the end, {step} ticks later");
            }
            tally.lookups += own.len() as u64;
        }
        // Dead entries count as room.
        let now = now + longest;
        for index in 0..filter.capacity() as u64 {
            let refused: Option<ExpiringInsertError> =
                filter.insert_until(&key(self.seed, 1, index), Tick::new(now + 1)).err();
            assert_eq!(refused, None, "all entries are dead, and yet there is no room for as many as the capacity");
        }
        tally.inserts += filter.capacity() as u64;
    }
}
