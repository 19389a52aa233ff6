//! Failures around a filter: keys and hashers that panic or are broken, threads that die, requests that cannot be
//! met. Nothing is poisoned, nothing is lost, and each error says what is wrong. (`allocation.rs` tests refused
//! memory.)

mod support;

use std::cell::Cell;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use concurrent_cuckoo_filter::{BuildError, ConcurrentCuckooFilter, Encoding, GrowableCuckooFilter, InsertError};
use support::{Identity, Seeded, seeded};

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

/// Each operation that takes a key.
fn operations<'a, K: Hash, S: BuildHasher>(
    filter: &'a ConcurrentCuckooFilter<K, S>,
    key: &'a K,
) -> [Box<dyn Fn() + 'a>; 5] {
    [
        Box::new(|| _ = filter.insert(key)),
        Box::new(|| _ = filter.insert_if_absent(key)),
        Box::new(|| _ = filter.contains(key)),
        Box::new(|| _ = filter.remove(key)),
        Box::new(|| _ = filter.count(key)),
    ]
}

#[test]
fn a_hash_that_panics_leaves_the_filter_as_it_was() {
    let filter = Filter::<Key>::with_capacity(100);
    (0..100).for_each(|key| filter.insert(&Key::Sound(key)).unwrap());
    for operation in operations(&filter, &Key::Panics) {
        assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
        assert_eq!(filter.len(), 100);
    }
    assert!((0..100).all(|key| filter.contains(&Key::Sound(key)) && filter.remove(&Key::Sound(key))));
    assert!(filter.is_empty());
}

/// A step of hashing a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    BuildHasher,
    Write,
    Finish,
}

/// A hasher that panics in a given step.
#[derive(Default)]
struct Panicking {
    panics_in: Cell<Option<Step>>,
}

struct PanickingHasher {
    inner: DefaultHasher,
    panics_in: Option<Step>,
}

impl BuildHasher for Panicking {
    type Hasher = PanickingHasher;

    fn build_hasher(&self) -> PanickingHasher {
        let panics_in = self.panics_in.get();
        assert!(panics_in != Some(Step::BuildHasher), "no hasher");
        PanickingHasher { inner: DefaultHasher::new(), panics_in }
    }
}

impl Hasher for PanickingHasher {
    fn finish(&self) -> u64 {
        assert!(self.panics_in != Some(Step::Finish), "no end");
        self.inner.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        assert!(self.panics_in != Some(Step::Write), "no beginning");
        self.inner.write(bytes);
    }
}

#[test]
fn a_hasher_that_panics_leaves_the_filter_as_it_was() {
    let filter = ConcurrentCuckooFilter::<u64, _>::with_capacity_and_hasher(100, Panicking::default());
    (0..100).for_each(|key| filter.insert(&key).unwrap());
    for step in [Step::BuildHasher, Step::Write, Step::Finish] {
        for operation in operations(&filter, &7) {
            filter.hasher().panics_in.set(Some(step));
            assert!(catch_unwind(AssertUnwindSafe(operation)).is_err());
            filter.hasher().panics_in.set(None);
            assert_eq!(filter.len(), 100);
        }
    }
    assert!((0..100).all(|key| filter.contains(&key) && filter.remove(&key)));
    assert!(filter.is_empty());
}

/// A hasher with few different hashes.
#[derive(Clone, Copy)]
struct Few(u64);

struct FewHasher {
    inner: Identity,
    hashes: u64,
}

impl BuildHasher for Few {
    type Hasher = FewHasher;

    fn build_hasher(&self) -> FewHasher {
        FewHasher { inner: Identity::default(), hashes: self.0 }
    }
}

impl Hasher for FewHasher {
    fn finish(&self) -> u64 {
        self.inner.finish() % self.hashes
    }

    fn write(&mut self, bytes: &[u8]) {
        self.inner.write(bytes);
    }

    fn write_u64(&mut self, key: u64) {
        self.inner.write_u64(key);
    }
}

fn build_with_few_hashes(hashes: u64, capacity: usize, rate: f64) -> ConcurrentCuckooFilter<u64, Few> {
    let builder = ConcurrentCuckooFilter::<u64>::builder().capacity(capacity).false_positive_rate(rate);
    builder.hasher(Few(hashes)).build().unwrap()
}

/// How many copies of one key there is room for.
fn room<S>(filter: &ConcurrentCuckooFilter<u64, S>) -> usize {
    filter.plan().slots.min(2 * filter.plan().layout.slots_per_bucket)
}

