//! The stack that operations need. Each runs on a thread with a small stack, in a process of its own, because an
//! overflow ends the process.
//!
//! This command prints what each operation needs, found by bisection:
//! `cargo test --all-features --test stack -- --ignored --nocapture what_each_operation_needs`. A build without
//! optimizations (`CARGO_PROFILE_TEST_OPT_LEVEL=0`) needs the most.

#![cfg(not(miri))]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::thread;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, GrowableCuckooFilter, Tick, WhenFull,
};

/// The stack on which every operation runs, in bytes.
const ENOUGH: usize = 64 << 10;

/// The smallest stack that any system gives a thread (AArch64's). So each thread gets this much more, and uses it
/// up first.
const BALLAST: usize = 128 << 10;

/// The variables that tell a process its operation, by number, and how many bytes of stack the operation has.
const OPERATION: &str = "CCF_TEST_STACK_OPERATION";
const BYTES: &str = "CCF_TEST_STACK_BYTES";

type Work = Box<dyn FnOnce() + Send>;

/// The name of an operation, and a function that prepares it.
type Operation = (&'static str, fn() -> Work);

type One = ConcurrentCuckooFilter<u64>;
type Growable = GrowableCuckooFilter<u64>;
type Maplet = CuckooMaplet<u64>;
type Expiring = ExpiringCuckooFilter<u64>;

/// How many keys a full table has. It has more buckets than a search looks at.
const KEYS: u64 = 15_000;

/// A rate for each layout that is chosen if no encoding is asked for.
const RATES: [f64; 8] = [0.07, 0.03, 0.012, 0.003, 0.001, 0.0001, 2e-6, 1e-9];

/// Full filters of one table.
fn full() -> Vec<One> {
    let fill = |rate| {
        let filter = One::builder().capacity(KEYS as usize).false_positive_rate(rate).build().unwrap();
        (0..).take_while(|key| filter.insert(key).is_ok()).for_each(drop);
        filter
    };
    RATES.map(fill).into()
}

/// Filters of one table, full except for some keys.
fn nearly_full() -> Vec<One> {
    full().into_iter().inspect(|filter| (0..50).for_each(|key| assert!(filter.remove(&key)))).collect()
}

/// Pairs of filters of one table. Each holds half as many keys as it is made for.
fn halves() -> Vec<(One, One)> {
    let fill = |rate| {
        let sum = One::builder().capacity(KEYS as usize).false_positive_rate(rate).build().unwrap();
        let other = sum.empty_like().unwrap();
        let half = sum.capacity() as u64 / 2 - 20;
        (0..half).for_each(|key| sum.insert(&key).unwrap());
        (half..2 * half).for_each(|key| other.insert(&key).unwrap());
        (sum, other)
    };
    RATES.map(fill).into()
}

/// Filters that have grown.
fn grown() -> Vec<Growable> {
    let fill = |rate| {
        let builder = Growable::builder().capacity(100).max_capacity(1_000_000);
        let filter = builder.false_positive_rate(rate).build().unwrap();
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        filter
    };
    [0.1, 0.001, 1e-6].map(fill).into()
}

/// Full maplets of each layout, in which each key has the value 1.
fn full_maplets() -> Vec<Maplet> {
    let fill = |(value_bits, rate)| {
        let builder = Maplet::builder().capacity(KEYS as usize).value_bits(value_bits);
        let maplet = builder.false_positive_rate(rate).build().unwrap();
        (0..).take_while(|key| maplet.insert(key, 1).is_ok()).for_each(drop);
        maplet
    };
    [(4, 0.06), (4, 0.011), (4, 0.001), (8, 0.001), (16, 0.001)].map(fill).into()
}

/// Maplets, full except for some keys.
fn nearly_full_maplets() -> Vec<Maplet> {
    full_maplets().into_iter().inspect(|maplet| (0..50).for_each(|key| assert!(maplet.remove(&key, 1)))).collect()
}

/// Full filters of each layout. Every other entry dies at tick 1, and the rest at tick 14. One call sweeps only a
/// part of them.
fn full_of_ends() -> Vec<Expiring> {
    full_of_ends_when(WhenFull::Refuse)
}

/// The same for filters that forget what ends first.
fn full_of_ends_to_forget() -> Vec<Expiring> {
    full_of_ends_when(WhenFull::EvictOldest)
}

fn full_of_ends_when(when_full: WhenFull) -> Vec<Expiring> {
    let fill = |(longest, rate)| {
        let builder = Expiring::builder().capacity(3 * KEYS as usize).lifetime_in_ticks(longest);
        let filter = builder.false_positive_rate(rate).when_full(when_full).build().unwrap();
        filter.advance_to(Tick::new(0));
        (0..).take_while(|key| filter.insert_until(key, Tick::new(end_of(*key))).is_ok()).for_each(drop);
        filter
    };
    [(14, 0.06), (15, 0.011), (15, 0.001), (255, 0.001), (65_535, 0.001)].map(fill).into()
}

fn end_of(key: u64) -> u64 {
    1 + key % 2 * 13
}

/// The same filters, with many dead entries that are not swept.
fn full_of_dead() -> Vec<Expiring> {
    let die = |filter: &Expiring| {
        filter.advance_to(Tick::new(1));
        assert!(filter.len() > filter.live_len() + KEYS as usize / 4, "{filter:?}");
    };
    full_of_ends().into_iter().inspect(die).collect()
}

/// New keys.
fn new() -> impl Iterator<Item = u64> {
    1 << 40..(1 << 40) + 2 * KEYS
}

/// Does the work for each of these filters.
fn on_each<F: Send + 'static>(filters: Vec<F>, work: impl Fn(&F) + Send + 'static) -> Work {
    Box::new(move || filters.iter().for_each(work))
}

