//! A filter of numbers is not asked for text.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake(numbers: &ConcurrentCuckooFilter<u64>) {
    let _ = numbers.contains("seven");
}

fn main() {}
