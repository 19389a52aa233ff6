//! The clock takes a tick, not a number.

use concurrent_cuckoo_filter::ExpiringCuckooFilter;

pub fn mistake(seen: &ExpiringCuckooFilter<str>) {
    seen.advance_to(17);
}

fn main() {}
