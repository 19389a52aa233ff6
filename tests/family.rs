//! What all filters share: the constructors, the trait, batches, and what errors and capacities say.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::panic::{self, Location};
use std::sync::{Arc, Mutex};
use std::thread;

use concurrent_cuckoo_filter::{
    BuildError, Builder, ConcurrentCuckooFilter, ConcurrentCuckooMaplet, DefaultHashBuilder, Encoding,
    ExpiringCuckooFilter, FilterKind, GrowableBuilder, GrowableCuckooFilter, InsertError, MembershipFilter,
    RotatingBuilder, RotatingCuckooFilter,
};

/// One program for all of them.
fn use_it(filter: &(impl MembershipFilter<u64> + Sync)) {
    let name = format!("{filter:?}");
    assert!(filter.is_empty() && !filter.contains(&1), "{name}");
    assert_eq!(filter.insert_if_absent(&1), Ok(true), "{name}");
    assert_eq!(filter.insert_if_absent(&1), Ok(false), "{name}");
    let keys: Vec<u64> = (1000..2000).collect();
    assert_eq!(filter.insert_batch(&keys), Ok(1000), "{name}");
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut found = Vec::new();
                filter.contains_batch(&keys, &mut found);
                assert!(found.len() == 1000 && found.into_iter().all(|found| found), "{name}");
            });
        }
    });
    assert!(!filter.is_empty() && filter.len() == 1001, "{name}");
    filter.record_negatives(99);
    filter.record_false_positives(1);
    let stats = filter.stats();
    assert_eq!((stats.len, stats.observed_false_positive_rate()), (1001, Some(0.01)), "{name}");
    filter.clear();
    assert!(filter.is_empty(), "{name}");
}

#[test]
fn one_function_uses_all_filters() {
    // With so few false positives that none occurs.
    use_it(&ConcurrentCuckooFilter::builder().capacity(2000).false_positive_rate(1e-7).build().unwrap());
    use_it(&GrowableCuckooFilter::builder().capacity(10).false_positive_rate(1e-7).build().unwrap());
    use_it(&RotatingCuckooFilter::builder().capacity(8000).false_positive_rate(1e-7).build().unwrap());
}

#[test]
fn a_filter_can_be_chosen_at_run_time() {
    let filters: [Arc<dyn MembershipFilter<str> + Send + Sync>; 3] = [
        Arc::new(ConcurrentCuckooFilter::with_capacity(10)),
        Arc::new(GrowableCuckooFilter::with_capacity(10)),
        Arc::new(RotatingCuckooFilter::with_capacity(10)),
    ];
    for filter in filters {
        let writer = Arc::clone(&filter);
        thread::spawn(move || writer.insert("a")).join().unwrap().unwrap();
        assert!(filter.contains("a") && filter.len() == 1, "{filter:?}");
    }
}

/// For logs: the type, and how full it is.
#[test]
fn debug_output_names_the_type_and_the_number_of_keys() {
    let maplet = ConcurrentCuckooMaplet::<u64>::builder().capacity(10).value_bits(4).build().unwrap();
    maplet.insert(&1, 2).unwrap();
    let expiring = ExpiringCuckooFilter::<u64>::builder().capacity(10).lifetime_in_ticks(3).build().unwrap();
    expiring.advance_to(1);
    expiring.insert_until(&1, 2).unwrap();
    let (one, growable, rotating) = (
        ConcurrentCuckooFilter::<u64>::with_capacity(10),
        GrowableCuckooFilter::<u64>::with_capacity(10),
        RotatingCuckooFilter::<u64>::with_capacity(10),
    );
    [&one as &dyn MembershipFilter<u64>, &growable, &rotating].iter().for_each(|filter| filter.insert(&1).unwrap());
    for (shown, name) in [
        (format!("{one:?}"), "ConcurrentCuckooFilter {"),
        (format!("{growable:?}"), "GrowableCuckooFilter {"),
        (format!("{rotating:?}"), "RotatingCuckooFilter {"),
        (format!("{maplet:?}"), "ConcurrentCuckooMaplet {"),
        (format!("{expiring:?}"), "ExpiringCuckooFilter {"),
    ] {
        assert!(shown.starts_with(name) && shown.contains("len: 1,"), "{shown}");
    }
}

/// Makes the same calls on all three types, for methods that are not in the trait.
macro_rules! of_each {
    (|$Filter:ident| $body:block) => {{
        {
            use ConcurrentCuckooFilter as $Filter;
            $body
        }
        {
            use GrowableCuckooFilter as $Filter;
            $body
        }
        {
            use RotatingCuckooFilter as $Filter;
            $body
        }
    }};
}

