//! `GrowableCuckooFilter`: growth and shrinking while others use it, rates, removals, memory.

#[path = "support/address_limit.rs"]
mod address_limit;
mod support;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::mem;

use address_limit::{has_ranges, is_limited, run_with_limit};
use concurrent_cuckoo_filter::{
    BuildError, Encoding, GrowableBuilder, GrowableCuckooFilter, GrowableInsertError, ReserveError,
};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use support::{Identity, Raw, plausible, scattered, seeded};

type Filter = GrowableCuckooFilter<Raw, BuildHasherDefault<Identity>>;

/// Whether the memory that a shrink leaves goes back to the system.
const GIVES_BACK: bool = cfg!(all(target_os = "linux", not(miri)));

/// Keys whose hashes the tests choose.
fn builder(capacity: usize, rate: f64) -> GrowableBuilder<Raw, BuildHasherDefault<Identity>> {
    GrowableCuckooFilter::builder().capacity(capacity).false_positive_rate(rate).hasher(BuildHasherDefault::default())
}

fn key(number: u64) -> Raw {
    scattered(number)
}

fn insert_all(filter: &Filter, numbers: impl IntoIterator<Item = u64>) {
    numbers.into_iter().for_each(|number| filter.insert(&key(number)).unwrap());
}

fn has_all(filter: &Filter, mut numbers: impl Iterator<Item = u64>) -> bool {
    numbers.all(|number| filter.contains(&key(number)))
}

fn remove_all(filter: &Filter, numbers: impl IntoIterator<Item = u64>) {
    numbers.into_iter().for_each(|number| assert!(filter.remove(&key(number)), "present key {number} was not removed"));
}

/// Numbers of keys that are never inserted.
const ABSENT: u64 = 1 << 40;

/// By how much the length may go beyond the capacity. (A thread asks now and then whether the filter is to grow.)
const SLACK: usize = 64;

/// Each of its buckets has a copy of a key, often in the same slot. Whatever the layouts of the two are, the key is found, and
/// hardly any that is absent.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn a_key_with_a_copy_in_each_of_its_buckets_is_found_at_every_size() {
    let absent: Vec<Raw> = (ABSENT..ABSENT + 500).map(key).collect();
    for (encoding, rate) in [(Encoding::Plain, 0.03), (Encoding::Plain, 1e-4), (Encoding::SemiSorted, 0.03)] {
        let (filter, mut slots) = (builder(0, rate).encoding(encoding).build().unwrap(), 0);
        let (mut present, mut found) = (Vec::new(), Vec::new());
        for key in (0..5_000).map(key) {
            // Where each key has two copies, some inserts fail.
            if [(); 2].map(|()| filter.insert(&key)).iter().any(Result::is_ok) {
                present.push(key);
            }
            let before = mem::replace(&mut slots, filter.plan().slots);
            if slots != before {
                found.clear();
                filter.contains_batch(&present, &mut found);
                let has_all = present.iter().all(|key| filter.contains(key)) && found.iter().all(|&found| found);
                assert!(has_all, "{encoding:?}, {rate}: a present key was missed, with {slots} slots");
                found.clear();
                filter.contains_batch(&absent, &mut found);
                let alone = absent.iter().filter(|key| filter.contains(key)).count();
                assert_eq!(found.iter().filter(|&&found| found).count(), alone, "single and batched lookups differ");
                assert!(alone < 40, "{encoding:?}, {rate}: {alone} of 500 absent keys, with {slots} slots");
            }
        }
        assert!(present.len() > 4_900, "{}", present.len());
    }
}

#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn after_a_spike_the_filter_is_as_small_as_a_fresh_one() {
    const SPIKE: u64 = 300_000;
    let filter = builder(100, 0.001).build().unwrap();
    insert_all(&filter, 0..SPIKE);
    let at_most = filter.stats().memory_usage;
    remove_all(&filter, 1_000..SPIKE);
    assert_eq!((filter.len(), filter.stats().memory_usage), (1_000, at_most), "it shrinks when it is told to");
    filter.shrink_to(usize::MAX);
    assert_eq!(filter.stats().memory_usage, at_most, "a shrink does not let it grow");
    filter.shrink_to(50_000);
    assert!((50_000..50_500).contains(&filter.capacity()), "{filter:?}");
    let at_50_000 = filter.stats().memory_usage;
    filter.shrink_to_fit();
    assert!((1_000..1_500).contains(&filter.capacity()), "{filter:?}");
    let fresh = builder(1_000, 0.001).build().unwrap().stats().memory_usage;
    if GIVES_BACK {
        assert!(at_50_000 < at_most / 2, "{at_50_000} of {at_most}");
        // On the heap, what is less than an allocator gets from the system at once stays.
        let (held, stays) = (filter.stats().memory_usage, if has_ranges() { 0 } else { 160 << 10 });
        assert!(held <= 2 * fresh + stays, "{held} for {fresh}: {filter:?}");
    } else {
        assert_eq!(filter.stats().memory_usage, at_most, "what is not given back counts");
    }
    assert!(has_all(&filter, 0..1_000) && filter.len() == 1_000);
    let found = (ABSENT..ABSENT + 100_000).filter(|&number| filter.contains(&key(number))).count();
    assert!(found <= 100, "{found} mistakes at less than 0.1%");
    insert_all(&filter, 1_000..SPIKE);
    assert!(has_all(&filter, 0..SPIKE));
    assert_eq!(filter.stats().memory_usage, at_most, "as before");
    remove_all(&filter, 0..SPIKE);
    assert!(filter.is_empty());
}

