//! Snapshots as other languages read them: the test vectors of the page on the format, and the reader in `examples/python`.
//!
//! Without `python3`, the reader's tests are skipped, unless `CCF_PYTHON=required` is set, as in the gate.

use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{array, env, fs, process, thread};

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, Encoding, ExpiringCuckooFilter, ExpiringInsertError,
    GrowableCuckooFilter, RecentCuckooFilter, StableHashBuilder, Tick, WhenFull,
};

use crate::support::{LAYOUTS, MAPLET_LAYOUTS};

type Filter = ConcurrentCuckooFilter<str, StableHashBuilder>;
type Maplet = CuckooMaplet<str, StableHashBuilder>;
type Expiring = ExpiringCuckooFilter<str, StableHashBuilder>;
type Growable = GrowableCuckooFilter<str, StableHashBuilder>;
type Recent = RecentCuckooFilter<str, StableHashBuilder>;
type Limiter = CuckooRateLimiter<str, StableHashBuilder>;

const PAGE: &str = include_str!("../../docs/snapshot_format.md");

/// The key of the hasher in the page.
fn key() -> [u8; 16] {
    array::from_fn(|i| i as u8)
}

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key(key())
}

/// The keys in all snapshots of the page.
const PRESENT: [&str; 3] = ["apple", "pear", "plum"];

macro_rules! saved {
    ($filter:expr) => {{
        let mut bytes = Vec::new();
        $filter.save(&mut bytes).unwrap();
        bytes
    }};
}

// The page.

/// The hexadecimal digits in the block that follows this heading of the page, without what is said about them.
fn vector(heading: &str) -> String {
    let (_, after) = PAGE.split_once(&format!("\n### {heading}\n")).expect("the page has this heading");
    let block = after.split("```").nth(1).expect("a block follows the heading");
    let lines = block.strip_prefix("text").expect("it is not a program").lines();
    lines.filter_map(|line| line.split("  ").next()).flat_map(str::split_whitespace).collect()
}

#[track_caller]
fn is_on_the_page(heading: &str, snapshot: &[u8]) {
    let hex: String = snapshot.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(vector(heading), hex, "the bytes below {heading:?}, and those that the library saves");
}

fn vector_of_one_table() -> Vec<u8> {
    let filter = Filter::builder_with_hasher(hasher()).capacity(30).build().unwrap();
    PRESENT.iter().for_each(|key| filter.insert(*key).unwrap());
    assert!(filter.contains("apple") && !filter.contains("cherry"));
    saved!(filter)
}

#[test]
fn the_vector_of_one_table_is_what_the_library_saves() {
    is_on_the_page("One table", &vector_of_one_table());
}

fn vector_of_a_maplet() -> Vec<u8> {
    let maplet = Maplet::builder_with_hasher(hasher()).capacity(10).value_bits(4).build().unwrap();
    for (key, value) in [("apple", 3), ("pear", 9), ("pear", 3), ("plum", 15)] {
        maplet.insert(key, value).unwrap();
    }
    assert!(maplet.values("pear").iter().eq([3, 9]) && maplet.values("cherry").is_empty());
    saved!(maplet)
}

#[test]
fn the_vector_of_a_maplet_is_what_the_library_saves() {
    is_on_the_page("Maplet", &vector_of_a_maplet());
}

fn vector_of_an_expiring_filter() -> Vec<u8> {
    let filter = Expiring::builder_with_hasher(hasher()).capacity(10).lifetime_in_ticks(15).build().unwrap();
    filter.advance_to(Tick::new(1000));
    for (key, expiry) in [("apple", 1001), ("pear", 1008), ("plum", 1015)] {
        assert_eq!(filter.insert_until(key, Tick::new(expiry)), Ok(true));
    }
    assert!(!filter.contains("cherry"));
    saved!(filter)
}

#[test]
fn the_vector_of_an_expiring_filter_is_what_the_library_saves() {
    is_on_the_page("Expiring filter", &vector_of_an_expiring_filter());
}

