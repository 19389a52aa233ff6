//! A limiter that is full: what a flood of new keys does.

use std::time::Duration;

use concurrent_cuckoo_filter::{LimitReason, WhenFull};

use crate::{builder, stats, with_clock};

/// Ten times as many keys as there is room for, in one tick.
#[test]
fn a_flood_of_new_keys_is_allowed_and_evicts() {
    let (limiter, clock) = with_clock(builder());
    let keys = 10 * limiter.capacity() as u64;
    for key in 0..keys {
        assert_eq!(limiter.check(&key), Ok(()));
    }
    let evicted = stats(&limiter).evicted;
    assert!(evicted >= keys - limiter.plan().slots as u64, "{evicted}");
    assert_eq!(stats(&limiter).evicted_debt, 0.05, "each owed one request of 20");
    assert_eq!(limiter.len() as u64 + evicted, keys);
    // When the debts are repaid, there is room again, and nobody is evicted.
    clock.advance(Duration::from_millis(600));
    for key in keys..keys + limiter.capacity() as u64 / 2 {
        assert_eq!(limiter.check(&key), Ok(()));
    }
    assert_eq!(stats(&limiter).evicted, evicted);
}

/// As many keys as the capacity are remembered, in whatever order they come and go.
#[test]
fn no_key_is_evicted_up_to_the_capacity() {
    let (limiter, clock) = with_clock(builder());
    let capacity = limiter.capacity() as u64;
    for round in 0..100 {
        let keys = round * capacity..(round + 1) * capacity;
        for key in keys.clone() {
            assert_eq!(limiter.check_n(&key, 20), Ok(()));
        }
        assert!(keys.clone().all(|key| limiter.check(&key).is_err()), "round {round}");
        // Exactly when the last debt is repaid, and without time for a sweep in between.
        clock.advance(20 * Duration::from_millis(600));
    }
    assert_eq!(stats(&limiter).evicted, 0);
}

/// Whoever is deep in debt stays in a flood of keys that owe little.
#[test]
fn a_flood_does_not_free_those_who_are_over_their_limit() {
    let (limiter, clock) = with_clock(builder().capacity(10_000).false_positive_rate(0.001));
    let limited: Vec<u64> = (0..500).collect();
    for key in &limited {
        assert_eq!(limiter.check_n(key, 20), Ok(()));
    }
    let mut new = 1_000_000;
    for _ in 0..20 {
        // In each tick three times as many new keys as there is room for, and one request of the others per interval.
        for _ in 0..30_000 {
            assert_eq!(limiter.check(&new), Ok(()));
            new += 1;
        }
        clock.advance(Duration::from_millis(150));
    }
    let freed = limited.iter().filter(|key| limiter.peek(key).remaining > 5).count();
    assert_eq!(freed, 0, "20 ticks repay 5 requests");
    assert!(stats(&limiter).evicted > 100_000);
}

#[test]
fn a_limiter_that_fails_closed_rejects_new_keys_and_forgets_none() {
    let (limiter, clock) = with_clock(builder().when_full(WhenFull::Refuse));
    let capacity = limiter.capacity() as u64;
    let accepted: Vec<u64> = (0..5 * capacity).filter(|key| limiter.check(key).is_ok()).collect();
    assert!(accepted.len() as u64 >= capacity && accepted.len() <= limiter.plan().slots);
    assert!((0..capacity).all(|key| accepted.contains(&key)), "up to the capacity there is room");
    let limited = limiter.check(&u64::MAX).expect_err("it is full");
    assert_eq!((limited.reason(), limited.retry_after()), (LimitReason::Full, Duration::from_millis(600)));
    // Those that are in go on.
    assert!(accepted.iter().all(|key| limiter.peek(key).remaining == 19 && limiter.check(key).is_ok()));
    let rejected = 5 * capacity - accepted.len() as u64 + 1;
    assert_eq!((stats(&limiter).rejected, stats(&limiter).evicted), (rejected, 0));
    assert_eq!(limiter.stats().inserts_failed, rejected);
    clock.advance(Duration::from_millis(1200));
    assert_eq!(limiter.check(&u64::MAX), Ok(()), "there is room again");
}

/// With the shortest ticks, a flood goes on for many of them.
#[test]
fn floods_over_many_short_ticks_are_allowed() {
    let second = Duration::from_secs(1);
    let (limiter, clock) =
        with_clock(builder().allow(1000, second).burst(1000).ticks_per_request(10).false_positive_rate(0.001));
    for key in 0..100_000 {
        clock.advance(limiter.limits().tick() / 7);
        assert_eq!(limiter.check_n(&key, 500), Ok(()));
    }
    assert!(stats(&limiter).evicted > 50_000);
}
