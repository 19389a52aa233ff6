//! Adapters for projects that ask whether a key came before: each has the methods of what the project has today, so that it
//! can take its place. The source that each names is of August 2026; no code of it is here.
//!
//! The README of this package says what would change, and where it would not pay. `cargo bench -p replay --bench
//! adopters` compares each with what its project has.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, RecentCuckooFilter};

/// A packet's tag in hoprnet.
pub type PacketTag = [u8; 16];

/// hoprnet: the decoder rejects packets whose tag came before (`TagBloomFilter` of `protocols/hopr/src/tbf.rs`, which
/// `codec/decoder.rs` locks for each packet). This one needs no lock.
#[derive(Debug)]
pub struct TagFilter(RecentCuckooFilter<PacketTag>);

impl TagFilter {
    /// Remembers the last `size` tags, at least. The rate is that of hoprnet if it is 1e-5.
    pub fn with_capacity(size: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        RecentCuckooFilter::builder().last(size).false_positive_rate(false_positive_rate).build().map(Self)
    }

    /// Returns whether the tag was there, and remembers it.
    pub fn check_and_set(&self, tag: &PacketTag) -> bool {
        !self.0.insert_or_renew(tag)
    }

    /// Remembers the tag.
    pub fn set(&self, tag: &PacketTag) {
        self.0.insert_or_renew(tag);
    }

    /// Returns whether the tag was there.
    pub fn check(&self, tag: &PacketTag) -> bool {
        self.0.contains(tag)
    }

    /// How many tags it remembers. (hoprnet's goes back to 1 when that is full.)
    pub fn count(&self) -> usize {
        self.0.recent_len()
    }
}

/// shadowsocks-rust: a server rejects connections whose nonce came before (`ReplayProtector` of
/// `crates/shadowsocks/src/security/replay/mod.rs`): the last million nonces, and the salts of the last minute for the ciphers
/// of 2022. This one needs no lock.
#[derive(Debug)]
pub struct ReplayProtector {
    nonces: RecentCuckooFilter<[u8]>,
    salts: RecentCuckooFilter<[u8]>,
}

impl ReplayProtector {
    /// Remembers so many nonces, and the salts of that time, of which so many are expected.
    pub fn new(nonces: usize, salts_for: Duration, salts: usize) -> Result<Self, BuildError> {
        let builder = || RecentCuckooFilter::builder().false_positive_rate(1e-6);
        Ok(Self { nonces: builder().last(nonces).build()?, salts: builder().within(salts_for, salts).build()? })
    }

    /// Returns whether the nonce came before, and remembers it. (shadowsocks-rust asks the kind of cipher whether it is one
    /// of 2022.) An empty nonce is that of a cipher without any.
    pub fn check_nonce_and_set(&self, is_aead_2022: bool, nonce: &[u8]) -> bool {
        let seen = if is_aead_2022 { &self.salts } else { &self.nonces };
        !nonce.is_empty() && !seen.insert_or_renew(nonce)
    }

    /// Takes the time from a clock of a test.
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { salts: self.salts.with_clock(clock), ..self }
    }

    /// For figures.
    pub fn salts(&self) -> &RecentCuckooFilter<[u8]> {
        &self.salts
    }

    /// For figures.
    pub fn nonces(&self) -> &RecentCuckooFilter<[u8]> {
        &self.nonces
    }
}

/// libp2p's floodsub: a node dispatches each message once (the field `received` of `protocols/floodsub/src/layer.rs`, an LRU
/// cache of 65,536 messages, which has had the place of a cuckoo filter since July 2026).
#[derive(Debug)]
pub struct Received<M>(RecentCuckooFilter<M>);

impl<M: Hash> Received<M> {
    /// Remembers the last `capacity` messages, at least. A new message is lost with a probability of at most
    /// `false_positive_rate`.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        RecentCuckooFilter::builder().last(capacity).false_positive_rate(false_positive_rate).build().map(Self)
    }

    /// Remembers the message, which is the newest one now. Returns `Some` if it came before.
    pub fn insert(&self, message: &M) -> Option<()> {
        (!self.0.insert_or_renew(message)).then_some(())
    }
}

/// libp2p's gossipsub: a node handles each message once within a minute (`DuplicateCache` of
/// `protocols/gossipsub/src/time_cache.rs`).
#[derive(Debug)]
pub struct DuplicateCache<Key>(RecentCuckooFilter<Key>);

impl<Key: Hash> DuplicateCache<Key> {
    /// Remembers keys for that time, and for up to 8% longer. Each of `keys` in that time has room; if more come,
    /// it forgets the oldest sooner. A new message is lost with a probability of at most `false_positive_rate`.
    pub fn new(ttl: Duration, keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        RecentCuckooFilter::builder().within(ttl, keys).false_positive_rate(false_positive_rate).build().map(Self)
    }