fn vector_of_recent_keys() -> Vec<u8> {
    let filter = Recent::builder_with_hasher(hasher()).last(10).build().unwrap();
    PRESENT.iter().for_each(|key| assert!(filter.insert(*key)));
    assert!(!filter.contains("cherry"));
    saved!(filter)
}

#[test]
fn the_vector_of_recent_keys_is_what_the_library_saves() {
    is_on_the_page("Recent keys", &vector_of_recent_keys());
}

fn vector_of_a_rate_limiter() -> Vec<u8> {
    let builder = Limiter::builder_with_hasher(hasher()).allow(4, Duration::from_secs(1)).burst(3).capacity(10);
    let limiter = builder.clock(|| Duration::ZERO).build().unwrap();
    PRESENT.iter().for_each(|key| assert!(limiter.check(*key).is_ok()));
    assert_eq!(limiter.peek("cherry").remaining, 3);
    saved!(limiter)
}

#[test]
fn the_vector_of_a_rate_limiter_is_what_the_library_saves() {
    is_on_the_page("Rate limiter", &vector_of_a_rate_limiter());
}

fn vector_of_a_growable_filter() -> Vec<u8> {
    let filter = Growable::builder_with_hasher(hasher()).capacity(20).build().unwrap();
    PRESENT.iter().for_each(|key| filter.insert(*key).unwrap());
    // So that it has buckets of two depths.
    filter.reserve(filter.capacity() + 1 - filter.len()).unwrap();
    assert_eq!(filter.plan().layout.buckets, 96);
    (0..50).for_each(|nth| filter.insert(&key_of(nth)).unwrap());
    assert!(filter.plan().layout.buckets == 96 && !filter.contains("cherry"));
    saved!(filter)
}

#[test]
fn the_vector_of_a_growable_filter_is_what_the_library_saves() {
    is_on_the_page("Growable filter", &vector_of_a_growable_filter());
}

/// The formulas of the page, written out again, for the first vector.
#[test]
fn the_page_shows_the_steps_for_a_key() {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let filter = Filter::builder_with_hasher(hasher()).capacity(30).build().unwrap();
    let layout = filter.plan().layout;
    assert_eq!((layout.encoding, layout.slots_per_bucket), (Encoding::SemiSorted, 5));
    let buckets = layout.buckets as u128;

    let hash = hasher().hash_one("apple");
    let product = u128::from(hash) * u128::from(hash.wrapping_mul(2).wrapping_add(GOLDEN));
    let mixed = ((product >> 64) as u64 ^ product as u64).wrapping_mul(GOLDEN);
    let fingerprint = mixed as u32 & ((1 << layout.fingerprint_bits) - 1);
    let fingerprint = fingerprint + u32::from(fingerprint & ((1 << (layout.fingerprint_bits - 4)) - 1) == 0);
    let first = ((u128::from(mixed) * buckets) >> 64) as u64;
    let spread = fingerprint.wrapping_mul(0x9e37_79b9) ^ fingerprint.wrapping_mul(0x3c6f);
    let sum = ((u128::from(spread) * buckets) >> 32) as u64 | 1;
    let alternate = (sum + buckets as u64 - first) % buckets as u64;
    let steps = format!(
        "| SipHash-1-3 of `61 70 70 6c 65 ff` | `{hash:016x}` |\n| mixed | `{mixed:016x}` |\n| fingerprint | \
         `{fingerprint:04x}` |\n| first bucket | {first} |\n| spread | `{spread:08x}` |\n| sum | {sum} |\n| alternate \
         bucket | {alternate} |\n"
    );
    assert!(PAGE.contains(&steps), "the page should say:\n{steps}");
}

// The reader in Python.

fn key_of(number: usize) -> String {
    format!("key-{number}")
}

