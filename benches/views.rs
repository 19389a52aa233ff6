//! What a view of a snapshot costs beside the loaded filter.
//!
//! `cargo bench --bench views --features snapshot [-- --quick | --l2 | --large | --only=first|lookups]`
//!
//! - **first**: the time to the first answer from a file of 1 GB, by loading it, and by a view of the mapped file, not
//!   verified and verified. The file is sparse: an empty filter, of which only the header and the end are written. It is in
//!   the system's page cache; a file that is not costs as much more as it takes to read it, and a view that is not verified
//!   reads two pages of it.
//! - **lookups**: a view of a mapped file over the loaded filter, single and in batches of 1,024, for tables that are 90%
//!   full. Their words begin at an address that is no multiple of 8, which is the usual case. The runs are interleaved, so
//!   that each ratio compares two slices of one round. A ratio above 1 says that the view is faster. Filters that grow
//!   have 16 MB at most.
#![allow(unsafe_code, reason = "a file is mapped")]

mod support;

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use ahash::RandomState;
use concurrent_cuckoo_filter::{CuckooMaplet, ExpiringCuckooFilter, Tick, View, Viewed};
use memmap2::Mmap;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use support::clock::{by_turns, own_time};
use support::hash::HASH;
use support::keys::{ABSENT, drawn, key};
use support::options::Options;
use support::ours::{BATCH, Fixed, Growable, Ours, fill, growable};
use support::plan::Size;
use support::report::{Spread, align, speed};

/// How many keys are timed at a time.
const SLICE: usize = 4 * BATCH;

type Maplet = CuckooMaplet<u64, RandomState>;
type Expiring = ExpiringCuckooFilter<u64, RandomState>;

/// The tick of all lookups in filters whose entries expire, and that of their snapshots.
const NOW: u64 = 1005;
const BEGIN: u64 = 1000;

/// Looks up a slice of keys, one by one or in batches. Returns how many are found.
type LookUp<'a> = &'a dyn Fn(&[u64], bool) -> usize;

/// `found` and `batch` say what a lookup is.
fn look_up(keys: &[u64], batched: bool, found: impl Fn(&u64) -> bool, batch: impl Fn(&[u64], &mut Vec<bool>)) -> usize {
    if !batched {
        return keys.iter().filter(|key| found(key)).count();
    }
    let mut answers = Vec::with_capacity(keys.len());
    keys.chunks(BATCH).for_each(|keys| batch(keys, &mut answers));
    answers.iter().filter(|&&found| found).count()
}

macro_rules! contains {
    ($of:expr) => {
        &|keys, batched| {
            look_up(keys, batched, |key| $of.contains(key), |keys, answers| $of.contains_batch(keys, answers))
        }
    };
}

