//! A type that names a hasher is given one.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake() {
    let _ = ConcurrentCuckooFilter::<u64, std::hash::RandomState>::with_capacity(1000);
}

fn main() {}
