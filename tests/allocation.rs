//! What the library asks of the allocator: no operation asks for memory, and `build` survives each refusal that it
//! can.

mod support;

use std::alloc::{self, GlobalAlloc, System};
use std::cell::Cell;
use std::panic::catch_unwind;
use std::ptr;

use concurrent_cuckoo_filter::{
    BuildError, ConcurrentCuckooFilter, CuckooMaplet, GrowableCuckooFilter, GrowableInsertError, ReserveError,
};
use support::{LAYOUTS, Layout, MAPLET_LAYOUTS};

/// The system's allocator. It records what each thread asks for, and refuses one request on demand.
struct Watched;

/// The requests of a thread.
#[derive(Clone, Copy, Debug)]
struct Requests {
    count: usize,
    bytes: usize,
    /// The bytes of the last request.
    last: usize,
}

thread_local! {
    static REQUESTS: Cell<Requests> = const { Cell::new(Requests { count: 0, bytes: 0, last: 0 }) };
    /// The number of the request to be refused.
    static REFUSED: Cell<Option<usize>> = const { Cell::new(None) };
    /// Whether all requests are to be refused.
    static REFUSES: Cell<bool> = const { Cell::new(false) };
    /// How many bytes are in use, and the most that were in use at once. A thread may free what another has asked
    /// for.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// How many bytes this thread has asked for and not freed.
fn in_use() -> isize {
    IN_USE.with(Cell::get)
}

// SAFETY: every call goes to the system's allocator unchanged, or is refused, which is always allowed. The records
// are plain thread-locals without a destructor.
#[allow(unsafe_code, reason = "an allocator cannot be written without it")]
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: alloc::Layout) -> *mut u8 {
        let Requests { count, bytes, .. } = REQUESTS.get();
        REQUESTS.set(Requests { count: count + 1, bytes: bytes + layout.size(), last: layout.size() });
        if REFUSED.get() == Some(count + 1) || REFUSES.get() {
            return ptr::null_mut();
        }
        IN_USE.set(IN_USE.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(IN_USE.get()));
        // SAFETY: the caller makes the same promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: alloc::Layout) {
        IN_USE.set(IN_USE.get() - layout.size() as isize);
        // SAFETY: the caller makes the same promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// The result of `work`, and its requests.
fn watch<R>(work: impl FnOnce() -> R) -> (R, Requests) {
    let before = REQUESTS.get();
    let result = work();
    let after = REQUESTS.get();
    (result, Requests { count: after.count - before.count, bytes: after.bytes - before.bytes, last: after.last })
}

/// The result of `work`, and how many more bytes than before were in use at once while it ran.
#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = IN_USE.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as usize)
}

/// The result of `work` if its `nth` request, counted from 1, is refused.
fn refuse<R>(nth: usize, work: impl FnOnce() -> R) -> R {
    REFUSED.set(Some(REQUESTS.get().count + nth));
    let result = work();
    REFUSED.set(None);
    result
}

/// The result of `work` if all its requests are refused.
fn refuse_all<R>(work: impl FnOnce() -> R) -> R {
    REFUSES.set(true);
    let result = work();
    REFUSES.set(false);
    result
}

#[test]
fn no_operation_allocates() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(3000);
    let ((), requests) = watch(|| {
        // Fills the table completely and goes on, so that paths are searched and inserts refused.
        let held = (0..).find(|key| filter.insert(key).is_err()).unwrap();
        for key in 0..held + 100 {
            assert_eq!(filter.contains(&key) as usize, filter.count(&key).min(1));
        }
        (0..held / 2).for_each(|key| assert!(filter.remove(&key)));
        (0..held / 2).for_each(|key| assert!(filter.insert_if_absent(&key).is_ok()));
        filter.record_negatives(1);
        filter.record_false_positives(1);
        assert!(filter.stats().observed_false_positive_rate() == Some(0.5));
        (0..30).for_each(|_| _ = filter.insert(&held));
        assert!(!filter.is_empty() && filter.stats().load_factor > 0.0 && filter.stats().false_positive_rate > 0.0);
        filter.clear();
    });
    assert_eq!(requests.count, 0);
}

