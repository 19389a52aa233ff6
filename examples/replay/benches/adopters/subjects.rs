//! The adapters, and what each project has today, built of the same crates.

use std::cell::RefCell;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ahash::RandomState;
use bloomfilter::Bloom;
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, ExportableRandomState, InsertValues, LookupValues};
use parking_lot::Mutex;
use replay::adopters::agave::Deduper;
use replay::adopters::hoprnet::{PacketTag, RecentTags, TagFilter};
use replay::adopters::shadowsocks::{CipherKind, RecentNonces};
use replay::adopters::vector::dedupe::{Dedupe, Fields};
use replay::adopters::vector::table::{Config, MemoryTable};
use replay::adopters::vector::{ObjectMap, Value};

/// What remembers keys.
pub(crate) trait Subject: Sync {
    /// Appends, for each key, whether it was seen, and remembers it.
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>);

    /// Whether it remembers the key.
    fn has(&self, key: &[u8]) -> bool;
}

/// Makes an empty one for a window.
pub(crate) type NewSubject = fn(usize) -> Box<dyn Subject>;

/// A name, and what it names.
type Named = (&'static str, NewSubject);

/// A project's use.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) window: usize,
    pub(crate) key_bytes: usize,
    /// The share of keys that came before.
    pub(crate) again: f64,
    pub(crate) subjects: &'static [Named],
}

/// The projects, with their windows divided by `part`.
pub(crate) fn cases(part: usize) -> Vec<Case> {
    let case = |name, window: usize, key_bytes, again, subjects: &'static [Named]| {
        let window = window / part;
        Case { name, window, key_bytes, again, subjects }
    };
    vec![
        case(
            "hoprnet",
            10_000_000,
            16,
            0.001,
            &[
                ("adapter at 1e-5", |window| Box::new(RecentTags::new(window, 1e-5).expect("valid"))),
                ("adapter at 2.3e-5", |window| Box::new(RecentTags::new(window, 2.3e-5).expect("valid"))),
                ("Bloom filter in a mutex, cleared when full", |window| {
                    Box::new(Mutex::new(Cleared::new(window, 1e-5)))
                }),
            ],
        ),
        case(
            "shadowsocks, nonces",
            1_000_000,
            32,
            0.001,
            &[
                ("adapter for the window", |window| Box::new(Nonces::new(window))),
                ("adapter for half of it", |window| Box::new(Nonces::new(window / 2))),
                ("two Bloom filters in a spin lock", |window| Box::new(spin::Mutex::new(Two::new(window, 1e-6)))),
            ],
        ),
        case(
            "shadowsocks, salts of 2022",
            100_000,
            32,
            0.001,
            &[
                ("adapter", |window| Box::new(Salts::new(window))),
                ("LRU cache in a spin lock", |window| Box::new(spin::Mutex::new(salts_of_a_minute(window)))),
            ],
        ),
        case(
            "agave",
            10_240_000,
            1232,
            0.5,
            &[
                ("adapter at 1e-3, in batches", |window| Box::new(Packets::new(window, 1e-3, true))),
                ("adapter at 1e-3, one by one", |window| Box::new(Packets::new(window, 1e-3, false))),
                ("adapter at 2.3e-5, in batches", |window| Box::new(Packets::new(window, 2.3e-5, true))),
                ("atomic Bloom filter, reset as a whole", |window| Box::new(Atomic::new(window))),
            ],
        ),
        case("Vector, dedupe of 5,000 events", 5_000 * part, 100, 0.5, DEDUPE),
        case("Vector, dedupe of a million", 1_000_000, 100, 0.5, DEDUPE),
        case(
            "Vector, table",
            1_000_000,
            16,
            0.5,
            &[
                ("adapter at 2e-3", |window| Box::new(Keys::new(window, 2e-3))),
                ("adapter at 1e-4", |window| Box::new(Keys::new(window, 1e-4))),
                ("cuckoo-clock, as Vector sets it: 8 bits", |window| Box::new(Clocked::new(window, 8))),
                ("cuckoo-clock, 16 bits", |window| Box::new(Clocked::new(window, 16))),
            ],
        ),
    ]
}

