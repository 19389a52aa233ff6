//! Soaks: in each round, threads do random operations on a filter of another layout, size and load. Every operation
//! is checked, and at the end every entry in the filter.
//!
//! - `rounds`: rounds that follow from a seed, one after the other;
//! - `worker`: what a round and its threads do with a filter of any kind;
//! - `filters`: what is particular in filters of keys that stay until they are removed;
//! - `recent`: the same of a `RecentCuckooFilter`, whose rounds are its own;
//! - `expiring`: the same of an `ExpiringCuckooFilter`, with a clock that advances while all threads work.
//!
//! To run one soak:
//!
//! `CCF_SOAK_SECONDS=3600 cargo test --release --all-features --test soak -- --ignored --nocapture soak_growable`
//!
//! Without `--all-features` the rounds have no saves. A violation ends the soak with the seed of its round, and so
//! does a round that never ends. Set `CCF_SOAK_SEED` to that seed to begin with the same round. The filter and the
//! keys are then the same, but the threads interleave differently.

#[allow(dead_code, reason = "soaks only ask `has_ranges`")]
#[path = "../support/address_limit.rs"]
mod address_limit;
mod expiring;
mod filters;
#[path = "../support/kinds.rs"]
mod kinds;
mod recent;
mod rounds;
#[path = "../support/mod.rs"]
mod support;
mod worker;

use rounds::{sample, soak};

macro_rules! soaks {
    ($(fn $name:ident() of $Kind:ty;)*) => {
        $(
            #[test]
            #[ignore = "as long as CCF_SOAK_SECONDS, 60 by default; run it in release mode with --nocapture"]
            fn $name() {
                soak::<$Kind>();
            }
        )*

        /// A few short rounds of each soak, which have each kind of work.
        #[test]
        #[cfg_attr(miri, ignore = "too long")]
        fn a_sample_of_each_soak() {
            $(sample::<$Kind>(8);)*
        }
    };
}

soaks! {
    fn soak_one_table() of filters::OneTable;
    fn soak_growable() of filters::Growable;
    fn soak_expiring() of expiring::Expiring;
    fn soak_maplet() of filters::Maplet;
}
