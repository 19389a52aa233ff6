//! Every operation of every kind of filter, where it needs the most: tables are full, paths are searched, inserts are
//! refused, and filters grow.

use ahash::RandomState;
use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, GrowableCuckooFilter, Tick, TickError, Values, WhenFull,
};

pub type Work = Box<dyn FnOnce() + Send>;

/// The name of an operation, whether it may ask for memory, and a function that prepares it.
pub type Operation = (&'static str, bool, fn() -> Work);

const NO_MEMORY: bool = false;
const MEMORY: bool = true;

/// The same in each run: whether a few more keys find room in a full table depends on the hashes.
const HASHER: RandomState = RandomState::with_seeds(1, 2, 3, 4);

type One = ConcurrentCuckooFilter<u64, RandomState>;
type Growable = GrowableCuckooFilter<u64, RandomState>;
type Maplet = CuckooMaplet<u64, RandomState>;
type Expiring = ExpiringCuckooFilter<u64, RandomState>;

/// How many keys a full table has. It has more buckets than a search looks at.
const KEYS: u64 = 15_000;

/// A rate for each layout that is chosen if no encoding is asked for.
const RATES: [f64; 8] = [0.07, 0.03, 0.012, 0.003, 0.001, 0.0001, 2e-6, 1e-9];

/// Full filters of one table.
fn full() -> Vec<One> {
    let fill = |rate| {
        let filter =
            One::builder_with_hasher(HASHER).capacity(KEYS as usize).false_positive_rate(rate).build().unwrap();
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
        let sum = One::builder_with_hasher(HASHER).capacity(KEYS as usize).false_positive_rate(rate).build().unwrap();
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
        let builder = Growable::builder_with_hasher(HASHER).capacity(100).max_capacity(1_000_000);
        let filter = builder.false_positive_rate(rate).build().unwrap();
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        filter
    };
    [0.1, 0.001, 1e-6].map(fill).into()
}

/// Full maplets of each layout, in which each key has the value 1.
fn full_maplets() -> Vec<Maplet> {
    let fill = |(value_bits, rate)| {
        let builder = Maplet::builder_with_hasher(HASHER).capacity(KEYS as usize).value_bits(value_bits);
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
        let builder = Expiring::builder_with_hasher(HASHER).capacity(3 * KEYS as usize).lifetime_in_ticks(longest);
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

/// Keys of which most are in, new ones, and room for answers.
struct Scratch {
    keys: Vec<u64>,
    new: Vec<u64>,
    answers: Vec<bool>,
    values: Vec<Values>,
}

/// Does the work for each of these filters.
fn on_each<F: Send + 'static>(filters: Vec<F>, work: impl Fn(&F, &mut Scratch) + Send + 'static) -> Work {
    let keys: Vec<u64> = (0..1000).collect();
    let (answers, values) = (Vec::with_capacity(2 * KEYS as usize), Vec::with_capacity(keys.len()));
    let mut scratch = Scratch { keys, new: new().collect(), answers, values };
    Box::new(move || {
        for filter in &filters {
            scratch.answers.clear();
            scratch.values.clear();
            work(filter, &mut scratch);
        }
    })
}

/// A digest and a save.
macro_rules! as_a_whole {
    ($filters:expr) => {
        on_each($filters, |filter, _| {
            filter.digest().unwrap();
            #[cfg(feature = "snapshot")]
            filter.save(std::io::sink()).unwrap();
        })
    };
}

/// What filters have in common.
macro_rules! look_and_clear {
    ($filter:ident, $scratch:ident) => {
        $filter.contains_batch(&$scratch.keys, &mut $scratch.answers);
        assert!($filter.contains(&500) && !$scratch.answers.is_empty());
        $filter.record_negatives(1);
        $filter.record_false_positives(1);
        let stats = $filter.stats();
        assert!(stats.observed_false_positive_rate() == Some(0.5) && stats.false_positive_rate > 0.0);
        $filter.clear();
        assert!($filter.is_empty());
    };
}

pub const OPERATIONS: [Operation; 23] = [
    ("nothing", NO_MEMORY, || Box::new(|| ())),
    ("inserts that relocate", NO_MEMORY, || {
        on_each(nearly_full(), |filter, _| (0..50).for_each(|key| _ = filter.insert(&key)))
    }),
    ("inserts that are refused", NO_MEMORY, || {
        on_each(full(), |filter, scratch| {
            assert!(new().any(|key| filter.insert(&key).is_err()));
            assert!(new().any(|key| filter.insert_if_absent(&key).is_err()));
            assert!(filter.insert_batch(&scratch.new).is_err());
        })
    }),
    ("operations on a key", NO_MEMORY, || {
        on_each(full(), |filter, scratch| {
            assert!(filter.contains(&1) && filter.count(&1) > 0 && filter.remove(&1));
            filter.by_hash().insert(filter.hash_one(&1)).unwrap();
            filter.remove_batch(&scratch.keys[..400], &mut scratch.answers);
            assert!(filter.insert_batch(&scratch.keys[..200]).is_ok());
            (200..300).for_each(|key| _ = filter.insert_if_absent(&key).unwrap());
            look_and_clear!(filter, scratch);
        })
    }),
    ("operations on a filter", MEMORY, || as_a_whole!(full())),
    ("absorb, with relocations", MEMORY, || {
        on_each(halves(), |(sum, other), _| {
            sum.absorb(other).unwrap();
            assert!(sum.stats().relocations > 0);
        })
    }),
    ("absorb that is refused", MEMORY, || {
        on_each(halves(), |(sum, other), _| {
            // More copies of one key than its two buckets hold.
            (0..16).for_each(|_| _ = sum.insert(&1));
            (0..16).for_each(|_| _ = other.insert(&1));
            assert!(sum.absorb(other).is_err());
        })
    }),
    ("growable: inserts that let it grow", MEMORY, || {
        on_each(grown(), |filter, _| {
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
    ("growable: operations on a key", NO_MEMORY, || {
        on_each(grown(), |filter, scratch| {
            assert!((0..100).all(|key| filter.count(&key) > 0 && filter.remove(&key)));
            filter.remove_batch(&scratch.keys[100..400], &mut scratch.answers);
            assert!((0..100).all(|key| filter.insert_if_absent(&key).is_ok()));
            look_and_clear!(filter, scratch);
        })
    }),
    ("growable: insert that is refused", NO_MEMORY, || {
        let filters = grown().into_iter().inspect(|filter| while filter.insert(&1).is_ok() {});
        on_each(filters.collect(), |filter, _| assert!(filter.insert(&1).is_err()))
    }),
    ("growable: shrink_to_fit", NO_MEMORY, || {
        on_each(grown(), |filter, _| {
            (100..KEYS).for_each(|key| assert!(filter.remove(&key)));
            filter.shrink_to_fit();
        })
    }),
    ("growable: operations on a filter", MEMORY, || as_a_whole!(grown())),
    ("maplet: inserts that relocate", NO_MEMORY, || {
        on_each(nearly_full_maplets(), |maplet, _| (0..50).for_each(|key| _ = maplet.insert(&key, 1)))
    }),
    ("maplet: inserts that are refused", NO_MEMORY, || {
        on_each(full_maplets(), |maplet, scratch| {
            assert!(new().any(|key| maplet.insert(&key, 1).is_err()));
            assert!(new().any(|key| maplet.insert_if_absent(&key, 1).is_err()));
            assert!(maplet.insert_batch(scratch.new.iter().map(|key| (key, 1))).is_err());
        })
    }),
    ("maplet: operations on a key", NO_MEMORY, || {
        on_each(full_maplets(), |maplet, scratch| {
            maplet.values_batch(&scratch.keys, &mut scratch.values);
            assert!(scratch.values.len() == 1000 && scratch.values.iter().all(|values| values.contains(1)));
            assert!((0..99).all(|key| maplet.values(&key).contains(1) && maplet.contains(&key)));
            assert!((0..99).all(|key| maplet.replace(&key, 1, 2) == Ok(true) && maplet.count(&key, 2) > 0));
            assert!((0..99).all(|key| maplet.remove(&key, 2)));
            maplet.remove_batch(scratch.keys[..400].iter().map(|key| (key, 1)), &mut scratch.answers);
            assert!((0..99).all(|key| maplet.insert_if_absent(&key, 1).is_ok()));
            look_and_clear!(maplet, scratch);
        })
    }),
    ("maplet: operations on a maplet", MEMORY, || as_a_whole!(full_maplets())),
    ("maplet: absorb", MEMORY, || {
        on_each(nearly_full_maplets(), |maplet, _| {
            let sum = maplet.empty_like().unwrap();
            (0..maplet.len() as u64 - sum.capacity().min(maplet.len()) as u64 + 100)
                .for_each(|key| _ = maplet.remove(&(key + 50), 1));
            sum.absorb(maplet).unwrap();
        })
    }),
    ("expiring: inserts that take dead entries out", NO_MEMORY, || {
        on_each(full_of_dead(), |filter, _| {
            (0..99).for_each(|key| _ = filter.insert_or_renew_until(&key, Tick::new(15)).unwrap());
            let swept = filter.stats().expiry.unwrap().expired;
            new().take(KEYS as usize / 4).for_each(|key| _ = filter.insert_until(&key, Tick::new(14)).unwrap());
            assert!(filter.stats().expiry.unwrap().expired > swept);
        })
    }),
    ("expiring: inserts that are refused", NO_MEMORY, || {
        on_each(full_of_ends(), |filter, scratch| {
            let end = Tick::new(14);
            assert!(new().any(|key| filter.insert_until(&key, end).is_err()));
            assert!(new().any(|key| filter.insert_if_absent_until(&key, end).is_err()));
            let entries = scratch.new.iter().map(|key| (key, end));
            assert!(filter.insert_until_batch(entries, &mut scratch.answers).is_err());
        })
    }),
    ("expiring: insert that forgets", NO_MEMORY, || {
        on_each(full_of_ends_to_forget(), |filter, _| {
            assert!(new().take(KEYS as usize).all(|key| filter.insert_until(&key, Tick::new(14)).is_ok()));
            assert!(filter.stats().expiry.unwrap().evicted_early_by > 0);
            assert!(filter.insert_until(&0, Tick::new(1)).is_err(), "that tick has gone");
        })
    }),
    ("expiring: operations on a key, and the clock", NO_MEMORY, || {
        on_each(full_of_ends(), |filter, scratch| {
            let end = |key: u64| Tick::new(end_of(key));
            assert!((0..99).all(|key| filter.contains(&key) && filter.remove_expiring_at(&key, end(key))));
            let entries = scratch.keys[99..400].iter().map(|key| (key, end(*key)));
            filter.remove_expiring_at_batch(entries, &mut scratch.answers);
            assert!(scratch.answers.len() == 301 && scratch.answers.iter().all(|&removed| removed));
            filter.remove_batch(&scratch.keys[400..450], &mut scratch.answers);
            assert_eq!(filter.remaining(&500), Err(TickError::ResolutionUnknown));
            assert!(filter.expires_at(&500).is_some());
            (0..9).for_each(|tick| _ = filter.advance_to(Tick::new(tick)));
            filter.restart_clock(Tick::new(70));
            filter.advance_to(Tick::new(1 << 40));
            assert!(filter.is_empty() && filter.live_len() == 0);
            assert!((0..1000).all(|key| filter.insert(&key).is_ok()));
            look_and_clear!(filter, scratch);
        })
    }),
    ("expiring: operations on a filter", MEMORY, || as_a_whole!(full_of_dead())),
    ("expiring: absorb and unite", MEMORY, || {
        on_each(full_of_dead(), |filter, _| {
            assert_eq!(filter.empty_like().unwrap().absorb(filter).unwrap(), filter.live_len() as u64);
            assert_eq!(filter.unite(filter).unwrap(), 0);
        })
    }),
];
