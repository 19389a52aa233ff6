//! The maplet by its public face.
//!
//! - `answers`: what one thread is told, errors included; batches answer as single operations do;
//! - `rates`: how often a wrong value is found, and how full a maplet gets, in each layout and for each number of value bits;
//! - `mistakes_of_others`: what goes wrong in other maplets and must not here;
//! - `races`: many threads, values that change all the time while items are relocated.

mod answers;
mod mistakes_of_others;
mod races;
mod rates;

use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;

/// A maplet with so many value bits, at a rate that `build` must meet.
fn maplet(capacity: usize, value_bits: u32, rate: f64) -> ConcurrentCuckooMaplet<u64> {
    let builder = ConcurrentCuckooMaplet::builder().capacity(capacity).value_bits(value_bits);
    builder.false_positive_rate(rate).build().expect("a valid maplet")
}
