//! The adapters, and what each project has today, built of the same crates.

use std::cell::RefCell;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::RandomState;
use bloomfilter::Bloom;
use parking_lot::Mutex;
use replay::adopters::{Dedupe, Deduper, Fields, ObjectMap, ReplayProtector, TagFilter, Value};

/// What remembers keys.
pub(crate) struct Subject {
    pub(crate) check_all: Box<CheckAll>,
    pub(crate) has: Box<Has>,
}

/// Appends, for each key, whether it was seen, and remembers it.
type CheckAll = dyn Fn(&[Vec<u8>], &mut Vec<bool>) + Sync;

/// Whether it remembers the key.
type Has = dyn Fn(&[u8]) -> bool + Sync;

/// Makes an empty one for a window.
pub(crate) type NewSubject = fn(usize) -> Subject;

/// A project's use.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) window: usize,
    pub(crate) key_bytes: usize,
    /// The share of keys that came before.
    pub(crate) again: f64,
    pub(crate) subjects: &'static [(&'static str, NewSubject)],
}

/// The projects.
pub(crate) const CASES: [Case; 5] = [
    Case {
        name: "hoprnet",
        window: 10_000_000,
        key_bytes: 16,
        again: 0.001,
        subjects: &[
            ("adapter at 1e-5", |window| tags(window, 1e-5)),
            ("adapter at 2.3e-5", |window| tags(window, 2.3e-5)),
            ("Bloom filter in a mutex, cleared when full", cleared),
        ],
    },
    Case {
        name: "shadowsocks, nonces",
        window: 1_000_000,
        key_bytes: 32,
        again: 0.001,
        subjects: &[("adapter", nonces), ("two Bloom filters in a spin lock", two)],
    },
    Case {
        name: "shadowsocks, salts of 2022",
        window: 100_000,
        key_bytes: 32,
        again: 0.001,
        subjects: &[("adapter", salts), ("LRU cache in a spin lock", salt_cache)],
    },
    Case {
        name: "agave",
        window: 10_240_000,
        key_bytes: 1232,
        again: 0.5,
        subjects: &[
            ("adapter at 1e-3, in batches", |window| packets(window, 1e-3, true)),
            ("adapter at 1e-3, one by one", |window| packets(window, 1e-3, false)),
            ("adapter at 2.3e-5, in batches", |window| packets(window, 2.3e-5, true)),
            ("atomic Bloom filter, reset as a whole", |window| {
                subject(Atomic::new(window), Atomic::check_all, Atomic::has)
            }),
        ],
    },
    Case {
        name: "Vector, dedupe of a million",
        window: 1_000_000,
        key_bytes: 100,
        again: 0.5,
        subjects: &[("adapter at 1e-6", events), ("LRU cache, in a mutex", event_cache)],
    },
];

fn subject<S: Send + Sync + 'static>(
    state: S,
    check_all: impl Fn(&S, &[Vec<u8>], &mut Vec<bool>) + Sync + 'static,
    has: impl Fn(&S, &[u8]) -> bool + Sync + 'static,
) -> Subject {
    let state = Arc::new(state);
    let shared = Arc::clone(&state);
    Subject {
        check_all: Box::new(move |keys, seen| check_all(&state, keys, seen)),
        has: Box::new(move |key| has(&shared, key)),
    }
}

/// What checks keys one by one: whether each was seen. It is remembered.
fn each<S: Send + Sync + 'static>(
    state: S,
    check: impl Fn(&S, &[u8]) -> bool + Sync + 'static,
    has: impl Fn(&S, &[u8]) -> bool + Sync + 'static,
) -> Subject {
    subject(state, move |state, keys, seen| seen.extend(keys.iter().map(|key| check(state, key))), has)
}

fn tag(key: &[u8]) -> &[u8; 16] {
    key.try_into().expect("16 bytes")
}

fn tags(window: usize, rate: f64) -> Subject {
    let tags = TagFilter::with_capacity(window, rate).expect("valid");
    each(tags, |tags, key| tags.check_and_set(tag(key)), |tags, key| tags.check(tag(key)))
}

/// A Bloom filter that is cleared when it holds as many keys as it is made for.
struct Cleared {
    filter: Bloom<[u8; 16]>,
    keys: usize,
    room: usize,
}