/// The same tests where no addresses can be reserved, so that all words are on the heap.
#[test]
#[cfg_attr(not(all(target_os = "linux", not(miri))), ignore = "they are on the heap anyway")]
fn where_addresses_are_limited_a_filter_does_the_same() {
    if !is_limited() {
        run_with_limit(
            module_path!(),
            "-v 67108864",
            &[
                "a_filter_whose_keys_come_and_go_does_not_grow",
                "a_small_filter_grows_to_its_memory_limit",
                "after_a_spike_the_filter_is_as_small_as_a_fresh_one",
                "memory_grows_with_the_keys",
                "the_memory_limit_is_kept_and_named",
                "what_is_removed_is_never_another_key",
            ],
        );
    }
}

/// A smaller table has fewer slots in a bucket, so there is no room for so many copies of a key.
#[test]
fn a_shrink_that_fails_leaves_everything() {
    const KEYS: u64 = 300;
    let filter = builder(1000, 0.01).max_capacity(20_000).build().unwrap();
    filter.reserve(20_000).unwrap();
    insert_all(&filter, 0..KEYS);
    let copies = (0..).find(|_| filter.insert(&key(0)).is_err()).unwrap() + 1;
    assert!(copies > 4, "{copies}");
    let (len, mut capacity) = (filter.len(), filter.capacity());
    filter.shrink_to_fit();
    assert!(filter.capacity() <= capacity);
    assert_eq!((filter.len(), filter.count(&key(0))), (len, copies));
    assert!(has_all(&filter, 0..KEYS));
    // Now it shrinks.
    (1..copies).for_each(|_| assert!(filter.remove(&key(0))));
    capacity = filter.capacity();
    filter.shrink_to_fit();
    assert!(filter.capacity() < capacity && filter.capacity() < 2_500, "{filter:?}");
    remove_all(&filter, 0..KEYS);
    assert!(filter.is_empty());
}

#[test]
fn the_largest_capacity_is_a_limit_that_the_error_names() {
    for (capacity, most) in [(0, 500), (1000, 20_000), (3000, 3000)] {
        let filter = builder(capacity, 0.01).max_capacity(most).build().unwrap();
        let max_capacity = filter.max_capacity();
        assert!(max_capacity >= most && max_capacity < 4 * most.max(100), "{max_capacity} for {most}");
        insert_all(&filter, 0..max_capacity as u64);
        assert!(filter.capacity() + SLACK >= max_capacity, "{filter:?}");
        // It takes more, as long as there is room.
        let held = (max_capacity as u64..).find(|&number| filter.insert(&key(number)).is_err()).unwrap();
        let error = filter.insert(&key(held)).unwrap_err();
        let GrowableInsertError::MaxCapacity { len, max_capacity: named, .. } = error else { panic!("{error:?}") };
        assert_eq!((len as u64, named, filter.capacity()), (held, max_capacity, max_capacity));
        let text = error.to_string();
        assert!(text.contains(&held.to_string()) && text.contains(&max_capacity.to_string()), "{text}");
        assert_eq!(filter.len() as u64, held);
        assert!(has_all(&filter, 0..held) && filter.plan().max_false_positive_rate <= 0.01);
        let refused = filter.stats().inserts_failed;
        assert_eq!(refused, 2, "both refusals count");
        remove_all(&filter, 0..held / 2);
        insert_all(&filter, held..held + held / 3);
        assert!(has_all(&filter, held / 2..held + held / 3));
        let error = filter.reserve(max_capacity).unwrap_err();
        assert!(matches!(error, ReserveError::CapacityTooLarge { largest, .. } if largest == max_capacity), "{error}");
    }
}

/// At doublings, and at three sizes between two of them, where buckets are stored in two ways.
#[test]
#[cfg_attr(miri, ignore = "statistics need many keys")]
fn the_rate_holds_at_every_size() {
    for rate in [0.5, 0.2, 0.03, 0.002, 0.001] {
        let filter = builder(1000, rate).max_capacity(150_000).build().unwrap();
        let most = filter.max_capacity() as u64;
        let between = [10, 12, 14, 20, 24, 28].map(|part| most * part / 32);
        for keys in [900, 10_000].into_iter().chain(between).chain([most, 10_000]) {
            (filter.len() as u64..keys).for_each(|number| filter.insert(&key(number)).unwrap());
            remove_all(&filter, keys..filter.len() as u64);
            filter.shrink_to_fit();
            // As many as the table is made for.
            (keys..filter.capacity() as u64).for_each(|number| filter.insert(&key(number)).unwrap());
            assert!(has_all(&filter, 0..keys));
            const LOOKUPS: u64 = 400_000;
            let found = (ABSENT..ABSENT + LOOKUPS).filter(|&number| filter.contains(&key(number))).count() as f64;
            let expected = filter.stats().false_positive_rate * LOOKUPS as f64;
            assert!(plausible(found, expected), "{found} for {expected}: {filter:?}");
            assert!(found <= rate * LOOKUPS as f64, "{found} for a rate of {rate}: {filter:?}");
            // A table may hold some more than it is made for: inserts look at intervals whether it is too full.
            assert!(
                filter.len() > filter.capacity()
                    || filter.stats().false_positive_rate <= filter.plan().max_false_positive_rate
            );
            assert!(
                filter.len() <= filter.capacity() + SLACK && filter.stats().false_positive_rate <= rate,
                "{filter:?}"
            );
            assert!(filter.plan().max_false_positive_rate <= rate, "{filter:?}");
        }
    }
}

