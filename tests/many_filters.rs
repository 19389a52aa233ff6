//! Many growable filters in one process. It is a process of its own, because they take all ranges of addresses that it may
//! have, and tests beside it would find none.

use concurrent_cuckoo_filter::GrowableCuckooFilter;

/// A process can have some 65,000 mappings. However many filters it has, nearly all of these are left.
#[test]
#[cfg_attr(not(all(target_os = "linux", not(miri))), ignore = "it reads `/proc`")]
fn many_filters_leave_mappings_for_everything_else() {
    let filters: Vec<_> = (0..3_000).map(|_| GrowableCuckooFilter::<u64>::with_capacity(3_000)).collect();
    let keys = |nth: usize| (nth as u64..).step_by(3_000).take(10);
    for (nth, filter) in filters.iter().enumerate() {
        keys(nth).for_each(|key| filter.insert(&key).unwrap());
    }
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    assert!(mappings < 8_000, "{mappings}");
    assert!(filters.iter().enumerate().all(|(nth, filter)| keys(nth).all(|key| filter.contains(&key))));
    // They can grow all the same.
    (0..20_000).for_each(|key| filters[2_999].insert(&key).unwrap());
    assert!((0..20_000).all(|key| filters[2_999].contains(&key)));
}
