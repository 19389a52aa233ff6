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

macro_rules! batches {
    ($filters:expr, $operation:ident) => {
        on_each($filters, |filter| {
            let (keys, mut answers): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            filter.$operation(&keys, &mut answers);
            assert_eq!(answers.len(), 1000);
        })
    };
}

macro_rules! saves {
    ($filters:expr) => {
        on_each($filters, |filter| {
            #[cfg(feature = "snapshot")]
            filter.save(std::io::sink()).unwrap();
            _ = filter;
        })
    };
}

const OPERATIONS: [Operation; 54] = [
    ("nothing", || Box::new(|| ())),
    ("insert that relocates", || on_each(nearly_full(), |filter| (0..50).for_each(|key| _ = filter.insert(&key)))),
    ("insert that is refused", || on_each(full(), |filter| assert!(new().any(|key| filter.insert(&key).is_err())))),
    ("insert_if_absent that is refused", || {
        on_each(full(), |filter| assert!(new().any(|key| filter.insert_if_absent(&key).is_err())))
    }),
    ("contains", || on_each(full(), |filter| assert!(filter.contains(&1)))),
    ("remove", || on_each(full(), |filter| assert!(filter.remove(&1)))),
    ("count", || on_each(full(), |filter| assert!(filter.count(&1) > 0))),
    ("clear", || on_each(full(), One::clear)),
    ("contains_batch", || batches!(full(), contains_batch)),
    ("insert_batch that is refused", || {
        on_each(full(), |filter| {
            let keys: Vec<u64> = new().collect();
            assert!(filter.insert_batch(&keys).is_err());
        })
    }),
    ("remove_batch", || batches!(full(), remove_batch)),
    ("save", || saves!(full())),
    ("digest", || on_each(full(), |filter| _ = filter.digest().unwrap())),
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
    ("growable: insert that grows", || {
        on_each(grown(), |filter| {
            let capacity = filter.capacity();
            new().take_while(|_| filter.capacity() == capacity).for_each(|key| filter.insert(&key).unwrap());
        })
    }),
    ("growable: insert_if_absent that grows", || {
        on_each(grown(), |filter| {
            let mut keys = new();
            let capacity = filter.capacity();
            while filter.capacity() == capacity {
                filter.insert_if_absent(&keys.next().unwrap()).unwrap();
            }
        })
    }),
    ("growable: remove", || on_each(grown(), |filter| assert!((0..100).all(|key| filter.remove(&key))))),
    ("growable: count", || on_each(grown(), |filter| assert!((0..100).all(|key| filter.count(&key) > 0)))),
    ("growable: clear", || on_each(grown(), Growable::clear)),
    ("growable: reserve", || on_each(grown(), |filter| filter.reserve(100_000).unwrap())),
    ("growable: shrink_to_fit", || {
        on_each(grown(), |filter| {
            (100..KEYS).for_each(|key| assert!(filter.remove(&key)));
            filter.shrink_to_fit();
        })
    }),
    ("growable: insert that is refused", || {
        let filters = grown().into_iter().inspect(|filter| while filter.insert(&1).is_ok() {});
        on_each(filters.collect(), |filter| assert!(filter.insert(&1).is_err()))
    }),
    ("growable: contains_batch", || batches!(grown(), contains_batch)),
    ("growable: remove_batch", || batches!(grown(), remove_batch)),
    ("growable: save", || saves!(grown())),
    ("maplet: insert that relocates", || {
        on_each(nearly_full_maplets(), |maplet| (0..50).for_each(|key| _ = maplet.insert(&key, 1)))
    }),
    ("maplet: insert that is refused", || {
        on_each(full_maplets(), |maplet| assert!(new().any(|key| maplet.insert(&key, 1).is_err())))
    }),
    ("maplet: insert_if_absent that is refused", || {
        on_each(full_maplets(), |maplet| assert!(new().any(|key| maplet.insert_if_absent(&key, 1).is_err())))
    }),
    ("maplet: values", || {
        on_each(full_maplets(), |maplet| assert!((0..99).all(|key| maplet.values(&key).contains(1))))
    }),
    ("maplet: contains", || on_each(full_maplets(), |maplet| assert!(maplet.contains(&1)))),
    ("maplet: replace", || {
        on_each(full_maplets(), |maplet| assert!((0..99).all(|key| maplet.replace(&key, 1, 2) == Ok(true))))
    }),
    ("maplet: remove", || on_each(full_maplets(), |maplet| assert!((0..99).all(|key| maplet.remove(&key, 1))))),
    ("maplet: count", || on_each(full_maplets(), |maplet| assert!((0..99).all(|key| maplet.count(&key, 1) > 0)))),
    ("maplet: clear", || on_each(full_maplets(), Maplet::clear)),
    ("maplet: values_batch", || {
        on_each(full_maplets(), |maplet| {
            let (keys, mut found): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            maplet.values_batch(&keys, &mut found);
            assert!(found.len() == 1000 && found.iter().all(|values| values.contains(1)));
        })
    }),
    ("maplet: contains_batch", || batches!(full_maplets(), contains_batch)),
    ("maplet: insert_batch that is refused", || {
        on_each(full_maplets(), |maplet| {
            let keys: Vec<u64> = new().collect();
            assert!(maplet.insert_batch(keys.iter().map(|key| (key, 1))).is_err());
        })
    }),
    ("maplet: remove_batch", || {
        on_each(full_maplets(), |maplet| {
            let (keys, mut removed): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            maplet.remove_batch(keys.iter().map(|key| (key, 1)), &mut removed);
            assert!(removed.len() == 1000 && removed.iter().all(|&removed| removed));
        })
    }),
    ("maplet: save", || saves!(full_maplets())),
    ("maplet: absorb", || {
        on_each(nearly_full_maplets(), |maplet| {
            let sum = maplet.empty_like().unwrap();
            (0..maplet.len() as u64 - sum.capacity().min(maplet.len()) as u64 + 100)
                .for_each(|key| _ = maplet.remove(&(key + 50), 1));
            sum.absorb(maplet).unwrap();
        })
    }),
    ("expiring: insert that takes dead entries out", || {
        on_each(full_of_dead(), |filter| {
            let swept = filter.stats().expiry.unwrap().expired;
            new().take(KEYS as usize / 4).for_each(|key| _ = filter.insert_until(&key, Tick::new(14)).unwrap());
            assert!(filter.stats().expiry.unwrap().expired > swept);
        })
    }),
    ("expiring: insert that is refused", || {
        on_each(full_of_ends(), |filter| assert!(new().any(|key| filter.insert_until(&key, Tick::new(14)).is_err())))
    }),
    ("expiring: insert_if_absent that is refused", || {
        on_each(full_of_ends(), |filter| {
            assert!(new().any(|key| filter.insert_if_absent_until(&key, Tick::new(14)).is_err()))
        })
    }),
    ("expiring: insert that forgets", || {
        on_each(full_of_ends_to_forget(), |filter| {
            assert!(new().take(KEYS as usize).all(|key| filter.insert_until(&key, Tick::new(14)).is_ok()));
            assert!(filter.stats().expiry.unwrap().evicted_early_by > 0);
        })
    }),
    ("expiring: insert_or_renew_until", || {
        on_each(full_of_dead(), |filter| {
            (0..99).for_each(|key| _ = filter.insert_or_renew_until(&key, Tick::new(15)).unwrap())
        })
    }),
    ("expiring: contains", || on_each(full_of_dead(), |filter| assert!(filter.contains(&1)))),
    ("expiring: remove", || {
        on_each(full_of_ends(), |filter| {
            assert!((0..99).all(|key| filter.remove_expiring_at(&key, Tick::new(end_of(key)))))
        })
    }),
    ("expiring: clear", || on_each(full_of_dead(), Expiring::clear)),
    ("expiring: the clock", || {
        on_each(full_of_ends(), |filter| {
            (0..9).for_each(|tick| _ = filter.advance_to(Tick::new(tick)));
            filter.restart_clock(Tick::new(70));
            filter.advance_to(Tick::new(1 << 40));
            assert!(filter.is_empty() && filter.live_len() == 0);
        })
    }),
    ("expiring: contains_batch", || batches!(full_of_dead(), contains_batch)),
    ("expiring: insert_batch and remove_batch", || {
        on_each(full_of_ends(), |filter| {
            let (keys, mut removed): (Vec<u64>, _) = ((0..1000).collect(), Vec::new());
            filter.remove_expiring_at_batch(keys.iter().map(|key| (key, Tick::new(end_of(*key)))), &mut removed);
            assert!(removed.len() == 1000 && removed.iter().all(|&removed| removed));
            let keys: Vec<u64> = new().collect();
            assert!(filter.insert_until_batch(keys.iter().map(|key| (key, Tick::new(14))), &mut removed).is_err());
        })
    }),
    ("expiring: save", || saves!(full_of_dead())),
    ("expiring: digest, absorb and unite", || {
        on_each(full_of_dead(), |filter| {
            assert_eq!(filter.empty_like().unwrap().absorb(filter).unwrap(), filter.live_len() as u64);
            assert_eq!(filter.unite(filter).unwrap(), 0);
            filter.digest().unwrap();
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
