//! Where the system has no clock, as on `wasm32-unknown-unknown`, a filter of a time and a rate limiter work with a clock of the
//! caller's.
//!
//! In this program, the system's clock fails in a thread that asks for it.
#![cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]

mod support;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use concurrent_cuckoo_filter::{CuckooRateLimiter, LimiterBuilder, RecentBuilder, RecentCuckooFilter};
use support::{Seeded, seeded};

type Filter = RecentCuckooFilter<u64, Seeded>;

thread_local! {
    static HAS_CLOCK: Cell<bool> = const { Cell::new(true) };
    /// How often the thread has read the system's clock.
    static READ: Cell<u32> = const { Cell::new(0) };
}

/// The system's function, for all of this program.
// SAFETY: it has the signature of the function in whose place it is, and does what that does, or fails as that may.
#[allow(unsafe_code, reason = "the system's clock cannot fail otherwise")]
#[unsafe(no_mangle)]
extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    READ.set(READ.get() + 1);
    if HAS_CLOCK.get() {
        // SAFETY: the arguments are those of the same function of the system.
        return unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } as libc::c_int;
    }
    // SAFETY: it is the thread's own.
    unsafe { *libc::__errno_location() = libc::EINVAL };
    -1
}

/// Runs this in a thread without a clock. Returns what it returns, and how often it asked for the time, or `None` if it
/// panicked.
fn without_clock<R>(run: impl FnOnce() -> R) -> Option<(R, u32)> {
    READ.set(0);
    HAS_CLOCK.set(false);
    let result = catch_unwind(AssertUnwindSafe(run));
    HAS_CLOCK.set(true);
    Some((result.ok()?, READ.get()))
}

/// What `run` returns, which does not ask for the system's time.
fn untimed<R>(run: impl FnOnce() -> R) -> R {
    let (result, read) = without_clock(run).expect("it needs no clock");
    assert_eq!(read, 0, "it asks for the system's time");
    result
}

fn builder() -> RecentBuilder<u64, Seeded> {
    Filter::builder_with_hasher(seeded(1)).within(Duration::from_secs(60), 1000).false_positive_rate(1e-6)
}

#[test]
fn a_filter_with_a_clock_of_its_own_never_asks_for_the_systems_time() {
    untimed(|| {
        let filter = builder().clock(|| Duration::from_secs(7)).build().unwrap();
        assert!(filter.insert(&1) && !filter.insert_or_renew(&1) && filter.contains(&1));
        let mut answers = Vec::new();
        assert_eq!(filter.insert_batch(&[2, 3], &mut answers), 2);
        filter.contains_batch(&[1, 4], &mut answers);
        assert_eq!((answers, filter.recent_len()), (vec![true, true, true, false], 3));
        // With another one, and one that it gets before it has read the system's.
        let filter = filter.with_clock(|| Duration::ZERO);
        assert!(filter.contains(&1) && filter.remove(&1) && !filter.contains(&1));
        let later = builder().build().unwrap().with_clock(|| Duration::ZERO);
        assert!(later.insert(&1) && later.contains(&1));
        filter.clear();
    });
}

/// The system's clock is read where an operation needs the time, and not before.
#[test]
fn what_needs_no_time_reads_no_clock() {
    let filter = untimed(|| {
        assert!(builder().plan().is_ok());
        let filter = builder().build().unwrap();
        let _ = (filter.window(), filter.stats(), filter.plan(), filter.len(), format!("{filter:?}"));
        filter
    });
    assert!(without_clock(|| filter.contains(&1)).is_none(), "it needs the time");
    assert!(filter.insert(&1) && !filter.insert(&1), "the clock is back");
    untimed(|| {
        let last = Filter::builder_with_hasher(seeded(1)).last(10).build().unwrap();
        assert!(last.insert(&1) && last.contains(&1));
    });
}

type Limiter = CuckooRateLimiter<u64, Seeded>;

