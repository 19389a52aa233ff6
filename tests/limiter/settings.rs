//! How a limiter is built, and what its plan and its figures say.

use std::time::Duration;

use concurrent_cuckoo_filter::{BuildError, CuckooRateLimiter, FigureValue, QuotaError, WhenFull};

use crate::{Limiter, MINUTE, builder, seeded, stats, with_clock};

#[test]
fn a_limit_and_a_capacity_are_required() {
    let builder = || CuckooRateLimiter::<str>::builder();
    assert_eq!(builder().capacity(10).build().expect_err("no limit"), BuildError::LimitMissing);
    let error = builder().allow(1, MINUTE).build().expect_err("no capacity");
    assert!(matches!(error, BuildError::CapacityMissing { .. }) && error.to_string().contains("CuckooRateLimiter"));
    for (limit, period, burst) in [(0, MINUTE, 1), (1, Duration::ZERO, 1), (1, MINUTE, 0), (1, Duration::MAX, 1)] {
        let error = builder().allow(limit, period).burst(burst).capacity(10).build().expect_err("not possible");
        assert!(matches!(error, BuildError::InvalidQuota { error: QuotaError::Invalid { .. }, .. }), "{error}");
    }
    let error = builder().allow(1_000_000, Duration::from_secs(1)).capacity(10).plan().expect_err("1 µs");
    assert!(error.to_string().contains("the shortest time per request is 10 µs"), "{error}");
    let error =
        builder().allow(100_000, Duration::from_secs(3600)).capacity(10).plan().expect_err("the burst is the limit");
    assert!(
        error.to_string().contains("a burst of 100000 requests of 1 tick each is too large: the limit is 57344"),
        "{error}"
    );
    let error = builder().allow(100, MINUTE).capacity(10).false_positive_rate(1e-9).plan().expect_err("too low");
    assert!(error.to_string().contains("a smaller burst"), "{error}");
}

#[test]
fn the_burst_is_the_limit_by_default() {
    let (limiter, _) = with_clock(Limiter::builder_with_hasher(seeded(1)).allow(5, MINUTE).capacity(10));
    assert_eq!(limiter.limits().burst(), 5);
    assert_eq!((0..10).filter(|_| limiter.check(&1).is_ok()).count(), 5);
}

/// What the documentation of `burst` says about bits.
#[test]
fn bits_per_key_follow_from_the_burst() {
    let bits = |burst| {
        let builder = Limiter::builder_with_hasher(seeded(1)).allow(100, MINUTE).burst(burst).capacity(500_000_000);
        let plan = builder.plan().expect("it is possible");
        assert!(plan.max_false_positive_rate <= 0.001);
        (plan.memory_usage as f64 * 80.0 / plan.capacity as f64).round() / 10.0
    };
    assert_eq!([1, 3, 4, 20, 112, 113, 14_336].map(bits), [16.8, 16.8, 23.2, 23.2, 23.2, 38.6, 38.6]);
}

#[test]
fn bursts_from_one_to_ten_thousand_work() {
    for burst in [1, 2, 3, 5, 10, 50, 100, 500, 1000, 5000, 10_000] {
        let settings = Limiter::builder_with_hasher(seeded(1)).allow(100, MINUTE).burst(burst).capacity(100);
        let (limiter, clock) = with_clock(settings);
        assert!((1..=4).contains(&limiter.limits().ticks_per_request()));
        for _ in 0..3 {
            assert_eq!((0..burst + 5).filter(|_| limiter.check(&1).is_ok()).count(), burst as usize);
            clock.advance(Duration::from_millis(600) * burst);
        }
    }
}

#[test]
fn the_plan_of_a_builder_is_that_of_its_limiter() {
    let builder = builder().when_full(WhenFull::Refuse);
    let plan = builder.plan().expect("valid settings");
    let limiter = builder.clone().build().expect("valid settings");
    assert_eq!(limiter.plan(), plan);
    assert_eq!((plan.limits, plan.when_full), (Some(limiter.limits()), Some(WhenFull::Refuse)));
    let text = plan.to_string();
    assert!(
        text.starts_with("CuckooRateLimiter for ") && text.contains("1 request per 600 ms and 20 at once"),
        "{text}"
    );
    assert!(text.ends_with(", WhenFull::Refuse"), "{text}");
    assert_eq!(limiter.stats().memory_usage, plan.memory_usage);
    for text in [format!("{limiter:?}"), format!("{builder:?}")] {
        assert!(text.contains("limits") && !text.contains("RandomState"), "{text}");
    }
}

#[test]
fn statistics_count_requests() {
    let (limiter, _) = with_clock(builder().burst(3));
    let before = limiter.stats();
    for _ in 0..5 {
        let _ = limiter.check(&7);
    }
    let _ = limiter.check_n(&8, 4);
    let stats = limiter.stats();
    let counts = stats.limiter.as_ref().expect("a limiter has them");
    assert_eq!((counts.allowed, counts.rejected, counts.evicted), (3, 3, 0));
    assert_eq!((stats.len, limiter.len(), limiter.in_debt()), (1, 1, 1));
    assert_eq!(stats.since(&before).limiter, stats.limiter);
    assert_eq!(stats.since(&stats).limiter.map(|counts| (counts.allowed, counts.rejected)), Some((0, 0)));
    let value = |name| stats.figures().find(|figure| figure.name == name).expect("it is listed").value;
    assert_eq!(value("cuckoo_filter_requests_allowed_total"), FigureValue::Counter(3));
    assert_eq!(value("cuckoo_filter_requests_rejected_total"), FigureValue::Counter(3));
    assert_eq!(value("cuckoo_filter_evicted_total"), FigureValue::Counter(0));
    assert_eq!(value("cuckoo_filter_evicted_debt_ratio"), FigureValue::Gauge(0.0));
}

#[test]
fn the_systems_clock_serves_too() {
    let limiter =
        CuckooRateLimiter::<str>::builder().allow(1, Duration::from_secs(3600)).capacity(10).build().expect("valid");
    assert!(limiter.check("a").is_ok());
    let limited = limiter.check("a").expect_err("one per hour");
    assert!(limited.retry_after() > Duration::from_secs(3000) && limited.retry_after() <= Duration::from_secs(3600));
    let send_and_sync: &(dyn Send + Sync) = &limiter;
    let _ = send_and_sync;
    let _ = stats(&builder().build().expect("valid"));
}
