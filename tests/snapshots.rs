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

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, LoadError, StableState};
use support::{LAYOUTS, Layout, plausible};

type Filter = ConcurrentCuckooFilter<u64, StableState>;

fn state() -> StableState {
    StableState::with_key(*b"a key for tests.")
}

fn build((encoding, rate, ..): Layout, capacity: usize) -> Filter {
    let builder = Filter::builder_for_tests().capacity(capacity).false_positive_rate(rate);
    builder.encoding(encoding).build().unwrap()
}

/// `ConcurrentCuckooFilter::builder`, with the hasher.
trait BuilderForTests {
    fn builder_for_tests() -> concurrent_cuckoo_filter::Builder<u64, StableState>;
}

impl BuilderForTests for Filter {
    fn builder_for_tests() -> concurrent_cuckoo_filter::Builder<u64, StableState> {
        ConcurrentCuckooFilter::<u64>::builder().hasher(state())
    }
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
            assert!(plausible(found, expected), "{found} false positives for {expected} in {loaded:?}");

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
    let filter = Filter::builder_for_tests().capacity(12).build().unwrap();
    (0..12).for_each(|key| filter.insert(&key).unwrap());
    let hex: String = saved(&filter).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
}

const GOLDEN: &str = "";

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
    let filter = Filter::builder_for_tests().capacity(BUCKETS * 38 / 10).false_positive_rate(1e-4).build().unwrap();
    let slots = filter.slots();
    let mut candidates = 0..;
    let mut keys = |count: usize| -> Vec<u64> {
        candidates.by_ref().filter(|key| filter.insert_if_absent(key).unwrap()).take(count).collect()
    };
    let stay = keys(slots * 75 / 100);
    let carried = keys(slots * 5 / 100);
    let churned = [keys(slots * 4 / 100), keys(slots * 4 / 100)];
    let mut leave = keys(slots * 4 / 100);
    let mut come = keys(slots * 3 / 100);
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
                for (out, into) in leave.iter().zip(come.iter().chain(leave)) {
                    assert!(filter.remove(out));
                    if come.contains(into) {
                        filter.insert(into).unwrap();
                    }
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
            assert!((1..=2).contains(&loaded.count(key)), "round {round}: {key} was there throughout, once or twice");
        }
        for key in &leave {
            assert_eq!(loaded.count(key), 1, "round {round}: {key} was there when the save began");
        }
        for key in churned.iter().flatten().chain(&come) {
            assert!(loaded.count(key) <= 1, "round {round}: {key} was never there twice");
        }
        // As it was before.
        for key in &come {
            assert!(filter.remove(key));
        }
        for key in &leave {
            filter.insert(key).unwrap();
        }
        std::mem::swap(&mut come, &mut leave);
        std::mem::swap(&mut come, &mut leave);
    }
}
