//! What memory allows, and how close lookups come to that, one at a time and in batches. (What it allows several writers is
//! in `many_cores`.)
//!
//! `cargo bench --bench limit [-- --quick | --l2 | --large]`. Large tables also on huge pages, in the same run.
//!
//! The *limit* of a lookup in two buckets is to hash a key and to load two words from two random cache lines of a
//! table of the same size, and nothing else. It has two forms: (a) plain, one key after another, and (b) through a
//! ring, in which both lines are prefetched 64 keys before they are read. All other figures are ratios to one of
//! them, each of two turns of one round. The output shows the medians, with the min and max of all rounds in
//! brackets.
//!
//! The keys are `u64`s, 1,024 in a slice, which is also the batch. Making them is part of what is timed, for all.
//! The hash is `ahash` with the same constants for all. Ours are 90 % full. `fastbloom` is its atomic filter with
//! as many keys as our default and the same false-positive rate, for which it takes more memory. `sbbf`, a
//! split-block Bloom filter, has as many bytes as ours, and as many keys.
//!
//! Inserts are from empty to 75 % of the slots, and removals from 90 % on. Single and batched slices alternate, so
//! that both meet the same loads.

#[path = "../support/mod.rs"]
mod support;

mod changes;
mod lookups;
mod memory;
mod results;
mod source;

use std::hint::black_box;
use std::time::{Duration, Instant};

use ahash::RandomState;
use changes::fill;
use concurrent_cuckoo_filter::{Builder, Encoding};
use lookups::{Bloom, Hash, Ours, SplitBlock};
use memory::Limit;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use results::{Column, print};
use source::{BATCH, Source, What};
use support::hash::HASH;
use support::keys::{ABSENT, Shuffled, key};
use support::options::Options;
use support::ours::{builder, of_size};
use support::plan::Size;

/// One row for each, single and batched.
const WHATS: [What; 3] = [What::Hit, What::Miss, What::Half];

/// A layout of ours: its name, the slots of a bucket, and how to build it.
type Layout = (&'static str, usize, fn() -> Builder<u64, RandomState>);

const LAYOUTS: [Layout; 3] = [
    ("5x14", 5, builder),
    ("5x12", 5, || builder().encoding(Encoding::Plain).false_positive_rate(0.0025)),
    ("4x16", 4, || builder().encoding(Encoding::Plain).false_positive_rate(0.000_125)),
];

/// On huge pages, if `huge` is set.
fn on_pages(builder: Builder<u64, RandomState>, huge: bool) -> Builder<u64, RandomState> {
    builder.huge_pages(huge)
}

/// How much is measured.
struct Plan {
    table_bytes: usize,
    rounds: usize,
    turn: Duration,
    test: bool,
}

/// What is timed, in millions a second.
struct Timed {
    found: usize,
    mops: f64,
}

fn time(column: &mut Column, batched: bool, source: &mut Source, slices: usize) -> Option<Timed> {
    let mut keys = [0; BATCH];
    let mut found = 0;
    let start = Instant::now();
    for _ in 0..slices {
        source.fill(&mut keys);
        found += if batched { column.lookups.batched(&keys)? } else { column.lookups.single(&keys) };
    }
    let mops = (slices * BATCH) as f64 / start.elapsed().as_secs_f64() / 1e6;
    Some(Timed { found: black_box(found), mops })
}

fn measure(size: Size, plan: &Plan) {
    let bytes = plan.table_bytes;
    let with_huge = size == Size::Large;
    let pages: &[bool] = if with_huge { &[false, true] } else { &[false] };

    let mut columns: Vec<Column> = Vec::new();
    let mut changes = Vec::new();
    let mut default = None;
    for &huge in pages {
        let suffix = if huge { ", huge" } else { "" };
        let limit = columns.len();
        let lookups = Box::new(Limit::new(bytes, huge));
        columns.push(Column { name: format!("limit{suffix}"), lookups, len: bytes as u64 / 2, answers: false, limit });
        for (name, slots, builder) in LAYOUTS {
            eprintln!("{}: filling {name}{suffix}", size.name());
            let filter = of_size(bytes, slots, |capacity| {
                on_pages(builder(), huge).capacity(capacity).build().expect("a valid filter")
            });
            let (len, changed) = fill(&filter, plan.rounds);
            default.get_or_insert((len, filter.stats().false_positive_rate));
            changes.push((format!("{name}{suffix}"), changed));
            let lookups = Box::new(Ours { filter, answers: Vec::with_capacity(BATCH) });
            columns.push(Column { name: format!("{name}{suffix}"), lookups, len, answers: true, limit });
        }
    }
    let ((default, rate), limit) = (default.expect("the first of the layouts"), 0);
    eprintln!("{}: filling the others", size.name());
    let bloom = fastbloom::AtomicBloomFilter::with_false_pos(rate).hasher(HASH).expected_items(default as usize);
    for index in 0..default {
        bloom.insert(&key(index));
    }
    columns.push(Column {
        name: "fastbloom".into(),
        lookups: Box::new(Bloom(bloom)),
        len: default,
        answers: true,
        limit,
    });
    let mut split_block = sbbf_rs_safe::Filter::new(8, bytes / 9 * 8);
    for index in 0..default {
        split_block.insert_hash(HASH.hash_one(key(index)));
    }
    columns.push(Column {
        name: "sbbf".into(),
        lookups: Box::new(SplitBlock(split_block)),
        len: default,
        answers: true,
        limit,
    });
    columns.push(Column { name: "hash".into(), lookups: Box::new(Hash), len: default, answers: false, limit });

    let rows: Vec<(What, bool)> = [false, true].into_iter().flat_map(|b| WHATS.map(|what| (what, b))).collect();
    let mut results = vec![vec![Vec::new(); columns.len()]; rows.len()];
    for round in 0..plan.rounds {
        eprintln!("{}: lookups, round {} of {}", size.name(), round + 1, plan.rounds);
        for (&(what, batched), results) in rows.iter().zip(&mut results) {
            for (column, results) in columns.iter_mut().zip(results) {
                let mut source = Source {
                    what,
                    present: Shuffled::new(0..column.len, round as f64 / plan.rounds as f64),
                    absent: ABSENT + ((round as u64) << 32),
                    random: SmallRng::seed_from_u64(round as u64),
                };
                // A first try shows how many slices fit in a turn.
                let Some(first) = time(column, batched, &mut source, 16) else { continue };
                let slices = (plan.turn.as_micros() as f64 * first.mops) as usize / BATCH + 1;
                let timed = time(column, batched, &mut source, slices).expect("it was there before");
                let found = timed.found as f64 / (slices * BATCH) as f64;
                if column.answers {
                    let right = match what {
                        What::Hit => found == 1.0,
                        What::Miss => found < 0.01,
                        What::Half => (0.4..0.6).contains(&found) || plan.test,
                    };
                    assert!(right, "{}: a share of {found} was found ({what:?})", column.name);
                }
                results.push(timed.mops);
            }
        }
    }
    if !plan.test {
        print(size, &columns, &rows, &results, &changes);
    }
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let (rounds, turn) = match (options.test, options.quick) {
        (true, _) => (1, 0),
        (false, true) => (3, 20),
        (false, false) => (7, 60),
    };
    for size in options.sizes() {
        let (table_bytes, turn) = (options.table_bytes(size), Duration::from_millis(turn));
        let plan = Plan { table_bytes, rounds, turn, test: options.test };
        measure(size, &plan);
    }
}
