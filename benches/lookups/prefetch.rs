//! How much of a lookup's time other work hides, if the key is prefetched before it.
//!
//! A server learns a key, does some other work, and then asks the filter. The work here is a checksum of a request in the
//! cache: some thousand instructions that take about 200 ns, more than a processor looks ahead. Half of the keys are in
//! the filter, which has the default rate and is three quarters full.

use std::hash::Hasher;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::support::clock::by_turns;
use crate::support::keys::{drawn, key};
use crate::support::options::Options;
use crate::support::ours::builder;
use crate::support::plan::Size;
use crate::support::report::{Spread, median};

/// How many keys are timed at a time.
const SLICE: u64 = 4096;

/// How long the work is to take, in nanoseconds.
const WORK: f64 = 200.0;

/// What a server does between parsing a key and asking for it.
#[inline(never)]
fn work(request: &[u8]) -> u64 {
    // SipHash: every step needs the one before it, as in a parser.
    #[allow(deprecated, reason = "any checksum of the standard library will do")]
    let mut hasher = std::hash::SipHasher::new();
    hasher.write(black_box(request));
    hasher.finish()
}

/// Nanoseconds for each key.
fn time(keys: &[u64], each: impl Fn(&u64) -> bool) -> f64 {
    let start = Instant::now();
    black_box(keys.iter().filter(|key| each(key)).count());
    start.elapsed().as_secs_f64() * 1e9 / keys.len() as f64
}

pub(crate) fn table(size: Size, options: &Options) -> (&'static str, Vec<Vec<String>>) {
    let length = Duration::from_millis(options.pick(0, 300, 3000));
    // The number of keys in this many bytes, in the default layout, three quarters full.
    let len = options.table_bytes(size) as u64 * 5 / 8 * 3 / 4;
    let filter = builder().capacity(len as usize * 5 / 4).build().expect("a valid filter");
    (0..len).for_each(|number| filter.insert(&key(number)).expect("there is room"));
    // A request whose work takes as long as it should.
    let mut request = vec![17; 64];
    while !options.test && (0..5).map(|_| time(&[0; 1000], |_| work(&request) == 0)).fold(WORK, f64::min) < WORK {
        request.resize(request.len() + 16, 17);
    }
    let mut random = SmallRng::seed_from_u64(17);
    let mut slice = || drawn(&mut random, 0..2 * len, SLICE);
    let times = by_turns(4, length, |nth, _| match nth {
        0 => time(&slice(), |_| work(&request) == 0),
        1 => time(&slice(), |key| filter.contains(key)),
        2 => time(&slice(), |key| {
            black_box(work(&request));
            filter.contains(key)
        }),
        _ => time(&slice(), |key| {
            let hash = filter.hash_one(key);
            filter.by_hash().prefetch(hash);
            black_box(work(&request));
            filter.by_hash().contains(hash)
        }),
    });
    let gained = Spread::of(times[2].iter().zip(&times[3]).map(|(plain, prefetched)| plain - prefetched)).show();
    let head = ["work", "lookup", "work, lookup", "prefetch, work, lookup", "gained"].map(String::from).to_vec();
    let row = times.into_iter().map(|times| format!("{:.1}", median(times))).chain([gained]).collect();
    ("nanoseconds", vec![head, row])
}
