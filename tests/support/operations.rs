//! Every operation of every kind of filter, where it needs the most: tables are full, paths are searched, inserts are
//! refused, and filters grow.

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick, TickError, Values, WhenFull};

use crate::kinds::{self, Expiring, Growable, Hasher, Maplet, NOW, Table};
use crate::support::{Filter, LAYOUTS, MAPLET_LAYOUTS, MapletLayout, Raw, build, scattered};

pub type Work = Box<dyn FnOnce() + Send>;

/// The name of an operation, whether it may ask for memory, and a function that prepares it.
pub type Operation = (&'static str, bool, fn() -> Work);

const NO_MEMORY: bool = false;
const MEMORY: bool = true;

/// How many keys a full table has. It has more buckets than a search looks at.
const KEYS: u64 = 15_000;

trait Kind: Table + Send + 'static {
    /// An empty filter of each layout.
    fn each() -> Vec<Self>;

    fn number(_nth: u64) -> u64 {
        0
    }

    fn entry(nth: u64) -> (Raw, u64) {
        (scattered(nth), Self::number(nth))
    }
}

impl Kind for Filter {
    fn each() -> Vec<Self> {
        LAYOUTS.map(|(encoding, rate, ..)| build(KEYS, encoding, rate)).into()
    }
}

impl Kind for Growable {
    fn each() -> Vec<Self> {
        [0.1, 0.001, 1e-6].map(|rate| kinds::growable(100, rate)).into()
    }
}

impl Kind for Maplet {
    fn each() -> Vec<Self> {
        MAPLET_LAYOUTS.map(|layout| kinds::maplet(KEYS as usize, layout)).into()
    }

    fn number(_: u64) -> u64 {
        1
    }
}

/// Every other entry dies after a tick, and the rest after 14. One call sweeps only a part of them.
impl Kind for Expiring {
    fn each() -> Vec<Self> {
        let layouts = MAPLET_LAYOUTS.into_iter().filter(|layout| layout.0 >= 4);
        layouts.map(|layout| kinds::expiring(3 * KEYS as usize, layout)).collect()
    }

    fn number(nth: u64) -> u64 {
        NOW + 1 + nth % 2 * 13
    }
}

/// Full filters. One that grows has grown.
fn full<F: Kind>() -> Vec<F> {
    let most = if F::NAME.starts_with("Growable") { KEYS } else { u64::MAX };
    let fill = |filter: &F| (0..most).take_while(|&nth| filter.insert(&F::entry(nth)).is_ok()).for_each(drop);
    F::each().into_iter().inspect(fill).collect()
}

/// With many dead entries that are not swept.
fn full_of_dead() -> Vec<Expiring> {
    let die = |filter: &Expiring| {
        filter.advance_to(Tick::new(NOW + 1));
        assert!(filter.len() > filter.live_len() + KEYS as usize / 4, "{filter:?}");
    };
    full::<Expiring>().into_iter().inspect(die).collect()
}

/// Entries of which most are in, their keys, new ones, and room for answers.
struct Scratch {
    entries: Vec<(Raw, u64)>,
    keys: Vec<Raw>,
    new: Vec<(Raw, u64)>,
    answers: Vec<bool>,
    values: Vec<Values>,
}

/// Does the work for each of these filters.
fn on_each<F: Kind>(filters: Vec<F>, work: impl Fn(&F, &mut Scratch) + Send + 'static) -> Work {
    let entries: Vec<_> = (0..1000).map(F::entry).collect();
    let mut scratch = Scratch {
        keys: entries.iter().map(|entry| entry.0).collect(),
        entries,
        new: (1 << 40..(1 << 40) + 2 * KEYS).map(F::entry).collect(),
        answers: Vec::with_capacity(2 * KEYS as usize),
        values: Vec::with_capacity(1000),
    };
    Box::new(move || {
        for filter in &filters {
            scratch.answers.clear();
            scratch.values.clear();
            work(filter, &mut scratch);
        }
    })
}

fn relocate<F: Kind>() -> Work {
    let nearly_full =
        full::<F>().into_iter().inspect(|filter| (0..50).for_each(|nth| _ = filter.remove(&F::entry(nth))));
    on_each(nearly_full.collect(), |filter, scratch| {
        scratch.entries[..50].iter().for_each(|entry| _ = filter.insert(entry));
    })
}

