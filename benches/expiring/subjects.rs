//! What is compared.

use std::time::Duration;

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Encoding, ExpiringCuckooFilter, Tick};
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, InsertValues};
use moka::sync::Cache;

use crate::support::hash::HASH;
use crate::support::ours::builder;
use crate::{LONGEST, NOW};

/// How many keys a batch has.
const BATCH: usize = 1024;

pub(crate) type Expiring = ExpiringCuckooFilter<u64, RandomState>;
type Concurrent = ConcurrentCuckooFilter<u64, RandomState>;

/// A key, and the tick at which it expires.
pub(crate) type Clocked = (u64, u64);

/// The subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Expiring { slots: usize },
    Concurrent { slots: usize },
    CuckooClock { slots: usize },
    Moka,
}

/// A subject that holds keys. Each call is one loop that is compiled for it alone. Lookups return how many keys
/// were found, and changes how many succeeded.
pub(crate) trait Held {
    fn contains(&self, keys: &[u64]) -> usize;

    fn contains_batch(&self, _keys: &[u64]) -> Option<usize> {
        None
    }

    fn insert(&self, entries: &[Clocked]) -> usize;

    fn remove(&self, _entries: &[Clocked]) -> Option<usize> {
        None
    }

    /// Called when a quarter of the keys is in, and when all of them are.
    fn rest(&self) {}
}

impl Kind {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Expiring { slots } => format!("expiring, {slots} slots"),
            Self::Concurrent { slots } => format!("concurrent, {slots} slots"),
            Self::CuckooClock { slots } => format!("`cuckoo-clock`, {slots} slots"),
            Self::Moka => "`moka` (exact)".into(),
        }
    }

    /// An empty one for this many keys.
    pub(crate) fn make(self, keys: u64) -> Box<dyn Held> {
        let capacity = keys as usize;
        match self {
            Self::Expiring { slots } => {
                // The second rate is that of cuckoo-clock.
                let filter = expiring(capacity, if slots == 4 { 0.001 } else { 0.000_11 }, LONGEST);
                assert_eq!((filter.plan().layout.slots_per_bucket, filter.plan().layout.payload_bits), (slots, 4));
                filter.advance_to(Tick::new(NOW));
                Box::new(filter)
            }
            Self::Concurrent { slots } => {
                let rate = if slots == 4 { 0.000_07 } else { 0.000_002 };
                let filter = builder().capacity(capacity).false_positive_rate(rate).build().expect("a valid filter");
                assert_eq!(
                    (filter.plan().layout.slots_per_bucket, filter.plan().layout.encoding),
                    (slots, Encoding::SemiSorted)
                );
                Box::new(filter)
            }
            Self::CuckooClock { slots } => Box::new(cuckoo_clock(capacity, slots)),
            Self::Moka => {
                let builder = Cache::builder().initial_capacity(capacity).expire_after(OwnLifetime);
                Box::new(builder.build_with_hasher(HASH))
            }
        }
    }
}

/// An empty filter, without huge pages: the others have none either.
pub(crate) fn expiring(capacity: usize, rate: f64, ticks: u64) -> Expiring {
    let builder =
        Expiring::builder_with_hasher(HASH).capacity(capacity).false_positive_rate(rate).lifetime_in_ticks(ticks);
    builder.build().expect("a valid filter")
}

/// With fingerprints of 16 bits in buckets of four slots, or of 17 in buckets of eight, which is the same rate.
fn cuckoo_clock(capacity: usize, slots: usize) -> CuckooFilter<RandomState> {
    let bits = |bits: usize| bits.try_into().expect("a number of bits");
    let ttl = TtlConfig { ttl: (LONGEST as u32).try_into().expect("not 0"), ttl_bits: bits(4) };
    let builder = CuckooConfiguration::builder(capacity).bucket_size(slots.try_into().expect("not 0"));
    let builder = builder.fingerprint_bits(bits(14 + slots.ilog2() as usize)).with_ttl(ttl);
    CuckooFilter::new(builder.build().expect("a valid filter"), HASH)
}

/// The number of elements for which `is_so` holds.
#[inline(always)]
fn number<T>(all: &[T], is_so: impl Fn(&T) -> bool) -> usize {
    all.iter().filter(|one| is_so(one)).count()
}

/// Like [`number`], in batches that append their answers.
#[inline(always)]
fn number_in_batches(keys: &[u64], ask: impl Fn(&[u64], &mut Vec<bool>)) -> Option<usize> {
    let mut found = Vec::with_capacity(BATCH);
    let mut yes = 0;
    for keys in keys.chunks(BATCH) {
        found.clear();
        ask(keys, &mut found);
        yes += number(&found, |&found| found);
    }
    Some(yes)
}

impl Held for Expiring {
    fn contains(&self, keys: &[u64]) -> usize {
        number(keys, |key| self.contains(key))
    }

    fn contains_batch(&self, keys: &[u64]) -> Option<usize> {
        number_in_batches(keys, |keys, found| self.contains_batch(keys, found))
    }

    fn insert(&self, entries: &[Clocked]) -> usize {
        number(entries, |(key, end)| self.insert_until(key, Tick::new(*end)).is_ok())
    }

    fn remove(&self, entries: &[Clocked]) -> Option<usize> {
        Some(number(entries, |(key, end)| self.remove_expiring_at(key, Tick::new(*end))))
    }
}

impl Held for Concurrent {
    fn contains(&self, keys: &[u64]) -> usize {
        number(keys, |key| self.contains(key))
    }

    fn contains_batch(&self, keys: &[u64]) -> Option<usize> {
        number_in_batches(keys, |keys, found| self.contains_batch(keys, found))
    }

    fn insert(&self, entries: &[Clocked]) -> usize {
        number(entries, |(key, _)| self.insert(key).is_ok())
    }

    fn remove(&self, entries: &[Clocked]) -> Option<usize> {
        Some(number(entries, |(key, _)| self.remove(key)))
    }
}

impl Held for CuckooFilter<RandomState> {
    fn contains(&self, keys: &[u64]) -> usize {
        number(keys, |key| self.contains(key))
    }

    fn insert(&self, entries: &[Clocked]) -> usize {
        let values = |end: u64| InsertValues { ttl: Some((end - NOW) as u32), counter: None };
        number(entries, |(key, end)| self.insert_with_defaults(key, values(*end)).is_none())
    }

    fn remove(&self, entries: &[Clocked]) -> Option<usize> {
        Some(number(entries, |(key, _)| self.remove(key)))
    }
}

/// A tick is an hour, so that nothing expires here. The value of a key is its lifetime in ticks.
struct OwnLifetime;

impl moka::Expiry<u64, u32> for OwnLifetime {
    fn expire_after_create(&self, _key: &u64, ticks: &u32, _created_at: std::time::Instant) -> Option<Duration> {
        Some(Duration::from_secs(3600 * u64::from(*ticks)))
    }
}

impl Held for Cache<u64, u32, RandomState> {
    fn contains(&self, keys: &[u64]) -> usize {
        number(keys, |key| self.contains_key(key))
    }

    fn insert(&self, entries: &[Clocked]) -> usize {
        number(entries, |&(key, end)| {
            self.insert(key, (end - NOW) as u32);
            true
        })
    }

    fn remove(&self, entries: &[Clocked]) -> Option<usize> {
        Some(number(entries, |(key, _)| {
            self.invalidate(key);
            true
        }))
    }

    /// Does the work that it has put off.
    fn rest(&self) {
        self.run_pending_tasks();
    }
}
