//! The clock takes a tick, not a time.

use concurrent_cuckoo_filter::ExpiringCuckooFilter;

pub fn mistake(seen: &ExpiringCuckooFilter<str>) {
    seen.advance_to(std::time::SystemTime::now());
}

fn main() {}
