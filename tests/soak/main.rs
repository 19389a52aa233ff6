//! Soaks: in each round, threads do random operations on a filter of another layout, size and load. Every operation
//! is checked, and at the end every copy in the filter.
//!
//! - `one_table`: a `ConcurrentCuckooFilter`;
//! - `growable`: a `GrowableCuckooFilter`;
//! - `spikes`: a `GrowableCuckooFilter` that grows to a million keys and shrinks again, over and over;
//! - `expiring`, `expiring_worker`: an `ExpiringCuckooFilter`;
//! - `maplet`, `maplet_worker`: a `CuckooMaplet`;
//! - `removable`: helpers that the first two share;
//! - `rounds`: helpers that all share.
//!
//! To run one soak:
//!
//! `CCF_SOAK_SECONDS=3600 cargo test --release --all-features --test soak -- --ignored --nocapture soak_growable`
//!
//! Without `--all-features` the rounds have no saves. A violation ends the soak with the seed of its round, and so
//! does a round that never ends. Set `CCF_SOAK_SEED` to that seed to begin with the same round. The filter and the
//! keys are then the same, but the threads interleave differently.

mod expiring;
mod expiring_worker;
mod growable;
mod maplet;
mod maplet_worker;
mod one_table;
mod removable;
mod rounds;
mod spikes;
#[path = "../support/mod.rs"]
mod support;

use rounds::{sample, soak};

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_one_table() {
    soak::<one_table::Round>();
}

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_growable() {
    soak::<growable::Round>();
}

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_spikes() {
    soak::<spikes::Round>();
}

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_expiring() {
    soak::<expiring::Round>();
}

#[test]
#[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
fn soak_maplet() {
    soak::<maplet::Round>();
}

/// A few short rounds of each soak.
#[test]
#[cfg_attr(miri, ignore = "too long")]
fn a_sample_of_each_soak() {
    sample::<one_table::Round>(6);
    sample::<growable::Round>(6);
    sample::<spikes::Round>(1);
    sample::<expiring::Round>(6);
    sample::<maplet::Round>(6);
}