impl Cleared {
    fn check(&mut self, key: &[u8; 16]) -> bool {
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

fn cleared(room: usize) -> Subject {
    let filter = Bloom::new_for_fp_rate(room, 1e-5).expect("random numbers");
    let cleared = Mutex::new(Cleared { filter, keys: 0, room });
    each(cleared, |tags, key| tags.lock().check(tag(key)), |tags, key| tags.lock().filter.check(tag(key)))
}

fn nonces(window: usize) -> Subject {
    let protector = ReplayProtector::new(window, MINUTE, 1).expect("valid");
    each(
        protector,
        |protector, key| protector.check_nonce_and_set(false, key),
        |protector, key| protector.nonces().contains(key),
    )
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

fn two(window: usize) -> Subject {
    let room = window / 2;
    let filters = [0; 2].map(|_| Bloom::new_for_fp_rate(room, 1e-6).expect("random numbers"));
    let two = spin::Mutex::new(Two { filters, keys: 0, room, filled: 0 });
    each(two, |two, key| two.lock().check(key), |two, key| two.lock().has(key))
}

const MINUTE: Duration = Duration::from_secs(60);

/// A clock by which a lifetime is over when a window of new keys has come.
struct Pace {
    new: AtomicU64,
    window: u64,
    lifetime: Duration,
}

impl Pace {
    fn new(window: usize, lifetime: Duration) -> Arc<Self> {
        Arc::new(Self { new: AtomicU64::new(0), window: window as u64, lifetime })
    }

    /// The clock of a filter.
    fn clock(self: &Arc<Self>) -> impl Fn() -> Duration + Send + Sync + 'static {
        let pace = Arc::clone(self);
        move || {
            // As a server reads a clock.
            black_box(Instant::now());
            pace.lifetime.mul_f64(pace.new.load(Ordering::Relaxed) as f64 / pace.window as f64)
        }
    }

    fn count(&self, seen: &[bool]) {
        self.new.fetch_add(seen.iter().filter(|&&seen| !seen).count() as u64, Ordering::Relaxed);
    }
}

/// The salts of a minute, which is twice the greatest difference between the clocks of client and server.
fn salts(window: usize) -> Subject {
    let pace = Pace::new(window, MINUTE);
    let protector = ReplayProtector::new(1, MINUTE, window).expect("valid").with_clock(pace.clock());
    let check_all = |(protector, pace): &(ReplayProtector, Arc<Pace>), keys: &[Vec<u8>], seen: &mut Vec<bool>| {
        seen.extend(keys.iter().map(|key| protector.check_nonce_and_set(true, key)));
        pace.count(seen);
    };
    subject((protector, pace), check_all, |(protector, _), key| protector.salts().contains(key))
}

/// As many as come in a minute. (shadowsocks-rust has no bound. Here a minute is over when a window has come.)
fn salt_cache(window: usize) -> Subject {
    type Salts = lru_time_cache::LruCache<Vec<u8>, ()>;
    let salts = spin::Mutex::new(Salts::with_expiry_duration_and_capacity(MINUTE, window));
    let check = |salts: &spin::Mutex<Salts>, key: &[u8]| {
        let mut salts = salts.lock();
        let has = salts.get(key).is_some();
        if !has {
            salts.insert(key.to_vec(), ());
        }
        has
    };
    each(salts, check, |salts, key| salts.lock().peek(key).is_some())
}

/// A cycle of five minutes, in which a window of packets comes.
fn packets(window: usize, rate: f64, in_batches: bool) -> Subject {
    let pace = Pace::new(window, 5 * MINUTE);
    let deduper = Deduper::new(window, rate, 5 * MINUTE).expect("valid").with_clock(pace.clock());
    let check_all = move |(deduper, pace): &(Deduper, Arc<Pace>), keys: &[Vec<u8>], seen: &mut Vec<bool>| {
        deduper.maybe_reset();
        if in_batches {
            deduper.dedup_all(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), seen);
        } else {
            seen.extend(keys.iter().map(|key| deduper.dedup(key)));
        }
        pace.count(seen);
    };
    subject((deduper, pace), check_all, |(deduper, _), key| deduper.seen().contains(key))
}

/// A Bloom filter of atomic words with two hash functions. It is cleared when so many bits are set that its rate is
/// 0.1%. (The thread that finds so many clears them, beside the others.)
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

    fn check_all(&self, keys: &[Vec<u8>], seen: &mut Vec<bool>) {
        if self.is_saturated()
            && let Some(_clearing) = self.clearing.try_lock().filter(|_| self.is_saturated())
        {
            self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.set.store(0, Ordering::Relaxed);
        }
        seen.extend(keys.iter().map(|key| {
            let new_bits = self.places(key).map(|(word, bit)| word.fetch_or(bit, Ordering::Relaxed) & bit == 0);
            let number = new_bits.iter().filter(|&&new| new).count() as u64;
            if number > 0 {
                self.set.fetch_add(number, Ordering::Relaxed);
            }
            number == 0
        }));
    }

    fn has(&self, key: &[u8]) -> bool {
        self.places(key).iter().all(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }
}

/// The fields that Vector matches if no others are set.
const FIELDS: [&str; 3] = ["timestamp", "host", "message"];

/// Calls `use_it` with an event that has this message, in memory of its own, as if the event were just received.
fn with_event<R>(message: &[u8], use_it: impl FnOnce(&ObjectMap) -> R) -> R {
    thread_local! {
        static EVENT: RefCell<ObjectMap> =
            RefCell::new(FIELDS.map(|name| (name.to_owned(), Value::from("2026-01-01T00:00:00Z"))).into());
    }
    EVENT.with_borrow_mut(|event| {
        *event.get_mut("message").expect("a message") = Value::Bytes(message.into());
        use_it(event)
    })
}

fn events(window: usize) -> Subject {
    let dedupe = Dedupe::last(window, Fields::Match(FIELDS.map(str::to_owned).into()), 1e-6).expect("valid");
    let check = |dedupe: &Dedupe, key: &[u8]| with_event(key, |event| dedupe.is_duplicate(event));
    each(dedupe, check, |dedupe, key| with_event(key, |event| dedupe.remembers(event)))
}

/// What Vector keeps of an event: the values of its fields, by kind. Their bytes are shared with the event.
type Entry = Vec<Option<Value>>;

fn entry(event: &ObjectMap) -> Entry {
    FIELDS.map(|name| event.get(name).cloned()).into()
}

fn event_cache(window: usize) -> Subject {
    type Events = Mutex<lru::LruCache<Entry, bool>>;
    let events = Mutex::new(lru::LruCache::new(NonZeroUsize::new(window).expect("keys")));
    let check = |events: &Events, key: &[u8]| with_event(key, |event| events.lock().put(entry(event), true).is_some());
    each(events, check, |events, key| with_event(key, |event| events.lock().contains(&entry(event))))
}
