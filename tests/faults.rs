//! Failures around a filter: keys that panic, hashers that are broken, requests that cannot be met.
//! Nothing is poisoned, nothing is lost, and each error says what is wrong. (`allocation.rs` tests refused memory, and
//! `stepped` threads that die in the midst of an operation.)

mod support;

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use concurrent_cuckoo_filter::{BuildError, ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, InsertError};
use support::Raw;

type Filter<T> = ConcurrentCuckooFilter<T>;

const ENCODINGS: [Option<Encoding>; 3] = [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)];

/// A key whose `Hash` works, or panics.
enum Key {
    Sound(u64),
    Panics,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Sound(key) => key.hash(state),
            Self::Panics => panic!("no hash"),
        }
    }
}

#[test]
fn a_hash_that_panics_leaves_the_filter_as_it_was() {
    let filter = Filter::<Key>::with_capacity(100);
    (0..100).for_each(|key| filter.insert(&Key::Sound(key)).unwrap());
    let operations: [&dyn Fn(&Key); 5] = [
        &|key| _ = filter.insert(key),
        &|key| _ = filter.insert_if_absent(key),
        &|key| _ = filter.contains(key),
        &|key| _ = filter.remove(key),
        &|key| _ = filter.count(key),
    ];
    for operation in operations {
        assert!(catch_unwind(AssertUnwindSafe(|| operation(&Key::Panics))).is_err());
        assert_eq!(filter.len(), 100);
    }
    assert!((0..100).all(|key| filter.contains(&Key::Sound(key)) && filter.remove(&Key::Sound(key))));
    assert!(filter.is_empty());
}

