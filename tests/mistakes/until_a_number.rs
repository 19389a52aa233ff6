//! A number could be a tick, or seconds, or milliseconds.

use concurrent_cuckoo_filter::ExpiringCuckooFilter;

pub fn mistake(seen: &ExpiringCuckooFilter<str>) {
    let _ = seen.insert_until("apple", 5);
}

fn main() {}
