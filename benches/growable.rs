//! What a filter that has grown costs lookups.
//!
//! `cargo bench --bench growable [-- --quick | --l2 | --large] [--tables=N]`
//!
//! A `GrowableCuckooFilter` of one, two and three tables is compared with a `ConcurrentCuckooFilter` of one table,
//! of as many bytes and with the same share of its slots taken. The lookups are of keys in the newest table, of
//! keys in the oldest table, and of absent keys. They run on one thread, interleaved, in many short rounds. The
//! output shows the medians and their ratio, and the ratio of the fastest rounds, which a busy machine disturbs
//! least. There are two settings. In one, all tables have the layout of the `ConcurrentCuckooFilter`. In the other,
//! which is the default, the further tables have layouts with a lower rate.

mod support;

use std::ops::Range;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::GrowableCuckooFilter;
use support::hash::HASH;
use support::keys::{ABSENT, Shuffled, key};
use support::options::Options;
use support::ours::{Default5x14, Ours, Plain4x16, Setting};
use support::report::{Spread, align};
use support::subject::Subject;

/// How full the newest table is, and the filter that it is compared with.
const LOAD: f64 = 0.9;

/// How many lookups are timed at a time. So few that most rounds are not interrupted.
const SLICE: u64 = 20_000;

/// A filter that has grown to this many tables and about this many bytes, and the numbers of its keys.
struct Grown {
    filter: GrowableCuckooFilter<u64, RandomState>,
    keys: Range<u64>,
    /// Nearly all of these are in the oldest table; nearly all of `newest` are in the newest.
    oldest: Range<u64>,
    newest: Range<u64>,
}

impl Grown {
    fn new<S: Setting>(bytes: usize, tables: usize, rate: f64) -> Self {
        let buckets = bytes / size_of::<u64>() / ((1 << tables) - 1);
        let capacity = (buckets * S::LAYOUT.0) as f64 * 0.94;
        let builder = GrowableCuckooFilter::builder().hasher(HASH).false_positive_rate(rate);
        #[cfg(feature = "huge-pages")]
        let builder = builder.huge_pages(false);
        let filter = builder.capacity(capacity as usize).build().expect("a valid filter");
        let (first, mut others, mut grown_at, mut len) = (filter.capacity() as u64, 0, 0, 0);
        let insert = |len: &mut u64| {
            filter.insert(&key(*len)).expect("it grows");
            *len += 1;
        };
        for number in 2..=tables {
            others = filter.capacity();
            while filter.tables() < number {
                insert(&mut len);
            }
            grown_at = len;
        }
        // The capacity is 95 to 97 % of the slots.
        let newest = (filter.capacity() - others) as f64 * LOAD / 0.96;
        while len < grown_at + newest as u64 {
            insert(&mut len);
        }
        assert_eq!(filter.tables(), tables, "{filter:?}");
        Self { filter, keys: 0..len, oldest: 0..(first * 9 / 10).min(len), newest: grown_at..len }
    }
}

/// Nanoseconds for a lookup.
fn time(contains: impl Fn(u64) -> bool, keys: &Range<u64>, hits: bool, from: f64, absent: u64) -> f64 {
    let mut order = Shuffled::new(keys.clone(), from);
    let start = Instant::now();
    let found = if hits {
        (0..SLICE).filter(|_| contains(key(order.next()))).count() as u64
    } else {
        (ABSENT + absent..ABSENT + absent + SLICE).filter(|&index| contains(key(index))).count() as u64
    };
    let time = start.elapsed();
    assert!(if hits { found == SLICE } else { found < SLICE / 100 }, "{found} of {SLICE} found");
    time.as_secs_f64() * 1e9 / SLICE as f64
}

/// Rows for hits in the newest and in the oldest table, and for misses.
fn measure<S: Setting>(bytes: usize, tables: usize, rate: f64, length: Duration) -> Vec<Vec<String>> {
    let grown = Grown::new::<S>(bytes, tables, rate);
    let beside = Ours::<S>::build(bytes);
    let beside_keys = 0..(beside.slots() as f64 * LOAD) as u64;
    beside_keys.clone().for_each(|index| assert!(beside.insert(key(index)), "there is room"));
    let (newest, oldest, all) = (&grown.newest, &grown.oldest, &grown.keys);
    let kinds = [("newest", newest, true), ("oldest", oldest, true), ("miss", all, false)];
    let rows = kinds.into_iter().map(|(kind, keys, hits)| {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        let start = Instant::now();
        let mut absent = 0;
        while start.elapsed() < length || ours.is_empty() {
            let from = absent as f64 / SLICE as f64 * 0.618 % 1.0;
            ours.push(time(|key| grown.filter.contains(&key), keys, hits, from, absent));
            theirs.push(time(|key| beside.contains(key), &beside_keys, hits, from, absent));
            absent += SLICE;
        }
        let [ours, theirs] = [ours, theirs].map(Spread::of);
        vec![
            format!("{} {kind}", S::NAME),
            tables.to_string(),
            format!("{:.1}", theirs.median),
            format!("{:.1}", ours.median),
            format!("{:.2}", ours.median / theirs.median),
            format!("{:.2}", ours.least / theirs.least),
        ]
    });
    rows.collect()
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let only = options.value("--tables").map(|tables| tables.parse().expect("a number"));
    let length = Duration::from_millis(match (options.test, options.quick) {
        (true, _) => 1,
        (false, true) => 400,
        (false, false) => 3000,
    });
    for size in options.sizes() {
        let bytes = options.table_bytes(size);
        let head = ["", "tables", "one table, ns", "grown, ns", "grown over one table", "of the fastest"];
        let mut rows = vec![head.map(String::from).to_vec()];
        for tables in (1..=3).filter(|tables| only.is_none_or(|only| *tables == only)) {
            eprintln!("{}: {tables} tables", size.name());
            // A rate at which the first three tables all have this layout, and the default rate.
            rows.extend(measure::<Plain4x16>(bytes, tables, 6e-4, length));
            rows.extend(measure::<Default5x14>(bytes, tables, 1e-3, length));
        }
        if !options.test {
            println!("## {}: a lookup in a filter that has grown\n\n{}", size.name(), align(&rows, 1));
        }
    }
}