/// Up to the expected keys the rate holds; beyond, it rises in proportion, and the filter says so.
#[test]
#[cfg_attr(miri, ignore = "statistics need many keys")]
fn with_expected_keys_the_rate_holds_up_to_as_many_and_rises_in_proportion() {
    const EXPECTED: u64 = 50_000;
    for (rate, slots) in [(0.03, 6), (0.001, 5), (1e-5, 3)] {
        let filter = builder(1000, rate).expected_keys(EXPECTED as usize).build().unwrap();
        insert_all(&filter, 0..EXPECTED);
        let stats = filter.stats();
        assert!(filter.plan().layout.slots_per_bucket >= slots, "{filter:?}");
        // Half of the rate at least: no bit more than it needs is spent on it.
        assert!((rate / 2.5..=rate).contains(&stats.false_positive_rate) || rate > 0.02, "{stats:?}");
        assert!(filter.plan().max_false_positive_rate <= rate, "{filter:?}");
        for times in [1, 3, 8] {
            insert_all(&filter, filter.len() as u64..times * EXPECTED);
            assert!(has_all(&filter, 0..times * EXPECTED));
            let rate_now = filter.stats().false_positive_rate;
            let in_proportion = stats.false_positive_rate * times as f64;
            // Two mistakes about one key count once.
            assert!((in_proportion * 0.88..=in_proportion * 1.01).contains(&rate_now), "{rate_now}, {in_proportion}");
            let planned = filter.plan().false_positive_rate_with(filter.len());
            assert!((planned - rate_now).abs() < 1e-9, "{planned}, {rate_now}");
            const LOOKUPS: u64 = 400_000;
            let found = (ABSENT..ABSENT + LOOKUPS).filter(|&number| filter.contains(&key(number))).count() as f64;
            assert!(plausible(found, rate_now * LOOKUPS as f64), "{found} for {rate_now}: {filter:?}");
        }
        // Copies of the filter have the setting, and so have views and snapshots: what determines them is the layout.
        let copy = filter.empty_like().unwrap();
        assert_eq!(
            (copy.max_capacity(), copy.plan().max_capacity),
            (filter.max_capacity(), filter.plan().max_capacity)
        );
        copy.absorb(&filter).unwrap();
        assert_eq!(copy.digest().unwrap(), filter.digest().unwrap());
        remove_all(&filter, EXPECTED..8 * EXPECTED);
        filter.shrink_to_fit();
        assert!(filter.stats().false_positive_rate <= rate && has_all(&filter, 0..EXPECTED));
    }
}

#[test]
fn expected_keys_lie_between_the_capacity_and_the_largest() {
    let invalid = |builder: GrowableBuilder<_, _>, expected: usize| {
        let error = builder.expected_keys(expected).build().unwrap_err();
        assert!(matches!(error, BuildError::InvalidExpectedKeys { .. }), "{error:?}");
        assert!(error.to_string().contains(&expected.to_string()), "{error}");
        error.to_string()
    };
    assert!(invalid(builder(1000, 0.01), 999).contains("capacity of 1000"));
    assert!(invalid(builder(10, 0.01).max_capacity(5000), 5001).contains("max_capacity of 5000"));
    let filter = builder(1000, 0.01).expected_keys(1000).max_capacity(1000).build().unwrap();
    assert!(filter.max_capacity() >= 1000);
    // Without a capacity, the filter begins with no more than it is expected to hold.
    let small = GrowableCuckooFilter::<u64>::builder().expected_keys(30).build().unwrap();
    assert!(small.capacity() < 1000, "{small:?}");
    // Both can be had, at the price of bits.
    let far = builder(1000, 0.001).expected_keys(1000).max_capacity(100_000_000).build().unwrap();
    assert!(far.max_capacity() >= 100_000_000);
}

/// The capacity at a size that is not the largest, with this load.
fn capacity_at(buckets: usize, load: f64) -> usize {
    let filter = builder(0, 0.001).load_while_growing(load).build().unwrap();
    while filter.plan().layout.buckets < buckets {
        filter.reserve(filter.capacity() + 1 - filter.len()).unwrap();
    }
    assert_eq!(filter.plan().layout.buckets, buckets);
    filter.capacity()
}

