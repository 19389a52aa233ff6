//! What `memory_usage` says is what is resident, after growth and after a shrink.
#![cfg(all(target_os = "linux", not(miri)))]

#[path = "support/address_limit.rs"]
mod address_limit;

use std::fs;

use address_limit::{is_limited, run_with_limit};
use concurrent_cuckoo_filter::GrowableCuckooFilter;

/// How many bytes of this process's memory are resident.
fn resident() -> usize {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux has it");
    let line = rollup.lines().find(|line| line.starts_with("Rss:")).expect("it has this line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") << 10
}

/// The filters grow, shrink and grow again. After each step, what they report is compared with what is resident, more or less.
///
/// Returns the filters: memory that they give to the allocator would be resident before the next ones.
fn compare(filters: usize, most: u64) -> Vec<GrowableCuckooFilter<u64>> {
    let before = resident();
    let filters: Vec<_> = (0..filters).map(|_| GrowableCuckooFilter::<u64>::with_capacity(100)).collect();
    let check = |what: &str| {
        let reported = filters.iter().map(|filter| filter.stats().memory_usage).sum::<usize>();
        let resident = resident() - before;
        println!("{} filters, {what}: {reported} bytes reported, {resident} resident", filters.len());
        // The list of filters, what the allocator needs itself, and the strings here are not the filters'.
        let other = (64 << 10) + resident / 20;
        assert!(resident <= reported + other, "{what}: {reported} reported, {resident} resident");
        // A segment counts as a whole, and its last pages may not have been touched.
        assert!(is_limited() || reported <= resident + other, "{what}: {reported} reported, {resident} resident");
    };
    for filter in &filters {
        (0..most).for_each(|key| filter.insert(&key).unwrap());
    }
    check("grown");
    for filter in &filters {
        (100..most).for_each(|key| assert!(filter.remove(&key)));
        filter.shrink_to_fit();
    }
    check("shrunk");
    for filter in &filters {
        (100..most / 2).for_each(|key| filter.insert(&key).unwrap());
    }
    check("grown again");
    assert!(filters.iter().all(|filter| (0..most / 2).all(|key| filter.contains(&key))));
    filters
}

/// There is only one test, because tests would share the memory of the process.
#[test]
fn what_is_reported_is_resident() {
    // The program itself becomes resident as it runs.
    let filter = GrowableCuckooFilter::<u64>::with_capacity(100);
    (0..500_000).for_each(|key| filter.insert(&key).unwrap());
    assert!((0..500_000).all(|key| filter.contains(&key) && filter.remove(&key)));
    filter.shrink_to_fit();
    println!("{filter:?}");
    drop(filter);

    let _filters = [compare(500, 8_000), compare(50, 60_000), compare(2, 700_000)];
    if !is_limited() {
        run_with_limit("-v 67108864", &["what_is_reported_is_resident"]);
    }
}
