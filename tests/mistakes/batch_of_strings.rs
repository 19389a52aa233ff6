//! A filter of `str` is asked for `&str`.

use concurrent_cuckoo_filter::ConcurrentCuckooFilter;

pub fn mistake(names: &ConcurrentCuckooFilter<str>, list: &[String]) {
    let _ = names.insert_batch(list);
}

fn main() {}
