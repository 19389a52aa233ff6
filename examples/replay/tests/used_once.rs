//! What a log promises, by a clock that the test sets.

use std::time::{Duration, SystemTime};

use concurrent_cuckoo_filter::Tick;
use quinn::TokenLog;
use replay::{Refused, UsedOnce};

const NOON: u64 = 1_699_963_200;

/// A log that takes hardly any nonce for another. Which ones is another matter in each run, so no test rests on that.
fn log(lifetime: u64, uses: usize) -> UsedOnce<u128> {
    UsedOnce::new(Duration::from_secs(lifetime), uses, 2e-8).unwrap()
}

#[test]
fn a_use_is_remembered_for_as_long_as_the_nonce_is_valid_and_then_forgotten() {
    // Also lifetimes that are no whole number of ticks.
    for lifetime in [1_u64, 2, 13, 14, 15, 100, 599, 600] {
        for used_at in (0..=lifetime).step_by(lifetime.div_ceil(40) as usize) {
            let log = log(lifetime, 100);
            assert_eq!(log.try_use(&1, NOON, NOON + used_at), Ok(()), "{used_at} of {lifetime} s");
            for again in used_at..=lifetime {
                assert_eq!(log.try_use(&1, NOON, NOON + again), Err(Refused::Used), "{again} of {lifetime} s");
            }
            assert_eq!(log.try_use(&1, NOON, NOON + lifetime + 1), Err(Refused::Expired), "{lifetime} s");
            log.filter().advance_to(Tick::new(u64::MAX));
            assert_eq!(log.filter().live_len(), 0);
        }
    }
}

#[test]
fn there_is_room_for_as_many_uses_as_were_asked_for_in_each_lifetime() {
    for lifetime in [1, 3, 14, 100] {
        let log = log(lifetime, 10_000);
        let mut nonce = 0;
        for second in 0..5 * lifetime {
            for _ in 0..10_000 / lifetime {
                nonce += 1;
                let answer = log.try_use(&nonce, NOON + second, NOON + second);
                assert_ne!(answer, Err(Refused::Full), "nonce {nonce}, second {second} of {lifetime}");
            }
        }
    }
}

#[test]
fn a_nonce_counts_as_used_if_nobody_can_remember_its_use() {
    let log = log(600, 1000);
    let answers: Vec<_> = (0..5000).map(|nonce| log.try_use(&nonce, NOON, NOON)).collect();
    assert!(answers[..1000].iter().filter(|answer| answer.is_ok()).count() >= 998);
    assert!(answers.contains(&Err(Refused::Full)));
    for nonce in 0..5000 {
        assert!(log.try_use(&nonce, NOON, NOON + 1).is_err(), "{nonce}");
    }
}

#[test]
fn a_clock_that_jumps_and_a_nonce_from_the_future_let_no_nonce_be_used_twice() {
    let log = log(600, 1000);
    assert_eq!(log.try_use(&1, NOON + 1, NOON), Err(Refused::Clock), "it would live longer than its use is known");
    assert_eq!(log.try_use(&1, NOON, NOON), Ok(()));
    assert_eq!(log.try_use(&2, NOON + 86_400, NOON + 86_400), Ok(()), "the clock jumps ahead: all uses are forgotten");
    assert_eq!(log.try_use(&1, NOON, NOON), Err(Refused::Clock), "the clock is set right again");
    assert_eq!(log.try_use(&3, NOON + 86_401, NOON + 86_401), Ok(()));
}

/// Before any time that the system's clock shows during a test, even if somebody sets it right.
fn a_minute_ago() -> SystemTime {
    SystemTime::now() - Duration::from_secs(60)
}

#[test]
fn as_a_log_of_quinn_it_takes_a_token_once_and_an_expired_one_never() {
    let (log, lifetime) = (log(600, 1000), Duration::from_secs(600));
    let issued = a_minute_ago();
    assert!(log.check_and_insert(1, issued, lifetime).is_ok());
    assert!(log.check_and_insert(1, issued, lifetime).is_err());
    // A server with a longer lifetime than the log's: what the log might have forgotten is refused.
    assert!(log.check_and_insert(2, issued - 2 * lifetime, 10 * lifetime).is_err());
}