/// As with a hasher of few different hashes.
#[test]
fn keys_of_a_few_hashes_are_not_lost() {
    let (mut full, mut too_many_copies) = (0, 0);
    for (hashes, capacity) in [(2, 1), (3, 4), (8, 4), (8, 10), (64, 10), (8, 100), (64, 100), (64, 10_000)] {
        // Fingerprints have 32 bits, so different hashes are different keys.
        let filter = support::build(capacity, Encoding::Plain, 1e-9);
        let room = filter.plan().slots.min(2 * filter.plan().layout.slots_per_bucket);
        let mut held = vec![0; hashes];
        for nth in 0..10 * hashes {
            let copies = &mut held[nth % hashes];
            match filter.insert(&Raw((nth % hashes) as u64)) {
                Ok(()) => *copies += 1,
                Err(InsertError::TooManyCopies { copies: reported, .. }) => {
                    assert_eq!((reported, *copies), (room, room));
                    too_many_copies += 1;
                }
                Err(InsertError::Full { len, .. }) => {
                    assert_eq!(len, held.iter().sum::<usize>());
                    full += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(filter.len(), held.iter().sum::<usize>());
        for (hash, &copies) in (0..).map(Raw).zip(&held) {
            assert_eq!(filter.count(&hash), copies);
            assert!((0..copies).all(|_| filter.remove(&hash)) && !filter.contains(&hash));
        }
        assert!(filter.is_empty());
    }
    assert!(full > 0 && too_many_copies > 0, "{full} refused as full, {too_many_copies} as copies");
}

fn build(capacity: usize, rate: f64, encoding: Option<Encoding>) -> Result<Filter<u64>, BuildError> {
    let builder = Filter::builder().capacity(capacity).false_positive_rate(rate);
    match encoding {
        Some(encoding) => builder.encoding(encoding).build(),
        None => builder.build(),
    }
}

const SMALLEST_SUBNORMAL: f64 = f64::from_bits(1);

/// Whether this is the rate, with the digits that a message shows.
fn is_near(named: &str, rate: f64) -> bool {
    let named: f64 = named.parse().expect("a number");
    named == rate || (named - rate).abs() <= 1e-8 * rate.abs() || named.is_nan() && rate.is_nan()
}

#[test]
fn a_rate_that_is_no_probability_is_an_error_that_names_it() {
    let below = [-SMALLEST_SUBNORMAL, -f64::MIN_POSITIVE, -0.1, -1.0, f64::MIN, f64::NEG_INFINITY];
    let above = [1.0, 1.0 + f64::EPSILON, 2.0, f64::MAX, f64::INFINITY, f64::NAN, -f64::NAN];
    for rate in below.into_iter().chain(above) {
        for encoding in ENCODINGS {
            let error = build(10, rate, encoding).unwrap_err();
            assert!(matches!(error, BuildError::InvalidRate { .. }), "{rate}: {error:?}");
            let text = error.to_string();
            let named = text.split("rate was ").nth(1).and_then(|rest| rest.split(';').next()).expect(&text);
            assert!(is_near(named, rate) && text.len() < 150, "{rate}: {text}");
        }
    }
    assert!(build(10, 1.0 - f64::EPSILON, None).is_ok());
}

#[test]
fn a_rate_that_no_layout_has_is_an_error_that_names_the_lowest() {
    let rates = [0.0, SMALLEST_SUBNORMAL, f64::MIN_POSITIVE / 2.0, f64::MIN_POSITIVE, f64::EPSILON, 1e-12, 9e-10];
    for (rate, encoding) in rates.into_iter().flat_map(|rate| ENCODINGS.map(|encoding| (rate, encoding))) {
        let error = build(10, rate, encoding).unwrap_err();
        let BuildError::RateTooLow { rate: reported, lowest, .. } = error else { panic!("{rate}: {error:?}") };
        assert_eq!(reported, rate);
        // A caller who follows the advice literally gets a filter.
        let text = error.to_string();
        let named = text.split("rate of ").nth(1).and_then(|rest| rest.split(" is too low").next()).expect(&text);
        assert!(is_near(named, rate), "{text}");
        let advised = text.split("cannot go below ").nth(1).and_then(|rest| rest.split(';').next()).expect(&text);
        assert!(advised.len() <= 8, "{text}");
        let advised: f64 = advised.parse().expect("a number");
        assert!((lowest..1.1 * lowest).contains(&advised) && build(10, advised, encoding).is_ok(), "{text}");
    }
}

#[test]
fn a_capacity_beyond_one_table_is_an_error_with_a_remedy() {
    for (rate, encoding) in [0.5, 0.01, 0.001, 1e-5].into_iter().flat_map(|rate| ENCODINGS.map(|e| (rate, e))) {
        let error = build(usize::MAX, rate, encoding).unwrap_err();
        let BuildError::CapacityTooLarge { capacity: usize::MAX, largest, .. } = error else { panic!("{error:?}") };
        let text = error.to_string();
        assert!(text.contains(&usize::MAX.to_string()) && text.contains(&largest.to_string()), "{text}");
        assert!(text.contains("several filters"), "{text}");
        // 2³² buckets of two to eight slots, a few percent of which stay free.
        let keys = 1u64 << 32;
        assert!(cfg!(target_pointer_width = "32") || (keys..8 * keys).contains(&(largest as u64)), "{largest}");
        let error = build(largest + 1, rate, encoding).unwrap_err();
        assert!(matches!(error, BuildError::CapacityTooLarge { .. }), "{error:?}");
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
#[cfg_attr(miri, ignore = "asks for more memory than Miri models")]
fn memory_that_no_machine_has_is_an_error_that_names_the_size() {
    // One table may be as large as some machines' memory. What a filter asks for at first may be larger.
    let build = |capacity| GrowableCuckooFilter::<u64>::builder().capacity(capacity).build();
    let error = build(usize::MAX).unwrap_err();
    let BuildError::CapacityTooLarge { largest, .. } = error else { panic!("{error:?}") };
    for capacity in [largest, largest - 1] {
        // This may succeed on a machine with so much memory, or one that promises it.
        let Err(error) = build(capacity) else { continue };
        let BuildError::OutOfMemory { bytes, .. } = error else { panic!("{capacity}: {error:?}") };
        // 13.2 bits for each key.
        assert!((1.6..1.7).contains(&(bytes as f64 / capacity as f64)), "{bytes} bytes for {capacity}");
        assert!(error.to_string().contains(&format!("{bytes} bytes")), "{error}");
    }
}

#[test]
#[should_panic(expected = "the limit is")]
fn with_capacity_panics_with_the_reason() {
    let _ = Filter::<u64>::with_capacity(usize::MAX);
}
