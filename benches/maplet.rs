//! What a maplet costs compared with one filter, and what it saves compared with sixteen: which of 16 places may
//! hold the key?
//!
//! `cargo bench --bench maplet [-- --quick | --keys=N]`
//!
//! 20 million keys, one thread, 4 value bits. All subjects hold the same keys. Their runs are interleaved, a slice
//! of 4,096 keys at a time. All hash with the same function, once for a key, also where sixteen filters are asked.
//! All sixteen are asked, because the answer is which places may hold the key. The output shows medians, in
//! millions of operations a second. It also shows the median of the ratios to the maplet, each of one round, with
//! the min and max.

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, CuckooMaplet, Hashed, Values};
use dashmap::DashMap;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::report::{Spread, align, speed};

/// How many keys a batch has.
const BATCH: usize = 1024;

/// How many keys are timed at a time.
const SLICE: usize = 4 * BATCH;

const PLACES: usize = 16;

/// How many subjects there are.
const SUBJECTS: usize = 11;

type Filter = ConcurrentCuckooFilter<u64, RandomState>;
type Maplet = CuckooMaplet<u64, RandomState>;

/// The place of a key, by its number.
fn place(number: u64) -> u16 {
    (number % PLACES as u64) as u16
}

/// Looks up all keys of a slice. Returns a sum of what it finds, so that the compiler cannot leave it out.
type LookUp<'a> = Box<dyn Fn(&[u64]) -> u64 + 'a>;

/// What is measured.
struct Subject<'a> {
    name: &'static str,
    /// Bits a key, and how often an absent key is found in some place.
    bits: f64,
    found_absent: f64,
    look_up: LookUp<'a>,
    /// Nanoseconds a key in each round: of present keys, and of absent ones.
    times: [Vec<f64>; 2],
}

impl<'a> Subject<'a> {
    fn new(name: &'static str, bits: f64, found_absent: f64, look_up: impl Fn(&[u64]) -> u64 + 'a) -> Self {
        Self { name, bits, found_absent, look_up: Box::new(look_up), times: [Vec::new(), Vec::new()] }
    }

    fn row(&self, base: &Self) -> Vec<String> {
        let mut cells =
            vec![self.name.to_owned(), format!("{:.1}", self.bits), format!("{:.3} %", self.found_absent * 100.0)];
        for (own, of_base) in self.times.iter().zip(&base.times) {
            cells.extend([format!("{:.2}", speed(own)), Spread::of_ratios(of_base, own).show()]);
        }
        cells
    }
}

fn time(run: impl FnOnce() -> u64) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64() * 1e9 / SLICE as f64
}

/// The share of absent keys that are found.
fn share_found(found: impl Fn(u64) -> bool) -> f64 {
    const ASKED: u64 = 1_000_000;
    (0..ASKED).filter(|number| found(key(ABSENT + number))).count() as f64 / ASKED as f64
}

fn bits(bytes: usize, keys: u64) -> f64 {
    bytes as f64 * 8.0 / keys as f64
}

fn maplet(keys: u64, rate: f64) -> Maplet {
    let builder = Maplet::builder_with_hasher(HASH).capacity(keys as usize).value_bits(4).false_positive_rate(rate);
    let maplet = builder.build().expect("a valid maplet");
    let pairs = (0..keys).map(|number| (Hashed(HASH.hash_one(key(number))), place(number)));
    assert_eq!(maplet.by_hash().insert_batch(pairs), Ok(()));
    maplet
}

fn filter(keys: impl Iterator<Item = u64>, capacity: usize, rate: f64) -> Filter {
    let builder = Filter::builder_with_hasher(HASH).capacity(capacity).false_positive_rate(rate);
    let filter = builder.build().expect("a valid filter");
    filter.by_hash().insert_batch(keys.map(|number| Hashed(HASH.hash_one(key(number))))).expect("room for as many");
    filter
}

fn of_values(maplet: &Maplet) -> impl Fn(&[u64]) -> u64 + '_ {
    |keys| keys.iter().filter_map(|key| maplet.values(key).mask()).fold(0, u64::wrapping_add)
}

fn of_values_in_batches(maplet: &Maplet) -> impl Fn(&[u64]) -> u64 + '_ {
    |keys| {
        let (mut sum, mut found) = (0u64, Vec::with_capacity(BATCH));
        for keys in keys.chunks(BATCH) {
            found.clear();
            maplet.values_batch(keys, &mut found);
            sum = found.iter().filter_map(Values::mask).fold(sum, u64::wrapping_add);
        }
        sum
    }
}