/// Some keys that are present if `present` numbers were inserted, as many others, and strings of all lengths and kinds.
fn keys(present: usize) -> Vec<String> {
    let numbered = (0..present.min(250)).chain(1_000_000..1_000_250).map(key_of);
    numbered.chain(["", "é", "日本語", "a key of more than sixteen bytes"].map(String::from)).collect()
}

/// Whether there is a `python3`. Without one, the test that asks is to be skipped.
fn has_python() -> bool {
    let runs = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    let required = env::var_os("CCF_PYTHON").is_some_and(|value| value == "required");
    assert!(runs || !required, "python3 is missing, and CCF_PYTHON=required is set: install Python 3.8 or later");
    if !runs {
        eprintln!("skipped: python3 is missing. Install Python 3.8 or later to test examples/python");
    }
    runs
}

/// A folder for the snapshots of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("ccf-{name}-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("key"), key()).unwrap();
        Self(folder)
    }

    /// Asks the reader about all keys, in a snapshot, at a tick if one is given. Returns what it says of each, or its error.
    fn ask(&self, snapshot: &[u8], tick: Option<u64>, keys: &[String]) -> Result<Vec<String>, String> {
        let (path, reader) = (self.0.join("snapshot"), Path::new("examples/python/snapshot_reader.py"));
        fs::write(&path, snapshot).unwrap();
        let mut command = Command::new("python3");
        // Without a folder for compiled files in the repository.
        command.env("PYTHONDONTWRITEBYTECODE", "1").arg(reader).arg(&path).arg(self.0.join("key"));
        command.args(tick.map(|tick| tick.to_string()));
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let mut to = child.stdin.take().expect("it is piped");
        let lines: String = keys.iter().fold(String::new(), |lines, key| lines + key + "\n");
        // From another thread, since the reader answers before it has read all. It reads nothing if it finds an error.
        let writer = thread::spawn(move || _ = to.write_all(lines.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        if !output.status.success() {
            return Err(text(output.stderr));
        }
        Ok(text(output.stdout).lines().map(String::from).collect())
    }

    /// Checks that the reader gives the library's answers. Returns of how many keys both say that they are present.
    #[track_caller]
    fn agrees(
        &self,
        name: &str,
        snapshot: &[u8],
        tick: Option<u64>,
        present: usize,
        answer: impl Fn(&str) -> String,
    ) -> usize {
        let keys = keys(present);
        let expected: Vec<_> = keys.iter().map(|key| answer(key)).collect();
        let answers = self.ask(snapshot, tick, &keys).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(answers.len(), keys.len(), "{name}");
        for ((key, answer), expected) in keys.iter().zip(&answers).zip(expected) {
            assert_eq!(*answer, expected, "{name}: what the reader and the library say of {key:?}");
        }
        answers.iter().filter(|answer| *answer != "absent").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn said(contains: bool) -> String {
    if contains { "present" } else { "absent" }.to_owned()
}

#[test]
fn the_reader_gives_the_answers_of_one_table_in_every_layout() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("one-table");
    for (nth, (encoding, rate, ..)) in LAYOUTS.into_iter().enumerate() {
        // From one bucket on.
        for capacity in if nth % 3 == 0 { vec![2, 3000] } else { vec![3000] } {
            let builder = Filter::builder_with_hasher(hasher()).capacity(capacity).false_positive_rate(rate);
            let filter = builder.encoding(encoding).build().unwrap();
            let keys = filter.capacity();
            (0..keys).for_each(|number| filter.insert(&key_of(number)).unwrap());
            let name = format!("{encoding:?}, {rate}, {keys} keys");
            let found = folder.agrees(&name, &saved!(filter), None, keys, |key| said(filter.contains(key)));
            assert!((keys.min(250)..400).contains(&found), "{name}: {found}");
        }
    }
    assert_eq!(folder.agrees("the page's", &vector_of_one_table(), None, 0, |_| said(false)), 0);
}

#[test]
fn the_reader_finds_the_values_of_a_maplet_in_every_layout() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("maplet");
    for (value_bits, rate, ..) in MAPLET_LAYOUTS {
        let builder = Maplet::builder_with_hasher(hasher()).capacity(600).value_bits(value_bits);
        let maplet = builder.false_positive_rate(rate).build().unwrap();
        let value = |number: usize| ((number * 40_503) & ((1 << value_bits) - 1)) as u16;
        (0..500).for_each(|number| maplet.insert(&key_of(number), value(number)).unwrap());
        // Some keys have two values, or the same one twice.
        (0..60).for_each(|number| maplet.insert(&key_of(number), value(number + number % 2)).unwrap());
        let name = format!("{value_bits} bits per value, {rate}");
        let found = folder.agrees(&name, &saved!(maplet), None, 500, |key| {
            let values = maplet.values(key);
            values.iter().fold(said(!values.is_empty()), |mut line, value| {
                write!(line, " {value}").unwrap();
                line
            })
        });
        assert!((250..400).contains(&found), "{name}: {found}");
    }
}

#[test]
fn the_reader_knows_which_entries_have_expired() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("expiring");
    let (mut found, mut unswept) = (Vec::new(), 0);
    for (capacity, longest, when_full, restarted) in [
        (300, 1, WhenFull::Refuse, false),
        (300, 15, WhenFull::Refuse, true),
        (300, 100, WhenFull::EvictSoonest, true),
        // Of a ring that is longer than the lifetime, one step of the clock sweeps only a part of the table. So entries that
        // have expired are in the snapshot.
        (100_000, 8, WhenFull::Refuse, false),
    ] {
        let builder = Expiring::builder_with_hasher(hasher()).capacity(capacity).lifetime_in_ticks(longest);
        let filter = builder.when_full(when_full).build().unwrap();
        let begin = 28_500_000;
        filter.advance_to(Tick::new(begin));
        let expiry = |number: usize| begin + 1 + (number as u64 * 7) % longest;
        for number in 0..250 {
            assert_eq!(filter.insert_until(&key_of(number), Tick::new(expiry(number))), Ok(true));
        }
        if when_full == WhenFull::EvictSoonest {
            // It gets full, and evicts what would expire first.
            for number in 250..1000 {
                let added = filter.insert_until(&key_of(number), Tick::new(expiry(number)));
                assert!(matches!(added, Ok(_) | Err(ExpiringInsertError::Evicted { .. })), "{added:?}");
            }
            assert!(filter.stats().expiry.unwrap().evicted > 0);
        }
        let mut now = begin;
        if restarted {
            now = begin - 1000;
            filter.restart_clock(Tick::new(now));
        }
        for steps in [0, longest / 3] {
            now += steps;
            filter.advance_to(Tick::new(now));
            let snapshot = saved!(filter);
            unswept = unswept.max(filter.len() - filter.live_len());
            let name = format!("at most {longest} ticks, {when_full:?}, saved at {now}");
            found.push(folder.agrees(&name, &snapshot, None, 250, |key| said(filter.contains(key))));
            for ahead in [0, 1, longest / 2] {
                let loaded = Expiring::load(&snapshot[..], hasher(), 1 << 20).unwrap();
                loaded.advance_to(Tick::new(now + ahead));
                let live = folder.agrees(&name, &snapshot, Some(now + ahead), 250, |key| said(loaded.contains(key)));
                found.push(live);
            }
        }
    }
    assert!(found.contains(&0) && found.iter().filter(|&&live| (20..240).contains(&live)).count() > 5, "{found:?}");
    assert!(unswept > 10, "{unswept} entries had expired and were in a snapshot");
    let unset = Expiring::builder_with_hasher(hasher()).capacity(10).lifetime_in_ticks(15).build().unwrap();
    let answers = folder.ask(&saved!(unset), None, &keys(3)).unwrap();
    assert!(answers.iter().all(|answer| answer == "absent"), "nothing is in it before its first tick");
}

