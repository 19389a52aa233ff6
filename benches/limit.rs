//! What memory allows, and how near lookups come to it, one at a time and in batches.
//!
//! `cargo bench --bench limit [-- OPTIONS]`; with `--features huge-pages` also on huge pages, in the same run.
//!
//! | option | |
//! |---|---|
//! | `--l2` | only the tables of 512 KiB, which fit in the L2 cache |
//! | `--large` | only those of 192 MB |
//! | `--quick` | fewer and shorter rounds, and 512 KiB if `--large` isn't given |
//!
//! The *limit* of a lookup in two buckets is to hash a key and to load two words from two random cache lines of a table
//! of the same size, and nothing else: (a) plainly, one key after another, and (b) through a ring, in which both lines
//! are prefetched 64 keys before they are read. All else here is a ratio to one of them, of turns in the same round. Shown
//! are the medians, and in brackets the least and the greatest ratio of all rounds.
//!
//! The keys are `u64`s, 1,024 in a slice, which is also the batch; to make them is part of what is timed, for everybody.
//! The hash is `ahash` with the same constants for all. Ours are 90 % full. `fastbloom` is its atomic filter with as
//! many keys as our default and the same false-positive rate, for which it takes more memory; `sbbf`, a split-block Bloom
//! filter, has as many bytes as ours, and as many keys.
//!
//! Inserts are from empty to 75 % of the slots, and removals from 90 % on, single and batched by turns, so that both meet
//! the same loads.

mod support;

use std::env;
use std::hint::black_box;
use std::time::{Duration, Instant};

use ahash::RandomState;
use concurrent_cuckoo_filter::{Builder, ConcurrentCuckooFilter, Encoding};
use memmap2::{Mmap, MmapMut};

use support::hash::HASH;
use support::keys::{ABSENT, Random, Shuffled, key};
use support::ours::{builder, of_size};
use support::plan::Size;
use support::report::{Spread, align};

/// How many keys there are in a slice.
const BATCH: usize = 1024;

/// How far ahead the ring of limit (b) prefetches.
const RING: usize = 64;

type Filter = ConcurrentCuckooFilter<u64, RandomState>;

/// What can be timed on slices of keys. Each returns how many were found.
trait Lookups {
    fn single(&mut self, keys: &[u64]) -> usize;
    /// `None` if there is no such thing.
    fn batched(&mut self, keys: &[u64]) -> Option<usize>;
}

/// Two words from two random cache lines.
struct Limit {
    table: Mmap,
    words: usize,
    ring: [(usize, usize); RING],
    at: usize,
}

impl Limit {
    fn new(bytes: usize, huge: bool) -> Self {
        let mut table = MmapMut::map_anon(bytes).expect("memory");
        #[cfg(target_os = "linux")]
        {
            use memmap2::Advice::{HugePage, NoHugePage};
            // Refused where the kernel has none: then there are none to be had for ours either.
            let _ = table.advise(if huge { HugePage } else { NoHugePage });
        }
        // Not zeros: those would be pages that the system shares and never loads.
        table.fill(1);
        let table = table.make_read_only().expect("it was writable");
        Self { table, words: bytes / 8, ring: [(0, 0); RING], at: 0 }
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        let bytes = self.table[8 * index..].first_chunk().expect("an index below `words`");
        u64::from_le_bytes(*bytes)
    }

    #[inline(always)]
    fn places(&self, key: u64) -> (usize, usize) {
        let hash = HASH.hash_one(key);
        let place = |hash: u64| ((u128::from(hash) * self.words as u128) >> 64) as usize;
        (place(hash), place(hash.rotate_left(32)))
    }
}

