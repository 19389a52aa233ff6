//! Digests, and filters that are put together.
//!
//! - `digests`: equal for equal multisets however they came about, and different after any change;
//! - `known_answers`: the digests of certain changes, on every machine and in every version with this format;
//! - `sums`: one filter absorbs another: exact counts, in every layout, and errors that change nothing;
//! - `ends`: the same for entries that expire;
//! - `unions`: one filter unites with another: the laws of a union, for each type; what it says when it fails;
//! - `copies`: `empty_like` and `absorb` make a copy of a filter in use;
//! - `in_use`: all of this while other threads change the filters.

mod copies;
mod digests;
mod ends;
mod in_use;
#[path = "../support/kinds.rs"]
mod kinds;
#[cfg(feature = "stable-hash")]
mod known_answers;
mod sums;
#[path = "../support/mod.rs"]
mod support;
mod unions;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, ExpiringCuckooFilter, GrowableCuckooFilter, WhenFull};
use kinds::{Expiring, Growable, Hasher, Maplet, maplet};
use support::Raw;

fn expiring(capacity: usize, ticks: u64) -> Expiring {
    let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(capacity).lifetime_in_ticks(ticks);
    builder.hasher(Hasher::default()).build().unwrap()
}

/// A filter that evicts, for lifetimes of up to 14 ticks.
fn evicting(capacity: usize) -> Expiring {
    let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(capacity).lifetime_in_ticks(14);
    builder.when_full(WhenFull::EvictSoonest).hasher(Hasher::default()).build().unwrap()
}

fn growable(capacity: usize) -> Growable {
    GrowableCuckooFilter::<Raw>::builder().capacity(capacity).hasher(Hasher::default()).build().unwrap()
}

/// A filter for a hundred keys. Its rate leads to a semi-sorted or a plain layout.
fn filter() -> ConcurrentCuckooFilter<Raw, Hasher> {
    ConcurrentCuckooFilter::<Raw>::builder().capacity(100).hasher(Hasher::default()).build().unwrap()
}