fn limiter() -> LimiterBuilder<u64, Seeded> {
    Limiter::builder_with_hasher(seeded(1)).allow(2, Duration::from_secs(60)).capacity(1000)
}

/// The same for a rate limiter.
#[test]
fn a_limiter_with_a_clock_of_its_own_never_asks_for_the_systems_time() {
    untimed(|| {
        let own = limiter().clock(|| Duration::from_secs(7)).build().unwrap();
        assert!(own.check_n(&1, 2).is_ok() && own.check(&1).is_err() && own.remove(&1));
        assert!(own.check_with(&1, &own.quota(1, Duration::from_secs(60), 1).unwrap()).is_ok());
        let mut answers = Vec::new();
        own.check_batch(&[1, 2], &mut answers);
        assert_eq!((answers.len(), own.in_debt()), (2, 2));
        let later = own.with_clock(|| Duration::ZERO);
        assert_eq!(later.peek(&2).remaining, 1);
    });
    let limiter = untimed(|| {
        assert!(limiter().plan().is_ok());
        let limiter = limiter().build().unwrap();
        let _ = (limiter.limits(), limiter.stats(), limiter.plan(), limiter.len(), format!("{limiter:?}"));
        limiter
    });
    assert!(without_clock(|| limiter.check(&1)).is_none(), "it needs the time");
    assert!(limiter.check_n(&1, 2).is_ok() && limiter.check(&1).is_err(), "the clock is back");
}

#[cfg(feature = "snapshot")]
#[test]
fn a_limiter_is_saved_and_loaded_without_the_systems_time() {
    use concurrent_cuckoo_filter::Loader;

    let saved = |limiter: &Limiter| {
        let mut bytes = Vec::new();
        limiter.save(&mut bytes).unwrap();
        bytes
    };
    untimed(|| {
        let own = limiter().clock(|| Duration::from_secs(7)).build().unwrap();
        assert!(own.check(&1).is_ok());
        let loader = Loader::<Limiter, _>::new(seeded(1), usize::MAX);
        let loaded = loader.clone().clock(|| Duration::ZERO).load(&saved(&own)[..]).unwrap().filter;
        assert_eq!(loaded.peek(&1).remaining, 1);
        // One that goes by the system's clock, and has not asked for the time yet, can be saved too.
        let again = loader.load(&saved(&own)[..]).unwrap().filter;
        let again = Limiter::load(&saved(&again)[..], seeded(1), usize::MAX).unwrap().with_clock(|| Duration::ZERO);
        assert_eq!(again.peek(&1).remaining, 1);
    });
}

#[cfg(feature = "snapshot")]
#[test]
fn a_snapshot_is_saved_loaded_and_verified_without_the_systems_time() {
    use concurrent_cuckoo_filter::{Loader, SnapshotInfo};

    let saved = |filter: &Filter| {
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        bytes
    };
    untimed(|| {
        let filter = builder().clock(|| Duration::from_secs(7)).build().unwrap();
        assert!(filter.insert(&1));
        let bytes = saved(&filter);
        assert_eq!(SnapshotInfo::verify(&bytes[..]).unwrap().len, Some(1));
        let loader = Loader::<Filter, _>::new(seeded(1), usize::MAX);
        let loaded = loader.clone().clock(|| Duration::ZERO).load(&bytes[..]).unwrap().filter;
        assert!(loaded.contains(&1) && loaded.insert(&2));
        // One that goes by the system's clock, and has not asked for the time yet, can be saved too.
        let again = loader.load(&bytes[..]).unwrap().filter;
        let bytes = saved(&again);
        assert!(Filter::load(&bytes[..], seeded(1), usize::MAX).unwrap().with_clock(|| Duration::ZERO).contains(&1));
    });
    let filter = builder().build().unwrap();
    assert!(filter.insert(&1));
    let loaded = Filter::load(&saved(&filter)[..], seeded(1), usize::MAX).unwrap();
    assert!(loaded.contains(&1), "by the system's clock");
}
