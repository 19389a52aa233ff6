//! Snapshots: there and back, while others are at work, and what becomes of bytes that are none.
//! `cargo test --all-features --test snapshots`.
#![cfg(all(feature = "snapshot", feature = "stable-hash"))]

mod support;

use std::error::Error;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use concurrent_cuckoo_filter::{Builder, ConcurrentCuckooFilter, LoadError, StableState};
use support::{LAYOUTS, Layout, plausible};

type Filter = ConcurrentCuckooFilter<u64, StableState>;

fn state() -> StableState {
    StableState::with_key(*b"a key for tests.")
}

fn build((encoding, rate, ..): Layout, capacity: usize) -> Filter {
    let builder = builder().capacity(capacity).false_positive_rate(rate);
    builder.encoding(encoding).build().unwrap()
}

/// `ConcurrentCuckooFilter::builder`, with the hasher.
fn builder() -> Builder<u64, StableState> {
    ConcurrentCuckooFilter::<u64>::builder().hasher(state())
}

fn saved(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<Filter, LoadError> {
    Filter::load(bytes, state(), 1 << 30)
}

#[test]
fn what_is_saved_is_loaded_in_every_layout() {
    for layout in LAYOUTS {
        for capacity in [0, 1, 20, 3000, 50_000] {
            let filter = build(layout, capacity);
            let keys = filter.capacity() as u64;
            (0..keys).for_each(|key| filter.insert(&key).unwrap());
            (0..keys / 3).for_each(|key| assert!(filter.remove(&key)));
            (keys / 2..keys / 2 + 10.min(keys / 4)).for_each(|key| filter.insert(&key).unwrap());
            let bytes = saved(&filter);
            assert_eq!(bytes.len(), 50 + 8 * filter.slots() / filter.slots_per_bucket());

            let loaded = load(&bytes).unwrap();
            assert_eq!(format!("{loaded:?}"), format!("{filter:?}"));
            assert_eq!(loaded.memory_usage(), filter.memory_usage());
            (0..2 * keys).for_each(|key| assert_eq!(loaded.count(&key), filter.count(&key), "{key} of {filter:?}"));
            assert_eq!(saved(&loaded), bytes, "{filter:?}");

            let absent = 100_000;
            let found = (0..absent).filter(|key| loaded.contains(&(key + 1_000_000_000))).count() as f64;
            let expected = absent as f64 * loaded.false_positive_rate();
            // In small tables few fingerprints decide.
            let usual = capacity < 50_000 || plausible(found, expected);
            assert!(usual, "{found} false positives for {expected} in {loaded:?}");

            (keys / 3..keys).for_each(|key| assert!(loaded.remove(&key)));
            (keys / 2..keys / 2 + 10.min(keys / 4)).for_each(|key| assert!(loaded.remove(&key)));
            assert!(loaded.is_empty());
            (0..keys).for_each(|key| loaded.insert(&key).unwrap());
        }
    }
}

/// The bytes themselves: what was saved once must be read for ever, or the version raised.
#[test]
fn a_snapshot_has_these_bytes() {
    let filter = builder().capacity(12).build().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    let hex: String = saved(&filter).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN.concat());
}

/// What a program of its own finds right too: the checksums, and the SipHash of the probe.
const GOLDEN: [&str; 22] = [
    "894343460d0a1a0a", // the magic
    "0100",             // version
    "01",               // kind
    "6a14525321e64671", // the hash of the probe
    "2e1e4ef9",         // seal
    "01",               // semi-sorted
    "05",               // slots
    "0e",               // bits
    "0a00000000000000", // buckets
    "4ca0db0e",         // seal
    "000000000009b060", // the buckets
    "0000000000565400",
    "000000000062600c",
    "0000000000000000",
    "0000000000a60000",
    "00000080333a6d01",
    "0000004030b0088b",
    "00000040e88dee2e",
    "00000000005a0600",
    "0000000000d5f103",
    "0c00000000000000", // taken slots
    "79be1ae6",         // seal
];

/// A writer that takes its time, and counts.
struct Slow<'a> {
    bytes: &'a mut Vec<u8>,
    writes: &'a AtomicUsize,
}