    /// Remembers the key if it is not there. Returns `true` if it was not.
    pub fn insert(&self, key: &Key) -> bool {
        self.0.insert(key)
    }

    /// Returns whether the key is there.
    pub fn contains(&self, key: &Key) -> bool {
        self.0.contains(key)
    }

    /// Takes the time from a clock of a test.
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(self.0.with_clock(clock))
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

/// What makes two events equal (`FieldMatchConfig` of Vector).
#[derive(Clone, Debug)]
pub enum Fields {
    /// These fields are equal.
    Match(Vec<String>),
    /// All fields but these are equal.
    Ignore(Vec<String>),
}

/// Vector: the transform `dedupe` drops events that came before (`Dedupe` and `TimedDedupe` of `src/transforms/dedupe`). Many
/// threads may share this one.
#[derive(Debug)]
pub struct Dedupe {
    fields: Fields,
    hasher: RandomState,
    /// Hashes of events.
    seen: RecentCuckooFilter<u64>,
    refresh_on_drop: bool,
}

impl Dedupe {
    /// Remembers each event until at least so many others have come since it came last. A new event is lost with a
    /// probability of at most `false_positive_rate`.
    pub fn last(events: usize, fields: Fields, false_positive_rate: f64) -> Result<Self, BuildError> {
        let seen = RecentCuckooFilter::builder().last(events).false_positive_rate(false_positive_rate).build()?;
        Ok(Self { fields, hasher: RandomState::new(), seen, refresh_on_drop: true })
    }

    /// Remembers each event for that time since it came first, or since it came last if it is to `refresh_on_drop`.
    pub fn within(
        max_age: Duration,
        events: usize,
        refresh_on_drop: bool,
        fields: Fields,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        let builder = RecentCuckooFilter::builder().within(max_age, events).false_positive_rate(false_positive_rate);
        Ok(Self { fields, hasher: RandomState::new(), seen: builder.build()?, refresh_on_drop })
    }

    /// Returns the event if it did not come before, and remembers it.
    pub fn transform_one(&self, event: ObjectMap) -> Option<ObjectMap> {
        (!self.is_duplicate(&event)).then_some(event)
    }

    /// Returns whether the event came before, and remembers it.
    pub fn is_duplicate(&self, event: &ObjectMap) -> bool {
        let key = self.key(event);
        !(if self.refresh_on_drop { self.seen.insert_or_renew(&key) } else { self.seen.insert(&key) })
    }

    /// Returns whether the event came before, and changes nothing.
    pub fn remembers(&self, event: &ObjectMap) -> bool {
        self.seen.contains(&self.key(event))
    }

    /// Takes the time from a clock of a test.
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { seen: self.seen.with_clock(clock), ..self }
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

/// agave: a validator drops packets that it has seen, before it verifies their signatures (`perf/src/deduper.rs`).
#[derive(Debug)]
pub struct Deduper {
    seen: RecentCuckooFilter<[u8]>,
    /// How many packets had been evicted at the last call of `maybe_reset`.
    evicted: AtomicU64,
}

impl Deduper {
    /// Makes room for so many packets within `memory`, after which a packet counts as new.
    pub fn new(packets: usize, false_positive_rate: f64, memory: Duration) -> Result<Self, BuildError> {
        let builder = RecentCuckooFilter::builder().within(memory, packets).false_positive_rate(false_positive_rate);
        Ok(Self { seen: builder.build()?, evicted: AtomicU64::new(0) })
    }

    /// Returns whether packets had to go before their time since the last call. (agave's own then forgets all of them.)
    pub fn maybe_reset(&self) -> bool {
        let evicted = self.seen.stats().recent.map_or(0, |recent| recent.evicted);
        self.evicted.swap(evicted, Ordering::Relaxed) < evicted
    }

    /// Returns whether the packet was seen, and remembers it.
    #[must_use]
    pub fn dedup(&self, packet: &[u8]) -> bool {
        !self.seen.insert(packet)
    }

    /// [`dedup`](Self::dedup) for many packets: appends the answers to `seen`. In a large table it is faster.
    pub fn dedup_all(&self, packets: &[&[u8]], seen: &mut Vec<bool>) {
        let mut new = Vec::with_capacity(packets.len());
        self.seen.insert_batch(packets.iter().copied(), &mut new);
        seen.extend(new.iter().map(|new| !new));
    }

    /// Takes the time from a clock of a test.
    pub fn with_clock(self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { seen: self.seen.with_clock(clock), ..self }
    }

    /// For figures.
    pub fn seen(&self) -> &RecentCuckooFilter<[u8]> {
        &self.seen
    }
}
