//! How many keys a filter takes: up to its capacity all of them, in any order and from any threads. So a process that starts again
//! can repeat what was accepted. A growable filter never takes more than its capacity where its growth ends.
#![cfg(feature = "snapshot")]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use concurrent_cuckoo_filter::{
    AbsorbError, ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, GrowableBuilder, GrowableCuckooFilter,
    GrowableInsertError, LoadError, Loader, ReserveError, SnapshotMismatch, Tick,
};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use support::{Seeded, seeded};

type Growable = GrowableCuckooFilter<u64, Seeded>;

const THREADS: u64 = 4;

fn builder(seed: u64) -> GrowableBuilder<u64, Seeded> {
    Growable::builder_with_hasher(seeded(seed))
}

/// Loads, with as much memory as it needs.
fn loader(seed: u64) -> Loader<Growable, Seeded> {
    Loader::new(seeded(seed), usize::MAX)
}

fn saved(filter: &Growable) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

/// Filters that can grow no further after some hundred or thousand keys, for each reason and with each kind of layout, with the
/// limit for their memory.
fn limited(random: &mut SmallRng, seed: u64) -> (GrowableBuilder<u64, Seeded>, usize) {
    let keys = random.random_range(1..6000);
    let builder =
        builder(seed).capacity(random.random_range(0..keys)).false_positive_rate([0.1, 0.001, 1e-5][seed as usize % 3]);
    match seed % 4 {
        0 => (builder.max_capacity(keys), usize::MAX),
        1 => (builder.max_capacity(keys).expected_keys(keys), usize::MAX),
        _ => {
            let first = builder.plan().unwrap().memory_usage;
            // Also to the byte of the next size, and to one less.
            let limit = first + random.random_range(0..40_000);
            (builder.memory_limit(limit), limit)
        }
    }
}

/// The keys that several threads could insert, each until it was refused a few times, and the last refusal.
fn fill(filter: &Growable, start: u64, refusals: usize) -> (Vec<u64>, GrowableInsertError) {
    let fills = |nth: u64| {
        let (mut accepted, mut refused) = (Vec::new(), 0);
        for key in (start..).map(|number| number * THREADS + nth) {
            match filter.insert(&key) {
                Ok(()) => accepted.push(key),
                Err(error) if refused == refusals => return (accepted, error),
                Err(_) => refused += 1,
            }
        }
        unreachable!("it has a limit")
    };
    let filled = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|nth| scope.spawn(move || fills(nth))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let error = filled[0].1.clone();
    (filled.into_iter().flat_map(|(accepted, _)| accepted).collect(), error)
}

/// How many keys the filter takes, as its error names it.
fn named(error: &GrowableInsertError) -> [usize; 2] {
    match *error {
        GrowableInsertError::MaxCapacity { len, max_capacity, .. } => [len, max_capacity],
        GrowableInsertError::MemoryLimit { len, capacity, .. } => [len, capacity],
        _ => panic!("{error:?}"),
    }
}

/// A filter is filled by several threads until it refuses. All that was accepted after a save of it is accepted again after loading:
/// in another order, on one other thread and on several, by batches, and by a merge.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn what_a_full_growable_filter_has_accepted_it_accepts_again() {
    for seed in 0..40 {
        let mut random = SmallRng::seed_from_u64(seed);
        let (builder, limit) = limited(&mut random, seed);
        let plan = builder.plan().unwrap();
        let most = plan.max_capacity.unwrap();
        let filter = builder.build().unwrap();
        let before = random.random_range(0..=most as u64);
        (0..before).for_each(|key| filter.insert(&key).unwrap());
        let snapshot = saved(&filter);
        let (mut accepted, error) = fill(&filter, before, 30);
        let shown = format!("seed {seed}, {plan}: {error}");
        assert_eq!(named(&error), [most; 2], "{shown}");
        assert_eq!([accepted.len() + before as usize, filter.len(), filter.capacity()], [most; 3], "{shown}");
        assert_eq!([filter.max_capacity(), filter.plan().max_capacity.unwrap()], [most; 2], "{shown}");
        assert!(error.to_string().contains(&most.to_string()), "{shown}");
        assert!(filter.stats().memory_usage <= limit, "{shown}");

        accepted.shuffle(&mut random);
        let restart = || Loader::<Growable, _>::new(seeded(seed), limit).load(&snapshot[..]).unwrap().filter;
        let (one, several, batch, merged) = (restart(), restart(), restart(), restart());
        accepted.iter().for_each(|key| one.insert(key).expect(&shown));
        thread::scope(|scope| {
            for part in accepted.chunks(accepted.len().div_ceil(THREADS as usize).max(1)) {
                let (several, shown) = (&several, &shown);
                scope.spawn(move || part.iter().for_each(|key| several.insert(key).expect(shown)));
            }
        });
        batch.insert_batch(&accepted).expect(&shown);
        let part = merged.empty_like().unwrap();
        part.insert_batch(&accepted).expect(&shown);
        assert_eq!(merged.absorb(&part), Ok(accepted.len() as u64), "{shown}");
        for again in [&one, &several, &batch, &merged] {
            assert!(again.len() == most && accepted.iter().all(|key| again.contains(key)), "{shown}");
            assert_eq!(named(&again.insert(&u64::MAX).unwrap_err()), [most; 2], "{shown}");
            assert_eq!(again.digest(), filter.digest(), "{shown}");
        }
    }
}