impl Write for Slow<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        self.writes.fetch_add(1, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// At 95 % load, where most inserts relocate. Of the keys, no two are of one class, so that `count` is exact.
#[test]
fn each_key_that_is_in_throughout_is_in_the_snapshot_as_often_whatever_moves() {
    const BUCKETS: usize = 20_000;
    let filter = builder().capacity(BUCKETS * 38 / 10).false_positive_rate(1e-4).build().unwrap();
    let slots = filter.slots();
    let mut candidates = 0..;
    let mut keys = |count: usize| -> Vec<u64> {
        candidates.by_ref().filter(|key| filter.insert_if_absent(key).unwrap()).take(count).collect()
    };
    let stay = keys(slots * 75 / 100);
    let carried = keys(slots * 5 / 100);
    let churned = [keys(slots * 4 / 100), keys(slots * 4 / 100)];
    let leave = keys(slots * 4 / 100);
    let come = keys(slots * 3 / 100);
    come.iter().for_each(|key| assert!(filter.remove(key)));

    for round in 0..12 {
        let mut bytes = Vec::new();
        let writes = AtomicUsize::new(0);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let (filter, writes, ended) = (&filter, &writes, &ended);
            let (carried, leave, come) = (&carried, &leave, &come);
            for churned in &churned {
                scope.spawn(move || {
                    // Room for the copies of `carried` and of those who come.
                    while !ended.load(Ordering::Relaxed) {
                        for keys in churned.chunks(100) {
                            keys.iter().for_each(|key| assert!(filter.remove(key)));
                            keys.iter().for_each(|key| filter.insert(key).unwrap());
                        }
                    }
                });
            }
            scope.spawn(move || {
                while !ended.load(Ordering::Relaxed) {
                    for key in carried {
                        filter.insert(key).unwrap();
                        assert!(filter.remove(key));
                    }
                }
            });
            scope.spawn(move || {
                // When the save has certainly begun.
                while writes.load(Ordering::Relaxed) < 12 {
                    thread::yield_now();
                }
                for (nth, key) in leave.iter().enumerate() {
                    assert!(filter.remove(key));
                    come.get(nth).into_iter().for_each(|key| filter.insert(key).unwrap());
                }
            });
            filter.save(Slow { bytes: &mut bytes, writes }).unwrap();
            ended.store(true, Ordering::Relaxed);
        });
        let loaded = load(&bytes).unwrap();
        for key in &stay {
            assert_eq!(loaded.count(key), 1, "round {round}: {key} was there throughout");
        }
        for key in &carried {
            // Perhaps by several copies: those that came in meanwhile may be in too, though each is gone now.
            assert!(loaded.contains(key), "round {round}: {key} was there throughout, if not by the same copy");
        }
        for key in &leave {
            assert_eq!(loaded.count(key), 1, "round {round}: {key} was there when the save began");
        }
        for key in &come {
            assert!(loaded.count(key) <= 1, "round {round}: {key} was inserted once");
        }
        // As it was before.
        come.iter().for_each(|key| assert!(filter.remove(key)));
        leave.iter().for_each(|key| filter.insert(key).unwrap());
    }
}

/// A snapshot of one table, with all its seals, of which each part may be wrong.
struct Forged {
    magic: [u8; 8],
    version: u16,
    kind: u8,
    probe: u64,
    layout: [u8; 3],
    buckets: u64,
    words: Vec<u64>,
    count: u64,
}

impl Forged {
    fn new() -> Self {
        let genuine = saved(&build(LAYOUTS[5], 0));
        let probe = u64::from_le_bytes(genuine[11..19].try_into().unwrap());
        let magic = genuine[..8].try_into().unwrap();
        Self { magic, version: 1, kind: 1, probe, layout: [1, 5, 14], buckets: 2, words: vec![0; 2], count: 0 }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut sum = crc32fast::Hasher::new();
        let mut bytes = Vec::new();
        let mut put = |part: &[&[u8]], seal: bool| {
            part.iter().for_each(|part| sum.update(part));
            bytes.extend(part.concat());
            if seal {
                bytes.extend(sum.clone().finalize().to_le_bytes());
            }
        };
        put(&[&self.magic, &self.version.to_le_bytes(), &[self.kind], &self.probe.to_le_bytes()], true);
        put(&[&self.layout, &self.buckets.to_le_bytes()], true);
        self.words.iter().for_each(|word| put(&[&word.to_le_bytes()], false));
        put(&[&self.count.to_le_bytes()], true);
        bytes
    }

    fn refusal(&self) -> LoadError {
        load(&self.bytes()).expect_err("it is wrong")
    }
}

/// That an error is the one it should be, and that its message names what it should.
macro_rules! assert_refused {
    ($error:expr, $pattern:pat $(if $guard:expr)?, names $($named:expr),*) => {
        let error = $error;
        assert!(matches!(error, $pattern $(if $guard)?), "{error:?}");
        $(assert!(error.to_string().contains(&$named.to_string()), "{error}");)*
    };
}