#[test]
fn the_reader_knows_which_keys_are_recent() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("recent");
    for (last, keys) in [(10, 200), (100, 90), (100, 250), (20_000, 25_000)] {
        let filter = Recent::builder_with_hasher(hasher()).last(last).build().unwrap();
        (0..keys).for_each(|number| _ = filter.insert(&*key_of(number)));
        let name = format!("the last {last} of {keys}");
        folder.agrees(&name, &saved!(filter), None, 250.min(keys), |key| said(filter.contains(key)));
    }
    let filter = Recent::builder_with_hasher(hasher()).within(Duration::from_secs(60), 100).build().unwrap();
    (0..400).rev().for_each(|number| _ = filter.insert(&*key_of(number)));
    assert!(filter.stats().recent.unwrap().evicted > 0);
    let found = folder.agrees("within a minute", &saved!(filter), None, 250, |key| said(filter.contains(key)));
    assert!(found > 50, "{found}");
}

#[test]
fn the_reader_knows_which_keys_owe_something() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("limiter");
    for (burst, keys) in [(1, 50), (10, 200), (1000, 200)] {
        let time = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&time);
        let builder =
            Limiter::builder_with_hasher(hasher()).allow(4, Duration::from_secs(1)).burst(burst).capacity(150);
        let limiter = builder.clock(move || Duration::from_millis(clock.load(Relaxed))).build().unwrap();
        for number in 0..keys {
            time.fetch_add(2, Relaxed);
            assert!(limiter.check(&key_of(number)).is_ok());
        }
        let name = format!("{keys} with a burst of {burst}");
        let owes = |key: &str| said(limiter.peek(key).full_after > Duration::ZERO);
        let found = folder.agrees(&name, &saved!(limiter), None, 250.min(keys), owes);
        assert!(found > 10, "{found}");
    }
}