#[test]
fn no_batch_allocates() {
    let filter = ConcurrentCuckooFilter::<u64>::with_capacity(3000);
    let keys: Vec<u64> = (0..5000).collect();
    let mut answers = Vec::with_capacity(4 * keys.len());
    let ((), requests) = watch(|| {
        // Fills the table completely, so that paths are searched and a key is refused.
        let held = filter.insert_batch(&keys).unwrap_err().index;
        filter.contains_batch(&keys, &mut answers);
        filter.remove_batch(&keys[..held], &mut answers);
        let hashes = || keys.iter().map(|key| filter.hash_one(key));
        assert!(filter.by_hash().insert_batch(hashes().take(held)).is_ok());
        filter.by_hash().contains_batch(hashes(), &mut answers);
        filter.by_hash().remove_batch(hashes().take(held), &mut answers);
        assert!(filter.is_empty());
    });
    assert_eq!(requests.count, 0);
}

#[test]
fn no_operation_of_a_maplet_allocates_nor_does_a_batch() {
    for (value_bits, rate, ..) in MAPLET_LAYOUTS {
        let builder = CuckooMaplet::<u64>::builder().capacity(3000).value_bits(value_bits);
        let maplet = builder.false_positive_rate(rate).build().unwrap();
        let (keys, value): (Vec<u64>, _) = ((0..5000).collect(), |key: u64| (key % 2) as u16);
        let pairs = || keys.iter().map(|key| (key, value(*key)));
        let (mut answers, mut values) = (Vec::with_capacity(2 * keys.len()), Vec::with_capacity(keys.len()));
        let ((), requests) = watch(|| {
            // Fills the table completely and goes on, so that paths are searched and inserts refused.
            let held = (0..).find(|&key| maplet.insert(&key, value(key)).is_err()).unwrap();
            for key in 0..held {
                let values = maplet.values(&key);
                assert!(values.contains(value(key)) && values.iter().all(|value| maplet.count(&key, value) > 0));
                assert!(maplet.contains(&key));
            }
            (held..held + 100).for_each(|key| _ = maplet.insert_if_absent(&key, 1));
            (0..held / 2).for_each(|key| assert_eq!(maplet.replace(&key, value(key), 1 - value(key)), Ok(true)));
            (0..held / 2).for_each(|key| assert!(maplet.remove(&key, 1 - value(key))));
            (0..held / 4).for_each(|key| assert!(maplet.insert_if_absent(&key, 1).is_ok()));
            // More copies than there is room for, and a value that is too large.
            (0..30).for_each(|_| _ = maplet.insert(&held, 1));
            let too_large = 1u16.checked_shl(value_bits).unwrap_or(u16::MAX);
            assert!(value_bits == 16 || maplet.insert(&held, too_large).is_err() && !maplet.remove(&held, too_large));
            assert!(
                maplet.stats().inserts_refused > 0
                    && maplet.stats().load_factor > 0.0
                    && maplet.stats().false_positive_rate > 0.0
            );
            maplet.clear();

            let held = maplet.insert_batch(pairs()).unwrap_err().index;
            maplet.values_batch(&keys, &mut values);
            assert!(values.iter().filter(|values| !values.is_empty()).count() >= held);
            maplet.contains_batch(&keys, &mut answers);
            maplet.remove_batch(pairs().take(held), &mut answers);
            assert!(maplet.is_empty());
        });
        assert_eq!(requests.count, 0, "{maplet:?}");
    }
}

#[test]
fn of_the_filter_that_grows_no_operation_allocates_but_growth() {
    let filter = GrowableCuckooFilter::<u64>::builder().capacity(3000).memory_limit(60_000).build().unwrap();
    // Until the limit leaves no room for more buckets.
    let mut held = (0..).find(|key| filter.insert(key).is_err()).expect("the limit is reached");
    let capacity = filter.capacity();
    let ((), requests) = watch(|| {
        assert!((0..held).all(|key| filter.contains(&key) && filter.count(&key) > 0));
        assert!((0..held / 2).all(|key| filter.remove(&key)));
        assert!((0..held / 4).all(|key| filter.insert_if_absent(&key).is_ok()));
        held = (held..).find(|key| filter.insert(key).is_err()).expect("the limit is reached");
        assert!(!filter.is_empty() && filter.stats().false_positive_rate > 0.0);
        filter.clear();
    });
    assert_eq!((requests.count, filter.capacity()), (0, capacity));
}

