//! What it costs to add one filter to another, and to compare filters.
//!
//! `cargo bench --bench merge [-- --quick | --keys=N | --only=sums|parts|digests]`
//!
//! - **sums**: two filters of ten million keys each become one of twenty million, in one thread. `absorb` is
//!   compared with `merge` of `qfilter`, with all copies kept and at the same rate. All hash with the same
//!   function. A speed is the number of keys in the result, divided by the time. Before each round the filters are
//!   filled anew, and the runs are interleaved, so a busy machine slows all of them down alike. Beside the speed is
//!   its ratio to that of `qfilter`: the median of the rounds, with the min and max. "The keys inserted" adds the
//!   same keys to a filter of ten million by `insert_batch`. `unite` adds the same keys, and once more, when all are
//!   there already.
//! - **parts**: several threads put twenty million keys into an empty filter. Either each fills a part of its own,
//!   and then adds it to the whole (`empty_like`, `absorb`), or all insert into the one filter, by `insert_batch`.
//!   Wall-clock time, with the memory.
//! - **digests**: how long the digest of a table of 192 MB takes, 95 % full, and that of one whose entries expire.

mod support;

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use ahash::RandomState;
use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, Hashed, Tick};
use support::clock::own_time;
use support::hash::HASH;
use support::keys::key;
use support::options::Options;
use support::report::{Spread, align};

type Filter = ConcurrentCuckooFilter<u64, RandomState>;
type Maplet = CuckooMaplet<u64, RandomState>;
type Expiring = ExpiringCuckooFilter<u64, RandomState>;

/// Wall-clock time, for the work of several threads.
fn seconds<R>(run: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

/// Processor time, for the work of one thread.
fn own_seconds<R>(run: impl FnOnce() -> R) -> f64 {
    let start = own_time();
    black_box(run());
    (own_time() - start) as f64 / 1e9
}

/// The hashes of these keys, the same for all filters.
fn hashes(from: u64, to: u64) -> impl Iterator<Item = Hashed> {
    (from..to).map(|number| Hashed(HASH.hash_one(key(number))))
}

fn filter(capacity: u64, rate: f64) -> Filter {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(capacity as usize).false_positive_rate(rate);
    builder.hasher(HASH).build().expect("a valid filter")
}

/// One way to combine two halves.
struct Subject {
    name: &'static str,
    /// Fills two halves of this many keys, and returns the seconds that it takes to combine them.
    round: fn(u64) -> f64,
    /// In millions of keys of the result a second.
    speeds: Vec<f64>,
}

/// Two filters, each with a half, and with room for both.
fn halves(half: u64, rate: f64) -> [Filter; 2] {
    [0, half].map(|from| {
        let filter = filter(2 * half, rate);
        filter.by_hash().insert_batch(hashes(from, from + half)).expect("there is room");
        filter
    })
}

fn absorb(half: u64, rate: f64) -> f64 {
    let [sum, other] = halves(half, rate);
    let time = own_seconds(|| sum.absorb(&other).expect("there is room"));
    assert_eq!(sum.len() as u64, 2 * half);
    assert!(hashes(0, 2 * half).step_by(997).all(|hash| sum.by_hash().contains(hash)));
    time
}

fn unite(half: u64) -> f64 {
    let [sum, other] = halves(half, 0.001);
    own_seconds(|| sum.unite(&other).expect("there is room"))
}

fn unite_again(half: u64) -> f64 {
    let [sum, other] = halves(half, 0.001);
    sum.unite(&other).expect("there is room");
    own_seconds(|| sum.unite(&other).expect("nothing is new"))
}

fn insert(half: u64) -> f64 {
    let sum = filter(2 * half, 0.001);
    sum.by_hash().insert_batch(hashes(0, half)).expect("there is room");
    own_seconds(|| sum.by_hash().insert_batch(hashes(half, 2 * half)).expect("there is room"))
}

fn absorb_maplet(half: u64) -> f64 {
    let [sum, other] = [0, half].map(|from| {
        let builder = CuckooMaplet::<u64>::builder().capacity(2 * half as usize).value_bits(4);
        let maplet: Maplet = builder.hasher(HASH).build().expect("a valid maplet");
        maplet
            .by_hash()
            .insert_batch(hashes(from, from + half).map(|hash| (hash, hash.0 as u16 & 15)))
            .expect("there is room");
        maplet
    });
    own_seconds(|| sum.absorb(&other).expect("there is room"))
}

fn expiring(capacity: u64) -> Expiring {
    let builder = ExpiringCuckooFilter::<u64>::builder().capacity(capacity as usize).lifetime_in_ticks(14);
    let filter = builder.hasher(HASH).build().expect("a valid filter");
    filter.advance_to(Tick::new(1000));
    filter
}

fn absorb_expiring(half: u64) -> f64 {
    let [sum, other] = [0, half].map(|from| {
        let filter = expiring(2 * half);
        filter
            .by_hash()
            .insert_until_batch(
                hashes(from, from + half).map(|hash| (hash, Tick::new(1001 + hash.0 % 14))),
                &mut Vec::new(),
            )
            .expect("there is room");
        filter
    });
    own_seconds(|| sum.absorb(&other).expect("there is room"))
}

fn quotient(half: u64) -> qfilter::Filter {
    qfilter::Filter::new(2 * half, 0.001).expect("a valid filter")
}

fn merge(half: u64) -> f64 {
    let [mut sum, other] = [0, half].map(|from| {
        let mut filter = quotient(half);
        for hash in hashes(from, from + half) {
            filter.insert_duplicated(hash.0).expect("there is room");
        }
        filter
    });
    let time = own_seconds(|| sum.merge(true, &other).expect("there is room"));
    assert_eq!(sum.len(), 2 * half);
    time
}

fn sums(half: u64, rounds: usize) {
    let subject = |name, round: fn(u64) -> f64| Subject { name, round, speeds: Vec::new() };
    let mut subjects = [
        subject("qfilter, merge", merge),
        subject("5x14 (semi-sorted), absorb", |half| absorb(half, 0.001)),
        subject("4x16 (plain), absorb", |half| absorb(half, 0.000125)),
        subject("maplet of 4 value bits, absorb", absorb_maplet),
        subject("entries that expire, absorb", absorb_expiring),
        subject("5x14, unite", unite),
        subject("5x14, unite again", unite_again),
        subject("5x14, the keys inserted", insert),
    ];
    for _ in 0..rounds {
        for subject in &mut subjects {
            subject.speeds.push(2.0 * half as f64 / (subject.round)(half) / 1e6);
        }
    }
    let header = ["way", "M keys of the result a second", "times qfilter"].map(str::to_owned);
    let rows = subjects.iter().map(|subject| {
        let ratio = Spread::of_ratios(&subject.speeds, &subjects[0].speeds).show();
        vec![subject.name.to_owned(), Spread::of(subject.speeds.iter().copied()).show(), ratio]
    });
    println!("Two filters of {half} keys become one:\n");
    println!("{}", align(&[header.to_vec()].into_iter().chain(rows).collect::<Vec<_>>(), 1));
}

fn parts(all: u64, rounds: usize) {
    let share = |threads: u64, nth: u64| hashes(all * nth / threads, all * (nth + 1) / threads);
    let mut rows = vec![
        ["threads", "one filter, M keys/s", "parts, M keys/s", "ratio", "memory of parts"].map(str::to_owned).to_vec(),
    ];
    for threads in [1, 2, 4] {
        let (mut together, mut in_parts) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let whole = filter(all, 0.001);
            // The speed of as many threads, each of which does this.
            let speed = |work: &(dyn Fn(u64) + Sync)| {
                let seconds =
                    seconds(|| thread::scope(|scope| (0..threads).for_each(|nth| _ = scope.spawn(move || work(nth)))));
                all as f64 / 1e6 / seconds
            };
            let fill =
                |filter: &Filter, nth| filter.by_hash().insert_batch(share(threads, nth)).expect("there is room");
            together.push(speed(&|nth| fill(&whole, nth)));
            let digest = whole.digest().expect("memory for it");
            whole.clear();
            in_parts.push(speed(&|nth| {
                let part = whole.empty_like().expect("memory for it");
                fill(&part, nth);
                whole.absorb(&part).expect("there is room");
            }));
            assert_eq!(whole.digest().expect("memory for it"), digest);
        }
        let ratio = Spread::of_ratios(&in_parts, &together);
        let [together, in_parts] = [together, in_parts].map(|speeds| Spread::of(speeds).show());
        rows.push(vec![threads.to_string(), together, in_parts, ratio.show(), format!("{} filters", threads + 1)]);
    }
    println!("{all} keys from several threads:\n\n{}", align(&rows, 0));
}

