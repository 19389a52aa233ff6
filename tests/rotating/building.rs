//! What a builder's settings lead to: the rate and memory, or the error. Also the traits, and operations by hash.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::Arc;

use concurrent_cuckoo_filter::{BuildError, ConcurrentCuckooFilter, Encoding, RotatingBuilder, RotatingCuckooFilter};

use crate::filters::{Filter, exact};
use crate::support::plausible;

#[test]
fn the_rate_of_all_generations_is_at_most_the_one_asked_for() {
    const LOOKUPS: u64 = if cfg!(miri) { 1000 } else { 1_000_000 };
    let capacity = if cfg!(miri) { 100 } else { 10_000 };
    for (generations, rate) in [(2, 0.01), (3, 0.001), (5, 0.001), (4, 0.1)] {
        let filter = Filter::builder().generation_capacity(capacity).generations(generations).false_positive_rate(rate);
        let filter = filter.build().unwrap();
        assert!(filter.max_false_positive_rate() <= rate);
        assert_eq!(filter.false_positive_rate(), 0.0);
        let mut keys = 0..;
        for generation in 0..generations {
            // Fills the table completely.
            assert!(keys.find(|key| filter.insert(key).is_err()).is_some());
            if generation + 1 < generations {
                filter.rotate();
            }
        }
        let absent = keys.start + 1..keys.start + 1 + LOOKUPS;
        let found = absent.filter(|key| filter.contains(key)).count() as f64;
        let expected = filter.false_positive_rate();
        let most = filter.max_false_positive_rate();
        assert!(expected <= most && most <= rate && expected > 0.9 * most, "{filter:?}");
        assert!(
            plausible(found, LOOKUPS as f64 * expected),
            "{generations} generations: {found} of {LOOKUPS} found, {expected} expected"
        );
    }
}

/// The table in the documentation of `RotatingCuckooFilter`.
#[test]
#[cfg_attr(miri, ignore = "builds large tables")]
fn the_documented_memory_is_that_of_the_filter() {
    const WINDOW: f64 = 2e6;
    for (generations, bits) in [(2, 50.3), (3, 33.5), (4, 27.9), (5, 25.1), (7, 22.3), (9, 21.0), (16, 19.0)] {
        let in_a_period = WINDOW / (generations - 1) as f64;
        let filter = Filter::builder()
            .generation_capacity(in_a_period.ceil() as usize)
            .generations(generations)
            .build()
            .unwrap();
        // Stripes and counters take 17 KiB or more for each table, which matters less in large filters.
        let overhead = (generations + 2) as f64 * 25e3;
        let measured = (filter.memory_usage() as f64 - overhead) * 8.0 / WINDOW;
        let with_overhead = filter.memory_usage() as f64 * 8.0 / WINDOW;
        assert!(measured < bits + 0.1 && with_overhead > bits - 0.1, "{generations}: {measured} to {with_overhead}");
    }
}

#[test]
fn requests_that_cannot_be_met_are_errors_that_name_them() {
    for generations in [0, 1, 256, usize::MAX] {
        let error = Filter::builder().generation_capacity(10).generations(generations).build().unwrap_err();
        assert_eq!(error.to_string().split(' ').next(), Some(&*generations.to_string()), "{error}");
        assert!(matches!(error, BuildError::InvalidGenerations { .. }) && error.to_string().contains("2 to 255"));
    }
    let most = Filter::builder().generation_capacity(10).generations(255).build().unwrap();
    most.insert(&1).unwrap();
    (0..254).for_each(|_| _ = most.rotate());
    assert!(most.contains(&1));
    most.rotate();
    assert!(!most.contains(&1));

    assert!(matches!(Filter::builder().build().unwrap_err(), BuildError::CapacityMissing { .. }));
    assert!(matches!(exact(2, 1).false_positive_rate(1.0).build(), Err(BuildError::InvalidRate { .. })));
    for generations in 2..=255 {
        for encoding in [Encoding::Plain, Encoding::SemiSorted] {
            let builder = || exact(generations, 1).encoding(encoding);
            let Err(BuildError::RateTooLow { lowest, .. }) = builder().false_positive_rate(1e-12).build() else {
                panic!("no error")
            };
            // A caller who follows the advice literally gets a filter.
            let advised = format!("{lowest:e}").parse().unwrap();
            assert!(builder().false_positive_rate(advised).build().is_ok(), "{generations}, {lowest}");
            assert!(builder().false_positive_rate(advised.next_down()).build().is_err() || generations > 2);
        }
    }
    let Err(BuildError::CapacityTooLarge { largest, .. }) = exact(4, usize::MAX).build() else { panic!("no error") };
    assert!(matches!(exact(4, largest + 1).build(), Err(BuildError::CapacityTooLarge { .. })));
    let one = ConcurrentCuckooFilter::<u64>::builder().false_positive_rate(1e-6 / 4.0);
    let Err(BuildError::CapacityTooLarge { largest: of_one, .. }) = one.capacity(usize::MAX).build() else {
        panic!("no error")
    };
    // There are five tables. On 64-bit machines the limit of each is not the address space.
    let times = if cfg!(target_pointer_width = "64") { 1.0 } else { 5.0 };
    assert!((0.998..1.002).contains(&(of_one as f64 / largest as f64 / times)), "{of_one}, {largest}");
}

#[test]
fn the_operations_by_hash_are_those_by_key() {
    let filter = exact(2, 100).hasher(ahash::RandomState::new()).build().unwrap();
    let hash = filter.hash_one(&7);
    assert_eq!(filter.insert_hash_if_absent(hash), Ok(true));
    assert!(filter.contains(&7) && filter.contains_hash(hash) && !filter.contains_hash(filter.hash_one(&8)));
    filter.rotate();
    filter.insert_hash(hash).unwrap();
    filter.rotate();
    assert!(filter.contains(&7));
    let text = format!("{filter:?}");
    assert!(text.contains("generation: 2") && text.contains("generations: 2") && !text.contains("asher"), "{text}");
    assert!(!format!("{:?}", exact(2, 100)).contains("asher"));
}

#[test]
fn a_filter_is_send_and_sync_whatever_its_keys_are() {
    fn check<F: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    check::<RotatingCuckooFilter<Rc<str>>>();
    check::<Arc<RotatingCuckooFilter<str>>>();
    check::<RotatingBuilder<Rc<str>>>();
}
