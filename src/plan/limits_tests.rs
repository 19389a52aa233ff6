use proptest::prelude::*;

use super::*;

/// The algorithm in whole ticks.
#[derive(Default)]
struct InTicks {
    end: u64,
}

impl InTicks {
    fn check(&mut self, quota: Quota, now: u64, n: u64) -> bool {
        let end = self.end.max(now) + n * quota.cost;
        let is_allowed = end <= now + quota.most();
        if is_allowed {
            self.end = end;
        }
        is_allowed
    }
}

/// The algorithm without ticks, in nanoseconds.
#[derive(Default)]
struct Exact {
    end: u128,
}

impl Exact {
    fn check(&mut self, quota: Quota, now: u64, n: u64) -> bool {
        let interval = u128::from(quota.cost) * u128::from(quota.tick);
        let end = self.end.max(now.into()) + u128::from(n) * interval;
        let is_allowed = end <= u128::from(now) + u128::from(quota.burst) * interval;
        if is_allowed {
            self.end = end;
        }
        is_allowed
    }
}

fn any_quota() -> impl Strategy<Value = Quota> {
    (1..200u64, 1..50u32, 1..3000u64).prop_map(|(cost, burst, tick)| Quota { cost, burst, tick })
}

/// The times of requests, of which some come at once, and their costs.
fn requests() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let step = prop_oneof![Just(0u64), 0..20u64, 0..5000u64, 0..1_000_000u64];
    prop::collection::vec((step, prop_oneof![4 => Just(1u64), 1 => 1..4u64]), 1..200).prop_map(|steps| {
        let mut now = 0;
        let mut at = |step| {
            now += step;
            now
        };
        steps.into_iter().map(|(step, cost)| (at(step), cost)).collect()
    })
}