#[test]
fn a_filter_grows_at_the_load_that_was_asked_for() {
    // A small table leaves some slots free beside that.
    let of_all = capacity_at(1 << 16, 0.85) as f64 / 0.85;
    for load in [0.70, 0.75, 0.85, 0.95] {
        let ratio = capacity_at(1 << 16, load) as f64 / of_all;
        assert!((ratio - load).abs() < 0.003, "{ratio} with {load}");
        let filter = builder(0, 0.001).load_while_growing(load).max_capacity(500_000).build().unwrap();
        insert_all(&filter, 0..50_000);
        assert!(filter.len() <= filter.capacity() + SLACK, "{filter:?}");
        assert!(filter.len() as f64 > 0.95 * filter.capacity() as f64, "it is no larger than that: {filter:?}");
    }
    assert_eq!(capacity_at(1 << 12, 0.85), of_buckets(1 << 12).capacity(), "the default");
}

/// A filter with the default load that has as many buckets.
fn of_buckets(buckets: usize) -> Filter {
    let filter = builder(0, 0.001).build().unwrap();
    while filter.plan().layout.buckets < buckets {
        filter.reserve(filter.capacity() + 1 - filter.len()).unwrap();
    }
    filter
}

#[test]
fn a_load_that_is_too_low_or_too_high_is_an_error_that_names_the_limits() {
    for (load, given) in [
        (0.0, "0"),
        (0.699_999, "0.699999"),
        (0.950_001, "0.950001"),
        (1.0, "1"),
        (-0.8, "-0.8"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "infinity"),
    ] {
        let builder = builder(1000, 0.01).load_while_growing(load);
        let [built, planned] = [builder.clone().build().map(drop), builder.plan().map(drop)].map(Result::unwrap_err);
        let BuildError::InvalidLoadWhileGrowing { least, most, .. } = built else { panic!("{built:?}") };
        assert_eq!((least, most), (0.70, 0.95));
        for text in [built, planned].map(|error| error.to_string()) {
            assert!(text.contains(&format!(" was {given}; it must be from 0.7 to 0.95 ")), "{text}");
        }
    }
}

/// The largest size, and from how many keys on inserts fail there, are the same with every load.
#[test]
fn the_load_makes_no_difference_at_the_largest_size() {
    let fills = |load| {
        let filter = builder(1000, 0.001).load_while_growing(load).max_capacity(20_000).build().unwrap();
        let held = (0..).find(|&number| filter.insert(&key(number)).is_err()).unwrap();
        (filter.max_capacity(), filter.capacity(), filter.plan().layout, held)
    };
    let (max_capacity, capacity, layout, held) = fills(0.85);
    assert!(capacity == max_capacity && held >= capacity as u64);
    for load in [0.70, 0.95] {
        let (its_max_capacity, its_capacity, its_layout, its_held) = fills(load);
        assert_eq!((its_max_capacity, its_capacity, its_layout), (max_capacity, capacity, layout));
        assert!(its_held >= capacity as u64, "{its_held} with {load}");
    }
}

/// Its plan says the load, and so do copies, snapshots and their plans.
#[test]
fn a_copy_has_the_load() {
    for load in [0.70, 0.85, 0.9, 0.95] {
        let builder = builder(1000, 0.001).load_while_growing(load);
        let (plan, filter) = (builder.plan().unwrap(), builder.build().unwrap());
        for plan in [plan, filter.plan(), filter.empty_like().unwrap().plan()] {
            assert_eq!(plan.load_while_growing, Some(load));
            assert!(plan.to_string().ends_with(&format!("load {load} while it grows")), "{plan}");
        }
        let copy = filter.empty_like().unwrap();
        for filter in [&filter, &copy] {
            insert_all(filter, 0..30_000);
        }
        assert_eq!(copy.capacity(), filter.capacity());
    }
}

/// Random inserts, removals and shrinks, compared with a map that knows what is in. The rate is so high that many keys
/// are of one class.
///
/// If a class were another one at another size, present keys would be missed.
#[test]
fn what_is_removed_is_never_another_key() {
    const STEPS: u64 = if cfg!(miri) { 500 } else { 60_000 };
    for (seed, rate) in [(1, 0.5), (2, 0.1), (3, 0.03), (4, 0.002)] {
        let mut random = SmallRng::seed_from_u64(seed);
        let filter = builder(100, rate).max_capacity(20_000).build().unwrap();
        let mut present: Vec<u64> = Vec::new();
        let mut copies: HashMap<u64, usize> = HashMap::new();
        for step in 0..STEPS {
            // The filter fills, empties to a tenth, and fills again.
            let filling = (step * 5 / STEPS).is_multiple_of(2);
            if random.random_range(0..10) < if filling { 8 } else { 1 } || present.is_empty() {
                let number = random.random_range(0..STEPS);
                // There are rarely more keys that look alike than a table has room for.
                match filter.insert(&key(number)) {
                    Ok(()) => {
                        present.push(number);
                        *copies.entry(number).or_default() += 1;
                    }
                    Err(error) => assert!(matches!(error, GrowableInsertError::TooManyCopies { .. }), "{error}"),
                }
            } else {
                let number = present.swap_remove(random.random_range(0..present.len()));
                remove_all(&filter, [number]);
                *copies.get_mut(&number).unwrap() -= 1;
            }
            if step % 1000 == 0 {
                filter.shrink_to_fit();
                assert!(has_all(&filter, present.iter().copied()), "a present key was missed");
            }
        }
        assert_eq!(filter.len(), present.len());
        assert!(copies.iter().all(|(&number, &copies)| filter.count(&key(number)) >= copies), "miscounted");
        remove_all(&filter, present);
        assert!(filter.is_empty() && (0..STEPS).all(|number| !filter.contains(&key(number))));
    }
}

