//! How much of a lookup's time other work hides, if the key is prefetched before it.
//!
//! `cargo bench --bench prefetch [-- --quick | --l2 | --large]`
//!
//! A server learns a key, does some other work, and then asks the filter. The work here is a checksum of a request in the
//! cache: some thousand instructions that take about 200 ns, more than a processor looks ahead. The rows are slices of one
//! round, interleaved: the work alone, a lookup alone, the work and then a lookup, and the same with a prefetch before the
//! work. Keys are drawn at random, half of them are in the filter, which has the default rate and is three quarters full.
//! The output shows nanoseconds for each, and how many of them the prefetch has gained.

mod support;

use std::hash::Hasher;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::hash::HASH;
use support::keys::{drawn, key};
use support::options::Options;
use support::report::{Spread, align, median};

/// How many keys are timed at a time.
const SLICE: u64 = 4096;

/// How long the work is to take.
const WORK: Duration = Duration::from_nanos(200);

type Concurrent = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;

/// What a server does between parsing a key and asking for it.
struct Work {
    request: Vec<u8>,
}

impl Work {
    /// A request whose work takes as long as it should.
    fn calibrated() -> Self {
        let mut work = Self { request: vec![17; 64] };
        while work.time() < WORK {
            work.request.resize(work.request.len() + 16, 17);
        }
        work
    }

    #[inline(never)]
    fn run(&self) -> u64 {
        // SipHash: every step needs the one before it, as in a parser.
        #[allow(deprecated, reason = "any checksum of the standard library will do")]
        let mut hasher = std::hash::SipHasher::new();
        hasher.write(black_box(&self.request));
        hasher.finish()
    }

    /// The shortest of some tries.
    fn time(&self) -> Duration {
        let time = || {
            let start = Instant::now();
            (0..1000).for_each(|_| _ = black_box(self.run()));
            start.elapsed() / 1000
        };
        (0..5).map(|_| time()).min().expect("five of them")
    }
}

/// Nanoseconds of each, in each round.
#[derive(Default)]
struct Times {
    work: Vec<f64>,
    lookup: Vec<f64>,
    work_then_lookup: Vec<f64>,
    prefetched: Vec<f64>,
}

impl Times {
    fn cells(&self, name: &str) -> Vec<String> {
        let gained = self.work_then_lookup.iter().zip(&self.prefetched).map(|(plain, prefetched)| plain - prefetched);
        let all = [&self.work, &self.lookup, &self.work_then_lookup, &self.prefetched];
        let times = all.map(|times| format!("{:.1}", median(times.iter().copied())));
        [name.to_owned()].into_iter().chain(times).chain([Spread::of(gained).show()]).collect()
    }
}

macro_rules! measure {
    ($filter:expr, $len:expr, $work:expr, $length:expr) => {{
        let (filter, work, mut times) = ($filter, $work, Times::default());
        let mut random = SmallRng::seed_from_u64(17);
        // The keys in the filter have the numbers below `len`.
        let mut slice = || drawn(&mut random, 0..2 * $len, SLICE);
        let time = |keys: Vec<u64>, each: &dyn Fn(&u64) -> bool| {
            let start = Instant::now();
            black_box(keys.iter().filter(|key| each(key)).count());
            start.elapsed().as_secs_f64() * 1e9 / SLICE as f64
        };
        let start = Instant::now();
        while start.elapsed() < $length || times.work.is_empty() {
            times.work.push(time(slice(), &|_| work.run() == 0));
            times.lookup.push(time(slice(), &|key| filter.contains(key)));
            times.work_then_lookup.push(time(slice(), &|key| {
                black_box(work.run());
                filter.contains(key)
            }));
            times.prefetched.push(time(slice(), &|key| {
                let hash = filter.hash_one(key);
                filter.by_hash().prefetch(hash);
                black_box(work.run());
                filter.by_hash().contains(hash)
            }));
        }
        times
    }};
}

/// Fills it in steps, so that no array of all keys is needed.
macro_rules! fill {
    ($filter:expr, $len:expr) => {
        for start in (0..$len).step_by(SLICE as usize) {
            let keys: Vec<u64> = (start..$len.min(start + SLICE)).map(key).collect();
            $filter.insert_batch(&keys).expect("there is room");
        }
    };
}

fn rows(bytes: usize, work: &Work, length: Duration) -> [Vec<String>; 2] {
    // The number of keys in this many bytes, in the default layout, three quarters full.
    let len = bytes as u64 * 5 / 8 * 3 / 4;
    let capacity = len as usize * 5 / 4;
    let filter = Concurrent::builder_with_hasher(HASH).capacity(capacity).build().expect("a valid filter");
    fill!(filter, len);
    let fixed = measure!(&filter, len, work, length).cells("one table");
    drop(filter);
    let builder = Growable::builder_with_hasher(HASH).capacity(capacity / 1000).max_capacity(capacity);
    let filter = builder.build().expect("a valid filter");
    fill!(filter, len);
    [fixed, measure!(&filter, len, work, length).cells("growable")]
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let length = Duration::from_millis(match (options.test, options.quick) {
        (true, _) => 1,
        (false, true) => 300,
        (false, false) => 3000,
    });
    let work = if options.test { Work { request: vec![17; 64] } } else { Work::calibrated() };
    for size in options.sizes() {
        eprintln!("{}", size.name());
        let head = ["", "work", "lookup", "work, lookup", "prefetch, work, lookup", "gained"].map(String::from);
        let rows = rows(options.table_bytes(size), &work, length);
        if !options.test {
            let rows: Vec<_> = std::iter::once(head.to_vec()).chain(rows).collect();
            println!("## {}: nanoseconds\n\n{}", size.name(), align(&rows, 1));
        }
    }
}
