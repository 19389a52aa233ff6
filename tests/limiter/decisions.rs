//! What is allowed, of one key and of many, in simulated time.

use std::collections::HashMap;
use std::time::Duration;

use concurrent_cuckoo_filter::LimitReason;
use proptest::prelude::*;

use crate::{Exact, Limiter, MINUTE, builder, seeded, stats, with_clock};

#[test]
fn a_burst_is_allowed_and_then_one_request_per_interval() {
    let (limiter, clock) = with_clock(builder());
    let interval = Duration::from_millis(600);
    for round in 0..50 {
        for nth in 0..20 {
            assert_eq!(limiter.check(&7), Ok(()), "{nth} of round {round}");
        }
        let limited = limiter.check(&7).expect_err("the burst is used up");
        assert_eq!((limited.retry_after(), limited.reason()), (interval, LimitReason::Limit));
        for _ in 0..5 {
            clock.advance(interval - Duration::from_nanos(1));
            assert_eq!(limiter.check(&7).map_err(|limited| limited.retry_after()), Err(Duration::from_nanos(1)));
            clock.advance(Duration::from_nanos(1));
            assert_eq!(limiter.check(&7), Ok(()));
            assert!(limiter.check(&7).is_err());
        }
        assert_eq!(limiter.in_debt(), 1);
        clock.advance(20 * interval);
        assert_eq!(limiter.in_debt(), 0, "the debt is repaid");
    }
    assert_eq!((stats(&limiter).allowed, stats(&limiter).rejected), (50 * 25, 50 * 11));
}

/// So that a test with a clock of its own, and a client that counts seconds, see what the limit says. Most intervals are no whole
/// number of nanoseconds.
#[test]
fn all_requests_of_a_period_may_come_at_its_beginning() {
    for (limit, seconds) in [(3, 1), (7, 1), (30, 1), (100, 60), (7000, 60), (11, 3600)] {
        let period = Duration::from_secs(seconds);
        let builder = Limiter::builder_with_hasher(seeded(1)).allow(limit, period).capacity(100);
        let (limiter, clock) = with_clock(builder.ticks_per_request(2));
        for _ in 0..5 {
            let allowed = (0..limit).filter(|_| limiter.check(&1).is_ok()).count();
            assert_eq!(allowed, limit as usize, "{limit} per {period:?}");
            assert!(limiter.check(&1).is_err(), "{limit} per {period:?}");
            clock.advance(period);
        }
        let twice = limiter.quota(2 * limit, period, 1).map(|quota| quota.ticks_per_request());
        assert_eq!(twice, Ok(1), "{limit} per {period:?}");
        assert_eq!(limiter.quota(limit, period, limit), Ok(limiter.limits()), "{limit} per {period:?}");
    }
}

#[test]
fn what_is_said_about_a_retry_is_true() {
    let (limiter, clock) = with_clock(builder().ticks_per_request(3));
    for step in 1..2000 {
        clock.advance(Duration::from_nanos(step * 40_009));
        if let Err(limited) = limiter.check(&(step % 3)) {
            clock.advance(limited.retry_after() - Duration::from_nanos(1));
            assert!(limiter.check(&(step % 3)).is_err(), "too late");
            clock.advance(Duration::from_nanos(1));
            assert_eq!(limiter.check(&(step % 3)), Ok(()), "too early");
        }
    }
    assert!(stats(&limiter).rejected > 500);
}

#[test]
fn a_cost_counts_as_so_many_requests() {
    let (limiter, clock) = with_clock(builder());
    assert_eq!(limiter.check_n(&7, 15), Ok(()));
    assert_eq!(limiter.peek(&7).remaining, 5);
    let limited = limiter.check_n(&7, 6).expect_err("five are left");
    assert_eq!(limited.retry_after(), Duration::from_millis(600));
    assert_eq!(limiter.check_n(&7, 5), Ok(()), "what is rejected costs nothing");
    assert_eq!(limiter.check_n(&7, 0), Ok(()));
    let never = limiter.check_n(&8, 21).expect_err("the burst is 20");
    assert_eq!((never.reason(), never.retry_after()), (LimitReason::CostAboveBurst, Duration::MAX));
    assert!(limiter.check_n(&8, u32::MAX).is_err() && limiter.peek(&8).remaining == 20);
    clock.set(MINUTE);
    assert_eq!(limiter.check_n(&7, 20), Ok(()));
}

#[test]
fn peek_says_what_is_left_and_takes_nothing() {
    let (limiter, clock) = with_clock(builder());
    let allowance = limiter.peek(&7);
    assert_eq!((allowance.remaining, allowance.next_after, allowance.full_after), (20, Duration::ZERO, Duration::ZERO));
    limiter.check_n(&7, 19).expect("20 are allowed");
    for _ in 0..2 {
        let allowance = limiter.peek(&7);
        assert_eq!((allowance.remaining, allowance.next_after), (1, Duration::ZERO));
        assert_eq!(allowance.full_after, 19 * Duration::from_millis(600));
    }
    limiter.check(&7).expect("one is left");
    assert_eq!((limiter.peek(&7).remaining, limiter.peek(&7).next_after), (0, Duration::from_millis(600)));
    clock.advance(Duration::from_millis(500));
    assert_eq!((limiter.peek(&7).remaining, limiter.peek(&7).next_after), (0, Duration::from_millis(100)));
    clock.advance(Duration::from_millis(100));
    assert_eq!((limiter.peek(&7).remaining, limiter.peek(&7).next_after), (1, Duration::ZERO));
}

