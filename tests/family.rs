//! What all filters share: the constructors, batches, and what errors and capacities say.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::panic::{self, Location};
use std::sync::Mutex;
use std::thread;

use concurrent_cuckoo_filter::{
    BuildError, Builder, ConcurrentCuckooFilter, CuckooMaplet, DefaultHashBuilder, Encoding, ExpiringCuckooFilter,
    GrowableBuilder, GrowableCuckooFilter, GrowableInsertError, Hashed, InsertError, Tick,
};

/// For logs: the type, and how full it is.
#[test]
fn debug_output_names_the_type_and_the_number_of_keys() {
    let maplet = CuckooMaplet::<u64>::builder().capacity(10).value_bits(4).build().unwrap();
    maplet.insert(&1, 2).unwrap();
    let expiring = ExpiringCuckooFilter::<u64>::builder().capacity(10).lifetime_in_ticks(3).build().unwrap();
    expiring.advance_to(Tick::new(1));
    expiring.insert_until(&1, Tick::new(2)).unwrap();
    let one = ConcurrentCuckooFilter::<u64>::with_capacity(10);
    one.insert(&1).unwrap();
    let growable = GrowableCuckooFilter::<u64>::with_capacity(10);
    growable.insert(&1).unwrap();
    for (shown, name) in [
        (format!("{one:?}"), "ConcurrentCuckooFilter {"),
        (format!("{growable:?}"), "GrowableCuckooFilter {"),
        (format!("{maplet:?}"), "CuckooMaplet {"),
        (format!("{expiring:?}"), "ExpiringCuckooFilter {"),
    ] {
        assert!(shown.starts_with(name) && shown.contains("len: 1,"), "{shown}");
    }
}

/// Makes the same calls on both types of filters for keys alone.
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
            assert!(filter.by_hash().contains(Hashed(hash)) && filter.capacity() >= 100);
        }
        let _: Filter<str> = Filter::with_capacity(100);
        let _: Filter<str, DefaultHashBuilder> = Filter::builder().capacity(100).build().unwrap();
        let two = [Filter::<u64, Fixed>::with_capacity_and_hasher(10, Fixed::default())];
        assert_eq!(two[0].hash_one(&7).0, Fixed::default().hash_one(7u64));
    });
    let builders: (Builder<u64, Fixed>, GrowableBuilder<u64, Fixed>) = Default::default();
    assert_eq!(builders.0.capacity(7).build().unwrap().hash_one(&7).0, Fixed::default().hash_one(7u64));
    assert_eq!(builders.1.capacity(7).build().unwrap().hash_one(&7).0, Fixed::default().hash_one(7u64));
    let growable = GrowableCuckooFilter::<u64>::default();
    (0..1000).for_each(|key| growable.insert(&key).unwrap());
    assert_eq!(growable.len(), 1000);
}

#[test]
fn a_builder_can_be_used_twice() {
    of_each!(|Filter| {
        let builder = Filter::<u64>::builder().capacity(10_000).false_positive_rate(1e-4).hasher(RandomState::new());
        let one = builder.clone().build().unwrap();
        let other = builder.capacity(10).build().unwrap();
        assert_eq!(one.hash_one(&7), other.hash_one(&7), "the hasher is the same");
        assert!(one.capacity() >= 10_000 && other.capacity() < 10_000);
        assert!(one.plan().max_false_positive_rate <= 1e-4 && other.plan().max_false_positive_rate <= 1e-4);
    });
}

#[test]
fn all_filters_have_the_encoding_that_was_asked_for() {
    // Plain buckets need as much memory for the same rate, or more.
    let check = |of: &dyn Fn(Encoding, f64) -> f64| {
        let more = [0.005, 0.004, 1e-4].map(|rate| of(Encoding::Plain, rate) - of(Encoding::SemiSorted, rate));
        assert!(more.iter().all(|&more| more > -0.1) && more.iter().any(|&more| more > 1.0), "{more:?}");
    };
    macro_rules! bits_per_key {
        ($filter:expr, $rate:expr) => {{
            let filter = $filter.false_positive_rate($rate).build().unwrap();
            assert!(filter.plan().max_false_positive_rate <= $rate);
            filter.stats().memory_usage as f64 * 8.0 / filter.capacity() as f64
        }};
    }
    check(&|encoding, rate| {
        bits_per_key!(ConcurrentCuckooFilter::<u64>::builder().capacity(100_000).encoding(encoding), rate)
    });
    // At its largest size.
    check(&|encoding, rate| {
        let builder = GrowableCuckooFilter::<u64>::builder().capacity(100_000).max_capacity(100_000);
        bits_per_key!(builder.encoding(encoding), rate)
    });
}

#[test]
fn capacity_means_one_thing() {
    of_each!(|Filter| {
        for capacity in [0, 1, 7, 100, 12_345] {
            let filter = Filter::<u64>::with_capacity(capacity);
            let stats = filter.stats();
            assert!(filter.capacity() >= capacity);
            assert_eq!((stats.capacity, stats.slots), (filter.capacity(), filter.plan().slots));
            assert_eq!(stats.load_factor, filter.stats().load_factor);
        }
    });
}

#[test]
fn errors_name_the_filter_that_was_used() {
    let message = |error: BuildError| error.to_string();

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
    let growable = GrowableCuckooFilter::<u64>::with_capacity(10);
    let error = (0..).find_map(|_| growable.insert(&7).err()).unwrap();
    assert!(matches!(error, GrowableInsertError::TooManyCopies { .. }), "{error:?}");
    assert!(error.to_string().contains("GrowableCuckooFilter"), "{error}");
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
    assert_eq!(growable.insert_batch(&(0..5000).collect::<Vec<u64>>()), Ok(()));
    assert!(growable.len() == 5000);
    for size in sizes() {
        // Present and absent keys alternate, in all tables.
        let keys: Vec<u64> = (0..size).map(|nth: u64| nth.wrapping_mul(7919) % 10_000).collect();
        let mut grown = vec![true];
        growable.contains_batch(&keys, &mut grown);
        assert_eq!(grown.len(), keys.len() + 1, "they are appended");
        for (nth, key) in keys.iter().enumerate() {
            assert_eq!(grown[nth + 1], growable.contains(key), "{key}");
            assert!(*key >= 5000 || grown[nth + 1], "{key}");
        }
    }
    for size in sizes() {
        let keys: Vec<u64> = (20_000..20_000 + size).collect();
        let before = growable.len();
        assert_eq!(growable.insert_batch(&keys), Ok(()));
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
    assert!(matches!(error.error, GrowableInsertError::MemoryLimit { .. }), "{error}");
    assert_eq!(growable.len(), error.index);
    assert!(keys[..error.index].iter().all(|key| growable.contains(key)));
}
