//! An expiring filter needs a lifetime, too.

use concurrent_cuckoo_filter::ExpiringCuckooFilter;

pub fn mistake() {
    let _ = ExpiringCuckooFilter::<str>::with_capacity(1000);
}

fn main() {}