#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_filter_whose_keys_come_and_go_does_not_grow() {
    for keys in [250u64, 2_500, 6_000] {
        let filter = builder(1000, 0.001).build().unwrap();
        insert_all(&filter, 0..keys);
        // Not every insert looks whether the filter has to grow. So the last ones may not have seen that it has.
        filter.reserve(1).unwrap();
        let size = |filter: &Filter| (filter.stats().memory_usage, filter.capacity());
        let before = size(&filter);
        for round in 0..100 {
            for number in round * keys..(round + 1) * keys {
                remove_all(&filter, [number]);
                insert_all(&filter, [number + keys]);
            }
            // Empties the filter and fills it again, from the other end.
            if round % 10 == 9 {
                let present = (round + 1) * keys..(round + 2) * keys;
                remove_all(&filter, present.clone().rev());
                insert_all(&filter, present);
            }
        }
        assert_eq!((filter.len(), size(&filter)), (keys as usize, before), "{filter:?}");
    }
}

/// What a filter takes at first, and each time that it takes more.
fn sizes(filter: &Filter, count: usize) -> Vec<usize> {
    let mut sizes = vec![filter.stats().memory_usage];
    for number in 0.. {
        filter.insert(&key(number)).unwrap();
        if *sizes.last().unwrap() < filter.stats().memory_usage {
            sizes.push(filter.stats().memory_usage);
        }
        if sizes.len() == count {
            break;
        }
    }
    sizes
}

#[test]
fn the_memory_limit_is_kept_and_named() {
    let sizes = sizes(&builder(1000, 0.001).build().unwrap(), 3);
    for (limit, grown) in [(sizes[1] - 1, 0), (sizes[1], 1), (sizes[2] - 1, 1), (sizes[2], 2)] {
        let filter = builder(1000, 0.001).memory_limit(limit).build().unwrap();
        let (held, error) = (0..).find_map(|number| Some((number, filter.insert(&key(number)).err()?))).unwrap();
        assert_eq!(filter.stats().memory_usage, sizes[grown], "{filter:?}");
        let GrowableInsertError::MemoryLimit { len, capacity: full, needed, limit: named, .. } = error else {
            panic!("{error:?}")
        };
        assert_eq!((len as u64, full as u64, named), (held, held, limit));
        assert!(needed > limit && error.to_string().contains(&format!("{needed} bytes")), "{error}");
        assert!(grown == 2 || needed == sizes[grown + 1], "{needed}");
        let capacity = filter.capacity();
        assert_eq!([filter.len(), filter.max_capacity(), filter.plan().max_capacity.unwrap()], [capacity; 3]);
        // Nothing is lost, and after a removal another key goes in.
        assert!(has_all(&filter, 0..held));
        let added = filter.insert_if_absent(&key(held));
        assert!(matches!(added, Ok(false) | Err(GrowableInsertError::MemoryLimit { .. })), "{added:?}");
        remove_all(&filter, 0..held / 2);
        insert_all(&filter, held..held + held / 3);
        assert_eq!((filter.stats().memory_usage, filter.capacity()), (sizes[grown], capacity), "{filter:?}");
    }
    let error = builder(1000, 0.001).memory_limit(sizes[0] - 1).build().unwrap_err();
    assert!(
        matches!(error, BuildError::MemoryLimit { needed, limit, .. } if (needed, limit) == (sizes[0], sizes[0] - 1)),
        "{error:?}"
    );
    assert!(error.to_string().contains(&format!("{} bytes", sizes[0])), "{error}");
    assert!(builder(1000, 0.001).memory_limit(sizes[0]).build().is_ok());
}

/// Also where the first words come that are not in the first page.
#[test]
fn a_small_filter_grows_to_its_memory_limit() {
    let sizes = sizes(&builder(100, 0.001).build().unwrap(), 8);
    for limit in sizes {
        let filter = builder(100, 0.001).memory_limit(limit).build().unwrap();
        let error = (0..).find_map(|number| filter.insert(&key(number)).err()).unwrap();
        assert!(matches!(error, GrowableInsertError::MemoryLimit { .. }), "{error}");
        assert_eq!(filter.stats().memory_usage, limit, "{filter:?}");
    }
}

/// The figures in the documentation of `GrowableCuckooFilter`, in bits a key.
#[test]
#[cfg_attr(miri, ignore = "needs many keys")]
fn documented_memory() {
    let bits = |filter: &Filter| filter.stats().memory_usage as f64 * 8.0 / filter.len() as f64;
    for (name, builder, most) in [
        ("by default", builder(1000, 0.001), [32.0, 30.5]),
        ("up to 20 million keys", builder(1000, 0.001).max_capacity(20_000_000), [32.0, 26.0]),
        ("a million expected", builder(1000, 0.001).expected_keys(1_000_000), [23.0, 17.5]),
    ] {
        let filter = builder.build().unwrap();
        // The least and the most from a hundred thousand keys on, and from a million on.
        let mut range = [[f64::MAX, 0.0]; 2];
        for number in 0..2_500_000 {
            filter.insert(&key(number)).unwrap();
            for (range, from) in range.iter_mut().zip([100_000, 1_000_000]) {
                // Often enough, beside the 64 keys or so between two splits.
                if number >= from && number % 16 == 0 {
                    *range = [range[0].min(bits(&filter)), range[1].max(bits(&filter))];
                }
            }
        }
        println!(
            "{name}: bits a key, least and most, from 100,000 keys on and from a million on: {range:.2?}; {filter:?}"
        );
        assert!(range.iter().zip(most).all(|(range, most)| range[1] <= most), "more than is documented");
    }
}