/// The words of a filter that grows are in segments, one for each doubling. Each is asked for when its first bucket is needed,
/// and that is all that growth asks for.
#[test]
fn growth_that_is_refused_memory_is_put_off_and_changes_nothing() {
    let filter = GrowableCuckooFilter::<u64>::with_capacity(1000);
    let mut held = 0;
    for nth in 0..if cfg!(miri) { 1 } else { 6 } {
        // While there is room, the caller gets no error.
        let refused = (held..).find_map(|key| Some((key, refuse_all(|| filter.insert(&key)).err()?)));
        let (key, error) = refused.expect("some time there is no room");
        let GrowableInsertError::OutOfMemory { bytes, .. } = error else { panic!("{error:?}") };
        assert!(error.to_string().contains(&format!("{bytes} bytes")), "{error}");
        held = key;
        let size =
            |filter: &GrowableCuckooFilter<u64>| (filter.len() as u64, filter.capacity(), filter.stats().memory_usage);
        let before = size(&filter);
        assert!(filter.len() > filter.capacity(), "segment {nth}: {filter:?}");
        assert_eq!(before.0, held);
        assert!(refuse_all(|| filter.insert(&key)).is_err());
        let error = refuse_all(|| filter.reserve(10_000 << nth)).expect_err("refused");
        assert!(matches!(error, ReserveError::OutOfMemory { bytes: named, .. } if named == bytes), "{error:?}");
        assert_eq!(size(&filter), before);
        assert!((0..held).all(|key| filter.contains(&key)));
        // Later, memory is available: that insert asks for what was refused. (At the end of a segment it may need the next.)
        let (result, requests) = watch(|| filter.insert(&held));
        assert!(result.is_ok() && requests.count >= 1 && requests.bytes >= bytes, "{requests:?} after {bytes}");
        // An insert adds some buckets at most. So it takes some to make up for what was put off.
        let further = 4_000.max(500 << nth);
        (held + 1..held + further).for_each(|key| filter.insert(&key).unwrap());
        held += further;
        assert!(filter.capacity() + 32 >= filter.len() && filter.stats().memory_usage > before.2, "{nth}: {filter:?}");
        assert!((0..held).all(|key| filter.contains(&key)));
    }
}

/// As documented, and as counted by the allocator.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_small_filter_takes_some_hundred_bytes_and_says_so() {
    // A process makes some requests once for all filters.
    drop((ConcurrentCuckooFilter::<u64>::with_capacity(100), GrowableCuckooFilter::<u64>::with_capacity(0)));
    let before = in_use();
    let fixed = ConcurrentCuckooFilter::<u64>::with_capacity(100);
    assert_eq!(fixed.stats().memory_usage - size_of_val(&fixed), (in_use() - before) as usize);
    assert!(fixed.stats().memory_usage <= 624, "{fixed:?}");

    let before = in_use();
    let growable = GrowableCuckooFilter::<u64>::with_capacity(0);
    assert_eq!(growable.stats().memory_usage - size_of_val(&growable), (in_use() - before) as usize);
    assert!(growable.stats().memory_usage <= 1_500, "{growable:?}");
    // Also when it has grown, as long as it has no large segments.
    let capacity = growable.capacity();
    (0..5_000).for_each(|key| growable.insert(&key).unwrap());
    assert_eq!(growable.stats().memory_usage - size_of_val(&growable), (in_use() - before) as usize);
    assert!(growable.capacity() > 100 * capacity, "{growable:?}");

    // One that stays small needs no more than that.
    let before = in_use();
    let bounded = GrowableCuckooFilter::<u64>::builder().capacity(0).max_capacity(100).build().unwrap();
    assert_eq!(bounded.stats().memory_usage - size_of_val(&bounded), (in_use() - before) as usize);
    assert!(bounded.stats().memory_usage <= 1_100, "{bounded:?}");
}

