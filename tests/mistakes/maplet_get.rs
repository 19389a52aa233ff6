//! A map has `get`; a maplet has `values`.

use concurrent_cuckoo_filter::CuckooMaplet;

pub fn mistake(maplet: &CuckooMaplet<str>) {
    maplet.get("apple");
}

fn main() {}
