use concurrent_cuckoo_filter::{Advance, Tick};

use crate::filter;

#[test]
fn a_jump_has_everything_expire_at_once_and_for_good() {
    for jump in [15, 16, 17, 31, 32, 33, 1000, 1 << 40, u64::MAX - 5000] {
        let filter = filter(100, 15, 1e-6);
        filter.advance_to(Tick::new(1000));
        (0..30).for_each(|key| _ = filter.insert_until(&key, Tick::new(1001 + key % 15)).expect("there is room"));
        assert_eq!(filter.advance_to(Tick::new(1000 + jump)), Advance::Forward { ticks: jump });
        assert_eq!((filter.live_len(), filter.stats().expiry.unwrap().clock_jumps), (0, 1), "a jump of {jump}");
        for now in 1000 + jump..1000 + jump + 40 {
            filter.advance_to(Tick::new(now));
            assert!(!(0..30).any(|key| filter.contains(&key)), "it came back to life at {now}, after a jump of {jump}");
        }
        assert_eq!((filter.len(), filter.stats().expiry.unwrap().expired), (0, 30));
        let now = filter.now().expect("the clock has a tick").get();
        filter.insert_until(&1, Tick::new(now + 15)).expect("there is room");
        filter.advance_to(Tick::new(now + 14));
        assert!(filter.contains(&1));
    }
}

#[test]
fn the_sweep_is_spread_over_calls_and_never_late() {
    // 60,000 buckets, and a call sweeps 4,096 of them: fifteen calls.
    let filter = filter(230_000, 15, 0.001);
    filter.advance_to(Tick::new(0));
    for key in 0..200_000u64 {
        filter.insert_until(&key, Tick::new(1 + key % 15)).expect("there is room");
    }
    let calls = filter.plan().slots / filter.plan().layout.slots_per_bucket / 4096 + 1;
    for now in 1..=10 {
        let before = filter.len();
        filter.advance_to(Tick::new(now));
        let stats = filter.stats();
        assert_eq!(filter.live_len(), (0..200_000u64).filter(|key| 1 + key % 15 > now).count(), "at {now}");
        assert!(filter.len() > filter.live_len() && filter.len() < before, "one call sweeps a part");
        assert_eq!(stats.expiry.as_ref().unwrap().oldest_unswept, Some(Tick::new(now)));
        (1..calls).for_each(|_| assert_eq!(filter.advance_to(Tick::new(now)), Advance::Current));
        assert_eq!(
            (filter.len(), filter.stats().expiry.unwrap().oldest_unswept),
            (filter.live_len(), None),
            "they sweep all"
        );
    }
    // Without further calls, the next tick sweeps the rest.
    filter.advance_to(Tick::new(11));
    filter.advance_to(Tick::new(12));
    assert_eq!(filter.stats().expiry.unwrap().oldest_unswept, Some(Tick::new(12)));
    assert_eq!(filter.stats().expiry.unwrap().sweeps, 11);
}

#[test]
fn short_lifetimes_leave_room_for_a_sweep_that_lags() {
    // Built for 9 ticks, which need a ring of 16. So the sweep may lag behind by seven ticks.
    let filter = filter(230_000, 9, 1e-7);
    filter.advance_to(Tick::new(0));
    for now in 1..=200u64 {
        let keys = now * 1000..now * 1000 + 1000;
        for key in keys {
            filter.insert_until(&key, Tick::new(now - 1 + 1 + key % 9)).expect("there is room");
        }
        filter.advance_to(Tick::new(now));
        let oldest = filter.stats().expiry.unwrap().oldest_unswept.map_or(now, Tick::get);
        assert!(now - oldest <= 7, "{oldest} at {now}");
        for key in (now.saturating_sub(9).max(1) * 1000..now * 1000 + 1000).step_by(7) {
            assert_eq!(filter.contains(&key), key / 1000 + key % 9 > now, "{key} at {now}");
        }
    }
    assert!(filter.stats().expiry.unwrap().sweeps < 60, "several ticks at a time: {:?}", filter.stats());
}
