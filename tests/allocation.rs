//! What the library asks of the allocator: no operation asks for memory, and `build` survives each refusal that it
//! can.

#[path = "support/address_limit.rs"]
mod address_limit;
#[cfg(all(feature = "serde", feature = "stable-hash"))]
#[path = "support/forged.rs"]
mod forged;
#[path = "support/kinds.rs"]
mod kinds;
#[cfg(not(miri))]
#[path = "support/operations.rs"]
#[allow(unreachable_pub, reason = "`stack.rs` has it too")]
mod operations;
mod support;

use std::alloc::{self, GlobalAlloc, System};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use address_limit::{has_ranges, is_limited, run_with_limit};
use concurrent_cuckoo_filter::{
    AbsorbError, BuildError, ConcurrentCuckooFilter, CuckooRateLimiter, GrowableCuckooFilter, GrowableInsertError,
    RecentCuckooFilter, ReserveError,
};
use kinds::{Table, in_each_layout};
use support::{LAYOUTS, Layout, scattered};

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
#[cfg(not(miri))]
fn no_operation_allocates() {
    for (name, may_allocate, prepare) in operations::OPERATIONS {
        let (_, requests) = watch(prepare());
        assert!(may_allocate || requests.count == 0, "{name}: {requests:?}");
    }
}