#[test]
fn every_way_to_construct_a_filter_leads_to_one() {
    type Fixed = BuildHasherDefault<DefaultHasher>;
    of_each!(|Filter| {
        type Named = Filter<str, RandomState>;
        let hasher = RandomState::new();
        let hash = hasher.hash_one("a");
        let filters = [
            Named::with_capacity_and_hasher(100, hasher.clone()),
            Named::builder_with_hasher(hasher.clone()).capacity(100).build().unwrap(),
            Filter::<str>::builder().capacity(100).hasher(hasher.clone()).build().unwrap(),
        ];
        for filter in filters {
            filter.insert("a").unwrap();
            assert!(filter.contains_hash(hash) && filter.capacity() >= 100);
        }
        let _: Filter<str> = Filter::with_capacity(100);
        let _: Filter<str, DefaultHashBuilder> = Filter::builder().capacity(100).build().unwrap();
        let two = [Filter::<u64, Fixed>::with_capacity_and_hasher(10, Fixed::default())];
        assert_eq!(two[0].hash_one(&7), Fixed::default().hash_one(7u64));
    });
    let builders: (Builder<u64, Fixed>, GrowableBuilder<u64, Fixed>, RotatingBuilder<u64, Fixed>) = Default::default();
    assert_eq!(builders.0.capacity(7).build().unwrap().hash_one(&7), Fixed::default().hash_one(7u64));
    assert_eq!(builders.1.capacity(7).build().unwrap().hash_one(&7), Fixed::default().hash_one(7u64));
    assert_eq!(builders.2.capacity(7).build().unwrap().hash_one(&7), Fixed::default().hash_one(7u64));
    let growable = GrowableCuckooFilter::<u64>::default();
    (0..1000).for_each(|key| growable.insert(&key).unwrap());
    assert_eq!(growable.len(), 1000);
}

#[test]
fn a_builder_can_be_used_twice() {
    of_each!(|Filter| {
        let builder = Filter::<u64>::builder().capacity(1000).false_positive_rate(1e-4).hasher(RandomState::new());
        let one = builder.clone().build().unwrap();
        let other = builder.capacity(10).build().unwrap();
        assert_eq!(one.hash_one(&7), other.hash_one(&7), "the hasher is the same");
        assert!(one.capacity() >= 1000 && other.capacity() < 1000);
        assert!(one.max_false_positive_rate() <= 1e-4 && other.max_false_positive_rate() <= 1e-4);
    });
}

#[test]
fn all_filters_have_the_encoding_that_was_asked_for() {
    let bits_per_slot = |bytes: usize, slots: usize| bytes as f64 * 8.0 / slots as f64;
    of_each!(|Filter| {
        let of = |encoding, rate| {
            let builder = Filter::<u64>::builder().capacity(100_000).false_positive_rate(rate).encoding(encoding);
            let filter = builder.build().unwrap();
            assert!(filter.max_false_positive_rate() <= rate);
            bits_per_slot(filter.memory_usage(), filter.slots())
        };
        // Plain buckets need as much memory for the same rate, or more.
        let more = [0.005, 0.004, 1e-4].map(|rate| of(Encoding::Plain, rate) - of(Encoding::SemiSorted, rate));
        assert!(more.iter().all(|&more| more > -0.1) && more.iter().any(|&more| more > 1.0), "{more:?}");
    });
}

#[test]
fn capacity_means_one_thing() {
    of_each!(|Filter| {
        for capacity in [0, 1, 7, 100, 12_345] {
            let filter = Filter::<u64>::with_capacity(capacity);
            let stats = filter.stats();
            assert!(filter.capacity() >= capacity);
            assert_eq!((stats.capacity, stats.slots), (filter.capacity(), filter.slots()));
            assert_eq!(stats.load_factor, filter.load_factor());
        }
    });
    let rotating = RotatingCuckooFilter::<u64>::builder().capacity(1000).generations(4).build().unwrap();
    assert!((250..300).contains(&rotating.generation_capacity()), "{rotating:?}");
    assert_eq!(rotating.capacity(), 4 * rotating.generation_capacity());
    // As many keys in each generation as it is made for.
    for generation in 0..4 {
        (0..250).for_each(|key| rotating.insert(&(generation << 32 | key)).unwrap());
        rotating.rotate();
    }
    // The last call counts.
    let builder = RotatingCuckooFilter::<u64>::builder().capacity(1000).generation_capacity(1000);
    assert!(builder.clone().build().unwrap().capacity() >= 4000);
    assert!(builder.capacity(1000).build().unwrap().capacity() < 2000);
}