/// Lookups and removals in a batch; a digest; a save; and at last `clear`.
macro_rules! as_a_whole {
    ($filters:expr) => {
        on_each($filters, |filter| {
            let (keys, mut found): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            filter.contains_batch(&keys, &mut found);
            assert_eq!(found.len(), 1000);
            filter.digest().unwrap();
            #[cfg(feature = "snapshot")]
            filter.save(std::io::sink()).unwrap();
            filter.clear();
            assert!(filter.is_empty());
        })
    };
}

const OPERATIONS: [Operation; 23] = [
    ("nothing", || Box::new(|| ())),
    ("inserts that relocate", || on_each(nearly_full(), |filter| (0..50).for_each(|key| _ = filter.insert(&key)))),
    ("inserts that are refused", || {
        on_each(full(), |filter| {
            assert!(new().any(|key| filter.insert(&key).is_err()));
            assert!(new().any(|key| filter.insert_if_absent(&key).is_err()));
            assert!(filter.insert_batch(&new().collect::<Vec<u64>>()).is_err());
        })
    }),
    ("operations on a key", || {
        on_each(full(), |filter| {
            assert!(filter.contains(&1) && filter.count(&1) > 0 && filter.remove(&1));
            filter.remove_batch(&(0..1000).collect::<Vec<u64>>(), &mut Vec::new());
        })
    }),
    ("operations on a filter", || as_a_whole!(full())),
    ("absorb, with relocations", || {
        on_each(halves(), |(sum, other)| {
            sum.absorb(other).unwrap();
            assert!(sum.stats().relocations > 0);
        })
    }),
    ("absorb that is refused", || {
        on_each(halves(), |(sum, other)| {
            // More copies of one key than its two buckets hold.
            (0..16).for_each(|_| _ = sum.insert(&1));
            (0..16).for_each(|_| _ = other.insert(&1));
            assert!(sum.absorb(other).is_err());
        })
    }),
    ("growable: inserts that let it grow", || {
        on_each(grown(), |filter| {
            let mut keys = new();
            let mut until_it_grows = |insert: &dyn Fn(&u64)| {
                let capacity = filter.capacity();
                while filter.capacity() == capacity {
                    insert(&keys.next().unwrap());
                }
            };
            until_it_grows(&|key| filter.insert(key).unwrap());
            until_it_grows(&|key| _ = filter.insert_if_absent(key).unwrap());
            filter.reserve(100_000).unwrap();
        })
    }),
    ("growable: operations on a key", || {
        on_each(grown(), |filter| {
            assert!((0..100).all(|key| filter.count(&key) > 0 && filter.remove(&key)));
            filter.remove_batch(&(0..1000).collect::<Vec<u64>>(), &mut Vec::new());
        })
    }),
    ("growable: insert that is refused", || {
        let filters = grown().into_iter().inspect(|filter| while filter.insert(&1).is_ok() {});
        on_each(filters.collect(), |filter| assert!(filter.insert(&1).is_err()))
    }),
    ("growable: shrink_to_fit", || {
        on_each(grown(), |filter| {
            (100..KEYS).for_each(|key| assert!(filter.remove(&key)));
            filter.shrink_to_fit();
        })
    }),
    ("growable: operations on a filter", || as_a_whole!(grown())),
    ("maplet: inserts that relocate", || {
        on_each(nearly_full_maplets(), |maplet| (0..50).for_each(|key| _ = maplet.insert(&key, 1)))
    }),
    ("maplet: inserts that are refused", || {
        on_each(full_maplets(), |maplet| {
            assert!(new().any(|key| maplet.insert(&key, 1).is_err()));
            assert!(new().any(|key| maplet.insert_if_absent(&key, 1).is_err()));
            assert!(maplet.insert_batch(new().collect::<Vec<u64>>().iter().map(|key| (key, 1))).is_err());
        })
    }),
    ("maplet: operations on a key", || {
        on_each(full_maplets(), |maplet| {
            let (keys, mut found): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            maplet.values_batch(&keys, &mut found);
            assert!(found.len() == 1000 && found.iter().all(|values| values.contains(1)));
            assert!((0..99).all(|key| maplet.values(&key).contains(1) && maplet.contains(&key)));
            assert!((0..99).all(|key| maplet.replace(&key, 1, 2) == Ok(true) && maplet.count(&key, 2) > 0));
            assert!((0..99).all(|key| maplet.remove(&key, 2)));
            maplet.remove_batch(keys.iter().map(|key| (key, 1)), &mut Vec::new());
        })
    }),
    ("maplet: operations on a maplet", || as_a_whole!(full_maplets())),
    ("maplet: absorb", || {
        on_each(nearly_full_maplets(), |maplet| {
            let sum = maplet.empty_like().unwrap();
            (0..maplet.len() as u64 - sum.capacity().min(maplet.len()) as u64 + 100)
                .for_each(|key| _ = maplet.remove(&(key + 50), 1));
            sum.absorb(maplet).unwrap();
        })
    }),
    ("expiring: inserts that take dead entries out", || {
        on_each(full_of_dead(), |filter| {
            (0..99).for_each(|key| _ = filter.insert_or_renew_until(&key, Tick::new(15)).unwrap());
            let swept = filter.stats().expiry.unwrap().expired;
            new().take(KEYS as usize / 4).for_each(|key| _ = filter.insert_until(&key, Tick::new(14)).unwrap());
            assert!(filter.stats().expiry.unwrap().expired > swept);
        })
    }),
    ("expiring: inserts that are refused", || {
        on_each(full_of_ends(), |filter| {
            let end = Tick::new(14);
            assert!(new().any(|key| filter.insert_until(&key, end).is_err()));
            assert!(new().any(|key| filter.insert_if_absent_until(&key, end).is_err()));
            let keys: Vec<u64> = new().collect();
            assert!(filter.insert_until_batch(keys.iter().map(|key| (key, end)), &mut Vec::new()).is_err());
        })
    }),
    ("expiring: insert that forgets", || {
        on_each(full_of_ends_to_forget(), |filter| {
            assert!(new().take(KEYS as usize).all(|key| filter.insert_until(&key, Tick::new(14)).is_ok()));
            assert!(filter.stats().expiry.unwrap().evicted_early_by > 0);
        })
    }),
    ("expiring: operations on a key, and the clock", || {
        on_each(full_of_ends(), |filter| {
            let end = |key: u64| Tick::new(end_of(key));
            assert!((0..99).all(|key| filter.contains(&key) && filter.remove_expiring_at(&key, end(key))));
            let (keys, mut removed): (Vec<u64>, _) = ((99..1099).collect(), Vec::new());
            filter.remove_expiring_at_batch(keys.iter().map(|key| (key, end(*key))), &mut removed);
            assert!(removed.len() == 1000 && removed.iter().all(|&removed| removed));
            (0..9).for_each(|tick| _ = filter.advance_to(Tick::new(tick)));
            filter.restart_clock(Tick::new(70));
            filter.advance_to(Tick::new(1 << 40));
            assert!(filter.is_empty() && filter.live_len() == 0);
        })
    }),
    ("expiring: operations on a filter", || as_a_whole!(full_of_dead())),
    ("expiring: absorb and unite", || {
        on_each(full_of_dead(), |filter| {
            assert_eq!(filter.empty_like().unwrap().absorb(filter).unwrap(), filter.live_len() as u64);
            assert_eq!(filter.unite(filter).unwrap(), 0);
        })
    }),
];