/// Where the words of a filter that grows are in segments, there is one for each doubling. It is asked for when its first
/// bucket is needed. Where they are in a range, growth asks the allocator once, when it begins.
#[test]
fn growth_that_is_refused_memory_is_put_off_and_changes_nothing() {
    let filter = GrowableCuckooFilter::<u64>::with_capacity(1000);
    let mut held = 0;
    for nth in 0..if cfg!(miri) || has_ranges() { 1 } else { 6 } {
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
        let in_use_before = in_use();
        assert!(refuse_all(|| filter.insert(&key)).is_err());
        let error = refuse_all(|| filter.reserve(10_000 << nth)).expect_err("refused");
        assert!(matches!(error, ReserveError::OutOfMemory { bytes: named, .. } if named == bytes), "{error:?}");
        assert_eq!(size(&filter), before);
        assert!((0..held).all(|key| filter.contains(&key)));
        assert_eq!(in_use(), in_use_before, "what was allocated before the refused request is free again");
        // Later, memory is available: that insert asks for what was refused. (At the end of a segment it may need the next.)
        // An insert splits 128 buckets at most, and the table is fuller than its capacity. So some attempts may be needed.
        let insert = |key: u64| (0..=filter.plan().layout.buckets / 128).any(|_| filter.insert(&key).is_ok());
        let (is_in, requests) = watch(|| insert(held));
        assert!(is_in && requests.count >= 1 && requests.bytes >= bytes, "{requests:?} after {bytes}");
        // It also takes some inserts to make up for what was put off.
        let further = 4_000.max(500 << nth);
        (held + 1..held + further).for_each(|key| assert!(insert(key), "there is memory for {key}"));
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
    assert!(fixed.stats().memory_usage <= 664, "{fixed:?}");

    let before = in_use();
    let growable = GrowableCuckooFilter::<u64>::with_capacity(0);
    assert_eq!(growable.stats().memory_usage - size_of_val(&growable), (in_use() - before) as usize);
    assert!(growable.stats().memory_usage <= 1_656, "{growable:?}");
    // Also when it has grown, as long as its words fill no page.
    let capacity = growable.capacity();
    (0..500).for_each(|key| growable.insert(&key).unwrap());
    assert_eq!(growable.stats().memory_usage - size_of_val(&growable), (in_use() - before) as usize);
    assert!(growable.capacity() > 10 * capacity, "{growable:?}");

    // One that stays small needs no more than that.
    let before = in_use();
    let bounded = GrowableCuckooFilter::<u64>::builder().capacity(0).max_capacity(100).build().unwrap();
    assert_eq!(bounded.stats().memory_usage - size_of_val(&bounded), (in_use() - before) as usize);
    assert!(bounded.stats().memory_usage <= 1_182, "{bounded:?}");
}

/// What is in use beside the allocator's memory, in a filter that had so many buckets at first: the pages of its range.
fn in_range(filter: &GrowableCuckooFilter<u64>, first: usize) -> usize {
    const PAGE: usize = 4096;
    let words = filter.plan().layout.buckets;
    let before = if first < PAGE / 8 { PAGE / 8 } else { 0 };
    if has_ranges() { (words.saturating_sub(before) * 8).next_multiple_of(PAGE) } else { 0 }
}

/// Whatever sizes it has had before. On the heap, what was allocated stays, and counts. In a range, all that is left is what
/// a filter has that was never larger.
#[test]
#[cfg_attr(not(all(target_arch = "x86_64", not(miri))), ignore = "other pages; too long")]
fn a_filter_that_grows_and_shrinks_says_what_it_holds() {
    // A process makes some requests once for all filters: for tables that decode semi-sorted buckets.
    GrowableCuckooFilter::<u64>::with_capacity(0).reserve(60_000).unwrap();
    for first in [0, 100, 1_000, 3_000] {
        let before = in_use();
        let filter = GrowableCuckooFilter::<u64>::with_capacity(first);
        let buckets = filter.plan().layout.buckets;
        let check = |what: &str| {
            let held = (in_use() - before) as usize + in_range(&filter, buckets);
            assert_eq!(filter.stats().memory_usage - size_of_val(&filter), held, "{what}: {filter:?}");
            assert_eq!(filter.plan().memory_usage, filter.stats().memory_usage, "{what}");
        };
        check("new");
        let (mut most, mut fewest) = (0, usize::MAX);
        // On the heap, memory for more comes from the system directly (see `tests/resident.rs`).
        let large = if has_ranges() { 60_000 } else { 16_000 };
        for keys in [50, 300, 2_000, 1_999, 700, 8_000, 0, 2_500, large, large - 100, large / 2, 100, 5_000, 0] {
            filter.reserve(keys).unwrap();
            check("grown");
            filter.shrink_to(keys);
            check("shrunk");
            let capacity = filter.capacity();
            (most, fewest) = (capacity.max(most), capacity.min(fewest));
        }
        assert!(most >= large && fewest < 6_000, "{filter:?}");
    }
}

/// The same where no addresses can be reserved.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_arch = "x86_64", not(miri))), ignore = "it has no range anyway")]
fn where_addresses_are_limited_all_memory_is_from_the_allocator() {
    if !is_limited() {
        run_with_limit(
            module_path!(),
            "-v 67108864",
            &[
                "a_filter_that_grows_again_asks_for_nothing",
                "a_filter_that_grows_and_shrinks_says_what_it_holds",
                "a_small_filter_takes_some_hundred_bytes_and_says_so",
                "growth_that_is_refused_memory_is_put_off_and_changes_nothing",
            ],
        );
    }
}

/// The system refuses the memory of a page, and later has it again.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_pointer_width = "64", not(miri))), ignore = "it has no range")]
fn a_range_that_is_refused_memory_is_an_error_and_changes_nothing() {
    if !is_limited() {
        return run_with_limit(
            module_path!(),
            "-d 65536",
            &["a_range_that_is_refused_memory_is_an_error_and_changes_nothing"],
        );
    }
    let filter = GrowableCuckooFilter::<u64>::with_capacity(1000);
    (0..2_000).for_each(|key| filter.insert(&key).unwrap());
    // The process has 64 MiB for data.
    let mut ballast = Vec::new();
    for size in (12..26).rev().map(|bits| 1 << bits) {
        while let Ok(()) = ballast.try_reserve(1) {
            let mut part = Vec::<u8>::new();
            if part.try_reserve_exact(size).is_err() {
                break;
            }
            ballast.push(part);
        }
    }
    let (key, error) = (2_000..).find_map(|key| Some((key, filter.insert(&key).err()?))).expect("some time it is full");
    let (memory, capacity) = (filter.stats().memory_usage, filter.capacity());
    assert!(filter.insert(&key).is_err() && filter.reserve(100_000).is_err());
    drop(ballast);
    assert!(matches!(error, GrowableInsertError::OutOfMemory { bytes, .. } if bytes.is_multiple_of(4096)), "{error:?}");
    assert_eq!((filter.len() as u64, filter.stats().memory_usage, filter.capacity()), (key, memory, capacity));
    assert!((0..key).all(|key| filter.contains(&key)));
    (key..100_000).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..100_000).all(|key| filter.contains(&key)));
}

