//! What a maplet costs compared with one filter, and what it saves compared with sixteen: which of 16 places may
//! hold the key?
//!
//! `cargo bench --bench maplet [-- --quick | --keys=N]`
//!
//! 20 million keys, one thread, 4 value bits. All subjects hold the same keys. Their runs are interleaved, a slice
//! of 4,096 keys at a time. All hash with the same function, once for a key, also where sixteen filters are asked.
//! All sixteen are asked, because the answer is which places may hold the key. The output shows medians, in
//! millions of operations a second, and the median of the ratios to the maplet, with the min and max.

mod support;

use std::hint::black_box;
use std::iter;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{CuckooMaplet, Hashed, Values};
use dashmap::DashMap;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::clock::by_turns;
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::ours::{BATCH, Fixed, builder};
use support::report::{Spread, align, speed};

/// How many keys are timed at a time.
const SLICE: usize = 4 * BATCH;

const PLACES: usize = 16;

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
    bits_per_key: f64,
    look_up: LookUp<'a>,
    /// Nanoseconds a key in each round: of present keys, and of absent ones.
    times: [Vec<f64>; 2],
}

impl<'a> Subject<'a> {
    fn new(name: &'static str, bits_per_key: f64, look_up: impl Fn(&[u64]) -> u64 + 'a) -> Self {
        Self { name, bits_per_key, look_up: Box::new(look_up), times: Default::default() }
    }

    fn row(&self, maplet: &Self) -> Vec<String> {
        // A slice of one key says whether it is found in some place.
        const ASKED: u64 = 1_000_000;
        let found = (0..ASKED).filter(|number| (self.look_up)(&[key(ABSENT + number)]) != 0).count();
        let share = found as f64 / ASKED as f64 * 100.0;
        let mut cells = vec![self.name.to_owned(), format!("{:.1}", self.bits_per_key), format!("{share:.3}%")];
        for (own, of_maplet) in iter::zip(&self.times, &maplet.times) {
            cells.extend([format!("{:.2}", speed(own)), Spread::of_ratios(of_maplet, own).show()]);
        }
        cells
    }
}

fn hashed(number: u64) -> Hashed {
    Hashed(HASH.hash_one(key(number)))
}

fn filter(numbers: impl Iterator<Item = u64>, capacity: usize, rate: f64) -> Fixed {
    let filter = builder().capacity(capacity).false_positive_rate(rate).build().expect("a valid filter");
    filter.by_hash().insert_batch(numbers.map(hashed)).expect("room for as many");
    filter
}

/// All places that may hold the key, as a mask.
fn mask(contains: impl Fn(usize) -> bool) -> u64 {
    (0..PLACES).map(|place| u64::from(contains(place)) << place).sum()
}

/// The sum of what `found` returns for each key.
fn sum(keys: &[u64], found: impl Fn(&u64) -> u64) -> u64 {
    keys.iter().map(found).fold(0, u64::wrapping_add)
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let keys = options.keys(20_000_000);
    let (keys, length) =
        options.pick((20_000, Duration::ZERO), (keys, Duration::from_secs(2)), (keys, Duration::from_secs(20)));
    let of_place = |place: usize| (place as u64..keys).step_by(PLACES);
    let (all, each) = (keys as usize, keys as usize / PLACES + 1);

    let maplet = Maplet::builder_with_hasher(HASH).capacity(all).value_bits(4).build().expect("a valid maplet");
    let pairs = (0..keys).map(|number| (hashed(number), place(number)));
    maplet.by_hash().insert_batch(pairs).expect("room for as many");
    // As many slots, with as many bits each.
    let one = filter(0..keys, all, 0.0001);
    assert_eq!(maplet.plan().layout.slots_per_bucket, one.plan().layout.slots_per_bucket);
    let filters: Vec<Fixed> = (0..PLACES).map(|place| filter(of_place(place), each, 0.001)).collect();
    let bloom = |place| {
        let mut bloom = sbbf_rs_safe::Filter::new(13, each);
        of_place(place).for_each(|number| _ = bloom.insert_hash(hashed(number).0));
        bloom
    };
    let blooms: Vec<sbbf_rs_safe::Filter> = (0..PLACES).map(bloom).collect();
    let map: DashMap<u64, u16, RandomState> = DashMap::with_capacity_and_hasher(all, HASH);
    (0..keys).for_each(|number| _ = map.insert(key(number), place(number)));

    let bits = |bytes: usize| bytes as f64 * 8.0 / keys as f64;
    let of_maplet = bits(maplet.stats().memory_usage);
    let mut subjects = [
        Subject::new("maplet", of_maplet, |keys| sum(keys, |key| maplet.values(key).mask().unwrap_or(0))),
        Subject::new("maplet, batched", of_maplet, |keys| {
            let mut found = Vec::with_capacity(keys.len());
            keys.chunks(BATCH).for_each(|keys| maplet.values_batch(keys, &mut found));
            found.iter().filter_map(Values::mask).fold(0, u64::wrapping_add)
        }),
        Subject::new("one filter, as many slots", bits(one.stats().memory_usage), |keys| {
            sum(keys, |key| u64::from(one.contains(key)))
        }),
        Subject::new("16 filters", bits(filters.iter().map(|filter| filter.stats().memory_usage).sum()), |keys| {
            sum(keys, |key| {
                let hash = Hashed(HASH.hash_one(key));
                mask(|place| filters[place].by_hash().contains(hash))
            })
        }),
        Subject::new("16 split-block Bloom filters", 13.0, |keys| {
            sum(keys, |key| {
                let hash = HASH.hash_one(key);
                mask(|place| blooms[place].contains_hash(hash))
            })
        }),
        // What it allocates: for each slot, the pair and a byte.
        Subject::new("dashmap (exact)", bits(map.capacity() * (size_of::<(u64, u16)>() + 1)), |keys| {
            sum(keys, |key| map.get(key).map_or(0, |place| u64::from(*place) + 1))
        }),
    ];
    let mut random = SmallRng::seed_from_u64(17);
    for (nth, numbers) in [0..keys, ABSENT..2 * ABSENT].into_iter().enumerate() {
        let times = by_turns(subjects.len(), length, |subject, _| {
            let slice = drawn(&mut random, numbers.clone(), SLICE as u64);
            let start = Instant::now();
            black_box((subjects[subject].look_up)(&slice));
            start.elapsed().as_secs_f64() * 1e9 / SLICE as f64
        });
        subjects.iter_mut().zip(times).for_each(|(subject, times)| subject.times[nth] = times);
    }
    let head = ["", "bits a key", "absent keys found", "present", "of the maplet's", "absent", "of the maplet's"];
    let rows = subjects.iter().map(|subject| subject.row(&subjects[0]));
    let rows: Vec<_> = iter::once(head.map(String::from).to_vec()).chain(rows).collect();
    if !options.test {
        println!("{keys} keys, 4 value bits: millions of lookups a second\n\n{}", align(&rows, 1));
    }
}
