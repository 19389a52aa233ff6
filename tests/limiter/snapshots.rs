//! Debts survive a restart.

use std::time::Duration;

use concurrent_cuckoo_filter::{
    FilterKind, LoadError, Loader, SnapshotDamage, SnapshotInfo, UnsupportedSnapshot, WhenFull,
};

use crate::forged::Forged;
use crate::{Clock, Limiter, builder, seeded, with_clock};

fn saved(limiter: &Limiter) -> Vec<u8> {
    let mut bytes = Vec::new();
    limiter.save(&mut bytes).expect("a vector takes all bytes");
    bytes
}

#[test]
fn debts_go_on_after_a_restart() {
    for when_full in [WhenFull::EvictSoonest, WhenFull::Refuse] {
        let (limiter, clock) = with_clock(builder().when_full(when_full));
        // In the middle of a tick.
        clock.set(Duration::from_millis(99_950));
        for key in 0..500 {
            limiter.check_n(&key, 1 + (key % 20) as u32).expect("20 are allowed");
        }
        let bytes = saved(&limiter);
        let clock = Clock::default();
        let own = clock.clone();
        let loader = Loader::<Limiter, _>::new(seeded(1), 1 << 20).clock(move || own.now());
        let loaded = loader.load(&bytes[..]).expect("it is valid").filter;
        assert_eq!(loaded.plan(), limiter.plan());
        for key in 0..500 {
            let (before, after) = (limiter.peek(&key), loaded.peek(&key));
            assert_eq!(before.remaining, after.remaining, "{key}");
            // The time within a tick is known up to a millisecond.
            let later = after.full_after.abs_diff(before.full_after);
            assert!(
                after.full_after >= before.full_after && later <= Duration::from_millis(1),
                "{before:?}, {after:?}"
            );
        }
        clock.advance(Duration::from_secs(12));
        assert_eq!(loaded.in_debt(), 0);
        for key in 0..1000 {
            assert_eq!(loaded.check_n(&key, 20), Ok(()), "the sweep goes on");
        }
    }
}

/// A loaded limiter owes what the saved one did, whatever its clock shows.
#[test]
fn a_save_has_the_digest_of_the_loaded_limiter() {
    let digest = |limiter: &Limiter| limiter.begin_save().expect("memory").digest().expect("memory");
    let (limiter, clock) = with_clock(builder());
    assert_eq!(digest(&limiter), digest(&with_clock(builder()).0), "both are empty");
    for second in [0, 1, 7, 100] {
        clock.set(Duration::from_secs(second));
        (0..300).for_each(|key| limiter.check_n(&(second + key), 3).expect("20 are allowed"));
        let of_then = digest(&limiter);
        let loaded = Limiter::load(&saved(&limiter)[..], seeded(1), 1 << 20).expect("it is valid");
        assert_eq!(of_then, digest(&loaded), "after {second} s");
        limiter.check(&(second + 7)).expect("20 are allowed");
        assert_ne!(of_then, digest(&limiter), "a key owes more");
    }
}

/// The clock runs for nearly a tick, and goes back; and then the limiter gets another clock, or is saved and loaded. Its time
/// stands still when the clock goes back, so a debt is repaid when the clock has run for as long as it lasts.
#[test]
fn a_clock_that_goes_back_takes_no_time_off_the_debts() {
    for is_saved in [false, true] {
        for (step, back) in [(140, 140), (140, 0), (290, 140), (700, 700)].map(|both: (u64, u64)| both) {
            let clock = Clock::default();
            let own = || {
                let clock = clock.clone();
                move || clock.now()
            };
            clock.set(Duration::from_secs(1000));
            let mut limiter = builder().clock(own()).build().expect("valid settings");
            limiter.check_n(&7, 20).expect("20 are allowed");
            let turns = (1..1000).find(|_| {
                clock.advance(Duration::from_millis(step));
                if limiter.peek(&7).remaining == 20 {
                    return true;
                }
                clock.set(clock.now() - Duration::from_millis(back));
                if is_saved {
                    let loader = Loader::<Limiter, _>::new(seeded(1), 1 << 20).clock(own());
                    limiter = loader.load(&saved(&limiter)[..]).expect("it is valid").filter;
                } else {
                    let other = builder().build().expect("valid settings");
                    limiter = std::mem::replace(&mut limiter, other).with_clock(own());
                }
                false
            });
            // 20 requests are repaid in 12 s. What a turn loses is less than a millisecond.
            let expected = 12_000u64.div_ceil(step);
            let turns = turns.expect("the debt is repaid") as u64;
            assert!(
                (expected..=expected + 1).contains(&turns),
                "{turns} turns of {step} ms, {back} ms back, saved: {is_saved}"
            );
        }
    }
}

#[test]
fn a_snapshot_says_what_it_is_of() {
    let (limiter, clock) = with_clock(builder());
    limiter.check(&7).expect("20 are allowed");
    clock.advance(Duration::from_secs(3600));
    limiter.check(&8).expect("20 are allowed");
    let bytes = saved(&limiter);
    let info = SnapshotInfo::verify(&bytes[..]).expect("it is valid");
    assert_eq!((info.plan.filter, info.plan.limits, info.now), (FilterKind::Limiter, Some(limiter.limits()), None));
    assert_eq!(info.bytes, bytes.len() as u64);
    let other = builder().burst(10).plan().expect("valid settings");
    let error =
        Loader::<Limiter, _>::new(seeded(1), 1 << 20).expect_plan(other).load(&bytes[..]).expect_err("another burst");
    assert!(error.to_string().contains("20 at once"), "{error}");
}

#[test]
fn forged_limits_and_clocks_are_errors() {
    let (limiter, _) = with_clock(builder());
    (0..500).for_each(|key| limiter.check(&key).expect("20 are allowed"));
    let bytes = saved(&limiter);
    let forge = |at: usize, with: &[u8]| {
        let mut forged = Forged::of(&bytes);
        assert_eq!(forged.bytes(), bytes);
        forged.head[at..][..with.len()].copy_from_slice(with);
        Limiter::load(&forged.bytes()[..], seeded(1), usize::MAX)
    };
    assert!(forge(14, &[5]).is_ok_and(|limiter| limiter.limits().burst() == 5));
    let [no_tick, short_tick] = [0u64, 9_999].map(u64::to_le_bytes);
    for (at, with) in [
        (0, &[0][..]),
        (0, &[17]),
        (2, &no_tick),
        (2, &short_tick),
        (10, &[0; 4]),
        (10, &[0xff; 4]),
        (14, &[0; 4]),
        (14, &[29, 0, 0, 0]), // 28 requests of four ticks have an end on the ring
        (18, &[0xff; 8]),
        (26, &[128, 0]),
        (28, &[129, 0, 0, 0]),
    ] {
        let error = forge(at, with).expect_err("it is not possible");
        assert!(matches!(error, LoadError::Damaged(SnapshotDamage::InvalidClock { .. })), "{at}: {error}");
        let has_others = ["nanoseconds", "evicted"].iter().any(|other| error.to_string().contains(other));
        assert!(!has_others, "a limiter's snapshot has no such numbers: {error}");
    }
    assert!(matches!(forge(1, &[2]), Err(LoadError::Unsupported(UnsupportedSnapshot::Flags { flags: 2, .. }))));
}