proptest! {
    /// In any time, a key gets at most what `most_in` says, and that is at most one request more than without ticks.
    #[test]
    fn no_key_gets_more_than_the_bound(quota in any_quota(), requests in requests()) {
        let mut limiter = InTicks::default();
        let allowed: Vec<_> =
            requests.into_iter().filter(|&(now, n)| limiter.check(quota, now / quota.tick, n)).collect();
        for first in 0..allowed.len() {
            let mut n = 0;
            for &(last, cost) in &allowed[first..] {
                n += cost;
                let time = Duration::from_nanos(last - allowed[first].0);
                prop_assert!(n <= quota.most_in(time), "{n} in {time:?} of {quota}");
                let exact = u64::from(quota.burst) + (time.as_nanos() / quota.interval().as_nanos()) as u64;
                prop_assert!(quota.most_in(time) <= exact + 1);
            }
        }
    }

    /// A key that keeps to its limit, to the nanosecond, is never rejected.
    #[test]
    fn a_key_within_its_limit_is_never_rejected(quota in any_quota(), requests in requests()) {
        let (mut limiter, mut exact) = (InTicks::default(), Exact::default());
        for (now, n) in requests {
            if exact.check(quota, now, n) {
                prop_assert!(limiter.check(quota, now / quota.tick, n), "{now} of {quota}");
            }
        }
    }

    /// Under two quotas, the requests of both together and of each alone keep to their bounds.
    #[test]
    fn a_key_under_two_quotas_keeps_to_both(
        first in any_quota(), cost in 1..200u64, burst in 1..50u32, requests in requests(), choice in any::<u64>(),
    ) {
        let quotas = [first, Quota { cost, burst, ..first }];
        let mut limiter = InTicks::default();
        let mut allowed = Vec::new();
        for (nth, (now, n)) in requests.into_iter().enumerate() {
            let which = (choice >> (nth % 64) & 1) as usize;
            if limiter.check(quotas[which], now / first.tick, n) {
                allowed.push((now / first.tick, which, n));
            }
        }
        let most = quotas[0].most().max(quotas[1].most());
        for from in 0..allowed.len() {
            let (mut ticks, mut counts) = (0, [0; 2]);
            for &(now, which, n) in &allowed[from..] {
                ticks += n * quotas[which].cost;
                counts[which] += n;
                let passed = now - allowed[from].0;
                prop_assert!(ticks <= passed + most);
                prop_assert!(counts[which] <= u64::from(quotas[which].burst) + passed / quotas[which].cost);
            }
        }
    }

    /// What a builder asks for is kept: never less than the limit, and more by less than a nanosecond per tick.
    #[test]
    fn a_limit_is_divided_into_ticks(limit in 1..100_000u32, period in 1..u64::MAX, burst in 1..60_000u32, ticks in 0..50u32) {
        let settings = LimitSettings { limit, period: Duration::from_nanos(period), burst };
        let wanted = Some(ticks).filter(|&ticks| ticks > 0);
        match divide(settings, wanted) {
            Ok((ring, quota)) => {
                let interval = u128::from(quota.cost) * u128::from(quota.tick);
                prop_assert!(interval * u128::from(limit) <= period.into(), "it is no slower");
                prop_assert!((interval + u128::from(quota.cost)) * u128::from(limit) > period.into(), "nor much faster");
                prop_assert!(quota.tick >= SHORTEST_TICK && quota.burst == burst);
                prop_assert!(quota.most() <= longest(ring) && longest(ring) < ring.len());
                prop_assert!(ring.bits() == 1 || quota.most() > longest(Ring::new(ring.bits() - 1)), "the shortest");
                match wanted {
                    Some(ticks) => prop_assert_eq!(quota.cost, u64::from(ticks)),
                    None => prop_assert!((1..=DEFAULT_TICKS).contains(&quota.cost)),
                }
                // The limiter's own limit is a quota of it, and so is one that is as fast as its ticks.
                prop_assert_eq!(super::quota(settings, quota.tick, ring), Ok(quota));
                if let Some(limit) = u32::try_from(quota.cost).ok().and_then(|cost| limit.checked_mul(cost)) {
                    let fastest = super::quota(LimitSettings { limit, burst: 1, ..settings }, quota.tick, ring);
                    prop_assert_eq!(fastest, Ok(Quota { cost: 1, burst: 1, ..quota }));
                }
            }
            Err(QuotaError::TooFast { shortest, .. }) => prop_assert!(shortest.as_nanos() * u128::from(limit) > period.into()),
            Err(QuotaError::BurstTooLarge { largest, ticks_per_request, .. }) => {
                prop_assert!(u64::from(burst) > largest);
                prop_assert!(largest * ticks_per_request <= longest(largest_ring()));
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }

    /// A quota is faster than asked for by less than a nanosecond per tick, and at most a sixteenth slower.
    #[test]
    fn a_quota_is_nearly_what_was_asked_for(
        limit in 1..10_000u32, period in 1..1_000_000_000_000u64, burst in 1..1000u32,
        tick in SHORTEST_TICK..1_000_000_000, bits in 1..=16u32,
    ) {
        let (settings, ring) = (LimitSettings { limit, period: Duration::from_nanos(period), burst }, Ring::new(bits));
        if let Ok(quota) = quota(settings, tick, ring) {
            let interval = u128::from(quota.cost) * u128::from(tick) * u128::from(limit);
            prop_assert!(interval + u128::from(quota.cost) * u128::from(limit) >= period.into());
            prop_assert!(interval.saturating_sub(period.into()) * 16 <= period.into());
            prop_assert!(quota.most() <= longest(ring));
        }
    }
}

/// Of bursts from 1 to 10,000, and what is beyond.
#[test]
fn the_bits_of_an_end_follow_from_the_burst() {
    let minute = Duration::from_secs(60);
    let bits_and_ticks = |burst, ticks| {
        divide(LimitSettings { limit: 100, period: minute, burst }, ticks)
            .map(|(ring, quota)| (ring.bits(), quota.cost))
    };
    for (burst, bits) in
        [(1, 3), (3, 4), (7, 5), (14, 6), (20, 7), (28, 7), (100, 9), (1000, 13), (10_000, 16), (14_336, 16)]
    {
        assert_eq!(bits_and_ticks(burst, None), Ok((bits, 4)), "{burst}");
    }
    assert_eq!(bits_and_ticks(20, Some(12)), Ok((9, 12)));
    assert_eq!(bits_and_ticks(20_000, None), Ok((16, 2)), "fewer ticks, if there is no room for more");
    assert_eq!(bits_and_ticks(57_344, None), Ok((16, 1)));
    assert!(matches!(bits_and_ticks(57_345, None), Err(QuotaError::BurstTooLarge { largest: 57_344, .. })));
    assert!(matches!(bits_and_ticks(10_000, Some(8)), Err(QuotaError::BurstTooLarge { largest: 7_168, .. })));
}

#[test]
fn what_is_not_possible_is_an_error() {
    let second = Duration::from_secs(1);
    let settings = LimitSettings { limit: 10, period: second, burst: 5 };
    for wrong in [
        LimitSettings { limit: 0, ..settings },
        LimitSettings { burst: 0, ..settings },
        LimitSettings { period: Duration::ZERO, ..settings },
        LimitSettings { period: Duration::MAX, ..settings },
    ] {
        assert!(matches!(divide(wrong, None), Err(QuotaError::Invalid { .. })), "{wrong:?}");
        assert!(matches!(quota(wrong, 1_000_000, Ring::new(8)), Err(QuotaError::Invalid { .. })), "{wrong:?}");
    }
    assert_eq!(divide(settings, Some(0)), Err(QuotaError::ZeroTicks));
    assert_eq!(
        divide(LimitSettings { limit: 200_000, ..settings }, None),
        Err(QuotaError::TooFast {
            limit: 200_000,
            period: second,
            shortest: Duration::from_micros(10),
            ticks_per_request: 1
        })
    );
    assert!(divide(LimitSettings { limit: 100_000, ..settings }, None).is_ok_and(|(_, quota)| quota.cost == 1));
    // In ticks of 30 ms, on a ring for debts of 224 ticks.
    let of = |limit, period, burst| quota(LimitSettings { limit, period, burst }, 30_000_000, Ring::new(8));
    assert!(of(10, second, 5).is_err_and(|error| matches!(error, QuotaError::Inexact { .. })), "100 ms are 3.3 ticks");
    assert_eq!(
        of(11, second, 5).map(|quota| quota.cost),
        Err(QuotaError::Inexact {
            limit: 11,
            period: second,
            tick: Duration::from_millis(30),
            interval: Duration::from_millis(120)
        })
    );
    assert_eq!(of(100, 3 * second, 74).map(|quota| quota.cost), Ok(1));
    assert!(matches!(of(100, second, 1), Err(QuotaError::TooFast { shortest, .. }) if shortest.as_millis() == 30));
    assert!(matches!(of(1, 7 * second, 1), Err(QuotaError::TooSlow { longest, .. }) if longest.as_millis() == 6720));
    assert!(matches!(of(1, 6 * second, 2), Err(QuotaError::BurstTooLarge { largest: 1, .. })));
}
