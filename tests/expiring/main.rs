//! The public interface of the filter whose entries expire.
//!
//! - `lifetimes`: every answer against a plain multiset with a clock, to the tick; batches answer as single
//!   operations do;
//! - `clocks`: clocks that go back, stand still, jump or begin anew, and the sweep;
//! - `eviction`: a full filter that evicts the entries that expire first: what goes, what stays, and what it says about it;
//! - `parameters`: what is built, which inserts are refused, and the messages.

mod clocks;
mod eviction;
mod lifetimes;
mod parameters;
#[path = "../support/mod.rs"]
mod support;

use concurrent_cuckoo_filter::ExpiringCuckooFilter;
use support::{Seeded, seeded};

type Filter = ExpiringCuckooFilter<u64, Seeded>;

/// A filter for lifetimes of up to this many ticks, at a rate that `build` must meet.
fn filter(capacity: usize, longest: u64, rate: f64) -> Filter {
    let builder = Filter::builder_with_hasher(seeded(1)).capacity(capacity).lifetime_in_ticks(longest);
    builder.false_positive_rate(rate).build().expect("a valid filter")
}
