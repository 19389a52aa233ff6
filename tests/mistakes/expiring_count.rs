//! An expiring filter does not count the entries of a key.

use concurrent_cuckoo_filter::ExpiringCuckooFilter;

pub fn mistake(seen: &ExpiringCuckooFilter<str>) {
    seen.count("apple");
}

fn main() {}