#[test]
fn the_reader_gives_the_answers_of_a_growable_filter_between_two_sizes() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("growable");
    for (encoding, rate) in [
        (None, 0.1),
        (None, 0.001),
        (None, 1e-6),
        (Some(Encoding::Plain), 0.001),
        (Some(Encoding::SemiSorted), 0.01),
        (Some(Encoding::SemiSorted), 0.001),
    ] {
        let builder = Growable::builder_with_hasher(hasher()).capacity(10).false_positive_rate(rate);
        let builder = builder.max_capacity(100_000);
        let filter = match encoding {
            Some(encoding) => builder.encoding(encoding).build().unwrap(),
            None => builder.build().unwrap(),
        };
        let mut keys = 0;
        for at_least in [1, 3000] {
            // Until some buckets are split, and others are not.
            while keys < at_least || filter.plan().layout.buckets.is_power_of_two() != (at_least == 1) {
                filter.insert(&key_of(keys)).unwrap();
                keys += 1;
            }
            let name = format!("{encoding:?}, {rate}, {} buckets", filter.plan().layout.buckets);
            let found = folder.agrees(&name, &saved!(filter), None, keys, |key| said(filter.contains(key)));
            assert!((keys.min(250)..400).contains(&found), "{name}: {found}");
        }
    }
}

#[test]
fn the_reader_says_what_is_wrong_with_a_snapshot() {
    if !has_python() {
        return;
    }
    let folder = Folder::new("refused");
    let snapshot = vector_of_one_table();
    let error = |snapshot: &[u8]| folder.ask(snapshot, None, &[]).unwrap_err();
    assert!(error(b"something else").contains("this is not a snapshot of a filter"));
    assert!(error(&snapshot[..snapshot.len() - 1]).contains("the snapshot is truncated"));
    for at in [30, snapshot.len() - 20] {
        let mut damaged = snapshot.clone();
        damaged[at] ^= 1;
        assert!(error(&damaged).contains("the snapshot is damaged"), "byte {at}");
    }
    fs::write(folder.0.join("key"), [7; 16]).unwrap();
    assert!(error(&snapshot).contains("another key of the hasher"));
}