#[test]
fn a_key_that_is_removed_or_cleared_owes_nothing() {
    let (limiter, _) = with_clock(builder());
    for key in 0..3 {
        limiter.check_n(&key, 20).expect("20 are allowed");
    }
    assert!(limiter.remove(&1) && !limiter.remove(&1));
    assert_eq!([0, 1, 2].map(|key| limiter.peek(&key).remaining), [0, 20, 0]);
    limiter.clear();
    assert_eq!([0, 1, 2].map(|key| limiter.peek(&key).remaining), [20, 20, 20]);
    assert!(limiter.is_empty());
}

#[test]
fn operations_by_hash_and_in_batches_are_those_on_keys() {
    let (limiter, _) = with_clock(builder().burst(2));
    let (hash, paying) = (limiter.hash_one(&7), limiter.quota(100, MINUTE, 2).expect("its own"));
    assert!(limiter.by_hash().check(hash).is_ok());
    assert_eq!((limiter.peek(&7).remaining, limiter.by_hash().peek(hash).remaining), (1, 1));
    assert!(limiter.by_hash().check_n(hash, 2).is_err() && limiter.by_hash().check_with(hash, &paying).is_ok());
    assert!(limiter.check(&7).is_err() && limiter.by_hash().check_n_with(hash, 1, &paying).is_err());
    assert!(limiter.by_hash().remove(hash));
    limiter.by_hash().prefetch(hash);

    let mut answers = Vec::new();
    let keys: Vec<u64> = (0..1000).flat_map(|key| [key, key, key]).collect();
    assert_eq!(limiter.check_batch(&keys, &mut answers), 2000);
    assert!(answers.iter().enumerate().all(|(nth, answer)| answer.is_err() == (nth % 3 == 2)));
}

#[test]
fn quotas_of_one_limiter_share_the_debt_of_a_key() {
    let (limiter, clock) = with_clock(builder().ticks_per_request(40));
    let paying = limiter.quota(1000, MINUTE, 200).expect("4 ticks of 15 ms");
    assert_eq!((paying.interval(), paying.ticks_per_request()), (Duration::from_millis(60), 4));
    // 10 requests of 600 ms are 100 of 60 ms.
    limiter.check_n(&7, 10).expect("20 are allowed");
    assert_eq!(limiter.peek_with(&7, &paying).remaining, 100);
    assert_eq!(limiter.check_n_with(&7, 100, &paying), Ok(()));
    assert!(limiter.check(&7).is_err() && limiter.check_with(&7, &paying).is_err());
    clock.advance(Duration::from_millis(60));
    assert!(limiter.check(&7).is_err() && limiter.check_with(&7, &paying).is_ok());

    // A quota with a smaller burst: even a cost of 0 is too much for what the key owes.
    let small = limiter.quota(100, MINUTE, 1).expect("its own limit");
    assert!(limiter.check_n_with(&7, 0, &small).is_err());
    assert_eq!(limiter.peek_with(&7, &small).remaining, 0);
}

#[test]
fn a_quota_of_another_limiter_is_rejected_unless_the_ticks_are_the_same() {
    let (limiter, _) = with_clock(builder());
    let (same, _) = with_clock(builder().burst(10));
    let (other, _) = with_clock(builder().ticks_per_request(5));
    let (longer, _) = with_clock(builder().burst(100));
    assert_eq!(limiter.check_n_with(&7, 10, &same.limits()), Ok(()));
    for foreign in [other.limits(), longer.limits()] {
        let limited = limiter.check_with(&7, &foreign).expect_err("it is another one's");
        assert_eq!((limited.reason(), limited.retry_after()), (LimitReason::OtherLimiter, Duration::MAX));
        let allowance = limiter.peek_with(&7, &foreign);
        assert_eq!((allowance.remaining, allowance.next_after), (0, Duration::MAX));
    }
}

#[test]
fn a_clock_that_stands_still_or_goes_back_makes_debts_last_longer() {
    let (limiter, clock) = with_clock(builder());
    clock.set(MINUTE);
    limiter.check_n(&7, 20).expect("20 are allowed");
    clock.set(Duration::ZERO);
    assert!(limiter.check(&7).is_err());
    clock.set(MINUTE + Duration::from_millis(599));
    assert!(limiter.check(&7).is_err());
    clock.set(MINUTE + Duration::from_millis(600));
    assert!(limiter.check(&7).is_ok());
    // Another clock goes on from where this one was.
    let limiter = limiter.with_clock(|| Duration::from_secs(1_000_000));
    assert!(limiter.check(&7).is_err());
    assert_eq!(limiter.peek(&7).next_after, Duration::from_millis(600));
}