/// An operation that overflows. It shows that the test notices an overflow.
const TOO_MUCH: Operation = ("too much", || Box::new(|| _ = black_box([0u8; ENOUGH])));

/// Whether the operation runs with this many bytes of stack.
fn runs_within(operation: usize, bytes: usize) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs_one_operation", "--ignored"])
        .env(OPERATION, operation.to_string())
        .env(BYTES, bytes.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    child.unwrap().success()
}

#[test]
#[ignore = "runs in the processes that the other tests start"]
fn runs_one_operation() {
    let number = |name| std::env::var(name).expect("it is set").parse::<usize>().expect("a number");
    let work = OPERATIONS.get(number(OPERATION)).unwrap_or(&TOO_MUCH).1();
    let above = || {
        let mut ballast = [0u8; BALLAST];
        black_box(&mut ballast);
        work();
        black_box(&ballast);
    };
    thread::Builder::new().stack_size(BALLAST + number(BYTES)).spawn(above).unwrap().join().unwrap();
}

#[test]
fn every_operation_runs_on_a_small_stack() {
    for (number, (name, _)) in OPERATIONS.iter().enumerate() {
        assert!(runs_within(number, ENOUGH), "{name}: {ENOUGH} bytes of stack are not enough, or it has failed");
    }
    let too_much = OPERATIONS.len();
    assert!(runs_within(too_much, 4 * ENOUGH) && !runs_within(too_much, ENOUGH), "an overflow is not noticed");
}

#[test]
#[ignore = "a measurement: run it with --nocapture"]
fn what_each_operation_needs() {
    for (number, (name, _)) in OPERATIONS.iter().enumerate() {
        let (mut too_few, mut enough) = (0, 256);
        assert!(runs_within(number, enough << 10), "{name} fails");
        while enough - too_few > 4 {
            let middle = (too_few + enough) / 2;
            *(if runs_within(number, middle << 10) { &mut enough } else { &mut too_few }) = middle;
        }
        println!("{name:42} {enough:4} KiB");
    }
}
