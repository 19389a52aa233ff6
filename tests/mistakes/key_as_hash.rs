//! A key that is a number is not its hash.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake(numbers: &ConcurrentCuckooFilter<u64>) {
    let _ = numbers.by_hash().contains(7);
}

fn main() {}