fn are_refused<F: Kind>() -> Work {
    on_each(full::<F>(), |filter, Scratch { new, answers, .. }| {
        assert!(new.iter().any(|entry| filter.insert(entry).is_err()));
        assert!(new.iter().any(|entry| filter.insert_if_absent(entry).is_err()));
        assert!(filter.insert_each(new, answers).is_err());
    })
}

fn on_keys<F: Kind>() -> Work {
    on_each(full::<F>(), |filter, Scratch { entries, keys, answers, .. }| {
        assert!(filter.contains(&keys[500]) && filter.remove(&entries[1]));
        filter.remove_each(&entries[2..400], answers);
        assert!(answers.len() == 398 && answers.iter().all(|&removed| removed));
        assert!(filter.insert_each(&entries[2..200], answers).is_ok());
        assert!(entries[300..400].iter().all(|entry| filter.insert_if_absent(entry).is_ok()));
        filter.contains_each(keys, answers);
        assert!(filter.stats().false_positive_rate > 0.0);
        filter.clear();
        assert_eq!(filter.len(), 0);
    })
}

fn as_a_whole<F: Kind>() -> Work {
    on_each(full::<F>(), |filter, _| {
        filter.digest();
        #[cfg(feature = "snapshot")]
        filter.begin_save().write_to(std::io::sink()).unwrap();
    })
}

fn merge<F: Kind>() -> Work {
    on_each(F::each(), |sum, Scratch { entries, .. }| {
        let (other, half) = (sum.another(), sum.capacity().min(KEYS as usize) as u64 / 2 - 20);
        (0..half).for_each(|nth| assert_eq!(sum.insert(&F::entry(nth)), Ok(true)));
        (half..2 * half).for_each(|nth| assert_eq!(other.insert(&F::entry(nth)), Ok(true)));
        assert_eq!((sum.absorb(&other), sum.unite(&other)), (Ok(half), Ok(0)));
        // More copies of one key than its two buckets hold.
        [sum, &other].iter().for_each(|filter| while filter.insert(&entries[1]).is_ok() {});
        assert!(sum.absorb(&other).is_err());
    })
}