fn digests(bytes: usize, rounds: usize) {
    let mut rows = vec![["filter", "MB", "copies", "milliseconds", "M copies a second"].map(str::to_owned).to_vec()];
    let mut row = |name: &str, memory: usize, len: usize, digest: &dyn Fn() -> u64| {
        let times = Spread::of((0..rounds).map(|_| own_seconds(digest) * 1e3));
        rows.push(vec![
            name.to_owned(),
            format!("{:.0}", memory as f64 / 1e6),
            len.to_string(),
            times.show(),
            format!("{:.0}", len as f64 / times.median / 1e3),
        ]);
    };
    for (name, rate, slots) in [("5x14, semi-sorted", 0.001, 5.0), ("4x16, plain", 0.000125, 4.0)] {
        let all = filter((bytes as f64 / 8.0 * slots * 0.94) as u64, rate);
        all.by_hash().insert_batch(hashes(0, all.capacity() as u64)).expect("there is room");
        row(name, all.stats().memory_usage, all.len(), &|| all.digest().expect("memory for it"));
    }
    let all = expiring((bytes as f64 / 8.0 * 4.0 * 0.94) as u64);
    all.by_hash()
        .insert_until_batch(
            hashes(0, all.capacity() as u64).map(|hash| (hash, Tick::new(1001 + hash.0 % 14))),
            &mut Vec::new(),
        )
        .expect("there is room");
    row("entries that expire", all.stats().memory_usage, all.len(), &|| all.digest().expect("memory for it"));
    println!("{}", align(&rows, 1));
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let only = |name| options.value("--only").is_none_or(|only| only == name);
    let half = options.value("--keys").and_then(|keys| keys.parse().ok());
    let half = half.unwrap_or(if options.test { 5_000 } else { 10_000_000 });
    let rounds = if options.test {
        1
    } else if options.quick {
        3
    } else {
        7
    };
    if only("sums") {
        sums(half, rounds);
    }
    if only("parts") {
        parts(2 * half, rounds);
    }
    if only("digests") {
        digests(if options.test { 64 << 10 } else { 192 << 20 }, rounds);
    }
}
