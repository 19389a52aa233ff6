//! What all filters share: the constructors, what a full filter does, and what errors say.

#[path = "support/kinds.rs"]
mod kinds;
mod support;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, RandomState};
use std::panic::{self, Location};
use std::sync::Mutex;
use std::thread;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentBuilder, ConcurrentCuckooFilter, DefaultHashBuilder, Encoding, GrowableBuilder,
    GrowableCuckooFilter, GrowableInsertError, Hashed,
};
use kinds::{Table, in_each_layout};
use support::scattered;

/// For logs: the type, and how full it is.
fn shows_its_name_and_length<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let filter = new(10);
    assert_eq!(filter.insert(&(scattered(1), number(1))), Ok(true));
    let shown = format!("{filter:?}");
    assert!(shown.starts_with(&format!("{} {{", F::NAME)) && shown.contains("len: 1,"), "{shown}");
}

#[test]
fn debug_output_names_the_type_and_the_number_of_keys() {
    in_each_layout!(shows_its_name_and_length);
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
    let builders: (ConcurrentBuilder<u64, Fixed>, GrowableBuilder<u64, Fixed>) = Default::default();
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
fn errors_name_the_filter_that_was_used() {
    let message = |error: BuildError| error.to_string();

    of_each!(|Filter| {
        let builder = Filter::<u64>::builder().capacity(10).encoding(Encoding::SemiSorted).false_positive_rate(1e-12);
        let error = builder.build().unwrap_err();
        assert!(matches!(error, BuildError::RateTooLow { encoding: Some(Encoding::SemiSorted), .. }), "{error:?}");
        let low = message(error);
        assert!(low.contains(stringify!(Filter)) || low.contains("CuckooFilter"), "{low}");
        assert!(low.contains("1e-12") && low.contains("Encoding::SemiSorted"), "{low}");
        // In a growable filter, another encoding does not help.
        assert_eq!(low.contains("plain buckets"), !low.contains("Growable"), "{low}");
        let low = message(Filter::<u64>::builder().capacity(10).false_positive_rate(1e-12).build().unwrap_err());
        assert!(!low.contains("Encoding"), "none was asked for: {low}");
    });

    let growable = GrowableCuckooFilter::<u64>::with_capacity(10);
    let error = (0..).find_map(|_| growable.insert(&7).err()).unwrap();
    assert!(matches!(error, GrowableInsertError::TooManyCopies { .. }), "{error:?}");
    assert!(error.to_string().contains("GrowableCuckooFilter"), "{error}");
}

fn says_that_it_is_full<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    for capacity in [0, 5, 11, 100, 1000] {
        let filter = new(capacity);
        let entry = |nth: u64| (scattered(nth), number(nth));
        let held = (0..).find(|&nth| filter.insert(&entry(nth)).is_err()).unwrap();
        assert!(held >= capacity as u64 && held as usize >= filter.capacity(), "refused after {held}: {filter:?}");
        let error = filter.insert(&entry(held)).unwrap_err().to_string();
        let said = format!("the {} is full with {held} ", F::NAME);
        let beyond = match held - filter.capacity() as u64 {
            0 => ", as many as its capacity; ".to_owned(),
            beyond => format!(", {beyond} more than its capacity of {}; ", filter.capacity()),
        };
        assert!(error.starts_with(&said) && error.contains(&beyond), "{error}");
        assert_eq!(filter.insert_if_absent(&entry(0)), Ok(false), "that needs no room");

        // Others may still find room.
        let mut entries: Vec<_> = (0..held).map(entry).collect();
        let mut refused = 2;
        for entry in (held..held + 200).map(entry) {
            match filter.insert(&entry) {
                Ok(_) => entries.push(entry),
                Err(_) => refused += 1,
            }
            assert_eq!((filter.len(), filter.stats().inserts_failed), (entries.len(), refused));
        }
        assert!(entries.iter().all(|(key, _)| filter.contains(key)), "a refused insert has lost a key: {filter:?}");
        assert!(entries.iter().all(|entry| filter.remove(entry)), "a refused insert has lost a key: {filter:?}");
        assert_eq!(filter.len(), 0);
    }
}

#[test]
fn a_full_filter_says_so_and_keeps_what_it_has() {
    in_each_layout!(of_a_fixed_size: says_that_it_is_full);
}

fn has_room_for_as_many_copies_as_slots<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    for capacity in [0, 10, 100, 20_000] {
        let (filter, entry) = (new(capacity), (scattered(7), number(7)));
        let (slots, of_bucket) = filter.slots();
        let copies = (0..).find(|_| filter.insert(&entry).is_err()).unwrap();
        // A table of one bucket has one for each key, and all others have two.
        assert_eq!(copies, slots.min(2 * of_bucket), "{filter:?}");
        let error = filter.insert(&entry).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the {} already holds {copies} ", F::NAME)), "{error}");
        assert!(filter.contains(&entry.0) && filter.insert_if_absent(&entry) == Ok(false));
        assert_eq!(filter.len(), copies);
        assert!((0..copies).all(|_| filter.contains(&entry.0) && filter.remove(&entry)));
        assert!(!filter.contains(&entry.0) && !filter.remove(&entry) && filter.len() == 0);
    }
}

#[test]
fn a_key_has_as_many_copies_as_its_buckets_have_slots() {
    in_each_layout!(of_a_fixed_size: has_room_for_as_many_copies_as_slots);
}

/// Filters have lost look-alikes of keys that were removed, or have given a key the value of another.
fn tells_lookalikes_apart<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let filter = new(3000);
    let entries: Vec<_> = (0..filter.capacity().min(3000) as u64).map(|nth| (scattered(nth), number(nth))).collect();
    entries.iter().for_each(|entry| assert_eq!(filter.insert(entry), Ok(true)));
    for start in [0, 1] {
        for (key, number) in entries.iter().skip(start).step_by(2) {
            assert!(filter.remove(&(*key, *number)), "each key has an entry of its own: {filter:?}");
        }
        let left = entries.iter().skip(1).step_by(2).filter(|_| start == 0);
        assert!(left.clone().all(|(key, _)| filter.contains(key)), "a key is gone that was not removed: {filter:?}");
        assert_eq!(filter.len(), left.count());
    }
}

#[test]
fn a_removal_takes_no_lookalike_with_it() {
    in_each_layout!(tells_lookalikes_apart);
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