#[test]
fn what_is_forged_but_for_its_checksums_is_refused_each_for_its_reason() {
    load(&Forged::new().bytes()).expect("nothing is wrong with this one");

    let forged = |change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::new();
        change(&mut forged);
        forged.refusal()
    };
    assert_refused!(forged(&|it| it.magic[1] = b'D'), LoadError::NotASnapshot, names "no snapshot");
    assert_refused!(
        forged(&|it| it.version = 2),
        LoadError::UnsupportedVersion { version: 2, supported: 1, .. },
        names "version 2", "reads 1"
    );
    assert_refused!(forged(&|it| it.kind = 2), LoadError::WrongKind { kind: 2, expected: 1, .. }, names "kind 2");
    assert_refused!(forged(&|it| it.probe ^= 1), LoadError::OtherHasher, names "hasher");
    for layout in [[0, 5, 14], [1, 4, 14], [1, 5, 13], [2, 5, 14], [0xff; 3], [0; 3]] {
        assert_refused!(
            forged(&|it| it.layout = layout),
            LoadError::UnknownLayout { encoding, slots, fingerprint_bits, .. }
                if [encoding, slots, fingerprint_bits] == layout,
            names format!("encoding {}, {} slots and {} bits", layout[0], layout[1], layout[2])
        );
    }
    for buckets in [0, 3, 1 << 60, u64::MAX, u64::MAX - 1] {
        assert_refused!(
            forged(&|it| it.buckets = buckets),
            LoadError::InvalidBuckets { buckets: named, .. } if named == buckets,
            names buckets
        );
    }
    // 128 GiB.
    assert_refused!(
        forged(&|it| it.buckets = 1 << 34),
        LoadError::MemoryLimit { limit: 0x4000_0000, .. },
        names "137438953472".split_at(4).0, 1 << 30
    );
    assert_refused!(
        forged(&|it| it.count = 1),
        LoadError::WrongCount { stated: 1, counted: 0, .. },
        names "states 1 ", "has 0"
    );
    // A fingerprint above an empty slot; a rank that belongs to no list; a nibble without a fingerprint.
    for word in [1, 0xffff << 50, 1 << 50] {
        assert_refused!(forged(&|it| it.words[1] = word), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    }
    let mut spare = Forged { layout: [0, 5, 12], words: vec![0, 1 << 60], ..Forged::new() };
    assert_refused!(spare.refusal(), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    spare.words[1] = 1;
    spare.count = 1;
    load(&spare.bytes()).expect("this one is as it should be");
}

/// A filter of every layout, with a few keys in it.
fn small_filters() -> impl Iterator<Item = Filter> {
    LAYOUTS.into_iter().map(|layout| {
        let filter = build(layout, 20);
        (0..15).for_each(|key| filter.insert(&key).unwrap());
        filter
    })
}

#[test]
fn no_snapshot_of_which_a_bit_or_a_few_have_changed_is_loaded() {
    for filter in small_filters() {
        let bytes = saved(&filter);
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(load(&changed).is_err(), "bit {bit} of {filter:?}");
            // Four bytes from here on, cleared or swapped.
            let end = bytes.len().min(bit / 8 + 4);
            changed.copy_from_slice(&bytes);
            changed[bit / 8..end].reverse();
            changed[bit / 8..end][0] ^= bit as u8 % 8;
            assert!(changed == bytes || load(&changed).is_err(), "bytes {}..{end} of {filter:?}", bit / 8);
        }
    }
}

#[test]
fn a_snapshot_that_is_cut_short_is_said_to_be() {
    for filter in small_filters() {
        let bytes = saved(&filter);
        for len in 0..bytes.len() {
            assert!(matches!(load(&bytes[..len]), Err(LoadError::Truncated)), "{len} bytes of {filter:?}");
        }
    }
}

#[test]
fn what_follows_a_snapshot_is_left_unread() {
    let filters: Vec<_> = small_filters().collect();
    let mut stream = Vec::new();
    filters.iter().for_each(|filter| filter.save(&mut stream).unwrap());
    stream.extend(b"and so on");
    let mut rest = &stream[..];
    for filter in filters {
        let loaded = Filter::load(&mut rest, state(), 1 << 20).unwrap();
        assert_eq!(saved(&loaded), saved(&filter));
    }
    assert_eq!(rest, b"and so on");
}

#[test]
fn a_hasher_with_another_key_is_refused_and_so_is_another_hasher() {
    let filter = build(LAYOUTS[5], 100);
    let bytes = saved(&filter);
    let other = StableState::with_key([1; 16]);
    assert!(matches!(Filter::load(&bytes[..], other, 1 << 20), Err(LoadError::OtherHasher)));
    let other = ConcurrentCuckooFilter::<u64, _>::load(&bytes[..], ahash::RandomState::new(), 1 << 20);
    assert!(matches!(other, Err(LoadError::OtherHasher)));

    // The same keys, in one process: the same hasher.
    let with_seeds = || ahash::RandomState::with_seeds(1, 2, 3, 4);
    let filter = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(100, with_seeds());
    filter.insert("a").unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let loaded = ConcurrentCuckooFilter::<str, _>::load(&bytes[..], with_seeds(), 1 << 20).unwrap();
    assert!(loaded.contains("a"));
}

