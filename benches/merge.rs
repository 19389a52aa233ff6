//! What it costs to add one filter to another, and to compare filters.
//!
//! `cargo bench --bench merge [-- --quick | --keys=N | --only=sums|parts|digests]`
//!
//! - **sums**: two filters of ten million keys each become one of twenty million, in one thread's processor time.
//!   `absorb` is compared with `merge` of `qfilter`, with all copies kept and at the same rate. All hash with the same
//!   function. Before each round the filters are filled anew, and the runs are interleaved. The ratio to `qfilter` is the
//!   median of the rounds, with the min and max.
//! - **parts**: two threads put twenty million keys into an empty filter. Either each fills a part of its own, and then
//!   adds it to the whole (`empty_like`, `absorb`), or both insert into the one filter, by `insert_batch`. Wall-clock
//!   time.
//! - **digests**: how long the digest of a table of 192 MB takes, 95% full.

mod support;

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use concurrent_cuckoo_filter::{CuckooMaplet, ExpiringCuckooFilter, Hashed, Tick};
use support::clock::own_time;
use support::hash::HASH;
use support::keys::key;
use support::options::Options;
use support::ours::{Fixed, builder};
use support::report::{Spread, align};

/// Seconds of processor time, for the work of one thread.
fn own_seconds<R>(run: impl FnOnce() -> R) -> f64 {
    let start = own_time();
    black_box(run());
    (own_time() - start) as f64 / 1e9
}

/// The hashes of these keys, the same for all filters.
fn hashes(from: u64, to: u64) -> impl Iterator<Item = Hashed> {
    (from..to).map(|number| Hashed(HASH.hash_one(key(number))))
}

fn filter(capacity: u64, rate: f64) -> Fixed {
    builder().capacity(capacity as usize).false_positive_rate(rate).build().expect("a valid filter")
}

/// The seconds that it takes to combine two halves of this many keys, each with room for both.
type Sum = fn(u64) -> f64;

fn absorb(half: u64) -> f64 {
    let [sum, other] = [0, half].map(|from| {
        let filter = filter(2 * half, 0.001);
        filter.by_hash().insert_batch(hashes(from, from + half)).expect("there is room");
        filter
    });
    let time = own_seconds(|| sum.absorb(&other).expect("there is room"));
    assert_eq!(sum.len() as u64, 2 * half);
    assert!(hashes(0, 2 * half).step_by(997).all(|hash| sum.by_hash().contains(hash)));
    time
}

fn absorb_maplet(half: u64) -> f64 {
    let [sum, other] = [0, half].map(|from| {
        let builder = CuckooMaplet::<u64, _>::builder_with_hasher(HASH).capacity(2 * half as usize).value_bits(4);
        let maplet = builder.build().expect("a valid maplet");
        let pairs = hashes(from, from + half).map(|hash| (hash, hash.0 as u16 & 15));
        maplet.by_hash().insert_batch(pairs).expect("there is room");
        maplet
    });
    own_seconds(|| sum.absorb(&other).expect("there is room"))
}

fn absorb_expiring(half: u64) -> f64 {
    let [sum, other] = [0, half].map(|from| {
        let builder = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(HASH).capacity(2 * half as usize);
        let filter = builder.lifetime_in_ticks(14).build().expect("a valid filter");
        filter.advance_to(Tick::new(1000));
        let entries = hashes(from, from + half).map(|hash| (hash, Tick::new(1001 + hash.0 % 14)));
        filter.by_hash().insert_until_batch(entries, &mut Vec::new()).expect("there is room");
        filter
    });
    own_seconds(|| sum.absorb(&other).expect("there is room"))
}

fn insert(half: u64) -> f64 {
    let sum = filter(2 * half, 0.001);
    sum.by_hash().insert_batch(hashes(0, half)).expect("there is room");
    own_seconds(|| sum.by_hash().insert_batch(hashes(half, 2 * half)).expect("there is room"))
}

fn merge(half: u64) -> f64 {
    let [mut sum, other] = [0, half].map(|from| {
        let mut filter = qfilter::Filter::new(2 * half, 0.001).expect("a valid filter");
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
    let subjects: [(&str, Sum); 5] = [
        ("qfilter, merge", merge),
        ("5x14, absorb", absorb),
        ("maplet of 4 value bits, absorb", absorb_maplet),
        ("entries that expire, absorb", absorb_expiring),
        ("5x14, the keys inserted in a batch", insert),
    ];
    let mut speeds: [Vec<f64>; 5] = Default::default();
    for _ in 0..rounds {
        for ((_, sum), speeds) in subjects.iter().zip(&mut speeds) {
            speeds.push(2.0 * half as f64 / sum(half) / 1e6);
        }
    }
    let mut rows = vec![["way", "M keys of the result a second", "times qfilter"].map(str::to_owned).to_vec()];
    for ((name, _), of_this) in subjects.iter().zip(&speeds) {
        let ratio = Spread::of_ratios(of_this, &speeds[0]).show();
        rows.push(vec![(*name).to_owned(), Spread::of(of_this.iter().copied()).show(), ratio]);
    }
    println!("Two filters of {half} keys become one:\n\n{}", align(&rows, 1));
}

fn parts(all: u64, rounds: usize) {
    let (mut together, mut in_parts) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let whole = filter(all, 0.001);
        // The speed of two threads, each of which does this.
        let speed = |work: &(dyn Fn(u64) + Sync)| {
            let start = Instant::now();
            thread::scope(|scope| (0..2).for_each(|nth| _ = scope.spawn(move || work(nth))));
            all as f64 / 1e6 / start.elapsed().as_secs_f64()
        };
        let fill = |filter: &Fixed, nth| {
            filter.by_hash().insert_batch(hashes(all * nth / 2, all * (nth + 1) / 2)).expect("there is room");
        };
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
    let [together, in_parts] = [together, in_parts].map(|speeds| Spread::of(speeds).show());
    println!("{all} keys from two threads, M keys a second: into one filter {together}, in parts {in_parts}\n");
}

fn digests(bytes: usize, rounds: usize) {
    for (name, rate, slots) in [("5x14, semi-sorted", 0.001, 5.0), ("4x16, plain", 0.000125, 4.0)] {
        let all = filter((bytes as f64 / 8.0 * slots * 0.94) as u64, rate);
        all.by_hash().insert_batch(hashes(0, all.capacity() as u64)).expect("there is room");
        let times = (0..rounds).map(|_| own_seconds(|| all.digest().expect("memory for it")));
        println!("A digest of {} MB, {name}: {} s", all.stats().memory_usage / 1_000_000, Spread::of(times).show());
    }
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let half = options.keys(if options.test { 5_000 } else { 10_000_000 });
    let rounds = options.pick(1, 3, 7);
    if options.wants("sums") {
        sums(half, rounds);
    }
    if options.wants("parts") {
        parts(2 * half, rounds);
    }
    if options.wants("digests") {
        digests(if options.test { 64 << 10 } else { 192 << 20 }, rounds);
    }
}