/// A page of the system's memory, in bytes, or more.
const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// The memory never jumps: an insert adds a page at most. (On the heap, two more with the first bucket of a large segment.)
#[test]
#[cfg_attr(miri, ignore = "needs many keys")]
fn memory_grows_with_the_keys() {
    let [jump, left] = if has_ranges() { [PAGE; 2] } else { [3 * PAGE, 8 * PAGE] };
    for (rate, encoding) in [(0.001, None), (0.03, None), (0.001, Some(Encoding::Plain)), (1e-6, None)] {
        let builder = builder(100, rate).max_capacity(2_000_000);
        let filter = encoding.map_or(builder.clone(), |encoding| builder.encoding(encoding)).build().unwrap();
        insert_all(&filter, 0..100_000);
        let mut grown = vec![filter.stats().memory_usage];
        for number in 100_000..400_000 {
            filter.insert(&key(number)).unwrap();
            let (before, now) = (grown[grown.len() - 1], filter.stats().memory_usage);
            assert!(now - before <= jump, "{before}, {now} with {number} keys: {filter:?}");
            grown.push(now);
        }
        // And so it shrinks.
        for keys in (0..10).rev().map(|nth| 100_000 + 30_000 * nth) {
            remove_all(&filter, keys..filter.len() as u64);
            filter.shrink_to_fit();
            let (now, then) = (filter.stats().memory_usage, grown[keys as usize - 100_000]);
            assert!(!GIVES_BACK || now <= then + left, "{now} with {keys} keys, {then} when it grew: {filter:?}");
        }
    }
}

fn buckets(filter: &Filter) -> usize {
    filter.plan().layout.buckets
}

/// An insert, which splits no more buckets than documented, whatever it finds. A failed one leaves the keys as they are.
fn insert_and_watch(filter: &Filter, number: u64) -> Result<(), GrowableInsertError> {
    const MOST_SPLIT: usize = 128;
    let before = (buckets(filter), filter.len(), filter.count(&key(number)));
    let result = filter.insert(&key(number));
    let split = buckets(filter) - before.0;
    assert!(split <= MOST_SPLIT, "{split} buckets were split by one insert, which was {result:?}");
    let added = usize::from(result.is_ok());
    assert_eq!((filter.len(), filter.count(&key(number))), (before.1 + added, before.2 + added));
    result
}

/// Inserts copies of this key until that fails. Returns how many there are then.
fn fill_with(filter: &Filter, number: u64) -> usize {
    let error = (0..).find_map(|_| insert_and_watch(filter, number).err()).unwrap();
    let GrowableInsertError::TooManyCopies { copies, limit, .. } = error else { panic!("{error}: {filter:?}") };
    let slots = filter.plan().layout.slots_per_bucket;
    assert!((slots..=slots + 1).contains(&limit), "half of the slots of two buckets: {limit} of 2 * {slots}");
    assert_eq!((filter.count(&key(number)), copies), (limit, limit), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("holds {copies} copies")) && text.contains("reserve"), "{text}");
    copies
}

/// A small table has two or three slots in a bucket, and the largest one five.
#[test]
fn copies_of_one_key_do_not_make_the_filter_grow() {
    let filter = builder(100, 0.001).max_capacity(10_000).build().unwrap();
    let fill = || {
        let capacity = filter.capacity();
        let most = fill_with(&filter, 1);
        assert_eq!(filter.capacity(), capacity);
        most
    };
    let most = fill();
    assert!((2..=3).contains(&most), "half of two buckets of two or three slots: {most}");
    // The same when the table holds the keys that it is meant for.
    insert_all(&filter, 2..(filter.capacity() - most) as u64);
    assert_eq!(fill(), most);
    // There is room for more in a larger table.
    filter.reserve(filter.max_capacity() - filter.len()).unwrap();
    assert_eq!(fill(), 5);
    assert!((0..5).all(|_| filter.remove(&key(1))));
    assert_eq!(filter.count(&key(1)), 0);
}

/// Its buckets have fewer slots, so a key may have fewer copies there: a filter does not become as small as that.
#[test]
fn a_shrink_leaves_no_key_more_copies_than_it_may_have() {
    for number in 0..if cfg!(miri) { 1 } else { 20 } {
        let filter = builder(100, 0.001).max_capacity(10_000).build().unwrap();
        let smallest = filter.capacity();
        filter.reserve(filter.max_capacity()).unwrap();
        let mut copies = fill_with(&filter, number);
        while copies > 0 {
            filter.shrink_to_fit();
            assert!(fill_with(&filter, number) >= copies, "there may be as many as there are: {filter:?}");
            copies -= 1;
            remove_all(&filter, vec![number; filter.count(&key(number)) - copies]);
        }
        assert_eq!(filter.capacity(), smallest);
    }
}

