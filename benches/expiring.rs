//! What it costs that each entry expires by itself, beside filters without that, and other ways to forget keys.
//!
//! `cargo bench --bench expiring [-- --quick | --keys=N | --only=large|small|sweep]`
//!
//! All hash with the same function and hold the same keys. Their runs are interleaved, a slice of keys each. A speed is
//! the median of all slices, in millions of lookups in a second of one thread's processor time. Beside it is how many
//! times as fast the `ExpiringCuckooFilter` of the same table is: the median of the rounds, with the min and max. Memory
//! is what is requested from the allocator. "Lost" are the keys that a filter threw out to make room.
//!
//! - **large**: 50 million keys, more than any cache holds. The filter with an end of 4 bits for each entry (0.1%)
//!   is compared with the `ConcurrentCuckooFilter` with as many slots in a bucket, which has a lower rate in the same
//!   memory.
//! - **small**: a million keys, in a layout of three slots, because the rate of the others needs it. `cuckoo-clock` has
//!   lifetimes of 4 bits too, and fingerprints of 16 bits in its usual buckets of four slots. In buckets of eight,
//!   fingerprints of 17 bits have the same rate and take less memory. It rounds up to a power of two. A million is just
//!   below one, so it has as few free slots as the others. `moka` is a cache that is exact and keeps each key with a
//!   lifetime of its own. Its size has no bound here, because a bound would cost it time.
//! - **sweep**: how long a call of `advance_to` takes for a table of 192 MB, if a new tick comes although the whole sweep
//!   before is still to be done, and if it comes so late that everything has expired.

mod counting;
mod support;

use std::iter;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{Advance, ExpiringCuckooFilter, Tick};
use counting::counted;
use cuckoo_clock::config::{CuckooConfiguration, TtlConfig};
use cuckoo_clock::{CuckooFilter, InsertValues};
use moka::sync::Cache;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::clock::{by_turns, own_time};
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::ours::{BATCH, builder};
use support::report::{Spread, median, speed};

/// Lifetimes are from 1 to this.
const LONGEST: u64 = 15;

/// The current tick, where the clock does not move.
const NOW: u64 = 1000;

/// How many lookups are timed at a time, at most. That is enough for a small filter to be in the cache for nearly all
/// of them, whichever subject ran before.
const SLICE: u64 = 32 << 10;

/// The tick at which the entry of this number expires, if `now` is the current tick.
fn end(now: u64, number: u64) -> u64 {
    now + 1 + number % LONGEST
}

/// What is timed, and whether the keys are present and come in batches.
const LOOKUPS: [(&str, bool, bool); 4] = [
    ("present", true, false),
    ("absent", false, false),
    ("present, batched", true, true),
    ("absent, batched", false, true),
];

