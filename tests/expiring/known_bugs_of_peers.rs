//! Failures that were seen in other filters whose entries expire.

use concurrent_cuckoo_filter::{ExpiringCuckooFilter, ExpiringInsertError, Tick};

use crate::filter;

/// In one filter, lifetimes changed by up to eight ticks if entries were moved during a sweep, and some entries
/// ended early.
#[test]
fn relocations_and_sweeps_change_no_lifetime() {
    let filter = filter(20_000, 15, 1e-6);
    let capacity = filter.capacity() as u64;
    let end = |key: u64| key / 2000 + 1 + key % 15;
    for now in 0..60 {
        filter.advance_to(Tick::new(now));
        let keys = now * 2000..(now + 1) * 2000;
        keys.clone().for_each(|key| _ = filter.insert_until(&key, Tick::new(end(key))).expect("there is room"));
        for key in keys.start.saturating_sub(2000 * 16)..keys.end {
            assert_eq!(filter.contains(&key), end(key) > now, "{key} at {now}");
        }
    }
    assert!(filter.len() as u64 > capacity * 7 / 10 && filter.stats().relocations > 0, "{:?}", filter.stats());
}

/// In one filter, a lifetime of 256 became none in its 8 bits: numbers wrapped around silently.
#[test]
fn no_lifetime_goes_round() {
    for longest in [1, 3, 15, 255, 65_535] {
        let filter = ExpiringCuckooFilter::<u64>::builder().capacity(10).lifetime_in_ticks(longest);
        let filter = filter.false_positive_rate(0.2).build().expect("valid");
        filter.advance_to(Tick::new(7));
        filter.insert_until(&1, Tick::new(7 + longest)).expect("the longest lifetime");
        for more in [1, 2, longest, 2 * longest + 2, 1 << 20, u64::MAX - 7 - longest] {
            let error = filter.insert_until(&2, Tick::new(7 + longest + more)).expect_err("it is too long");
            assert!(matches!(error, ExpiringInsertError::LifetimeTooLong { .. }), "{error}");
        }
        filter.advance_to(Tick::new(6 + longest));
        assert!(filter.contains(&1));
        filter.advance_to(Tick::new(7 + longest));
        assert!(!filter.contains(&1) && filter.live_len() == 0);
    }
}
