//! A maplet needs the number of value bits, too.

use concurrent_cuckoo_filter::CuckooMaplet;

pub fn mistake() {
    let _ = CuckooMaplet::<str>::with_capacity(1000);
}

fn main() {}
