//! A batch takes references, and these keys are made on the way.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake(numbers: &ConcurrentCuckooFilter<u64>) {
    let _ = numbers.insert_batch(0..10);
}

fn main() {}
