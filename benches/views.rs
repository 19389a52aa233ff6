//! What a view of a snapshot costs beside the loaded filter.
//!
//! `cargo bench --bench views --features snapshot [-- --quick | --l2 | --large | --only=first|lookups]`
//!
//! - **first**: the time to the first answer from a file of 1 GB (`--keys=N` for another size), by loading it, and by a
//!   view of the mapped file, not verified and verified. The file is in the system's page cache; a file that is not costs
//!   as much more as it takes to read it, and a view that is not verified reads two pages of it. With `--quick` the file
//!   is sparse: an empty filter, of which only the header and the end are written.
//! - **lookups**: a view over the loaded filter, single and in batches of 1,024, for tables that are 90 % full, each from
//!   the heap and from a mapped file. Their words begin at an address that is no multiple of 8, which is the usual case.
//!   The runs are interleaved, so that each ratio compares two slices of one round. A ratio above 1 says that the view is
//!   faster. Filters that grow have 16 MB at most.
#![allow(unsafe_code, reason = "a file is mapped")]

mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use ahash::RandomState;
use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, GrowableCuckooFilter, Tick, View, Viewed,
};
use memmap2::Mmap;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::clock::own_time;
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::plan::Size;
use support::report::{Spread, align, speed};

/// How many keys a batch has, and how many are timed at a time.
const BATCH: usize = 1024;
const SLICE: usize = 4 * BATCH;

type Fixed = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;
type Maplet = CuckooMaplet<u64, RandomState>;
type Expiring = ExpiringCuckooFilter<u64, RandomState>;

/// The tick of all lookups in filters whose entries expire, and that of their snapshots.
const NOW: u64 = 1005;
const BEGIN: u64 = 1000;

/// Lookups of a slice of keys: how many are found.
type Run<'a> = Box<dyn Fn(&[u64]) -> usize + 'a>;

/// Single lookups and batches.
struct Subject<'a> {
    single: Run<'a>,
    batched: Run<'a>,
}

macro_rules! subject {
    ($of:ident, $key:ident => $found:expr, ($keys:ident, $answers:ident) => $batch:expr) => {
        Subject {
            single: Box::new(|keys| keys.iter().filter(|&$key| $found).count()),
            batched: Box::new(|keys| {
                let mut $answers = Vec::with_capacity(BATCH);
                let mut found = 0;
                for $keys in keys.chunks(BATCH) {
                    $answers.clear();
                    $batch;
                    found += $answers.iter().filter(|&&found| found).count();
                }
                found
            }),
        }
    };
}

macro_rules! contains {
    ($of:ident) => {
        subject!($of, key => $of.contains(key), (keys, answers) => $of.contains_batch(keys, &mut answers))
    };
}

macro_rules! values {
    ($of:ident) => {
        subject!($of, key => !$of.values(key).is_empty(),
            (keys, answers) => {
                let mut found = Vec::with_capacity(keys.len());
                $of.values_batch(keys, &mut found);
                answers.extend(found.iter().map(|values| !values.is_empty()));
            })
    };
}

/// A file of its own, which is removed at the end.
struct Snapshot(PathBuf);

