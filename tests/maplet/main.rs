//! The public interface of the maplet.
//!
//! - `answers`: what one thread gets, including errors; batches answer as single operations do;
//! - `rates`: how often a wrong value is found, and how full a maplet gets, in each layout and for each number of
//!   value bits;
//! - `known_bugs_of_peers`: failures of other maplets that must not occur here;
//! - `races`: many threads, and values that change all the time while items are relocated.

mod answers;
mod known_bugs_of_peers;
mod races;
mod rates;

use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;

/// A maplet with this many value bits, at a rate that `build` must meet.
fn maplet(capacity: usize, value_bits: u32, rate: f64) -> ConcurrentCuckooMaplet<u64> {
    let builder = ConcurrentCuckooMaplet::builder().capacity(capacity).value_bits(value_bits);
    builder.false_positive_rate(rate).build().expect("a valid maplet")
}