#[test]
fn errors_name_the_filter_that_was_used() {
    let message = |error: BuildError| error.to_string();
    let missing = message(GrowableCuckooFilter::<u64>::builder().build().unwrap_err());
    assert!(missing.contains("GrowableCuckooFilter") && missing.contains("GrowableBuilder::capacity"), "{missing}");
    let missing = message(RotatingCuckooFilter::<u64>::builder().build().unwrap_err());
    assert!(missing.contains("RotatingCuckooFilter") && missing.contains("RotatingBuilder::capacity"), "{missing}");

    of_each!(|Filter| {
        let builder = Filter::<u64>::builder().capacity(10).encoding(Encoding::SemiSorted).false_positive_rate(1e-12);
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::RateTooLow { encoding: Some(Encoding::SemiSorted), .. }), "{error:?}");
        let low = message(error);
        assert!(low.contains(stringify!(Filter)) || low.contains("CuckooFilter"), "{low}");
        assert!(
            low.contains("1e-12") && low.contains("Encoding::SemiSorted") && low.contains("plain buckets"),
            "{low}"
        );
        let low = message(Filter::<u64>::builder().capacity(10).false_positive_rate(1e-12).build().unwrap_err());
        assert!(!low.contains("Encoding"), "none was asked for: {low}");
    });

    let full = |error: InsertError| (matches!(error, InsertError::Full { .. }), error.to_string());
    let one = ConcurrentCuckooFilter::<u64>::with_capacity(10);
    let (is_full, text) = full((0..).find_map(|key| one.insert(&key).err()).unwrap());
    assert!(is_full && text.contains("the ConcurrentCuckooFilter is full") && text.contains("remove some"), "{text}");
    let rotating = RotatingCuckooFilter::<u64>::with_capacity(10);
    let (is_full, text) = full((0..).find_map(|key| rotating.insert(&key).err()).unwrap());
    assert!(is_full && text.contains("generation of the RotatingCuckooFilter"), "{text}");
    assert!(!text.contains("remove") && text.contains("rotate"), "it has no `remove`: {text}");
    let growable = GrowableCuckooFilter::<u64>::with_capacity(10);
    let error = (0..).find_map(|_| growable.insert(&7).err()).unwrap();
    assert!(matches!(error, InsertError::TooManyCopies { filter: FilterKind::Growable, .. }), "{error:?}");
    assert!(error.to_string().contains("in the newest table"), "{error}");
    let error = (0..).find_map(|_| one.insert(&7).err()).unwrap();
    assert!(error.to_string().contains("ConcurrentCuckooFilter"), "{error}");
}

