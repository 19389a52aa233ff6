//! What is compared.

use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, InsertValues};
use moka::sync::Cache;

use crate::support::hash::HASH;
use crate::support::ours::{BATCH, Fixed, builder};
use crate::{LONGEST, NOW};

type Expiring = ExpiringCuckooFilter<u64, RandomState>;

/// The subjects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Expiring { slots: usize },
    Concurrent,
    CuckooClock { slots: usize },
    Moka,
}

/// A subject that holds keys. Lookups are one loop that is compiled for it alone, and return how many keys were found.
pub(crate) trait Held {
    fn contains(&self, keys: &[u64]) -> usize;

    /// `None` if it has no batches.
    fn contains_batch(&self, _keys: &[u64]) -> Option<usize> {
        None
    }

    /// Whether there was room.
    fn insert(&self, key: u64, end: u64) -> bool;

    /// Does the work that it has put off.
    fn rest(&self) {}
}

impl Kind {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Expiring { slots } => format!("expiring, {slots} slots"),
            Self::Concurrent => "concurrent, 4 slots".into(),
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
            Self::Concurrent => {
                let filter = builder().capacity(capacity).false_positive_rate(0.000_07).build().expect("valid");
                assert_eq!(filter.plan().layout.slots_per_bucket, 4);
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

/// Of this crate's filters, which have batches.
macro_rules! ours {
    ($Filter:ty, |$filter:ident, $key:ident, $end:ident| $insert:expr) => {
        impl Held for $Filter {
            fn contains(&self, keys: &[u64]) -> usize {
                keys.iter().filter(|key| self.contains(*key)).count()
            }

            fn contains_batch(&self, keys: &[u64]) -> Option<usize> {
                let (mut found, mut yes) = (Vec::with_capacity(BATCH), 0);
                for keys in keys.chunks(BATCH) {
                    found.clear();
                    self.contains_batch(keys, &mut found);
                    yes += found.iter().filter(|&&found| found).count();
                }
                Some(yes)
            }

            fn insert(&self, $key: u64, $end: u64) -> bool {
                let $filter = self;
                $insert
            }
        }
    };
}
ours!(Expiring, |filter, key, end| filter.insert_until(&key, Tick::new(end)).is_ok());
ours!(Fixed, |filter, key, _end| filter.insert(&key).is_ok());

impl Held for CuckooFilter<RandomState> {
    fn contains(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains(key)).count()
    }

    fn insert(&self, key: u64, end: u64) -> bool {
        self.insert_with_defaults(&key, InsertValues { ttl: Some((end - NOW) as u32), counter: None }).is_none()
    }
}

/// A tick is an hour, so that nothing expires here. The value of a key is its lifetime in ticks.
struct OwnLifetime;

impl moka::Expiry<u64, u32> for OwnLifetime {
    fn expire_after_create(&self, _key: &u64, ticks: &u32, _created_at: Instant) -> Option<Duration> {
        Some(Duration::from_secs(3600 * u64::from(*ticks)))
    }
}

impl Held for Cache<u64, u32, RandomState> {
    fn contains(&self, keys: &[u64]) -> usize {
        keys.iter().filter(|key| self.contains_key(*key)).count()
    }

    fn insert(&self, key: u64, end: u64) -> bool {
        self.insert(key, (end - NOW) as u32);
        true
    }

    fn rest(&self) {
        self.run_pending_tasks();
    }
}