/// Counted by the allocator: a segment is asked for once, however often the filter grows and shrinks, and freed with the filter.
#[test]
fn a_filter_that_grows_again_asks_for_nothing() {
    let count = if cfg!(miri) { 3_000 } else { 100_000 };
    // A process makes some requests once for all filters: for tables that decode semi-sorted buckets.
    GrowableCuckooFilter::<u64>::with_capacity(1000).reserve(count).unwrap();
    let before = in_use();
    let filter = GrowableCuckooFilter::<u64>::with_capacity(1000);
    let mut grown = 0;
    for round in 0..3 {
        let ((), requests) = watch(|| {
            (0..count as u64).for_each(|key| filter.insert(&key).unwrap());
            if round == 0 {
                grown = in_use() - before;
            }
            (0..count as u64).for_each(|key| assert!(filter.remove(&key)));
            filter.shrink_to_fit();
            assert!(filter.capacity() < count / 10, "{filter:?}");
        });
        assert_eq!(requests.count > 0, round == 0, "round {round}");
        assert_eq!(in_use() - before, grown, "round {round}");
    }
    drop(filter);
    assert_eq!(in_use(), before);
}

const CAPACITIES: &[usize] = if cfg!(miri) { &[1, 100] } else { &[0, 1, 20, 100, 3000, 100_000] };

fn build((encoding, rate, ..): Layout, capacity: usize) -> Result<ConcurrentCuckooFilter<u64>, BuildError> {
    ConcurrentCuckooFilter::builder().capacity(capacity).false_positive_rate(rate).encoding(encoding).build()
}

fn check_that_it_works(filter: &ConcurrentCuckooFilter<u64>) {
    let keys = filter.capacity().min(500) as u64;
    assert!((0..keys).all(|key| filter.insert(&key).is_ok()));
    assert!((0..keys).all(|key| filter.contains(&key)) && (0..keys).all(|key| filter.remove(&key)));
    assert!(filter.is_empty());
}

#[test]
fn memory_that_is_refused_is_an_error_that_names_the_size() {
    // Makes the requests that a process makes once for all filters: for the hasher's source of keys, and for the
    // number of processors.
    drop(build(LAYOUTS[0], 100_000));
    for layout in LAYOUTS {
        // The first request for a semi-sorted layout is its decode table, which all filters share.
        let error = refuse(1, || build(layout, 100)).expect_err("refused");
        assert!(matches!(error, BuildError::OutOfMemory { .. }), "{layout:?}: {error:?}");

        for &capacity in CAPACITIES {
            check_that_it_works(&build(layout, capacity).unwrap());
            let (filter, requests) = watch(|| build(layout, capacity).unwrap());
            assert_eq!(filter.stats().memory_usage, size_of_val(&filter) + requests.bytes, "{filter:?}");
            // Words, stripes, shards, what saves need, and the box around the table. Only the request for the box
            // cannot be refused.
            assert_eq!(requests.count, 5, "{filter:?}");
            assert!(requests.last < 200, "{filter:?}: a box of {} bytes", requests.last);
            let needed = requests.bytes - requests.last;
            for nth in 1..requests.count {
                let error = refuse(nth, || build(layout, capacity)).expect_err("refused");
                assert!(
                    matches!(error, BuildError::OutOfMemory { bytes, .. } if bytes == needed),
                    "request {nth} of {filter:?}: {error:?} for {needed}"
                );
                assert!(error.to_string().contains(&format!("{needed} bytes")), "{error}");
                check_that_it_works(&build(layout, capacity).unwrap());
            }
        }
    }
}

#[test]
fn with_capacity_panics_with_the_size_of_what_was_refused() {
    let new = || ConcurrentCuckooFilter::<u64>::with_capacity(3000);
    drop(new());
    for nth in 1..=3 {
        let panic = catch_unwind(|| refuse(nth, new)).expect_err("refused");
        let reason = panic.downcast_ref::<String>().expect("a message");
        assert!(reason.contains("bytes"), "{reason}");
        check_that_it_works(&new());
    }
}

#[path = "allocation/expiring.rs"]
mod expiring;

#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
#[path = "allocation/snapshots.rs"]
mod snapshots;

#[cfg(feature = "snapshot")]
#[path = "allocation/several.rs"]
mod several;