#[test]
fn a_hasher_with_few_hashes_loses_nothing() {
    let (mut full, mut too_many_copies) = (0, 0);
    for (hashes, capacity) in [(2, 1), (3, 4), (8, 4), (8, 10), (64, 10), (8, 100), (64, 100), (64, 10_000)] {
        // Fingerprints have 32 bits, so different hashes are different keys.
        let filter = build_with_few_hashes(hashes, capacity, 1e-9);
        let mut held = vec![0; hashes as usize];
        for key in 0..10 * hashes {
            let copies = &mut held[(key % hashes) as usize];
            match filter.insert(&key) {
                Ok(()) => *copies += 1,
                Err(InsertError::TooManyCopies { copies: reported, .. }) => {
                    assert_eq!((reported, *copies), (room(&filter), room(&filter)));
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
        for (key, &copies) in (0..).zip(&held) {
            assert_eq!(filter.count(&key), copies);
            assert!((0..copies).all(|_| filter.remove(&key)) && !filter.contains(&key));
        }
        assert!(filter.is_empty());
    }
    assert!(full > 0 && too_many_copies > 0, "{full} refused as full, {too_many_copies} as copies");
}

/// Threads die in the middle of each operation, while others work on a filter that is so full that they must
/// relocate.
#[test]
fn a_thread_that_dies_loses_nothing_and_blocks_nobody() {
    for round in 0..if cfg!(miri) { 1 } else { 20 } {
        let filter = Filter::<Key>::builder().capacity(4000).false_positive_rate(1e-9).build().unwrap();
        let key = |thread: u64, key: u64| Key::Sound(round << 48 | thread << 32 | key);
        thread::scope(|scope| {
            let (filter, key) = (&filter, &key);
            let dying: Vec<_> = (0..5)
                .map(|thread| {
                    scope.spawn(move || {
                        (0..600).for_each(|i| filter.insert(&key(thread, i)).unwrap());
                        operations(filter, &Key::Panics)[thread as usize]();
                    })
                })
                .collect();
            for thread in 5..7 {
                scope.spawn(move || {
                    for i in 0..5000 {
                        filter.insert(&key(thread, i)).unwrap();
                        assert!(filter.contains(&key(thread, i)) && filter.count(&key(thread, i)) > 0);
                        // All of its last 450 keys are in.
                        assert!(i < 450 || filter.remove(&key(thread, i - 450)));
                    }
                });
            }
            assert!(dying.into_iter().all(|thread| thread.join().is_err()), "the thread should have died");
        });
        assert_eq!(filter.len(), 5 * 600 + 2 * 450);
        for (thread, keys) in (0..5).map(|dead| (dead, 0..600)).chain([(5, 4550..5000), (6, 4550..5000)]) {
            assert!(keys.clone().all(|i| filter.contains(&key(thread, i))), "a key of thread {thread} was lost");
            assert!(keys.clone().all(|i| filter.remove(&key(thread, i))), "a key of thread {thread} was lost");
        }
        assert!(filter.is_empty());
        // This takes every lock.
        filter.clear();
    }
}

/// As a guard does that records which requests are in progress.
#[test]
fn a_filter_can_be_used_by_a_thread_that_unwinds() {
    struct Request<'a>(&'a ConcurrentCuckooFilter<u64, Seeded>, u64);
    impl Drop for Request<'_> {
        fn drop(&mut self) {
            assert!(self.0.contains(&self.1) && self.0.remove(&self.1));
        }
    }
    let filter = ConcurrentCuckooFilter::with_capacity_and_hasher(100, seeded(1));
    let request = |number| {
        filter.insert(&number).unwrap();
        Request(&filter, number)
    };
    let _other = request(1);
    let failed = catch_unwind(|| {
        let _request = request(2);
        panic!("the request failed");
    });
    assert!(failed.is_err() && filter.contains(&1) && !filter.contains(&2));
    assert_eq!(filter.len(), 1);
}

fn build(capacity: usize, rate: f64, encoding: Option<Encoding>) -> Result<Filter<u64>, BuildError> {
    let builder = Filter::builder().capacity(capacity).false_positive_rate(rate);
    match encoding {
        Some(encoding) => builder.encoding(encoding).build(),
        None => builder.build(),
    }
}

const SMALLEST_SUBNORMAL: f64 = f64::from_bits(1);

#[test]
fn a_rate_that_is_no_probability_is_an_error_that_names_it() {
    let below = [-SMALLEST_SUBNORMAL, -f64::MIN_POSITIVE, -0.1, -1.0, f64::MIN, f64::NEG_INFINITY];
    let above = [1.0, 1.0 + f64::EPSILON, 2.0, f64::MAX, f64::INFINITY, f64::NAN, -f64::NAN];
    for rate in below.into_iter().chain(above) {
        for encoding in ENCODINGS {
            let error = build(10, rate, encoding).unwrap_err();
            assert!(matches!(error, BuildError::InvalidRate { .. }), "{rate}: {error:?}");
            let text = error.to_string();
            assert!(text.contains(&format!("{rate:?}")) && text.len() < 150, "{rate}: {text}");
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
        assert!(
            text.contains(&format!("{rate:?}")) && text.contains(&format!(" cannot go below {lowest:?};")),
            "{text}"
        );
        let advised: f64 = text.split("cannot go below ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
        assert!(build(10, advised, encoding).is_ok());
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