/// Counted by the allocator: a segment is asked for once, however often the filter grows and shrinks, and freed with
/// the filter.
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

/// As documented, all requests can be refused but the last: for the box around the table.
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
            let (filter, asked) = watch(|| build(layout, capacity).unwrap());
            assert_eq!(filter.stats().memory_usage, size_of_val(&filter) + asked.bytes, "{filter:?}");
            // Words, stripes, shards, what saves need, and the box.
            assert!(asked.count == 5 && asked.last < 200, "{filter:?}: {asked:?}");
            let needed = asked.bytes - asked.last;
            for nth in 1..asked.count {
                let error = refuse(nth, || build(layout, capacity).map(drop)).expect_err("refused");
                let names = matches!(error, BuildError::OutOfMemory { bytes, .. } if bytes == needed);
                assert!(names && error.to_string().contains(&format!("{needed} bytes")), "request {nth}: {error}");
            }
        }
    }
}

/// One that can grow. All that it asks for is for its table, and none of it is the filter's own.
#[test]
fn memory_that_a_growable_filter_is_refused_is_an_error_that_names_the_size() {
    let build = || GrowableCuckooFilter::<u64>::builder().capacity(0).build();
    drop(build());
    let (filter, asked) = watch(|| build().unwrap());
    assert_eq!(filter.stats().memory_usage, size_of_val(&filter) + asked.bytes, "{filter:?}");
    for nth in 1..=asked.count {
        let error = refuse(nth, || build().map(drop)).expect_err("refused");
        assert!(
            matches!(error, BuildError::OutOfMemory { bytes, .. } if bytes == asked.bytes),
            "request {nth}: {error}"
        );
    }
}

/// Builds a filter of which each request for memory but the last, for the box around the table, is refused in turn. Returns it.
fn refused_while_built<F>(build: impl Fn() -> Result<F, BuildError>, memory_usage: impl Fn(&F) -> usize) -> F {
    drop(build());
    let (filter, asked) = watch(|| build().unwrap());
    assert_eq!(memory_usage(&filter), size_of::<F>() + asked.bytes);
    assert!(asked.count > 1 && asked.last < 192, "{asked:?}");
    for nth in 1..asked.count {
        let error = refuse(nth, || build().map(drop)).expect_err("refused");
        assert!(matches!(error, BuildError::OutOfMemory { .. }), "request {nth}: {error}");
    }
    filter
}

/// Filters of recent keys: no operation asks for memory, and filters with other windows survive each refusal.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn recent_keys_ask_for_memory_when_a_filter_is_built_and_no_later() {
    let build = || RecentCuckooFilter::<u64>::builder().last(1000).build();
    let filter = refused_while_built(build, |filter| filter.stats().memory_usage);
    let mut answers = Vec::with_capacity(100);
    let ((), asked) = watch(|| {
        for key in 0..5000 {
            filter.insert(&key);
            filter.insert_or_renew(&(key / 2));
            assert!(filter.contains(&key) || key > 0);
            filter.remove(&(key + 1));
        }
        filter.insert_batch(&[1, 2, 3], &mut answers);
        filter.contains_batch(&[1, 2, 3], &mut answers);
        assert!(filter.recent_len() > 900);
        filter.clear();
    });
    assert_eq!(asked.count, 0, "{asked:?}");
    (0..1000).for_each(|key| _ = filter.insert(&key));
    for other in [|filter: &Recent| filter.empty_like(), |filter: &Recent| filter.empty_like_last(500)] {
        let other = refused_while_built(|| other(&filter), |filter| filter.stats().memory_usage);
        let (added, asked) = watch(|| other.unite(&filter));
        assert!(added.unwrap() > 400 && asked.count > 0);
        other.clear();
        for nth in 1..=asked.count {
            let error = refuse(nth, || other.unite(&filter)).expect_err("refused");
            assert!(matches!(error, AbsorbError::OutOfMemory { absorbed: 0, .. }), "request {nth}: {error}");
        }
        assert!(other.is_empty() && (0..1000).all(|key| filter.contains(&key)));
    }
}