const DEDUPE: &[Named] = &[
    ("adapter at 1e-6", |window| Box::new(Dedupe::last(window, Fields::Match(fields()), 1e-6).expect("valid"))),
    ("LRU cache, in a mutex", |window| {
        Box::new(Mutex::new(lru::LruCache::new(NonZeroUsize::new(window).expect("keys"))))
    }),
];

/// Appends the answers, one by one.
fn each(keys: &[Vec<u8>], seen: &mut Vec<bool>, check: impl FnMut(&Vec<u8>) -> bool) {
    seen.extend(keys.iter().map(check));
}

fn tag(key: &[u8]) -> &PacketTag {
    key.try_into().expect("16 bytes")
}

impl Subject for RecentTags {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| self.check_and_set(tag(key)));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.check(tag(key))
    }
}

/// A Bloom filter that is cleared when it holds as many keys as it is made for.
struct Cleared {
    filter: Bloom<PacketTag>,
    keys: usize,
    room: usize,
}

impl Cleared {
    fn new(room: usize, rate: f64) -> Self {
        Self { filter: Bloom::new_for_fp_rate(room, rate).expect("random numbers"), keys: 0, room }
    }

    fn check(&mut self, key: &PacketTag) -> bool {
        if self.keys == self.room {
            if self.filter.check(key) {
                return true;
            }
            self.filter.clear();
            self.keys = 0;
        }
        let seen = self.filter.check_and_set(key);
        self.keys += usize::from(!seen);
        seen
    }
}

impl Subject for Mutex<Cleared> {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| self.lock().check(tag(key)));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.lock().filter.check(tag(key))
    }
}

#[derive(Clone, Copy)]
struct Method {
    of_2022: bool,
}

impl CipherKind for Method {
    fn is_aead_2022(&self) -> bool {
        self.of_2022
    }
}

struct Nonces(RecentNonces);

impl Nonces {
    fn new(window: usize) -> Self {
        Self(RecentNonces::new(window, 0, 1e-6).expect("valid"))
    }
}

impl Subject for Nonces {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| self.0.check_at(Method { of_2022: false }, key, 0));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.0.filters()[0].filter().contains(key)
    }
}

/// Two Bloom filters with room for half of the keys each. When one is full, the other is cleared, and filled.
struct Two {
    filters: [Bloom<[u8]>; 2],
    /// How many keys are in the one that is being filled.
    keys: usize,
    room: usize,
    filled: usize,
}

impl Two {
    fn new(room: usize, rate: f64) -> Self {
        let room = room / 2;
        let filters = [0; 2].map(|_| Bloom::new_for_fp_rate(room, rate).expect("random numbers"));
        Self { filters, keys: 0, room, filled: 0 }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.filters.iter().any(|filter| filter.check(key))
    }

    fn check(&mut self, key: &[u8]) -> bool {
        if self.has(key) {
            return true;
        }
        if self.keys == self.room {
            self.filled = 1 - self.filled;
            self.filters[self.filled].clear();
            self.keys = 0;
        }
        self.filters[self.filled].set(key);
        self.keys += 1;
        false
    }
}

impl Subject for spin::Mutex<Two> {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| self.lock().check(key));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.lock().has(key)
    }
}

/// A clock by which a lifetime is over when a window of new keys has come.
struct Pace {
    new: AtomicU64,
    /// The time of the last scan.
    scanned: AtomicU64,
    window: u64,
    lifetime: u64,
}

impl Pace {
    fn new(window: usize, lifetime: u64) -> Self {
        Self { new: AtomicU64::new(0), scanned: AtomicU64::new(0), window: window as u64, lifetime }
    }

    fn seconds(&self) -> u64 {
        // As a server reads a clock.
        black_box(Instant::now());
        self.new.load(Ordering::Relaxed) * self.lifetime / self.window
    }

    fn count(&self, seen: &[bool]) {
        self.new.fetch_add(seen.iter().filter(|&&seen| !seen).count() as u64, Ordering::Relaxed);
    }
}

struct Salts(RecentNonces, Pace);

impl Salts {
    fn new(window: usize) -> Self {
        Self(RecentNonces::new(0, window, 1e-6).expect("valid"), Pace::new(window, 60))
    }
}