/// Some keys are inserted until that fails. They take up half of their two buckets. So others have room there, and the
/// table grows for what it holds, and for nothing else.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn copies_of_some_keys_take_no_room_from_others() {
    for (keys, hot) in [(20_000, 1), (20_000, 100), (20_000, 2_000), (200_000, 300), (200_000, 20_000)] {
        let filter = builder(1000, 0.001).build().unwrap();
        insert_all(&filter, 0..keys);
        let before = buckets(&filter) as f64;
        (ABSENT..ABSENT + hot).for_each(|number| _ = fill_with(&filter, number));
        let (items, grown) = (filter.len() as f64 / keys as f64, buckets(&filter) as f64 / before);
        assert!(grown < 1.1 * items, "{grown} times as many buckets for {items} times as many items");
        for number in keys..keys + keys / 10 {
            assert_eq!(insert_and_watch(&filter, number), Ok(()), "an ordinary key, after {hot} of {keys}");
        }
    }
}

/// As many copies of each key as it may have: half as many slots may be taken as with distinct keys, so the table grows
/// sooner. Searches become long before there is no room: with twenty hashers, 19 to 48 of the inserts failed, and 396 to 427
/// if the filter did not grow after long searches.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn if_each_key_has_as_many_copies_as_it_may_hardly_an_insert_fails() {
    let filter = builder(0, 0.001).build().unwrap();
    let inserts = (0..100_000).flat_map(|number| [number; 2]);
    let errors: Vec<_> = inserts.filter_map(|number| insert_and_watch(&filter, number).err()).collect();
    assert!(errors.len() <= 60, "{}: {:?}", errors.len(), errors[0]);
    assert!(filter.len() * 5 > filter.plan().slots * 2, "it grows for what it holds: {filter:?}");
}

/// Inserts fail that are 1.8 times as many as there may be of these keys.
#[test]
#[cfg(feature = "stable-hash")]
fn a_failed_insert_changes_no_key_and_splits_some_buckets_at_most() {
    use concurrent_cuckoo_filter::StableHashBuilder;

    let hasher = StableHashBuilder::with_key([7; 16]);
    let filter = GrowableCuckooFilter::<u64, _>::builder_with_hasher(hasher).capacity(0).build().unwrap();
    let figures = || (filter.plan().layout.buckets, filter.len(), filter.capacity(), filter.digest().unwrap());
    let mut failed = 0;
    for n in 0u64..1_000 {
        let before = figures();
        let Err(error) = filter.insert(&(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 255)) else { continue };
        failed += 1;
        let after = figures();
        assert_eq!((after.1, after.3), (before.1, before.3), "the keys are the same");
        assert!(after.0 <= before.0 + 128, "{n}: {error}; {} buckets instead of {}", after.0, before.0);
        if matches!(error, GrowableInsertError::TooManyCopies { .. }) {
            assert!(after.0 == before.0 || before.1 > before.2, "only for keys that came before: {n}");
        }
    }
    assert!(failed > 400 && filter.len() <= 2 * 256, "{failed}, {filter:?}");
}

#[test]
fn clear_empties_the_filter_at_any_size() {
    let filter = builder(100, 0.001).build().unwrap();
    let mut numbers = 0u64..;
    for least in [0, 100, 1000, 5000] {
        let (first, capacity) = (numbers.start, filter.capacity());
        while filter.len() < least || filter.capacity() == capacity {
            insert_all(&filter, numbers.next());
        }
        let (capacity, end) = (filter.capacity(), numbers.start);
        filter.clear();
        assert!(filter.is_empty() && (first..end).all(|number| !filter.contains(&key(number))));
        assert_eq!(filter.capacity(), capacity, "it stays as large");
        // So many keys have just been in.
        let len = capacity as u64;
        insert_all(&filter, end..end + len);
        assert_eq!((filter.len() as u64, filter.capacity()), (len, capacity));
        numbers = end + len..;
        filter.clear();
    }
    filter.shrink_to_fit();
    assert!(filter.capacity() < 500, "{filter:?}");
}

#[test]
fn nothing_need_be_given_and_the_lowest_rate_may_be() {
    let filter = GrowableCuckooFilter::<u64>::builder().build().expect("no capacity need be given");
    assert!(filter.capacity() >= 1000 && filter.max_capacity() >= 60_000_000);
    let error = builder(1, 1e-12).build().unwrap_err();
    let BuildError::RateTooLow { rate, lowest, .. } = error else { panic!("{error:?}") };
    assert!(rate == 1e-12 && lowest < 2.5e-7 && error.to_string().contains("2.5e-7"), "{error}");
    let filter = builder(1, lowest).build().expect("the lowest rate can be asked for");
    insert_all(&filter, 0..3000);
    assert!(filter.plan().max_false_positive_rate <= lowest);
}