impl Snapshot {
    fn new() -> Self {
        Self(env::temp_dir().join(format!("views-{}.ccf", process::id())))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

fn map(path: &Path) -> Mmap {
    let file = File::open(path).expect("it was written");
    // SAFETY: the file is this process's own, and nobody changes it while it is mapped.
    unsafe { Mmap::map(&file) }.expect("it can be mapped")
}

/// Compares views of a snapshot with the filter that was loaded from it. (One that was filled by inserts has its pages in
/// a random order, and so is slower.)
fn compare<F: Viewed<Hasher = RandomState>>(
    name: &str,
    snapshot: &[u8],
    filter: &Subject<'_>,
    of_heap: impl Fn(&View<F, Vec<u8>>) -> Subject<'_>,
    of_map: impl Fn(&View<F, Mmap>) -> Subject<'_>,
    len: u64,
    length: Duration,
) -> Vec<Vec<String>> {
    let path = Snapshot::new();
    fs::write(&path.0, snapshot).expect("there is room");
    let heap = View::<F, _>::new(snapshot.to_vec(), HASH).expect("its own snapshot");
    let mapped = View::<F, _>::new(map(&path.0), HASH).expect("its own snapshot");
    let subjects = [filter, &of_heap(&heap), &of_map(&mapped)];
    let mut rows = Vec::new();
    for (operation, numbers) in [("hit", 0..len), ("miss", ABSENT..2 * ABSENT)] {
        let mut random = SmallRng::seed_from_u64(17);
        let mut times: [[Vec<f64>; 2]; 3] = Default::default();
        let start = Instant::now();
        let mut rounds = 0;
        while start.elapsed() < length || rounds == 0 {
            rounds += 1;
            let mut found = Vec::new();
            // Beginning with another one each time.
            for nth in (0..6).map(|nth| (nth + rounds) % 6) {
                // Other keys for each, so that none finds the lines of another in the cache. Those found are not compared.
                let keys = drawn(&mut random, numbers.clone(), SLICE as u64);
                let run = [&subjects[nth / 2].single, &subjects[nth / 2].batched][nth % 2];
                let start = own_time();
                let count = black_box(run(&keys));
                times[nth / 2][nth % 2].push((own_time() - start) as f64 / SLICE as f64);
                found.push(count);
            }
            assert!(operation != "hit" || found.iter().all(|&found| found == SLICE), "{name}: a key is missed");
        }
        let [filter, heap, mapped] = &times;
        let ratio = |view: &[Vec<f64>; 2], nth: usize| Spread::of_ratios(&filter[nth], &view[nth]).show();
        rows.push(vec![
            format!("{name}, {operation}"),
            format!("{:.1}", speed(&filter[0])),
            ratio(heap, 0),
            ratio(mapped, 0),
            format!("{:.1}", speed(&filter[1])),
            ratio(heap, 1),
            ratio(mapped, 1),
        ]);
    }
    rows
}

fn fixed(capacity: usize, rate: f64) -> Fixed {
    let builder = Fixed::builder_with_hasher(HASH).capacity(capacity).false_positive_rate(rate);
    builder.build().expect("a valid filter")
}

/// Calls `each` with the keys of the numbers below `len`, some at a time.
fn in_chunks(len: u64, each: impl Fn(&[u64])) {
    for start in (0..len).step_by(1 << 20) {
        each(&(start..len.min(start + (1 << 20))).map(key).collect::<Vec<_>>());
    }
}

fn saved(save: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut snapshot = Vec::new();
    save(&mut snapshot).expect("memory for it");
    snapshot
}

fn lookups(size: Size, bytes: usize, length: Duration) {
    let buckets = bytes as f64 / 8.0;
    let mut rows = vec![
        ["", "loaded, single, M/s", "view", "mapped", "loaded, batched, M/s", "view", "mapped"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (name, rate, slots) in [("5x14", 0.001, 5.0), ("4x16", 0.000125, 4.0)] {
        let filter = fixed((buckets * slots * 0.94) as usize, rate);
        let len = (filter.plan().slots as f64 * 0.9) as u64;
        in_chunks(len, |keys| filter.insert_batch(keys).expect("there is room"));
        let snapshot = saved(|to| filter.save(to));
        let filter = Fixed::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
        rows.extend(compare::<Fixed>(
            name,
            &snapshot,
            &contains!(filter),
            |v| contains!(v),
            |v| contains!(v),
            len,
            length,
        ));
    }
    // At its largest size, and in the middle of the doubling before, where there are two layouts. It takes minutes to fill
    // one of 192 MB.
    let grown = buckets.min((16 << 20) as f64 / 8.0);
    for (name, share) in [("growable", 1.0), ("growable, in a doubling", 0.7)] {
        let most = (grown * 5.0 * 0.9) as usize;
        let filter = Growable::builder_with_hasher(HASH).capacity(most / 4).max_capacity(most).build();
        let filter = filter.expect("a valid filter");
        let len = (filter.max_capacity() as f64 * share) as u64;
        in_chunks(len, |keys| filter.insert_batch(keys).expect("there is room"));
        let snapshot = saved(|to| filter.save(to));
        let filter = Growable::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
        rows.extend(compare::<Growable>(
            name,
            &snapshot,
            &contains!(filter),
            |view| contains!(view),
            |view| contains!(view),
            len,
            length,
        ));
    }
    let maplet = Maplet::builder_with_hasher(HASH).capacity((buckets * 4.0 * 0.92) as usize).value_bits(4).build();
    let maplet = maplet.expect("a valid maplet");
    let len = (maplet.plan().slots as f64 * 0.9) as u64;
    in_chunks(len, |keys| maplet.insert_batch(keys.iter().map(|key| (key, *key as u16 & 15))).expect("there is room"));
    let snapshot = saved(|to| maplet.save(to));
    let maplet = Maplet::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    rows.extend(compare::<Maplet>(
        "maplet, values",
        &snapshot,
        &values!(maplet),
        |v| values!(v),
        |v| values!(v),
        len,
        length,
    ));

    let filter =
        Expiring::builder_with_hasher(HASH).capacity((buckets * 4.0 * 0.92) as usize).lifetime_in_ticks(14).build();
    let filter = filter.expect("a valid filter");
    filter.advance_to(Tick::new(BEGIN));
    let len = (filter.plan().slots as f64 * 0.9) as u64;
    let entries = |keys: &[u64]| {
        let entries = keys.iter().map(|key| (key, Tick::new(NOW + 1 + key % 9)));
        filter.insert_until_batch(entries, &mut Vec::new()).map(drop)
    };
    in_chunks(len, |keys| entries(keys).expect("there is room"));
    let snapshot = saved(|to| filter.save(to));
    let filter = Expiring::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    filter.advance_to(Tick::new(NOW));
    rows.extend(compare::<Expiring>(
        "expiring",
        &snapshot,
        &contains!(filter),
        |view| {
            subject!(view, key => view.contains_at(key, Tick::new(NOW)),
                (keys, answers) => view.contains_batch_at(keys, Tick::new(NOW), &mut answers))
        },
        |view| {
            subject!(view, key => view.contains_at(key, Tick::new(NOW)),
                (keys, answers) => view.contains_batch_at(keys, Tick::new(NOW), &mut answers))
        },
        len,
        length,
    ));
    println!(
        "Lookups in tables of {} KiB ({}); the ratios are those of a view over the loaded filter:\n",
        bytes >> 10,
        size.name()
    );
    println!("{}", align(&rows, 1));
}

/// Writes a file, except for what is zero.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() >= 4096 && bytes.iter().all(|&byte| byte == 0) {
            self.0.seek(SeekFrom::Current(bytes.len() as i64))?;
            return Ok(bytes.len());
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn seconds<R>(run: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_secs_f64()
}

fn first(bytes: usize, sparse: bool, rounds: usize) {
    let path = Snapshot::new();
    let path = &path.0;
    let filter = fixed((bytes as f64 / 8.0 * 5.0 * 0.97) as usize, 0.001);
    if !sparse {
        in_chunks(filter.capacity() as u64, |keys| filter.insert_batch(keys).expect("there is room"));
    }
    filter.save(&mut Sparse(File::create(path).expect("a new file"))).expect("room for it");
    let is_in = !sparse;
    drop(filter);
    let limit = bytes + (64 << 20);
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(seconds(|| {
            let view = View::<Fixed, _>::new(map(path), HASH).expect("its own snapshot");
            assert_eq!(view.contains(&key(0)), is_in);
        }));
        times[1].push(seconds(|| {
            let view = View::<Fixed, _>::new(map(path), HASH).expect("its own snapshot");
            view.verify().expect("its own snapshot");
            assert_eq!(view.contains(&key(0)), is_in);
        }));
        times[2].push(seconds(|| {
            let filter = Fixed::load_from_path(path, HASH, limit).expect("its own snapshot");
            assert_eq!(filter.contains(&key(0)), is_in);
        }));
    }
    let mut rows = vec![["way", "milliseconds to the first answer"].map(str::to_owned).to_vec()];
    for (name, times) in ["view of the mapped file", "the same, verified", "load_from_path"].into_iter().zip(times) {
        let Spread { median, least, most } = Spread::of(times.into_iter().map(|time| time * 1e3));
        rows.push(vec![name.to_owned(), format!("{median:.3} ({least:.3}-{most:.3})")]);
    }
    let bytes = fs::metadata(path).expect("it was written").len();
    println!("A file of {:.2} GB{}:\n", bytes as f64 / 1e9, if sparse { ", which is sparse" } else { "" });
    println!("{}", align(&rows, 1));
}

fn main() {
    let Some(options) = Options::parse() else { return };
    let only = |name| options.value("--only").is_none_or(|only| only == name);
    if only("first") {
        let bytes = options.value("--keys").and_then(|keys| keys.parse::<usize>().ok()).map(|keys| keys * 13 / 8);
        let bytes = bytes.unwrap_or(if options.test { 1 << 20 } else { 1_000_000_000 });
        first(bytes, options.quick || options.test, if options.test { 1 } else { 5 });
    }
    if only("lookups") {
        let length = Duration::from_millis(if options.test {
            0
        } else if options.quick {
            1_000
        } else {
            4_000
        });
        for size in options.sizes() {
            lookups(size, options.table_bytes(size), length);
        }
    }
}