impl Subject for Salts {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| self.0.check_at(Method { of_2022: true }, key, self.1.seconds()));
        self.1.count(seen);
    }

    fn has(&self, key: &[u8]) -> bool {
        self.0.filters()[1].filter().contains(key)
    }
}

type SaltCache = lru_time_cache::LruCache<Vec<u8>, ()>;

/// As many as come in a minute. (shadowsocks-rust has no bound. Here a minute is over when a window has come.)
fn salts_of_a_minute(window: usize) -> SaltCache {
    SaltCache::with_expiry_duration_and_capacity(Duration::from_secs(60), window)
}

impl Subject for spin::Mutex<SaltCache> {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| {
            let mut salts = self.lock();
            let has = salts.get(key).is_some();
            if !has {
                salts.insert(key.clone(), ());
            }
            has
        });
    }

    fn has(&self, key: &[u8]) -> bool {
        self.lock().peek(key).is_some()
    }
}

/// A cycle of five minutes, in which a window of packets comes.
struct Packets {
    deduper: Deduper,
    pace: Pace,
    in_batches: bool,
}

impl Packets {
    fn new(window: usize, rate: f64, in_batches: bool) -> Self {
        let deduper = Deduper::new(window, rate, Duration::from_secs(300)).expect("valid");
        Self { deduper, pace: Pace::new(window, 300), in_batches }
    }
}

impl Subject for Packets {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        self.deduper.reset_at(self.pace.seconds());
        if self.in_batches {
            self.deduper.dedup_all(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), seen);
        } else {
            each(keys, seen, |key| self.deduper.dedup(key));
        }
        self.pace.count(seen);
    }

    fn has(&self, key: &[u8]) -> bool {
        self.deduper.seen().filter().contains(key)
    }
}

/// A Bloom filter of atomic words with two hash functions. It is cleared when so many bits are set that its rate is
/// 0.1 %. (The thread that finds so many clears them, beside the others.)
struct Atomic {
    words: Vec<AtomicU64>,
    hashers: [RandomState; 2],
    bits: u64,
    set: AtomicU64,
    clearing: Mutex<()>,
}

impl Atomic {
    /// With agave's number of bits for a window of ten million.
    fn new(window: usize) -> Self {
        let bits = (637_534_199.0 * window as f64 / 10_240_000.0) as u64;
        let words = (0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let hashers = [0; 2].map(|_| RandomState::new());
        Self { words, hashers, bits, set: AtomicU64::new(0), clearing: Mutex::new(()) }
    }

    /// The word and the bit of each hash function.
    fn places(&self, key: &[u8]) -> [(&AtomicU64, u64); 2] {
        self.hashers.each_ref().map(|hasher| {
            let bit = hasher.hash_one(key) % self.bits;
            (&self.words[bit as usize / 64], 1 << (bit % 64))
        })
    }

    fn is_saturated(&self) -> bool {
        (self.set.load(Ordering::Relaxed) as f64 / self.bits as f64).powi(2) >= 0.001
    }
}

impl Subject for Atomic {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        if self.is_saturated()
            && let Some(_clearing) = self.clearing.try_lock().filter(|_| self.is_saturated())
        {
            self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.set.store(0, Ordering::Relaxed);
        }
        each(keys, seen, |key| {
            let new_bits = self.places(key).map(|(word, bit)| word.fetch_or(bit, Ordering::Relaxed) & bit == 0);
            let number = new_bits.iter().filter(|&&new| new).count() as u64;
            if number > 0 {
                self.set.fetch_add(number, Ordering::Relaxed);
            }
            number == 0
        });
    }

    fn has(&self, key: &[u8]) -> bool {
        self.places(key).iter().all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }
}

/// The fields that Vector matches if no others are set.
fn fields() -> Vec<String> {
    ["timestamp", "host", "message"].map(str::to_owned).into()
}