/// Rate limiters: no operation asks for memory, also in a flood, and when debts are repaid.
#[test]
#[cfg_attr(miri, ignore = "too many operations")]
fn limiters_ask_for_memory_when_they_are_built_and_no_later() {
    let time = Arc::new(AtomicU64::new(0));
    let build = || {
        let clock = Arc::clone(&time);
        let builder = CuckooRateLimiter::<u64>::builder().allow(100, Duration::from_secs(60)).burst(20).capacity(1000);
        // The clock is one more request, of the caller's.
        builder.clock(move || Duration::from_millis(clock.load(Ordering::Relaxed))).build()
    };
    let limiter = refused_while_built(
        || CuckooRateLimiter::<u64>::builder().allow(100, Duration::from_secs(60)).capacity(1000).build(),
        |limiter| limiter.stats().memory_usage,
    );
    assert!(limiter.check(&1).is_ok());
    let limiter = build().unwrap();
    let quota = limiter.quota(50, Duration::from_secs(60), 5).unwrap();
    let mut answers = Vec::with_capacity(100);
    let ((), asked) = watch(|| {
        for key in 0..20_000 {
            time.store(key, Ordering::Relaxed);
            assert!(limiter.check(&key).is_ok() && limiter.check_n(&key, 30).is_err());
            assert!(limiter.check_with(&(key / 2), &quota).is_ok() || limiter.peek(&(key / 2)).remaining < 20);
            limiter.remove(&(key / 3));
        }
        limiter.check_batch(&[1, 2, 3], &mut answers);
        assert!(limiter.in_debt() > 500);
        limiter.clear();
    });
    assert_eq!(asked.count, 0, "{asked:?}");
}

type Recent = RecentCuckooFilter<u64>;

/// `empty_like`, `absorb` and `unite`.
fn survives_refusals<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let filter = new(3000);
    (0..3000).for_each(|nth| assert_eq!(filter.insert(&(scattered(nth), number(nth))), Ok(true)));
    let (empty, requests) = watch(|| filter.another());
    assert_eq!(requests.bytes + size_of::<F>(), filter.stats().memory_usage, "it has all that the filter has");
    // Except for the last request: the box around the table cannot be refused.
    for nth in 1..requests.count {
        let error = refuse(nth, || filter.try_another().map(drop)).expect_err("refused");
        assert!(matches!(error, BuildError::OutOfMemory { .. }), "request {nth}: {error}");
    }
    assert_eq!(empty.absorb(&filter), Ok(3000));
    let copy = filter.another();
    let before = in_use();
    let (added, requests) = watch(|| copy.absorb(&filter));
    assert_eq!(added, Ok(3000));
    assert_eq!(copy.unite(&filter), Ok(0));
    copy.clear();
    assert!(requests.count > 0);
    for nth in 1..=requests.count {
        let error = refuse(nth, || copy.absorb(&filter)).expect_err("refused");
        assert!(matches!(error, AbsorbError::OutOfMemory { absorbed: 0, .. }), "request {nth}: {error}");
        assert_eq!(refuse(nth, || copy.unite(&filter)), Err(error));
        assert_eq!(copy.len(), 0);
    }
    assert_eq!((in_use() - before, filter.len()), (0, 3000));
}

#[test]
fn a_copy_that_is_refused_memory_is_an_error_and_changes_nothing() {
    in_each_layout!(of_a_fixed_size: survives_refusals);
}

#[cfg(all(feature = "snapshot", feature = "stable-hash"))]
#[path = "allocation/snapshots.rs"]
mod snapshots;

#[cfg(all(feature = "serde", feature = "stable-hash"))]
#[path = "allocation/deserialized.rs"]
mod deserialized;