pub const OPERATIONS: [Operation; 24] = [
    ("nothing", NO_MEMORY, || Box::new(|| ())),
    ("inserts that relocate", NO_MEMORY, relocate::<Filter>),
    ("inserts that are refused", NO_MEMORY, are_refused::<Filter>),
    ("operations on a key", NO_MEMORY, on_keys::<Filter>),
    ("operations by hash, and records", NO_MEMORY, || {
        on_each(full::<Filter>(), |filter, Scratch { keys, .. }| {
            let hash = filter.hash_one(&keys[1]);
            assert!(filter.count(&keys[1]) > 0 && filter.by_hash().remove(hash));
            filter.by_hash().insert(hash).unwrap();
            filter.record_negatives(1);
            filter.record_false_positives(1);
            assert_eq!(filter.stats().observed_false_positive_rate(), Some(0.5));
        })
    }),
    ("operations on a filter", MEMORY, as_a_whole::<Filter>),
    ("absorb and unite", MEMORY, merge::<Filter>),
    ("growable: inserts that let it grow", MEMORY, || {
        on_each(full::<Growable>(), |filter, Scratch { new, .. }| {
            let mut new = new.iter();
            let mut until_it_grows = |insert: &dyn Fn(&Raw)| {
                let capacity = filter.capacity();
                while filter.capacity() == capacity {
                    insert(&new.next().unwrap().0);
                }
            };
            until_it_grows(&|key| filter.insert(key).unwrap());
            until_it_grows(&|key| _ = filter.insert_if_absent(key).unwrap());
            filter.reserve(100_000).unwrap();
        })
    }),
    ("growable: operations on a key", NO_MEMORY, on_keys::<Growable>),
    ("growable: insert that is refused", NO_MEMORY, || {
        let filters = full::<Growable>().into_iter().inspect(|filter| while filter.insert(&Raw(1)).is_ok() {});
        on_each(filters.collect(), |filter, _| assert!(filter.insert(&Raw(1)).is_err()))
    }),
    ("growable: shrink_to_fit", NO_MEMORY, || {
        on_each(full::<Growable>(), |filter, _| {
            (100..KEYS).for_each(|nth| assert!(filter.remove(&scattered(nth))));
            filter.shrink_to_fit();
        })
    }),
    ("growable: operations on a filter", MEMORY, as_a_whole::<Growable>),
    ("growable: absorb and unite", MEMORY, merge::<Growable>),
    ("maplet: inserts that relocate", NO_MEMORY, relocate::<Maplet>),
    ("maplet: inserts that are refused", NO_MEMORY, are_refused::<Maplet>),
    ("maplet: operations on a key", NO_MEMORY, on_keys::<Maplet>),
    ("maplet: values", NO_MEMORY, || {
        on_each(full::<Maplet>(), |maplet, Scratch { keys, values, .. }| {
            maplet.values_batch(&*keys, values);
            assert!(values.len() == 1000 && values.iter().all(|values| values.contains(1)));
            assert!(keys[..99].iter().all(|key| maplet.values(key).contains(1) && maplet.count(key, 1) > 0));
            assert!(keys[..99].iter().all(|key| maplet.replace(key, 1, 0) == Ok(true)));
        })
    }),
    ("maplet: operations on a maplet", MEMORY, as_a_whole::<Maplet>),
    ("maplet: absorb and unite", MEMORY, merge::<Maplet>),
    ("expiring: inserts that are refused", NO_MEMORY, are_refused::<Expiring>),
    ("expiring: operations on a key", NO_MEMORY, on_keys::<Expiring>),
    ("expiring: inserts that take dead entries out, and the clock", NO_MEMORY, || {
        on_each(full_of_dead(), |filter, Scratch { keys, new, answers, .. }| {
            keys[..99].iter().for_each(|key| _ = filter.insert_or_renew_until(key, Tick::new(NOW + 15)).unwrap());
            let swept = filter.stats().expiry.unwrap().expired;
            let end = Tick::new(NOW + 14);
            new[..KEYS as usize / 4].iter().for_each(|(key, _)| _ = filter.insert_until(key, end).unwrap());
            assert!(filter.stats().expiry.unwrap().expired > swept);
            filter.remove_batch(&keys[400..450], answers);
            assert_eq!(filter.remaining(&keys[1]), Err(TickError::ResolutionUnknown));
            assert!(filter.expires_at(&keys[1]).is_some());
            (0..9).for_each(|ahead| _ = filter.advance_to(Tick::new(NOW + ahead)));
            filter.restart_clock(Tick::new(70));
            filter.advance_to(Tick::new(1 << 40));
            assert!(filter.is_empty() && filter.live_len() == 0);
            assert!(keys.iter().all(|key| filter.insert(key).is_ok()));
        })
    }),
    ("expiring: insert that evicts", NO_MEMORY, || {
        let evicting = |(bits, rate, ..): MapletLayout| {
            let builder = ExpiringCuckooFilter::builder().capacity(KEYS as usize).lifetime_in_ticks((1 << bits) - 1);
            let builder = builder.false_positive_rate(rate).when_full(WhenFull::EvictSoonest);
            let filter: Expiring = builder.hasher(Hasher::default()).build().unwrap();
            filter.advance_to(Tick::new(NOW));
            (0..).take_while(|&nth| Table::insert(&filter, &Expiring::entry(nth)).is_ok()).for_each(drop);
            filter
        };
        let layouts = MAPLET_LAYOUTS.into_iter().filter(|layout| layout.0 >= 4);
        on_each(layouts.map(evicting).collect(), |filter, Scratch { entries, new, .. }| {
            assert!(new[..1000].iter().all(|(key, _)| filter.insert_until(key, Tick::new(NOW + 14)).is_ok()));
            assert!(filter.stats().expiry.unwrap().evicted_early_by > 0);
            assert!(filter.insert_until(&entries[0].0, Tick::new(NOW + 1)).is_err(), "that tick has gone");
        })
    }),
    ("expiring: a save, absorb and unite of the dead", MEMORY, || {
        on_each(full_of_dead(), |filter, _| {
            filter.digest().unwrap();
            #[cfg(feature = "snapshot")]
            filter.save(std::io::sink()).unwrap();
            assert_eq!(filter.empty_like().unwrap().absorb(filter).unwrap(), filter.live_len() as u64);
            assert_eq!(filter.unite(filter).unwrap(), 0);
        })
    }),
];