/// Inserts into a full filter fail, whoever makes them; what is there is found to be there.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn nothing_comes_into_a_full_growable_filter() {
    let filter = builder(1).max_capacity(500).build().unwrap();
    let most = filter.max_capacity() as u64;
    (0..most).for_each(|key| filter.insert(&key).unwrap());
    let is_full = |error: &GrowableInsertError| named(error) == [most as usize; 2];
    assert!(is_full(&filter.insert_batch(&[u64::MAX]).unwrap_err().error));
    assert!((0..most).all(|key| filter.insert_if_absent(&key) == Ok(false)));
    assert!(is_full(&filter.insert_if_absent(&u64::MAX).unwrap_err()));
    let others = filter.empty_like().unwrap();
    others.insert(&u64::MAX).unwrap();
    assert!(matches!(filter.unite(&others), Err(AbsorbError::MaxCapacity { absorbed: 0, .. })));
    assert!(matches!(filter.absorb(&others), Err(AbsorbError::MaxCapacity { absorbed: 0, .. })));
    assert!(matches!(filter.reserve(1), Err(ReserveError::CapacityTooLarge { largest, .. }) if largest as u64 == most));
    assert_eq!(filter.stats().inserts_failed, 4);
    // A copy takes a slot. (A key may have some copies.)
    assert!(filter.remove(&0) && filter.insert(&1).is_ok() && is_full(&filter.insert(&0).unwrap_err()));
    // An image of a larger one does not come in whole either.
    let larger = loader(1).max_capacity(5000).load(&saved(&filter)[..]).unwrap().filter;
    assert!(larger.insert_batch(&(1000..3000).collect::<Vec<_>>()).is_ok());
}