/// With the shortest ticks, a clock lasts for 22 years. After that it stands still, and whoever is at a limit stays there.
#[test]
fn a_clock_that_jumps_by_centuries_does_no_harm() {
    let (limiter, clock) = with_clock(builder().allow(100_000, Duration::from_secs(1)).burst(2));
    assert_eq!(limiter.limits().tick(), Duration::from_micros(10));
    let year = Duration::from_secs(365 * 86_400);
    for years in [1, 20, 21] {
        clock.set(years * year);
        assert!(limiter.check_n(&7, 2).is_ok() && limiter.check(&7).is_err(), "after {years} years");
    }
    for years in [100, 300, 580] {
        clock.set(years * year);
        let _ = limiter.check(&7);
        let _ = (limiter.check(&9), limiter.remove(&9), limiter.peek(&7));
    }
    clock.set(Duration::from_nanos(u64::MAX));
    assert!(limiter.check(&8).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Of each key, no more than the bound is allowed in any time; and what an exact limiter allows is allowed.
    #[test]
    fn decisions_are_those_of_an_exact_limiter_within_a_tick(
        limit in 1..2000u32, burst in 1..40u32, ticks in 1..20u32, millis in 1..100_000u64, seed in any::<u64>(),
        steps in prop::collection::vec((0..8u8, 0..12u64, 0..4u32), 1..400),
    ) {
        let period = Duration::from_millis(millis);
        let builder = builder().hasher(seeded(seed)).allow(limit, period).burst(burst).ticks_per_request(ticks);
        prop_assume!(builder.plan().is_ok());
        let (limiter, clock) = with_clock(builder);
        let quota = limiter.limits();
        let (mut exact, mut has_more) = ([Exact::default(); 12], [false; 12]);
        let mut allowed: HashMap<u64, Vec<(Duration, u64)>> = HashMap::new();
        for (step, key, cost) in steps {
            clock.advance(match step {
                0..3 => Duration::ZERO,
                3..5 => quota.tick() / 3,
                5 => quota.interval(),
                6 => quota.interval() * (burst / 2),
                _ => quota.interval() * burst * 3,
            });
            // What the exact limiter allows, the limiter allows too, unless it has allowed more before.
            let is_right = exact[key as usize].check(&quota, clock.now(), cost);
            let answer = limiter.check_n(&key, cost);
            has_more[key as usize] |= answer.is_ok() && !is_right;
            let may_be_rejected = !is_right || has_more[key as usize];
            prop_assert!(may_be_rejected || answer.is_ok(), "{answer:?}, though {cost} are within {quota}");
            if answer.is_ok() {
                allowed.entry(key).or_default().push((clock.now(), cost.into()));
            }
        }
        for requests in allowed.into_values() {
            for first in 0..requests.len() {
                let mut n = 0;
                for &(time, cost) in &requests[first..] {
                    n += cost;
                    prop_assert!(n <= quota.most_in(time - requests[first].0), "{n} of {quota}");
                }
            }
        }
    }
}

/// Honest keys at three tenths of their limit, in clumps, and some at twenty times of it. With the default rate, hardly any
/// honest request is rejected that an exact limiter allows, and no key gets more than one request beyond it.
#[test]
fn many_keys_are_limited_nearly_as_by_exact_limiters() {
    const KEYS: u64 = 20_000;
    let settings = Limiter::builder_with_hasher(seeded(5)).allow(100, MINUTE).burst(20).capacity(KEYS as usize);
    let (limiter, clock) = with_clock(settings);
    let quota = limiter.limits();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut unit = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut events = Vec::new();
    for key in 0..KEYS {
        let is_abuser = key % 1000 == 0;
        let rate = if is_abuser { 20.0 / 0.6 } else { 0.1 / 0.6 };
        let mut time = 0.0;
        loop {
            time += -unit().max(1e-12).ln() / rate;
            if time > 60.0 {
                break;
            }
            let clump = if is_abuser { 1 } else { 1 + (unit() * 5.0) as u64 };
            events.extend((0..clump).map(|_| (Duration::from_secs_f64(time), key)));
        }
    }
    events.sort_unstable();
    let mut exact = vec![Exact::default(); KEYS as usize];
    let mut beyond = vec![0i64; KEYS as usize];
    let (mut honest, mut wrongly_rejected) = (0u64, 0u64);
    for &(time, key) in &events {
        clock.set(time);
        let is_right = exact[key as usize].check(&quota, time, 1);
        let is_allowed = limiter.check(&key).is_ok();
        beyond[key as usize] += i64::from(is_allowed) - i64::from(is_right);
        if key % 1000 != 0 {
            honest += 1;
            wrongly_rejected += u64::from(is_right && !is_allowed);
        }
    }
    assert!(honest > 500_000, "{honest}");
    assert!(wrongly_rejected <= 8, "{wrongly_rejected} of {honest} honest requests were rejected wrongly");
    assert!(beyond.iter().all(|&beyond| beyond <= 1), "{:?}", beyond.iter().max());
    assert_eq!(stats(&limiter).evicted, 0);
}
