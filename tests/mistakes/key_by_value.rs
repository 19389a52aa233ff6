//! Keys are passed by reference.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake(numbers: &ConcurrentCuckooFilter<u64>) {
    let _ = numbers.contains(7);
}

fn main() {}
