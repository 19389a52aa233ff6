//! Many threads: no key gets more than its bound, whatever the threads do at the same time.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::{MINUTE, builder, stats, with_clock};

const THREADS: u64 = 4;

#[test]
fn of_threads_that_race_for_the_last_request_exactly_one_gets_it() {
    let (limiter, _) = with_clock(builder().burst(1).capacity(100_000));
    let (allowed, barrier) = (AtomicU64::new(0), Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                for key in 0..20_000 {
                    allowed.fetch_add(u64::from(limiter.check(&key).is_ok()), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(allowed.into_inner(), 20_000);
    assert_eq!((stats(&limiter).allowed, stats(&limiter).rejected), (20_000, 20_000 * (THREADS - 1)));
}

/// The clock goes on all the time, and debts are repaid and swept. In all, each key gets what its bound says.
#[test]
fn no_key_gets_more_than_its_bound_while_the_time_goes_on() {
    let (limiter, clock) = with_clock(builder().burst(5).ticks_per_request(2).capacity(200));
    let keys: Vec<AtomicU64> = (0..50).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (limiter, clock, keys) = (&limiter, &clock, &keys);
            scope.spawn(move || {
                for round in 0..20_000u64 {
                    let key = (round * 7 + thread * 13) % keys.len() as u64;
                    if limiter.check(&key).is_ok() {
                        keys[key as usize].fetch_add(1, Ordering::Relaxed);
                    }
                    if round % 4 == 0 {
                        clock.advance(Duration::from_millis(7));
                    }
                }
            });
        }
    });
    let most = limiter.limits().most_in(clock.now());
    for (key, count) in keys.iter().enumerate() {
        let count = count.load(Ordering::Relaxed);
        assert!(count <= most, "{count} of key {key}, more than {most}");
        // All keys ask more often than they may, so each gets nearly everything.
        assert!(count + 20 >= most, "only {count} of key {key}, of {most}");
    }
    assert!(clock.now() > 2 * MINUTE);
}

/// A flood of new keys on all threads, with a table that is full all the time.
#[test]
fn threads_that_flood_a_full_limiter_are_all_allowed() {
    let (limiter, clock) = with_clock(builder().capacity(500));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (limiter, clock) = (&limiter, &clock);
            scope.spawn(move || {
                for key in 0..20_000 {
                    assert_eq!(limiter.check(&(thread << 32 | key)), Ok(()));
                    if key % 1000 == 0 {
                        clock.advance(Duration::from_millis(10));
                    }
                }
            });
        }
    });
    let (stats, slots) = (limiter.stats(), limiter.plan().slots);
    assert!(stats.len <= slots && limiter.in_debt() <= stats.len);
}