impl Lookups for Limit {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        let loaded = |&key: &u64| {
            let (first, second) = self.places(key);
            usize::from(self.word(first) & self.word(second) != 0)
        };
        keys.iter().map(loaded).sum()
    }

    #[inline(never)]
    fn batched(&mut self, keys: &[u64]) -> Option<usize> {
        let mut found = 0;
        for &key in keys {
            let (first, second) = self.ring[self.at % RING];
            found += usize::from(self.word(first) & self.word(second) != 0);
            let (first, second) = self.places(key);
            prefetch(&self.table[8 * first]);
            prefetch(&self.table[8 * second]);
            self.ring[self.at % RING] = (first, second);
            self.at += 1;
        }
        Some(found)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "there is no safe prefetch yet")]
#[inline(always)]
fn prefetch(byte: &u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: SSE is part of every x86-64 processor, and a prefetch has no effect that a program can observe.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(byte).cast()) }
}

/// Without a prefetch, (b) is no more than (a).
#[cfg(not(target_arch = "x86_64"))]
fn prefetch(_byte: &u8) {}

/// The hash alone.
struct Hash;

impl Lookups for Hash {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(HASH.hash_one(key) != 0)).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}

/// This crate's.
struct Ours {
    filter: Filter,
    answers: Vec<bool>,
}

impl Lookups for Ours {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(self.filter.contains(key))).sum()
    }

    #[inline(never)]
    fn batched(&mut self, keys: &[u64]) -> Option<usize> {
        self.answers.clear();
        self.filter.contains_batch(keys, &mut self.answers);
        Some(self.answers.iter().map(|&found| usize::from(found)).sum())
    }
}

struct Bloom(fastbloom::AtomicBloomFilter<RandomState>);

impl Lookups for Bloom {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|key| usize::from(self.0.contains(key))).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}

struct SplitBlock(sbbf_rs_safe::Filter);

impl Lookups for SplitBlock {
    #[inline(never)]
    fn single(&mut self, keys: &[u64]) -> usize {
        keys.iter().map(|&key| usize::from(self.0.contains_hash(HASH.hash_one(key)))).sum()
    }

    fn batched(&mut self, _keys: &[u64]) -> Option<usize> {
        None
    }
}

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Hit,
    Miss,
    /// Either, by the toss of a coin.
    Half,
}

/// Makes the keys of the lookups.
struct Source {
    what: What,
    present: Shuffled,
    absent: u64,
    random: Random,
}

impl Source {
    #[inline(never)]
    fn fill(&mut self, keys: &mut [u64; BATCH]) {
        let mut coins = 0;
        for (i, slot) in keys.iter_mut().enumerate() {
            let index = match self.what {
                What::Hit => self.present.next(),
                What::Miss => {
                    self.absent += 1;
                    self.absent
                }
                What::Half => {
                    if i % 64 == 0 {
                        coins = self.random.next();
                    }
                    self.absent += 1;
                    [self.absent, self.present.next()][(coins >> (i % 64) & 1) as usize]
                }
            };
            *slot = key(index);
        }
    }
}

/// One column of the results.
struct Column {
    name: String,
    lookups: Box<dyn Lookups>,
    /// How many keys are in, or are looked up as if they were.
    len: u64,
    /// Whether it knows the keys.
    answers: bool,
    /// Whose batches limit its ratios.
    limit: usize,
}

/// A row for each, single and batched.
const WHATS: [What; 3] = [What::Hit, What::Miss, What::Half];

struct Options {
    sizes: Vec<Size>,
    rounds: usize,
    turn: Duration,
    test: bool,
}

