//! A maplet takes a value with each key.

use concurrent_cuckoo_filter::CuckooMaplet;

pub fn mistake(maplet: &CuckooMaplet<str>) {
    maplet.insert("apple");
}

fn main() {}