/// Its name, and how an empty one for so many keys is made.
type Named = (&'static str, fn(usize) -> Held);

const LARGE: [Named; 2] = [("expiring, 4 slots", |keys| ours(keys, 0.001, 4)), ("concurrent", concurrent)];

/// The rate of the first is that of cuckoo-clock.
const SMALL: [Named; 4] = [
    ("expiring, 3 slots", |keys| ours(keys, 0.000_11, 3)),
    ("`cuckoo-clock`, 4 slots", |keys| cuckoo_clock(keys, 4)),
    ("`cuckoo-clock`, 8 slots", |keys| cuckoo_clock(keys, 8)),
    ("`moka` (exact)", moka),
];

/// How many of some keys are found. It is one loop that is compiled for one subject alone.
type LookUp = Box<dyn Fn(&[u64]) -> usize>;

/// What holds keys.
struct Held {
    contains: LookUp,
    /// `None` if it has no batches.
    contains_batch: Option<LookUp>,
    /// Whether there was room for a key that expires at this tick.
    insert: Box<dyn Fn(u64, u64) -> bool>,
    /// Does the work that it has put off.
    rest: Box<dyn Fn()>,
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
fn expiring(capacity: usize, rate: f64) -> ExpiringCuckooFilter<u64, RandomState> {
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

struct Subject {
    name: &'static str,
    held: Held,
    bytes: usize,
    lost: u64,
    /// Nanoseconds a lookup, in each round.
    times: [Vec<f64>; LOOKUPS.len()],
}

impl Subject {
    fn new(&(name, make): &Named, keys: u64) -> Self {
        eprintln!("{keys} keys: {name}");
        let mut lost = 0;
        let (held, bytes) = counted(|| {
            let held = make(keys as usize);
            for number in 0..keys {
                lost += u64::from(!(held.insert)(key(number), end(NOW, number)));
                if number % (keys / 4) == 0 {
                    (held.rest)();
                }
            }
            (held.rest)();
            held
        });
        Self { name, held, bytes, lost, times: Default::default() }
    }
}

/// Lookups in these subjects with this many keys. The ratios are to the first.
fn lookups(keys: u64, subjects: &[Named], length: Duration) -> Vec<Vec<String>> {
    // The table that all semi-sorted filters share is made before any memory is counted.
    drop(subjects[0].1(1));
    let mut subjects: Vec<_> = subjects.iter().map(|subject| Subject::new(subject, keys)).collect();
    let length = length * subjects.len() as u32;
    for (nth, (name, present, batched)) in LOOKUPS.into_iter().enumerate() {
        let asked = |held: &Held, asked: &[u64]| match batched {
            true => held.contains_batch.as_ref().map(|look_up| look_up(asked)),
            false => Some((held.contains)(asked)),
        };
        // Those that have batches, if they are asked for.
        let with: Vec<usize> = (0..subjects.len()).filter(|&nth| asked(&subjects[nth].held, &[]).is_some()).collect();
        let times = by_turns(with.len(), length, |turn, round| {
            let Subject { name: subject, held, lost, .. } = &subjects[with[turn]];
            // The same keys for all.
            let mut random = SmallRng::seed_from_u64(round);
            let keys = drawn(&mut random, if present { 0..keys } else { ABSENT..2 * ABSENT }, SLICE.min(keys / 4));
            let start = own_time();
            let found = asked(held, &keys).expect("it can be asked");
            let time = (own_time() - start) as f64 / keys.len() as f64;
            assert!(!present || *lost > 0 || found == keys.len(), "{subject}: a key was not found ({name})");
            time
        });
        with.into_iter().zip(times).for_each(|(subject, times)| subjects[subject].times[nth] = times);
    }
    let names = LOOKUPS.iter().flat_map(|(name, ..)| [(*name).to_owned(), "expiring by it".into()]);
    let head = ["", "bits a key", "lost"].map(String::from).into_iter().chain(names).collect();
    let rows = subjects.iter().map(|subject| {
        let mut row = vec![subject.name.to_owned(), format!("{:.1}", subject.bytes as f64 * 8.0 / keys as f64)];
        row.push(subject.lost.to_string());
        for (times, expiring) in iter::zip(&subject.times, &subjects[0].times) {
            let known = !times.is_empty();
            row.push(if known { format!("{:.2}", speed(times)) } else { "–".into() });
            row.push(if known { Spread::of_ratios(times, expiring).show() } else { "–".into() });
        }
        row
    });
    iter::once(head).chain(rows).collect()
}

/// Single calls of `advance_to`, in milliseconds.
fn sweep(bytes: usize) -> Vec<Vec<String>> {
    // 4 slots in 8 bytes.
    let filter = expiring((bytes / 8 * 4) * 95 / 100, 0.001);
    let len = filter.plan().slots as u64 * 9 / 10;
    let (mut now, mut next) = (NOW, 0);
    filter.advance_to(Tick::new(now));
    let advance = |now: &mut u64, ticks| {
        *now += ticks;
        let start = own_time();
        assert_eq!(filter.advance_to(Tick::new(*now)), Advance::Forward { ticks });
        (own_time() - start) as f64 / 1e6
    };
    let mut late = Vec::new();
    for round in 0..5 {
        eprintln!("sweep, round {round}");
        // New entries take the place of those that are gone.
        let first = next;
        next += len - filter.len() as u64;
        let new_ones = (first..next).map(|number| (filter.hash_one(&key(number)), Tick::new(end(now, number))));
        filter.by_hash().insert_until_batch(new_ones, &mut Vec::new()).expect("room");
        advance(&mut now, 1);
        late.push(advance(&mut now, 1));
        while filter.stats().expiry.expect("it has a clock").oldest_unswept.is_some() {
            filter.advance_to(Tick::new(now));
        }
    }
    let all = advance(&mut now, 1000);
    let row = [median(late), all].map(|time| format!("{time:.1}"));
    vec![["none swept before, median of 5", "all have expired"].map(String::from).to_vec(), row.to_vec()]
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (large, small, bytes, length) = options.pick(
        (20_000, 10_000, 64 << 10, 0),
        (5_000_000, 1_000_000, 24 << 20, 500),
        (50_000_000, 1_000_000, 192 << 20, 5000),
    );
    // For each kind of lookups of each subject.
    let length = Duration::from_millis(length);
    for (name, keys, subjects) in [("large", options.keys(large), &LARGE[..]), ("small", small, &SMALL)] {
        options.part(name, || (format!("{keys} keys, million lookups a second"), lookups(keys, subjects, length)));
    }
    options.part("sweep", || (format!("calls of `advance_to`, {} KiB, milliseconds", bytes >> 10), sweep(bytes)));
}