#[test]
fn a_constructor_that_panics_names_the_line_that_called_it() {
    static LINE: Mutex<Option<(String, u32)>> = Mutex::new(None);
    let former = panic::take_hook();
    let of_this_test = thread::current().id();
    panic::set_hook(Box::new(move |info| {
        if thread::current().id() == of_this_test {
            *LINE.lock().unwrap() = info.location().map(|at: &Location<'_>| (at.file().to_owned(), at.line()));
        }
    }));
    let mut lines = Vec::new();
    of_each!(|Filter| {
        let line = line!() + 1;
        panic::catch_unwind(|| Filter::<u64>::with_capacity(usize::MAX)).unwrap_err();
        lines.push((LINE.lock().unwrap().take(), line));
        let line = line!() + 1;
        panic::catch_unwind(|| Filter::<u64, _>::with_capacity_and_hasher(usize::MAX, RandomState::new())).unwrap_err();
        lines.push((LINE.lock().unwrap().take(), line));
    });
    panic::set_hook(former);
    for (named, line) in lines {
        assert_eq!(named, Some((file!().to_owned(), line)));
    }
}

/// Compares batches with single operations, for sizes around their blocks and around what they prefetch.
#[test]
fn batches_answer_as_single_operations_do() {
    let sizes = || (0..70).chain([95, 96, 97, 511, 512, 513, 1024, 1500, 3000]);
    let growable = GrowableCuckooFilter::<u64>::builder().capacity(100).false_positive_rate(0.1).build().unwrap();
    assert_eq!(growable.insert_batch(&(0..5000).collect::<Vec<u64>>()), Ok(5000));
    assert!(growable.tables() > 4 && growable.len() == 5000);
    let rotating = RotatingCuckooFilter::<u64>::builder().generation_capacity(1000).false_positive_rate(0.1);
    let rotating = rotating.generations(5).build().unwrap();
    for generation in 0..5 {
        assert_eq!(
            rotating.insert_batch(&(generation * 1000..(generation + 1) * 1000).collect::<Vec<u64>>()),
            Ok(1000)
        );
        assert!(generation == 4 || rotating.rotate() > 0);
    }
    for size in sizes() {
        // Present and absent keys alternate, in all tables.
        let keys: Vec<u64> = (0..size).map(|nth: u64| nth.wrapping_mul(7919) % 10_000).collect();
        let (mut grown, mut rotated) = (vec![true], vec![true]);
        growable.contains_batch(&keys, &mut grown);
        rotating.contains_batch(&keys, &mut rotated);
        assert_eq!((grown.len(), rotated.len()), (keys.len() + 1, keys.len() + 1), "they are appended");
        for (nth, key) in keys.iter().enumerate() {
            assert_eq!(grown[nth + 1], growable.contains(key), "{key}");
            assert_eq!(rotated[nth + 1], rotating.contains(key), "{key}");
            assert!(*key >= 5000 || grown[nth + 1] && rotated[nth + 1], "{key}");
        }
    }
    for size in sizes() {
        let keys: Vec<u64> = (20_000..20_000 + size).collect();
        let before = growable.len();
        assert_eq!(growable.insert_batch(&keys), Ok(keys.len()));
        let mut removed = Vec::new();
        growable.remove_batch(&keys, &mut removed);
        assert!(removed.len() == keys.len() && removed.into_iter().all(|removed| removed));
        assert_eq!(growable.len(), before);
    }
    let mut removed = Vec::new();
    growable.remove_batch(&(0..5000).collect::<Vec<u64>>(), &mut removed);
    assert!(removed.into_iter().all(|removed| removed) && growable.is_empty());
}

#[test]
fn a_batch_that_is_refused_tells_how_many_keys_went_in() {
    let limit = 20_000;
    let growable = GrowableCuckooFilter::<u64>::builder().capacity(10).memory_limit(limit).build().unwrap();
    let keys: Vec<u64> = (0..100_000).collect();
    let error = growable.insert_batch(&keys).unwrap_err();
    assert!(matches!(error.error, InsertError::MemoryLimit { .. }), "{error}");
    assert_eq!(growable.len(), error.inserted);
    assert!(keys[..error.inserted].iter().all(|key| growable.contains(key)));

    let rotating = RotatingCuckooFilter::<u64>::with_capacity(1000);
    let error = rotating.insert_batch(&keys).unwrap_err();
    assert!(matches!(error.error, InsertError::Full { filter: FilterKind::Rotating, .. }), "{error}");
    assert!(rotating.len() <= error.inserted && error.inserted < 1000);
    assert!(keys[..error.inserted].iter().all(|key| rotating.contains(key)));
}

/// A batch of lookups never misses a key that is in throughout, while other threads grow and rotate the filter.
#[test]
fn no_batch_misses_a_key_that_is_in_throughout() {
    let rounds = if cfg!(miri) { 2 } else { 300 };
    let growable = GrowableCuckooFilter::<u64>::with_capacity(50);
    let rotating = RotatingCuckooFilter::<u64>::builder().generation_capacity(1000).generations(3).build().unwrap();
    let stay: Vec<u64> = (0..700).collect();
    growable.insert_batch(&stay).unwrap();
    rotating.insert_batch(&stay).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=rounds {
                let others: Vec<u64> = (0..100).map(|key| round << 32 | key).collect();
                growable.insert_batch(&others).unwrap();
                // Refreshed in each period. The old copies expire during lookups.
                rotating.insert_batch(&stay).unwrap();
                rotating.rotate();
            }
        });
        let mut answers = Vec::new();
        while !writer.is_finished() {
            for filter in [&growable as &dyn BatchOf, &rotating] {
                answers.clear();
                filter.lookup(&stay, &mut answers);
                assert_eq!(answers.iter().filter(|&&found| found).count(), stay.len());
            }
        }
        writer.join().unwrap();
    });
    assert!(growable.tables() > 5);
}

trait BatchOf {
    fn lookup(&self, keys: &[u64], found: &mut Vec<bool>);
}

impl<F: MembershipFilter<u64>> BatchOf for F {
    fn lookup(&self, keys: &[u64], found: &mut Vec<bool>) {
        self.contains_batch(keys, found);
    }
}
