//! The public interface of the maplet.
//!
//! - `answers`: what one thread gets, including errors;
//! - `rates`: how often a wrong value is found, and that the narrowest fingerprints suffice.

mod answers;
mod rates;
#[path = "../support/mod.rs"]
mod support;

use concurrent_cuckoo_filter::CuckooMaplet;
use support::{Seeded, seeded};

type Maplet = CuckooMaplet<u64, Seeded>;

/// A maplet with this many value bits, at a rate that `build` must meet.
fn maplet(capacity: usize, value_bits: u32, rate: f64) -> Maplet {
    seeded_maplet(1, capacity, value_bits, rate)
}

/// The same with the hasher of this seed.
fn seeded_maplet(seed: u64, capacity: usize, value_bits: u32, rate: f64) -> Maplet {
    let builder = Maplet::builder_with_hasher(seeded(seed)).capacity(capacity).value_bits(value_bits);
    builder.false_positive_rate(rate).build().expect("a valid maplet")
}
