//! The page `panics_and_versions`: what holds after a panic of the caller's code, and in a signal handler. (Other tests have keys
//! whose `Hash` panics, batches, constructors, systems without a clock, failed allocations and forks.)

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use concurrent_cuckoo_filter::{CuckooRateLimiter, RecentCuckooFilter};
use support::seeded;

const MINUTE: Duration = Duration::from_secs(60);

fn panics<R>(work: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// A clock that shows these seconds, and panics at `u64::MAX`.
fn clock(seconds: &Arc<AtomicU64>) -> impl Fn() -> Duration + Send + Sync + 'static {
    let shown = Arc::clone(seconds);
    move || match shown.load(Ordering::Relaxed) {
        u64::MAX => panic!("no time"),
        seconds => Duration::from_secs(seconds),
    }
}

#[test]
fn after_a_clock_has_panicked_nothing_has_changed_and_it_is_called_again() {
    let seconds = Arc::new(AtomicU64::new(0));
    let builder = RecentCuckooFilter::<u64>::builder().within(MINUTE, 1000).hasher(seeded(1));
    let seen = builder.clock(clock(&seconds)).build().unwrap();
    assert!(seen.insert(&1));
    seconds.store(u64::MAX, Ordering::Relaxed);
    assert!(panics(|| seen.insert(&2)) && panics(|| seen.contains(&1)) && panics(|| seen.remove(&1)));
    seconds.store(60, Ordering::Relaxed);
    assert!(seen.contains(&1) && !seen.contains(&2) && seen.len() == 1);
    assert!(seen.insert(&2) && seen.remove(&1));

    let seconds = Arc::new(AtomicU64::new(0));
    let builder = CuckooRateLimiter::<u64>::builder().allow(1, MINUTE).burst(1).capacity(100).hasher(seeded(1));
    let limiter = builder.clock(clock(&seconds)).build().unwrap();
    limiter.check(&1).unwrap();
    seconds.store(u64::MAX, Ordering::Relaxed);
    assert!(panics(|| limiter.check(&2)));
    seconds.store(30, Ordering::Relaxed);
    assert!(limiter.check(&1).is_err() && limiter.check(&2).is_ok());
}

#[cfg(feature = "snapshot")]
mod snapshots {
    use std::io::{self, Read, Write};

    use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

    use super::*;

    struct Panics;

    impl Write for Panics {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("no writer")
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("no reader")
        }
    }

    #[test]
    fn after_a_reader_or_writer_has_panicked_the_filter_can_be_used_and_saved() {
        let filter = ConcurrentCuckooFilter::<u64, _>::with_capacity_and_hasher(1000, seeded(1));
        (0..1000).for_each(|key| filter.insert(&key).unwrap());
        assert!(panics(|| filter.save(Panics)));
        assert!((0..1000).all(|key| filter.contains(&key)));
        assert!(filter.remove(&0) && filter.insert_if_absent(&0).unwrap());
        let mut bytes = Vec::new();
        filter.save(&mut bytes).unwrap();
        let load = |from: &mut dyn Read| ConcurrentCuckooFilter::<u64, _>::load(from, seeded(1), 1 << 20);
        assert!(panics(|| load(&mut Panics)) && panics(|| load(&mut (&bytes[..100]).chain(Panics))));
        assert_eq!(load(&mut &bytes[..]).unwrap().len(), 1000);
    }
}

/// A thread that changes filters is interrupted again and again, and the handler looks up a key.
#[cfg(all(unix, not(miri)))]
#[allow(unsafe_code, reason = "the standard library has no signals")]
mod signals {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize};
    use std::thread;

    use concurrent_cuckoo_filter::{
        ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, GrowableCuckooFilter, Tick,
    };

    use super::support::Seeded;
    use super::*;

    /// How often the handler runs.
    const SIGNALS: usize = 500;
    const KEYS: u64 = 1000;

    struct Filters {
        fixed: ConcurrentCuckooFilter<u64, Seeded>,
        growable: GrowableCuckooFilter<u64, Seeded>,
        recent: RecentCuckooFilter<u64, Seeded>,
        expiring: ExpiringCuckooFilter<u64, Seeded>,
        maplet: CuckooMaplet<u64, Seeded>,
    }

    /// All have the key 0. The thread changes others.
    static FILTERS: LazyLock<Filters> = LazyLock::new(|| {
        let capacity = KEYS as usize;
        let builder = ExpiringCuckooFilter::<u64>::builder().capacity(capacity).lifetime_in_ticks(3).hasher(seeded(1));
        let filters = Filters {
            fixed: ConcurrentCuckooFilter::with_capacity_and_hasher(capacity, seeded(1)),
            growable: GrowableCuckooFilter::with_capacity_and_hasher(0, seeded(1)),
            recent: RecentCuckooFilter::builder_with_hasher(seeded(1)).last(capacity).build().unwrap(),
            expiring: builder.build().unwrap(),
            maplet: CuckooMaplet::builder_with_hasher(seeded(1)).capacity(capacity).value_bits(4).build().unwrap(),
        };
        filters.fixed.insert(&0).unwrap();
        filters.growable.insert(&0).unwrap();
        filters.recent.insert(&0);
        filters.expiring.advance_to(Tick::new(1));
        filters.expiring.insert(&0).unwrap();
        filters.maplet.insert(&0, 3).unwrap();
        filters
    });

    static HANDLED: AtomicUsize = AtomicUsize::new(0);
    static MISSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn look_up(_: libc::c_int) {
        let Filters { fixed, growable, recent, expiring, maplet } = &*FILTERS;
        let is_missed = !(fixed.contains(&0) && growable.contains(&0) && recent.contains(&0) && expiring.contains(&0));
        if is_missed || !maplet.values(&0).contains(3) {
            MISSED.store(true, Ordering::Relaxed);
        }
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes of all filters. None removes the key 0.
    fn change(round: u64) {
        let Filters { fixed, growable, recent, expiring, maplet } = &*FILTERS;
        for key in 1..KEYS {
            fixed.insert(&key).unwrap();
            growable.insert(&key).unwrap();
            recent.insert_or_renew(&(round * KEYS + key));
            recent.insert_or_renew(&0);
            _ = expiring.insert_or_renew(&key);
            maplet.insert(&key, 1).unwrap();
        }
        for key in 1..KEYS {
            assert!(fixed.remove(&key) && growable.remove(&key) && maplet.remove(&key, 1));
            expiring.remove(&key);
        }
        growable.shrink_to_fit();
    }

    #[test]
    fn a_signal_handler_may_look_up_keys() {
        LazyLock::force(&FILTERS);
        // SAFETY: the handler has the type of one, and only does what a handler may: it reads and writes atomics.
        unsafe { libc::signal(libc::SIGUSR1, look_up as extern "C" fn(libc::c_int) as libc::sighandler_t) };
        // SAFETY: it has no preconditions.
        let changing = unsafe { libc::pthread_self() };
        let thread_handle = changing as usize;
        let sender = thread::spawn(move || {
            for sent in 0..SIGNALS {
                // SAFETY: that thread waits for this one, so it runs.
                assert_eq!(unsafe { libc::pthread_kill(thread_handle as libc::pthread_t, libc::SIGUSR1) }, 0);
                while HANDLED.load(Ordering::Relaxed) <= sent {
                    thread::yield_now();
                }
            }
        });
        let mut round = 0;
        while !sender.is_finished() {
            round += 1;
            change(round);
        }
        sender.join().unwrap();
        assert_eq!((HANDLED.load(Ordering::Relaxed), MISSED.load(Ordering::Relaxed)), (SIGNALS, false));
    }
}