/// Calls `use_it` with an event that has this message, in memory of its own, as if the event were just received.
fn with_event<R>(message: &[u8], use_it: impl FnOnce(&ObjectMap) -> R) -> R {
    thread_local! {
        static EVENT: RefCell<ObjectMap> =
            RefCell::new(fields().into_iter().map(|name| (name, Value::from("2026-01-01T00:00:00Z"))).collect());
    }
    EVENT.with_borrow_mut(|event| {
        *event.get_mut("message").expect("a message") = Value::Bytes(message.into());
        use_it(event)
    })
}

impl Subject for Dedupe {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| with_event(key, |event| self.is_duplicate(event)));
    }

    fn has(&self, key: &[u8]) -> bool {
        with_event(key, |event| self.remembers(event))
    }
}

/// What Vector keeps of an event: the values of its fields, by kind. Their bytes are shared with the event.
type Entry = Vec<Option<Value>>;

fn entry(event: &ObjectMap) -> Entry {
    ["timestamp", "host", "message"].map(|name| event.get(name).cloned()).into()
}

impl Subject for Mutex<lru::LruCache<Entry, bool>> {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| with_event(key, |event| self.lock().put(entry(event), true).is_some()));
    }

    fn has(&self, key: &[u8]) -> bool {
        with_event(key, |event| self.lock().contains(&entry(event)))
    }
}

/// The times to live of Vector's default, ten minutes, in scans.
const SCANS: u64 = 20;

fn text(key: &[u8]) -> &str {
    std::str::from_utf8(key).expect("letters")
}

/// Counts the new keys, and scans once for each of the 20 intervals that are over.
fn scans(pace: &Pace, seen: &[bool], scan: impl FnOnce(u64)) {
    pace.count(seen);
    let now = pace.seconds();
    if pace.scanned.fetch_max(now, Ordering::Relaxed) < now {
        scan(now);
    }
}

struct Keys(MemoryTable, Pace);

const INTERVAL: Duration = Duration::from_secs(30);

impl Keys {
    fn new(window: usize, false_positive_rate: f64) -> Self {
        // Keys of the lifetime, of the interval in which it ends, and of two more that are being swept.
        let max_entries = window * (SCANS as usize + 3) / SCANS as usize;
        let (ttl, ttl_field, hash_key) = (INTERVAL * SCANS as u32, "ttl".to_owned(), [7; 16]);
        let config = Config { ttl, scan_interval: INTERVAL, ttl_field, max_entries, false_positive_rate, hash_key };
        let table = MemoryTable::new(config).expect("valid");
        table.scan(UNIX_EPOCH).expect("a time");
        Self(table, Pace::new(window, SCANS))
    }
}

impl Subject for Keys {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| {
            let has = self.0.keys().contains(text(key));
            self.0.put(text(key), INTERVAL * SCANS as u32).expect("room");
            has
        });
        scans(&self.1, seen, |now| {
            let now: SystemTime = UNIX_EPOCH + INTERVAL * now as u32;
            self.0.scan(now).expect("a time");
        });
    }

    fn has(&self, key: &[u8]) -> bool {
        self.0.keys().contains(text(key))
    }
}

struct Clocked(CuckooFilter<ExportableRandomState>, Pace);

impl Clocked {
    /// With buckets of four, times to live of 8 bits, and fingerprints of so many.
    fn new(window: usize, fingerprint_bits: usize) -> Self {
        let bits = |bits: usize| bits.try_into().expect("a number of bits");
        let ttl = TtlConfig { ttl: (SCANS as u32).try_into().expect("not 0"), ttl_bits: bits(8) };
        let config = CuckooConfiguration::builder(window).fingerprint_bits(bits(fingerprint_bits)).with_ttl(ttl);
        Self(CuckooFilter::new_random_exportable(config.build().expect("valid")), Pace::new(window, SCANS))
    }
}

impl Subject for Clocked {
    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        each(keys, seen, |key| {
            let has = self.0.contains(text(key));
            let ttl = Some(SCANS as u32);
            let (first, again) = (InsertValues { ttl, counter: None }, LookupValues { ttl, counter_diff: None });
            self.0.insert_if_not_present_with_update(text(key), first, again);
            has
        });
        scans(&self.1, seen, |_| {
            self.0.scan_and_update_full();
        });
    }

    fn has(&self, key: &[u8]) -> bool {
        self.0.contains(text(key))
    }
}