fn of_filter(filter: &Filter) -> impl Fn(&[u64]) -> u64 + '_ {
    |keys| keys.iter().map(|key| u64::from(filter.contains(key))).sum()
}

fn of_filter_in_batches(filter: &Filter) -> impl Fn(&[u64]) -> u64 + '_ {
    |keys| {
        let mut found = Vec::with_capacity(BATCH);
        let mut sum = 0;
        for keys in keys.chunks(BATCH) {
            found.clear();
            filter.contains_batch(keys, &mut found);
            sum += found.iter().map(|&found| u64::from(found)).sum::<u64>();
        }
        sum
    }
}

/// All places that may hold the key with this hash, as a mask.
fn mask(contains: impl Fn(usize) -> bool) -> u64 {
    (0..PLACES).map(|place| u64::from(contains(place)) << place).sum()
}

/// Measures for this long, interleaved: first present keys, then absent ones. Each round begins with another
/// subject. Otherwise a subject would always come after the same other one, whose lines are in the cache then.
fn measure(subjects: &mut [Subject<'_>; SUBJECTS], keys: u64, length: Duration) {
    let mut random = SmallRng::seed_from_u64(17);
    for (nth, numbers) in [0..keys, ABSENT..2 * ABSENT].into_iter().enumerate() {
        let start = Instant::now();
        for round in 0.. {
            if round > 0 && start.elapsed() >= length {
                break;
            }
            for turn in 0..SUBJECTS {
                // 5 and the number of subjects have no common factor, so all have their turn.
                let subject = &mut subjects[(5 * turn + round) % SUBJECTS];
                let slice = drawn(&mut random, numbers.clone(), SLICE as u64);
                subject.times[nth].push(time(|| (subject.look_up)(&slice)));
            }
        }
    }
}

/// `replace`, and `remove` with what it removes put back afterwards, on the same number of keys, interleaved.
/// Returns the nanoseconds of both, in each round.
fn replacements(maplet: &Maplet, keys: u64, length: Duration) -> [Vec<f64>; 2] {
    let (mut replaced, mut removed) = (Vec::new(), Vec::new());
    let mut random = SmallRng::seed_from_u64(23);
    let start = Instant::now();
    while start.elapsed() < length || replaced.is_empty() {
        let mut slice = || -> Vec<u64> {
            let mut numbers: Vec<u64> = (0..SLICE).map(|_| random.random_range(0..keys)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            // Not in the order of the numbers, because that is the order of insertion.
            numbers.sort_unstable_by_key(|&number| key(number));
            numbers
        };
        let numbers = slice();
        replaced.push(time(|| {
            let done = |number: &&u64| maplet.replace(&key(**number), place(**number), place(**number) ^ 1) == Ok(true);
            numbers.iter().filter(done).count() as u64
        }));
        for &number in &numbers {
            assert_eq!(maplet.replace(&key(number), place(number) ^ 1, place(number)), Ok(true));
        }
        let numbers = slice();
        removed
            .push(time(|| numbers.iter().filter(|&&number| maplet.remove(&key(number), place(number))).count() as u64));
        for &number in &numbers {
            maplet.insert(&key(number), place(number)).expect("there was room before");
        }
    }
    [replaced, removed]
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let keys = options.value("--keys").map_or(20_000_000, |keys| keys.parse().expect("--keys=NUMBER"));
    let (keys, length) = match (options.test, options.quick) {
        (true, _) => (20_000, Duration::from_millis(1)),
        (false, true) => (keys, Duration::from_secs(2)),
        (false, false) => (keys, Duration::from_secs(20)),
    };
    let of_place = |place: usize| (place as u64..keys).step_by(PLACES);

    let (maplet_4, maplet_5) = (maplet(keys, 0.001), maplet(keys, 0.011));
    // As many slots, with as many bits each.
    let (filter_4, filter_5) = (filter(0..keys, keys as usize, 0.0001), filter(0..keys, keys as usize, 0.001));
    assert_eq!(maplet_4.plan().layout.slots_per_bucket, filter_4.plan().layout.slots_per_bucket);
    assert_eq!(maplet_5.plan().layout.slots_per_bucket, filter_5.plan().layout.slots_per_bucket);
    let capacity = keys as usize / PLACES + 1;
    let filters: Vec<Filter> = (0..PLACES).map(|place| filter(of_place(place), capacity, 0.001)).collect();
    let blooms: Vec<sbbf_rs_safe::Filter> = (0..PLACES)
        .map(|place| {
            let mut bloom = sbbf_rs_safe::Filter::new(13, capacity);
            of_place(place).for_each(|number| _ = bloom.insert_hash(HASH.hash_one(key(number))));
            bloom
        })
        .collect();
    let map: DashMap<u64, u16, RandomState> = DashMap::with_capacity_and_hasher(keys as usize, HASH);
    (0..keys).for_each(|number| _ = map.insert(key(number), place(number)));

    let of_filters = |hash| mask(|place| filters[place].by_hash().contains(hash));
    let of_blooms = |hash: u64| mask(|place| blooms[place].contains_hash(hash));
    let in_filter = |filter: &Filter| bits(filter.stats().memory_usage, keys);
    let found_in = |maplet: &Maplet| share_found(|key| !maplet.values(&key).is_empty());
    let found_filter = |filter: &Filter| share_found(|key| filter.contains(&key));
    let (bits_4, bits_5) = (bits(maplet_4.stats().memory_usage, keys), bits(maplet_5.stats().memory_usage, keys));
    let (found_4, found_5) = (found_in(&maplet_4), found_in(&maplet_5));
    let mut subjects = [
        Subject::new("maplet, 4 slots", bits_4, found_4, of_values(&maplet_4)),
        Subject::new("filter, 4 slots", in_filter(&filter_4), found_filter(&filter_4), of_filter(&filter_4)),
        Subject::new("maplet, 4 slots, batched", bits_4, found_4, of_values_in_batches(&maplet_4)),
        Subject::new(
            "filter, 4 slots, batched",
            in_filter(&filter_4),
            found_filter(&filter_4),
            of_filter_in_batches(&filter_4),
        ),
        Subject::new("maplet, 5 slots", bits_5, found_5, of_values(&maplet_5)),
        Subject::new("filter, 5 slots", in_filter(&filter_5), found_filter(&filter_5), of_filter(&filter_5)),
        Subject::new("maplet, 5 slots, batched", bits_5, found_5, of_values_in_batches(&maplet_5)),
        Subject::new(
            "filter, 5 slots, batched",
            in_filter(&filter_5),
            found_filter(&filter_5),
            of_filter_in_batches(&filter_5),
        ),
        Subject::new(
            "16 filters, 5 slots",
            filters.iter().map(in_filter).sum(),
            share_found(|key| of_filters(Hashed(HASH.hash_one(key))) != 0),
            |keys| keys.iter().map(|key| of_filters(Hashed(HASH.hash_one(key)))).fold(0, u64::wrapping_add),
        ),
        Subject::new(
            "16 split-block Bloom filters",
            13.0,
            share_found(|key| of_blooms(HASH.hash_one(key)) != 0),
            |keys| keys.iter().map(|key| of_blooms(HASH.hash_one(key))).fold(0, u64::wrapping_add),
        ),
        Subject::new(
            "dashmap (exact)",
            // What it allocates: for each slot, the pair and a byte.
            bits(map.capacity() * (size_of::<(u64, u16)>() + 1), keys),
            0.0,
            |keys| keys.iter().map(|key| map.get(key).map_or(0, |place| u64::from(*place) + 1)).sum(),
        ),
    ];
    let all = length * (subjects.len() as u32 / 4);
    measure(&mut subjects, keys, all);
    let [replaced, removed] = replacements(&maplet_4, keys, length);
    if options.test {
        return;
    }
    let head = ["", "bits a key", "absent keys found", "present", "of the maplet's", "absent", "of the maplet's"];
    let head = head.map(String::from).to_vec();
    let rows: Vec<_> = std::iter::once(head).chain(subjects.iter().map(|subject| subject.row(&subjects[0]))).collect();
    println!("{keys} keys, 4 value bits: millions of lookups a second\n\n{}", align(&rows, 1));
    for (maplet, filter) in [(0, 1), (2, 3), (4, 5), (6, 7)] {
        let [present, absent] =
            [0, 1].map(|nth| Spread::of_ratios(&subjects[filter].times[nth], &subjects[maplet].times[nth]).show());
        println!("{} by {}: present {present}, absent {absent}", subjects[maplet].name, subjects[filter].name);
    }
    let ratio = Spread::of_ratios(&removed, &replaced).show();
    println!("replace {:.2}, remove {:.2}, ratio {ratio}", speed(&replaced), speed(&removed));
}