/// Several threads keep a filter full, each of which removes a key before it inserts another. So there is always room. The same
/// where they keep it nearly full, and where they let it become empty now and then.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn keys_come_and_go_in_a_full_growable_filter() {
    for (most, spare) in [(50, 0), (3_000, 0), (3_000, 100), (20_000, 0)] {
        let filter = builder(most).max_capacity(most as usize).build().unwrap();
        let each = (filter.max_capacity() as u64 - spare) / THREADS;
        let rest = filter.max_capacity() as u64 - spare - each * THREADS;
        (0..rest).for_each(|key| filter.insert(&(key + (1 << 50))).unwrap());
        let exceeded = AtomicUsize::new(0);
        thread::scope(|scope| {
            for nth in 0..THREADS {
                let (filter, exceeded) = (&filter, &exceeded);
                scope.spawn(move || {
                    let key = |number| nth << 40 | number;
                    (0..each).for_each(|number| filter.insert(&key(number)).unwrap());
                    for number in 0..5 * each.min(1000) {
                        assert!(filter.remove(&key(number)));
                        filter.insert(&key(number + each)).expect("a key has gone");
                        exceeded.fetch_max(filter.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert!(exceeded.into_inner() <= filter.max_capacity() + THREADS as usize, "{filter:?}");
        assert_eq!(filter.len() as u64, filter.max_capacity() as u64 - spare, "{filter:?}");
        filter.clear();
        assert_eq!(fill(&filter, 0, 3).0.len(), filter.max_capacity(), "{filter:?}");
    }
}

/// The way out for a process whose filter is full.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn a_loaded_filter_gets_other_limits() {
    let full = builder(1).capacity(0).max_capacity(1000).build().unwrap();
    let most = full.max_capacity();
    (0..most as u64).for_each(|key| full.insert(&key).unwrap());
    let bytes = saved(&full);

    // More keys: from then on, also after it was saved again.
    let larger = loader(1).max_capacity(4000).load(&bytes[..]).unwrap().filter;
    let more = larger.max_capacity();
    assert!((4000..4200).contains(&more), "{larger:?}");
    let fill = |filter: &Growable| (filter.len() as u64..).take_while(|key| filter.insert(key).is_ok()).count();
    assert_eq!((fill(&larger), larger.len()), (more - most, more));
    let again = loader(1).load(&saved(&larger)[..]).unwrap().filter;
    assert_eq!((again.len(), again.max_capacity()), (more, more));
    assert!((0..more as u64).all(|key| again.contains(&key)));
    // Fewer, down to what the table has.
    let fewer = loader(1).max_capacity(most).load(&bytes[..]).unwrap().filter;
    assert_eq!((fewer.len(), fewer.max_capacity(), fill(&fewer)), (most, most, 0));
    for asked in [0, most / 2, usize::MAX] {
        let error = loader(1).max_capacity(asked).load(&bytes[..]).unwrap_err();
        let LoadError::MaxCapacity { max_capacity, least, most: possible, .. } = error else { panic!("{error:?}") };
        assert_eq!((max_capacity, least), (asked, most));
        for number in [asked, least, possible] {
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
        assert_eq!(error.to_string().contains("shrink_to_fit"), asked < most);
        for possible in [least, possible] {
            assert!(loader(1).max_capacity(possible).load(&bytes[..]).unwrap().filter.max_capacity() >= possible);
        }
    }

    // The plan that was expected is that of the filter, whatever its limit is now.
    let plan = builder(1).capacity(0).max_capacity(1000).plan().unwrap();
    for bytes in [&bytes, &saved(&larger)] {
        loader(1).max_capacity(5000).expect_plan(plan).load(&bytes[..]).expect("only the limit is another one");
        let other = builder(1).capacity(0).max_capacity(1000).false_positive_rate(0.01).plan().unwrap();
        let error = loader(1).max_capacity(5000).expect_plan(other).load(&bytes[..]).unwrap_err();
        assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Settings { .. })), "{error}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn a_loaded_filter_gets_another_limit_for_its_memory() {
    let full = builder(1).capacity(0).memory_limit(20_000).build().unwrap();
    let most = fill(&full, 0, 0).0.len();
    let bytes = saved(&full);
    let load = |limit| Loader::<Growable, _>::new(seeded(1), limit).load(&bytes[..]);
    let larger = load(40_000).unwrap().filter;
    let more = fill(&larger, most as u64, 0).0.len();
    assert!(more > most / 2 && larger.stats().memory_usage <= 40_000, "{larger:?}");
    assert!(matches!(load(10_000).unwrap_err(), LoadError::MemoryLimit { limit: 10_000, .. }));
}

/// A filter checks now and then whether it is to grow. So a small one may hold more keys than it takes where it may not.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn a_snapshot_with_more_keys_than_the_limits_allow_is_an_error() {
    let filter = builder(1).capacity(0).build().unwrap();
    let mut too_many = 0;
    for key in 0..300 {
        filter.insert(&key).unwrap();
        let (held, bytes) = (filter.stats().memory_usage, saved(&filter));
        match Loader::<Growable, _>::new(seeded(1), held).load(&bytes[..]) {
            Ok(loaded) => assert!(loaded.filter.max_capacity() >= filter.len(), "{loaded:?}"),
            Err(error) => {
                let LoadError::TooManyKeys { len, limit, .. } = error else { panic!("{error:?}") };
                assert!(len == key + 1 && (limit as u64) < len, "{error}");
                for part in [&len.to_string(), &limit.to_string(), "raise the memory_limit"] {
                    assert!(error.to_string().contains(part), "{error}");
                }
                // The same where the loader allows too few keys, with as much memory as it takes.
                let error = loader(1).max_capacity(limit).load(&bytes[..]).unwrap_err();
                assert!(matches!(error, LoadError::TooManyKeys { .. }), "{error}");
                assert!(error.to_string().contains("raise the max_capacity"), "{error}");
                assert!(loader(1).max_capacity(len as usize).load(&bytes[..]).is_ok());
                assert_eq!(loader(1).load(&bytes[..]).unwrap().filter.len() as u64, len);
                too_many += 1;
            }
        }
    }
    assert!(too_many > 0);
}

/// The same rule for the types whose size is fixed: all of `capacity` distinct keys are accepted, in any order, from any threads.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn up_to_its_capacity_a_filter_accepts_all_keys() {
    for seed in 0..12u64 {
        let mut random = SmallRng::seed_from_u64(seed);
        let keys = random.random_range(1..5000);
        let fixed = ConcurrentCuckooFilter::<u64, _>::with_capacity_and_hasher(keys, seeded(seed));
        let maplet = CuckooMaplet::<u64, _>::builder_with_hasher(seeded(seed)).capacity(keys).value_bits(4);
        let maplet = maplet.build().unwrap();
        let expiring = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(seed)).capacity(keys);
        let expiring = expiring.lifetime_in_ticks(10).build().unwrap();
        expiring.advance_to(Tick::new(1));
        for round in 0..3 {
            let all = |capacity: usize| {
                let mut all: Vec<u64> = (0..capacity as u64).collect();
                all.shuffle(&mut SmallRng::seed_from_u64(seed + 100 * round));
                all
            };
            fixed.clear();
            maplet.clear();
            expiring.clear();
            in_parts(&all(fixed.capacity()), |key| fixed.insert(&key).unwrap());
            in_parts(&all(maplet.capacity()), |key| maplet.insert(&key, key as u16 & 15).unwrap());
            in_parts(&all(expiring.capacity()), |key| _ = expiring.insert_until(&key, Tick::new(9)).unwrap());
            assert_eq!(
                [fixed.len(), maplet.len(), expiring.len()],
                [fixed.capacity(), maplet.capacity(), expiring.capacity()]
            );
        }
    }
}

fn in_parts(keys: &[u64], insert: impl Fn(u64) + Sync) {
    thread::scope(|scope| {
        for part in keys.chunks(keys.len().div_ceil(THREADS as usize)) {
            let insert = &insert;
            scope.spawn(move || part.iter().for_each(|&key| insert(key)));
        }
    });
}