#[test]
fn the_memory_limit_is_exact() {
    for filter in small_filters() {
        let bytes = saved(&filter);
        let needed = filter.memory_usage();
        assert!(Filter::load(&bytes[..], state(), needed).is_ok());
        assert_refused!(
            Filter::load(&bytes[..], state(), needed - 1).expect_err("one byte too many"),
            LoadError::MemoryLimit { needed: named, limit, .. } if named == needed && limit == needed - 1,
            names needed, needed - 1
        );
    }
}

/// Calls `act` at the `nth` write.
struct Acting<F> {
    nth: usize,
    act: F,
}

impl<F: FnMut() -> io::Result<()>> Write for Acting<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.nth == 0 {
            (self.act)()?;
        }
        self.nth = self.nth.wrapping_sub(1);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_fails_or_panics_leaves_the_filter_as_it_was() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let before = saved(&filter);
    for nth in 0..15 {
        let error = filter.save(Acting { nth, act: || Err(io::Error::other("the disk is full")) }).unwrap_err();
        assert_eq!(error.to_string(), "the disk is full");
        catch_unwind(AssertUnwindSafe(|| filter.save(Acting { nth, act: || panic!("no disk") }))).unwrap_err();
        // Others are not told to keep words any more; and what they kept does not come up again.
        (0..1000).for_each(|key| assert!(filter.remove(&key)));
        assert_eq!(load(&saved(&filter)).unwrap().len(), 19_000, "write {nth}");
        (0..1000).for_each(|key| filter.insert(&key).unwrap());
    }
    let loaded = load(&saved(&filter)).unwrap();
    assert_eq!((loaded.len(), saved(&filter).len()), (20_000, before.len()));
}

#[test]
fn the_writer_may_use_the_filter_but_not_save_it() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let error = filter.save(Acting { nth: 10, act: || filter.save(io::sink()) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadlock);
    assert!(error.to_string().contains("would wait for itself"), "{error}");
    let use_it = || {
        assert!((0..20_000).all(|key| filter.contains(&key) && filter.remove(&key)));
        (0..20_000).for_each(|key| filter.insert(&key).unwrap());
        filter.clear();
        Ok(())
    };
    filter.save(Acting { nth: 10, act: use_it }).unwrap();
    assert!(filter.is_empty());
}

#[test]
fn a_reader_that_fails_is_the_source_of_the_error() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(ErrorKind::PermissionDenied, "not yours"))
        }
    }
    let error = Filter::load(Failing, state(), 1 << 20).unwrap_err();
    assert!(matches!(&error, LoadError::Io(error) if error.kind() == ErrorKind::PermissionDenied));
    assert_eq!(error.source().unwrap().to_string(), "not yours");
}

#[test]
fn saves_at_the_same_time_wait_for_each_other() {
    let filter = build(LAYOUTS[5], 20_000);
    (0..20_000).for_each(|key| filter.insert(&key).unwrap());
    let (inside, ends) = (AtomicUsize::new(0), thread::available_parallelism().map_or(2, usize::from).max(2));
    thread::scope(|scope| {
        for _ in 0..ends {
            scope.spawn(|| {
                let mut bytes = Vec::new();
                let writes = AtomicUsize::new(0);
                filter.save(Slow { bytes: &mut bytes, writes: &writes }).unwrap();
                assert_eq!(load(&bytes).unwrap().len(), 20_000);
                inside.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(inside.into_inner(), ends);
}

/// What the fuzzer begins with: snapshots of every layout, empty, partly filled and full, each after the byte that says
/// what is to be made right. `cargo test --all-features --test snapshots writes_seeds -- --ignored`.
#[test]
#[ignore = "writes to the source tree"]
fn writes_seeds() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");
    std::fs::create_dir_all(folder).unwrap();
    for (mode, layout) in LAYOUTS.into_iter().enumerate() {
        for capacity in [0, 30] {
            let filter = build(layout, capacity);
            let items = [filter.capacity() as u64, 12][usize::from(capacity > 0)];
            (0..items).for_each(|key| filter.insert(&key).unwrap());
            let seed = [&[mode as u8 % 4][..], &saved(&filter)].concat();
            std::fs::write(format!("{folder}/{:?}-{}-{capacity}", filter.encoding(), layout.2), seed).unwrap();
        }
    }
}
