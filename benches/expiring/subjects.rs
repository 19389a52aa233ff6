//! What is compared.

use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, InsertValues};
use moka::sync::Cache;

use crate::support::hash::HASH;
use crate::support::ours::{BATCH, builder};
use crate::{LONGEST, NOW};

/// Its name, and how an empty one for so many keys is made.
pub(crate) type Subject = (&'static str, fn(usize) -> Held);

pub(crate) const LARGE: [Subject; 2] = [("expiring, 4 slots", |keys| ours(keys, 0.001, 4)), ("concurrent", concurrent)];

/// The rate of the first is that of cuckoo-clock.
pub(crate) const SMALL: [Subject; 4] = [
    ("expiring, 3 slots", |keys| ours(keys, 0.000_11, 3)),
    ("`cuckoo-clock`, 4 slots", |keys| cuckoo_clock(keys, 4)),
    ("`cuckoo-clock`, 8 slots", |keys| cuckoo_clock(keys, 8)),
    ("`moka` (exact)", moka),
];

/// How many of some keys are found. It is one loop that is compiled for one subject alone.
type LookUp = Box<dyn Fn(&[u64]) -> usize>;

/// What holds keys.
pub(crate) struct Held {
    pub(crate) contains: LookUp,
    /// `None` if it has no batches.
    pub(crate) contains_batch: Option<LookUp>,
    /// Whether there was room for a key that expires at this tick.
    pub(crate) insert: Box<dyn Fn(u64, u64) -> bool>,
    /// Does the work that it has put off.
    pub(crate) rest: Box<dyn Fn()>,
}

impl Held {
    fn new<F: 'static>(
        filter: &Rc<F>,
        insert: impl Fn(&F, u64, u64) -> bool + 'static,
        contains: impl Fn(&F, &u64) -> bool + 'static,
    ) -> Self {
        let (to, of) = (Rc::clone(filter), Rc::clone(filter));
        Self {
            contains: Box::new(move |keys| keys.iter().filter(|key| contains(&of, key)).count()),
            contains_batch: None,
            insert: Box::new(move |key, end| insert(&to, key, end)),
            rest: Box::new(|| ()),
        }
    }

    fn with_batches(self, contains_batch: impl Fn(&[u64], &mut Vec<bool>) + 'static) -> Self {
        let look_up = move |keys: &[u64]| {
            let (mut found, mut yes) = (Vec::with_capacity(BATCH), 0);
            for keys in keys.chunks(BATCH) {
                found.clear();
                contains_batch(keys, &mut found);
                yes += found.iter().filter(|&&found| found).count();
            }
            yes
        };
        Self { contains_batch: Some(Box::new(look_up)), ..self }
    }
}

/// An empty filter, without huge pages: the others have none either.
pub(crate) fn expiring(capacity: usize, rate: f64) -> ExpiringCuckooFilter<u64, RandomState> {
    let builder = ExpiringCuckooFilter::builder_with_hasher(HASH).capacity(capacity).false_positive_rate(rate);
    builder.lifetime_in_ticks(LONGEST).build().expect("a valid filter")
}

fn ours(capacity: usize, rate: f64, slots: usize) -> Held {
    let filter = Rc::new(expiring(capacity, rate));
    assert_eq!((filter.plan().layout.slots_per_bucket, filter.plan().layout.payload_bits), (slots, 4));
    filter.advance_to(Tick::new(NOW));
    Held::new(
        &filter,
        |filter, key, end| filter.insert_until(&key, Tick::new(end)).is_ok(),
        |filter, key| filter.contains(key),
    )
    .with_batches(move |keys, found| filter.contains_batch(keys, found))
}

fn concurrent(capacity: usize) -> Held {
    let filter = Rc::new(builder().capacity(capacity).false_positive_rate(0.000_07).build().expect("valid"));
    assert_eq!(filter.plan().layout.slots_per_bucket, 4);
    Held::new(&filter, |filter, key, _| filter.insert(&key).is_ok(), |filter, key| filter.contains(key))
        .with_batches(move |keys, found| filter.contains_batch(keys, found))
}

/// With fingerprints of 16 bits in buckets of four slots, or of 17 in buckets of eight, which is the same rate.
fn cuckoo_clock(capacity: usize, slots: usize) -> Held {
    let bits = |bits: usize| bits.try_into().expect("a number of bits");
    let ttl = TtlConfig { ttl: (LONGEST as u32).try_into().expect("not 0"), ttl_bits: bits(4) };
    let builder = CuckooConfiguration::builder(capacity).bucket_size(slots.try_into().expect("not 0"));
    let builder = builder.fingerprint_bits(bits(14 + slots.ilog2() as usize)).with_ttl(ttl);
    let filter = Rc::new(CuckooFilter::new(builder.build().expect("a valid filter"), HASH));
    let insert = |filter: &CuckooFilter<RandomState>, key, end| {
        filter.insert_with_defaults(&key, InsertValues { ttl: Some((end - NOW) as u32), counter: None }).is_none()
    };
    Held::new(&filter, insert, |filter, key| filter.contains(key))
}

/// A tick is an hour, so that nothing expires here. The value of a key is its lifetime in ticks.
struct OwnLifetime;

impl moka::Expiry<u64, u32> for OwnLifetime {
    fn expire_after_create(&self, _key: &u64, ticks: &u32, _created_at: Instant) -> Option<Duration> {
        Some(Duration::from_secs(3600 * u64::from(*ticks)))
    }
}

fn moka(capacity: usize) -> Held {
    let builder = Cache::builder().initial_capacity(capacity).expire_after(OwnLifetime);
    let cache = Rc::new(builder.build_with_hasher(HASH));
    let insert = |cache: &Cache<u64, u32, RandomState>, key, end| {
        cache.insert(key, (end - NOW) as u32);
        true
    };
    let held = Held::new(&cache, insert, |cache, key| cache.contains_key(key));
    Held { rest: Box::new(move || cache.run_pending_tasks()), ..held }
}
