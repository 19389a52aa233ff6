//! Huge pages, which a builder asks for.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

/// For how many KiB of this process's memory huge pages have been requested. The kernel marks such parts `hg`.
fn advised() -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").expect("Linux has /proc/self/smaps");
    let (mut size, mut advised) = (0, 0);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Size:") => size = words.next().and_then(|kib| kib.parse().ok()).expect("a size"),
            Some("VmFlags:") if words.any(|flag| flag == "hg") => advised += size,
            _ => {}
        }
    }
    advised
}

/// There is only one test, because tests would share the memory of the process.
#[test]
fn only_large_tables_are_on_huge_pages() {
    let filter = |keys: usize, wanted: bool| {
        let filter =
            ConcurrentCuckooFilter::<u64>::builder().capacity(keys).huge_pages(wanted).build().expect("memory");
        let keys: Vec<u64> = (0..keys as u64).collect();
        assert_eq!(filter.insert_batch(&keys), Ok(()));
        let mut found = Vec::new();
        filter.contains_batch(&keys, &mut found);
        assert!(found.iter().all(|&found| found));
        filter
    };
    let _small = filter(100_000, true);
    let _unwanted = filter(10_000_000, false);
    assert_eq!(advised(), 0, "no huge pages were requested");

    let large = filter(10_000_000, true);
    if Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        let (advised, table) = (advised(), large.stats().memory_usage as u64 >> 10);
        assert!(advised * 10 > table * 9 && advised <= table, "{advised} KiB of {table}");
    }
}
