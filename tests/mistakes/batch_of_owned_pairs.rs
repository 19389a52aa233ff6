//! The keys of pairs are references, too.

use concurrent_cuckoo_filter::CuckooMaplet;

pub fn mistake(maplet: &CuckooMaplet<str>) {
    let _ = maplet.insert_batch(vec![("apple".to_owned(), 3)]);
}

fn main() {}