impl Options {
    /// As for `ratios`: `None` if there is nothing to do.
    fn parse() -> Option<Self> {
        let (mut bench, mut test, mut quick, mut l2, mut large) = (false, false, false, false, false);
        let mut args = env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--bench" => bench = true,
                "--test" => test = true,
                "--quick" => quick = true,
                "--l2" => l2 = true,
                "--large" => large = true,
                "--csv" | "--out" => drop(args.next()),
                // A name is for another bench.
                name if !name.starts_with('-') => return None,
                _ => eprintln!("limit: {arg} means nothing here"),
            }
        }
        let test = test || !bench;
        let (l2, large) = if l2 || large { (l2, large) } else { (true, !quick && !test) };
        let sizes = [(l2, Size::L2), (large, Size::Large)];
        let sizes = sizes.into_iter().filter_map(|(wanted, size)| wanted.then_some(size)).collect();
        let (rounds, turn) = match (test, quick) {
            (true, _) => (1, 0),
            (false, true) => (3, 20),
            (false, false) => (7, 60),
        };
        Some(Self { sizes, rounds, turn: Duration::from_millis(turn), test })
    }
}

/// A layout of ours: its name, the slots of a bucket, and how to build it.
type Layout = (&'static str, usize, fn() -> Builder<u64, RandomState>);

const LAYOUTS: [Layout; 3] = [
    ("5x14", 5, builder),
    ("5x12", 5, || builder().encoding(Encoding::Plain).false_positive_rate(0.0025)),
    ("4x16", 4, || builder().encoding(Encoding::Plain).false_positive_rate(0.000_125)),
];

/// On huge pages, if they are wanted and the feature is on.
fn on_pages(builder: Builder<u64, RandomState>, huge: bool) -> Builder<u64, RandomState> {
    #[cfg(feature = "huge-pages")]
    let builder = builder.huge_pages(huge);
    #[cfg(not(feature = "huge-pages"))]
    let _ = huge;
    builder
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

/// Inserts up to 75 % of the slots and removals from 90 % on, single and batched; in millions a second, a pair for each
/// round.
struct Changes {
    inserts: Vec<[f64; 2]>,
    removals: Vec<[f64; 2]>,
}

/// Fills the filter to 90 %, and times what that takes.
fn fill(filter: &Filter, rounds: usize) -> (u64, Changes) {
    let slots = filter.slots() as u64;
    // By turns a slice single and a slice batched.
    let slice = slots * 3 / 4 / (2 * rounds as u64);
    let mut keys: Vec<u64> = Vec::new();
    let mut len = 0;
    let mut changes = Changes { inserts: Vec::new(), removals: Vec::new() };
    let mut timed = |from: u64, to: u64, change: &mut dyn FnMut(&[u64])| {
        let start = Instant::now();
        for first in (from..to).step_by(BATCH) {
            keys.clear();
            keys.extend((first..to.min(first + BATCH as u64)).map(key));
            change(&keys);
        }
        (to - from) as f64 / start.elapsed().as_secs_f64() / 1e6
    };
    let mut insert_each = |keys: &[u64]| keys.iter().for_each(|key| filter.insert(key).expect("room"));
    let mut insert_all = |keys: &[u64]| assert_eq!(filter.insert_batch(keys), Ok(keys.len()));
    for _ in 0..rounds {
        let single = timed(len, len + slice, &mut insert_each);
        let batched = timed(len + slice, len + 2 * slice, &mut insert_all);
        changes.inserts.push([single, batched]);
        len += 2 * slice;
    }
    let full = slots * 9 / 10;
    timed(len, full, &mut insert_each);

    let slice = slots / 20 / (2 * rounds as u64);
    let mut removed = Vec::with_capacity(BATCH);
    let mut gone = 0;
    for _ in 0..rounds {
        let single = timed(gone, gone + slice, &mut |keys| assert!(keys.iter().all(|key| filter.remove(key))));
        let batched = timed(gone + slice, gone + 2 * slice, &mut |keys| {
            removed.clear();
            filter.remove_batch(keys, &mut removed);
            assert!(removed.iter().all(|&removed| removed));
        });
        changes.removals.push([single, batched]);
        gone += 2 * slice;
    }
    timed(0, gone, &mut insert_each);
    (full, changes)
}

fn measure(size: Size, options: &Options) {
    let bytes = if options.test { 64 << 10 } else { size.table_bytes() };
    let with_huge = cfg!(feature = "huge-pages") && size == Size::Large;
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
            let (len, changed) = fill(&filter, options.rounds);
            default.get_or_insert((len, filter.false_positive_rate()));
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
    for round in 0..options.rounds {
        eprintln!("{}: lookups, round {} of {}", size.name(), round + 1, options.rounds);
        for (&(what, batched), results) in rows.iter().zip(&mut results) {
            for (column, results) in columns.iter_mut().zip(results) {
                let mut source = Source {
                    what,
                    present: Shuffled::new(0..column.len, round as f64 / options.rounds as f64),
                    absent: ABSENT + ((round as u64) << 32),
                    random: Random(round as u64),
                };
                // A first try tells how many slices a turn has time for.
                let Some(first) = time(column, batched, &mut source, 16) else { continue };
                let slices = (options.turn.as_micros() as f64 * first.mops) as usize / BATCH + 1;
                let timed = time(column, batched, &mut source, slices).expect("it was there before");
                let found = timed.found as f64 / (slices * BATCH) as f64;
                if column.answers {
                    let right = match what {
                        What::Hit => found == 1.0,
                        What::Miss => found < 0.01,
                        What::Half => (0.4..0.6).contains(&found) || options.test,
                    };
                    assert!(right, "{}: a share of {found} was found ({what:?})", column.name);
                }
                results.push(timed.mops);
            }
        }
    }
    if !options.test {
        print(size, &columns, &rows, &results, &changes);
    }
}

fn print(
    size: Size,
    columns: &[Column],
    rows: &[(What, bool)],
    results: &[Vec<Vec<f64>>],
    changes: &[(String, Changes)],
) {
    let name = |&(what, batched): &(What, bool)| {
        let how = if batched { "batched" } else { "single" };
        format!("{how} {}", format!("{what:?}").to_lowercase())
    };
    let head = || [String::new()].into_iter().chain(columns.iter().map(|column| column.name.clone()));
    let mut mops = vec![head().collect::<Vec<_>>()];
    let mut ratios = vec![head().collect::<Vec<_>>()];
    for (row, results) in rows.iter().zip(results) {
        let cell = |numbers: &Vec<f64>| match numbers.as_slice() {
            [] => "-".into(),
            some => format!("{:.1}", Spread::of(some.iter().copied()).median),
        };
        mops.push([name(row)].into_iter().chain(results.iter().map(cell)).collect());
        // Who has no batches is compared with the batches of memory in the rows of single lookups only.
        let ratio = |(column, numbers): (&Column, &Vec<f64>)| match numbers.as_slice() {
            [] => "-".into(),
            some => Spread::of(some.iter().zip(&results[column.limit]).map(|(mops, limit)| mops / limit)).show(),
        };
        ratios.push([name(row)].into_iter().chain(columns.iter().zip(results).map(ratio)).collect());
    }
    println!("## {}: lookups, millions a second, one thread\n\n{}", size.name(), align(&mops, 1));
    println!("### {}: over the limit, (a) where single, (b) where batched\n\n{}", size.name(), align(&ratios, 1));

    let mut table = vec![["", "single", "batched", "batched over single"].map(String::from).to_vec()];
    for (name, Changes { inserts, removals }) in changes {
        for (what, pairs) in [("insert to 75 %", inserts), ("remove from 90 %", removals)] {
            let median = |i: usize| format!("{:.1}", Spread::of(pairs.iter().map(|pair| pair[i])).median);
            let ratio = Spread::of(pairs.iter().map(|[single, batched]| batched / single)).show();
            table.push(vec![format!("{name} {what}"), median(0), median(1), ratio]);
        }
    }
    println!("### {}: changes, millions a second\n\n{}", size.name(), align(&table, 1));
}

fn main() {
    let Some(options) = Options::parse() else { return };
    for &size in &options.sizes {
        measure(size, &options);
    }
}