/// Under many hashers: by chance, a search for room is long shortly before the room is used up.
#[test]
fn room_that_was_reserved_is_there_and_no_insert_has_to_grow() {
    let cases = [0, 1, 90, 1000].into_iter().zip(0..).chain((0..40).map(|seed| (50_000, seed)));
    for (additional, seed) in cases.take(if cfg!(miri) { 4 } else { 44 }) {
        let filter = GrowableCuckooFilter::<u64, _>::with_capacity_and_hasher(100, seeded(seed));
        (0..50).for_each(|key| filter.insert(&key).unwrap());
        filter.reserve(additional).unwrap();
        assert!(filter.capacity() >= 50 + additional);
        let size = || (filter.stats().memory_usage, filter.capacity());
        let before = size();
        filter.reserve(additional).unwrap();
        filter.reserve(filter.capacity() - 50).unwrap();
        assert_eq!(size(), before, "there is room already");
        (50..50 + additional as u64).for_each(|key| filter.insert(&key).unwrap());
        assert_eq!((size(), filter.len()), (before, 50 + additional), "no insert has grown it: {seed}");
        assert!((0..50 + additional as u64).all(|key| filter.contains(&key)));
        assert!(filter.plan().max_false_positive_rate <= 0.001);
    }
}

/// Up to the last key that it is made for, at many sizes.
#[test]
fn a_filter_does_not_grow_before_it_holds_what_it_is_made_for() {
    const MOST: usize = if cfg!(miri) { 400 } else { 8_000 };
    let filter = builder(100, 0.001).build().unwrap();
    while filter.capacity() < MOST {
        let capacity = filter.capacity();
        insert_all(&filter, 0..capacity as u64);
        assert_eq!((filter.len(), filter.capacity()), (capacity, capacity));
        filter.clear();
        filter.reserve(capacity + 1).unwrap();
        assert!(filter.capacity() > capacity);
    }
}

/// A copy goes to the emptier of its buckets, whichever operation adds it: so later ones find room without relocations.
#[test]
#[cfg_attr(miri, ignore = "too many keys")]
fn both_ways_to_insert_need_as_few_relocations() {
    let relocations = |insert: fn(&Filter, &Raw)| {
        let filter = builder(20_000, 0.001).build().unwrap();
        (0..filter.capacity() as u64).for_each(|number| insert(&filter, &key(number)));
        filter.stats().relocations as f64
    };
    let one = relocations(|filter, key| filter.insert(key).unwrap());
    let other = relocations(|filter, key| _ = filter.insert_if_absent(key).unwrap());
    assert!(other < 1.1 * one, "{other} relocations instead of {one}");
}

/// Where the filter may not grow, and room is hard to find.
#[test]
fn one_search_carries_out_a_path_of_several_relocations() {
    let filter = builder(100, 0.001).max_capacity(200_000).build().unwrap();
    let failed = (0..).find(|&number| filter.insert(&key(number)).is_err()).unwrap();
    let stats = filter.stats();
    assert!(stats.longest_path > 2 && stats.relocations > failed / 10, "{stats:?}");
}

/// Not even where the filter is full, and may not grow.
#[test]
fn a_reserve_of_nothing_does_nothing() {
    for most in [100, 100_000] {
        let filter = builder(100, 0.001).max_capacity(most).build().unwrap();
        _ = (0..1000).try_for_each(|number| filter.insert(&key(number)));
        assert_eq!(filter.len() == filter.max_capacity(), most == 100);
        let before = (filter.stats().memory_usage, filter.capacity());
        assert_eq!(filter.reserve(0), Ok(()));
        assert_eq!((filter.stats().memory_usage, filter.capacity()), before);
    }
}

/// A limit that leaves no memory to grow does not matter where there is no need to.
#[test]
fn room_that_is_there_is_reserved_whatever_the_memory_limit() {
    let needed = builder(100, 0.001).build().unwrap().stats().memory_usage;
    let filter = builder(100, 0.001).memory_limit(needed).build().unwrap();
    assert_eq!(filter.reserve(filter.capacity()), Ok(()));
    let error = filter.reserve(filter.capacity() + 1).unwrap_err();
    assert!(matches!(error, ReserveError::MemoryLimit { limit, .. } if limit == needed), "{error}");
    assert_eq!(filter.stats().memory_usage, needed);
}

#[test]
fn room_that_cannot_be_reserved_is_an_error_and_no_change() {
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).memory_limit(20_000).build().unwrap();
    let figures = |filter: &GrowableCuckooFilter<u64>| (filter.stats().memory_usage, filter.capacity());
    let before = figures(&filter);
    let error = filter.reserve(100_000).unwrap_err();
    let ReserveError::MemoryLimit { needed, limit, .. } = error else { panic!("{error:?}") };
    assert!(needed > 100_000 && limit == 20_000);
    assert!(error.to_string().contains(&needed.to_string()) && error.to_string().contains("20000"), "{error}");
    assert_eq!(figures(&filter), before);
    // A caller who follows the advice and raises the limit has enough room.
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(100).memory_limit(needed).build().unwrap();
    filter.reserve(100_000).unwrap();
    assert!(filter.stats().memory_usage <= needed && filter.capacity() >= 100_000);

    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    let before = figures(&filter);
    let error = filter.reserve(usize::MAX).unwrap_err();
    assert!(matches!(error, ReserveError::CapacityTooLarge { additional: usize::MAX, .. }), "{error:?}");
    assert_eq!(figures(&filter), before);
}
