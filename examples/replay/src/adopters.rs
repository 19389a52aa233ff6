//! Adapters for projects that reject what comes twice, each with the methods of what the project has today. (Others need
//! none: [`LastKeys`] and [`UsedOnce`] have the methods of hoprnet's and shadowsocks-rust's.)
//!
//! The README of this package says what would change, and where it would not pay. `cargo bench -p replay --bench
//! adopters` compares each with what its project has.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, WhenFull};

use crate::{LastKeys, Refused, UsedOnce};

/// agave: a validator drops packets that it has seen, before it verifies their signatures (`perf/src/deduper.rs`). If
/// there are more than this has room for, it forgets the oldest sooner.
#[derive(Debug)]
pub struct Deduper {
    seen: UsedOnce<[u8]>,
    started: Instant,
    /// How many packets had been evicted at the last call of `maybe_reset`.
    evicted: AtomicU64,
}

impl Deduper {
    /// Makes room for so many packets in `memory`, a number of seconds, after which a packet counts as new.
    pub fn new(packets: usize, false_positive_rate: f64, memory: Duration) -> Result<Self, BuildError> {
        let seen = UsedOnce::within(memory.as_secs(), packets, false_positive_rate, WhenFull::EvictSoonest)?;
        seen.advance(0);
        Ok(Self { seen, started: Instant::now(), evicted: AtomicU64::new(0) })
    }

    /// Lets the packets of before expire, and returns whether others had to go before their time since the last call.
    /// agave calls its own once for each round of batches.
    pub fn maybe_reset(&self) -> bool {
        self.reset_at(self.started.elapsed().as_secs())
    }

    /// [`maybe_reset`](Self::maybe_reset), by a clock in seconds.
    pub fn reset_at(&self, seconds: u64) -> bool {
        self.seen.advance(seconds);
        let evicted = self.seen.filter().stats().expiry.map_or(0, |expiry| expiry.evicted);
        self.evicted.swap(evicted, Ordering::Relaxed) < evicted
    }

    /// Returns whether the packet was seen, and remembers it. When in doubt, it counts as new.
    #[must_use]
    pub fn dedup(&self, packet: &[u8]) -> bool {
        self.seen.try_use_now(packet) == Err(Refused::Used)
    }

    /// [`dedup`](Self::dedup) for many packets: appends the answers to `seen`. In a large table it is faster.
    pub fn dedup_all(&self, packets: &[&[u8]], seen: &mut Vec<bool>) {
        let (filter, mut new) = (self.seen.filter(), Vec::with_capacity(packets.len()));
        while filter.insert_if_absent_batch(packets[new.len()..].iter().copied(), &mut new).is_err() {
            new.push(true); // there is no room to remember it
        }
        seen.extend(new.iter().map(|new| !new));
    }

    /// For figures.
    pub fn seen(&self) -> &UsedOnce<[u8]> {
        &self.seen
    }
}

/// The fields of an event in Vector, or of a value.
pub type ObjectMap = BTreeMap<String, Value>;

/// The value of a field: some of the kinds that Vector has. Values of different kinds are different.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub enum Value {
    /// Text, shared by all who hold it.
    Bytes(Arc<[u8]>),
    /// A number.
    Integer(i64),
    /// Fields within the field.
    Object(ObjectMap),
    /// Nothing, which is not the same as no field.
    Null,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().into())
    }
}

/// What makes two events equal.
#[derive(Clone, Debug)]
pub enum Fields {
    /// These fields are equal.
    Match(Vec<String>),
    /// All fields but these are equal.
    Ignore(Vec<String>),
}

/// Vector: the transform `dedupe` drops events that have come before (`src/transforms/dedupe`). Many threads may share
/// this one. (For a maximum age, let the time be the filter's clock, instead of the number of new events.)
#[derive(Debug)]
pub struct Dedupe {
    fields: Fields,
    hasher: RandomState,
    /// Hashes of events.
    seen: LastKeys<u64>,
}

impl Dedupe {
    /// Remembers each event until at least so many new ones have come since it came last. A new event is lost with a
    /// probability of at most `false_positive_rate`.
    pub fn last(events: usize, fields: Fields, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self { fields, hasher: RandomState::new(), seen: LastKeys::new(events, false_positive_rate)? })
    }

    /// Returns whether the event came before, and remembers it for longer. When in doubt, it counts as new.
    pub fn is_duplicate(&self, event: &ObjectMap) -> bool {
        self.seen.check_and_renew(&self.key(event))
    }

    /// Returns whether the event came before, and changes nothing.
    pub fn remembers(&self, event: &ObjectMap) -> bool {
        self.seen.check(&self.key(event))
    }

    fn key(&self, event: &ObjectMap) -> u64 {
        let mut hash = self.hasher.build_hasher();
        match &self.fields {
            Fields::Match(names) => names.iter().for_each(|name| event.get(name).hash(&mut hash)),
            Fields::Ignore(names) => {
                event.iter().filter(|(name, _)| !names.contains(name)).for_each(|field| field.hash(&mut hash));
            }
        }
        hash.finish()
    }
}