macro_rules! values {
    ($of:expr) => {
        &|keys, batched| {
            look_up(
                keys,
                batched,
                |key| !$of.values(key).is_empty(),
                |keys, answers| {
                    let mut found = Vec::with_capacity(keys.len());
                    $of.values_batch(keys, &mut found);
                    answers.extend(found.iter().map(|values| !values.is_empty()));
                },
            )
        }
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

/// The snapshot that `save` writes, and a view of it in a file, which is mapped.
fn saved<F: Viewed<Hasher = RandomState>>(
    save: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> (Vec<u8>, View<F, Mmap>) {
    let (mut snapshot, path) = (Vec::new(), Snapshot::new());
    save(&mut snapshot).expect("memory for it");
    fs::write(&path.0, &snapshot).expect("there is room");
    let view = View::new(map(&path.0), HASH).expect("its own snapshot");
    (snapshot, view)
}

/// Compares a view with the filter that was loaded from the same snapshot. (One that was filled by inserts has its pages
/// in a random order, and so is slower.)
fn compare(name: &str, loaded: LookUp<'_>, view: LookUp<'_>, len: u64, length: Duration) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (operation, numbers) in [("hit", 0..len), ("miss", ABSENT..2 * ABSENT)] {
        let mut random = SmallRng::seed_from_u64(17);
        // Single lookups and batches of each.
        let times = by_turns(4, length, |nth, _| {
            let (of, batched) = (nth / 2, nth % 2 == 1);
            // Other keys for each, so that none finds the lines of another in the cache.
            let keys = drawn(&mut random, numbers.clone(), SLICE as u64);
            let start = own_time();
            let found = black_box([loaded, view][of](&keys, batched));
            let time = (own_time() - start) as f64 / SLICE as f64;
            assert!(operation != "hit" || found == SLICE, "{name}: a key is missed");
            time
        });
        let cells = times[..2]
            .iter()
            .zip(&times[2..])
            .flat_map(|(loaded, view)| [format!("{:.1}", speed(loaded)), Spread::of_ratios(loaded, view).show()]);
        rows.push([format!("{name}, {operation}")].into_iter().chain(cells).collect());
    }
    rows
}

/// Calls `each` with the keys of the numbers below `len`, some at a time.
fn in_chunks(len: u64, each: impl Fn(&[u64])) {
    for start in (0..len).step_by(1 << 20) {
        each(&(start..len.min(start + (1 << 20))).map(key).collect::<Vec<_>>());
    }
}

fn lookups(size: Size, bytes: usize, length: Duration) {
    let buckets = bytes as f64 / 8.0;
    let head = ["", "loaded, single, M/s", "view over it", "loaded, batched, M/s", "view over it"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let slots = |slots: f64| (buckets * slots * 0.9) as usize;

    let (len, filter) = (slots(5.0), Fixed::of_keys(slots(5.0)));
    fill(&filter, 0..len as u64);
    let (snapshot, view) = saved::<Fixed>(|to| filter.save(to));
    let filter = Fixed::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    rows.extend(compare("5x14", contains!(filter), contains!(view), len as u64, length));

    // It takes minutes to fill one of 192 MB.
    let len = slots(5.0).min((16 << 20) / 8 * 5 * 9 / 10);
    let filter = growable().capacity(len / 4).max_capacity(len).build().expect("a valid filter");
    fill(&filter, 0..len as u64);
    let (snapshot, view) = saved::<Growable>(|to| filter.save(to));
    let filter = Growable::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    rows.extend(compare("growable", contains!(filter), contains!(view), len as u64, length));

    let len = slots(4.0);
    let maplet = Maplet::builder_with_hasher(HASH).capacity(len).value_bits(4).build().expect("a valid maplet");
    let pairs = |keys: &[u64]| maplet.insert_batch(keys.iter().map(|key| (key, *key as u16 & 15)));
    in_chunks(len as u64, |keys| pairs(keys).expect("there is room"));
    let (snapshot, view) = saved::<Maplet>(|to| maplet.save(to));
    let maplet = Maplet::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    rows.extend(compare("maplet, values", values!(maplet), values!(view), len as u64, length));

    let filter = Expiring::builder_with_hasher(HASH).capacity(len).lifetime_in_ticks(14).build();
    let filter = filter.expect("a valid filter");
    filter.advance_to(Tick::new(BEGIN));
    let entries = |keys: &[u64]| {
        let entries = keys.iter().map(|key| (key, Tick::new(NOW + 1 + key % 9)));
        filter.insert_until_batch(entries, &mut Vec::new()).map(drop)
    };
    in_chunks(len as u64, |keys| entries(keys).expect("there is room"));
    let (snapshot, view) = saved::<Expiring>(|to| filter.save(to));
    let filter = Expiring::load(&snapshot[..], HASH, usize::MAX).expect("its own snapshot");
    filter.advance_to(Tick::new(NOW));
    let of_view: LookUp<'_> = &|keys, batched| {
        let batch = |keys: &[u64], answers: &mut Vec<bool>| view.contains_at_batch(keys, Tick::new(NOW), answers);
        look_up(keys, batched, |key| view.contains_at(key, Tick::new(NOW)), batch)
    };
    rows.extend(compare("expiring", contains!(filter), of_view, len as u64, length));
    println!("Lookups in tables of {} KiB ({}):\n\n{}", bytes >> 10, size.name(), align(&rows, 1));
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

fn first(bytes: usize, rounds: usize) {
    let path = Snapshot::new();
    let path = &path.0;
    let filter = Fixed::of_keys((bytes as f64 / 8.0 * 5.0 * 0.97) as usize);
    filter.save(&mut Sparse(File::create(path).expect("a new file"))).expect("room for it");
    drop(filter);
    let limit = bytes + (64 << 20);
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(seconds(|| {
            let view = View::<Fixed, _>::new(map(path), HASH).expect("its own snapshot");
            assert!(!view.contains(&key(0)));
        }));
        times[1].push(seconds(|| {
            let view = View::<Fixed, _>::new(map(path), HASH).expect("its own snapshot");
            view.verify().expect("its own snapshot");
            assert!(!view.contains(&key(0)));
        }));
        times[2].push(seconds(|| {
            let filter = Fixed::load_from_path(path, HASH, limit).expect("its own snapshot");
            assert!(!filter.contains(&key(0)));
        }));
    }
    let mut rows = vec![["way", "milliseconds to the first answer"].map(str::to_owned).to_vec()];
    for (name, times) in ["view of the mapped file", "the same, verified", "load_from_path"].into_iter().zip(times) {
        let Spread { median, least, most } = Spread::of(times.into_iter().map(|time| time * 1e3));
        rows.push(vec![name.to_owned(), format!("{median:.3} ({least:.3}-{most:.3})")]);
    }
    let bytes = fs::metadata(path).expect("it was written").len();
    println!("A file of {:.2} GB, which is sparse:\n\n{}", bytes as f64 / 1e9, align(&rows, 1));
}

fn main() {
    let Some(options) = Options::parse() else { return };
    if options.wants("first") {
        let (bytes, rounds) = if options.test { (1 << 20, 1) } else { (1_000_000_000, 5) };
        first(bytes, rounds);
    }
    if options.wants("lookups") {
        let length = Duration::from_millis(options.pick(0, 1_000, 4_000));
        for size in options.sizes() {
            lookups(size, options.table_bytes(size), length);
        }
    }
}
