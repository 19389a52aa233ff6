//! [beyond_one_process]: crate::guide::beyond_one_process
//! [choosing_parameters]: crate::guide::choosing_parameters
//! [consistency]: crate::guide::consistency
//! [expiry]: crate::guide::expiry
//! [faq]: crate::guide::faq
//! [first_program]: crate::guide::first_program
//! [glossary]: crate::guide::glossary
//! [growth]: crate::guide::growth
//! [in_front_of_a_database]: crate::guide::in_front_of_a_database
//! [migrating]: crate::guide::migrating
//! [rate_limits]: crate::guide::rate_limits
//! [scaling]: crate::guide::scaling
//! [security]: crate::guide::security
//! [several_places]: crate::guide::several_places
//! [snapshot_format]: crate::guide::snapshot_format
//! [threads_and_async]: crate::guide::threads_and_async
//! [verification]: crate::guide::verification
//!
#![doc = include_str!("README.md")]

// A page is also read in the repository, where its links are the definitions at its end. In this documentation those of
// the macro come first, and of two definitions the first holds. `ci/links` compares them.

macro_rules! pages {
    ($($page:ident)*) => {$(
        /// [`ConcurrentCuckooFilter`]: crate::ConcurrentCuckooFilter
        /// [`CuckooMaplet`]: crate::CuckooMaplet
        /// [`CuckooRateLimiter`]: crate::CuckooRateLimiter
        /// [`ExpiringCuckooFilter`]: crate::ExpiringCuckooFilter
        /// [`Expiry`]: crate::Expiry
        /// [`ExpiryStats`]: crate::ExpiryStats
        /// [`GrowableCuckooFilter`]: crate::GrowableCuckooFilter
        /// [`RecentCuckooFilter`]: crate::RecentCuckooFilter
        /// [`RecentStats`]: crate::RecentStats
        /// [`Stats`]: crate::Stats
        /// [`WhenFull`]: crate::WhenFull
        /// [`absorb`]: crate::ConcurrentCuckooFilter::absorb
        /// [`advance_to`]: crate::ExpiringCuckooFilter::advance_to
        /// [beyond_one_process]: crate::guide::beyond_one_process
        /// [beyond_one_process#one-set-on-many-machines]: crate::guide::beyond_one_process#one-set-on-many-machines
        /// [beyond_one_process#publishing-snapshots]: crate::guide::beyond_one_process#publishing-snapshots
        /// [beyond_one_process#replaying-a-log]: crate::guide::beyond_one_process#replaying-a-log
        /// [beyond_one_process#redis-and-valkey]: crate::guide::beyond_one_process#redis-and-valkey
        /// [beyond_one_process#when-a-snapshot-cannot-be-loaded]: crate::guide::beyond_one_process#when-a-snapshot-cannot-be-loaded
        /// [choosing_parameters]: crate::guide::choosing_parameters
        /// [choosing_parameters#capacity]: crate::guide::choosing_parameters#capacity
        /// [consistency]: crate::guide::consistency
        /// [consistency#all-types]: crate::guide::consistency#all-types
        /// [consistency#what-each-operation-costs]: crate::guide::consistency#what-each-operation-costs
        /// [expiry]: crate::guide::expiry
        /// [expiry#clocks]: crate::guide::expiry#clocks
        /// [faq]: crate::guide::faq
        /// [faq#how-do-i-count-beyond-4-to-16-copies]: crate::guide::faq#how-do-i-count-beyond-4-to-16-copies
        /// [first_program]: crate::guide::first_program
        /// [first_program#handle-a-full-filter]: crate::guide::first_program#handle-a-full-filter
        /// [glossary]: crate::guide::glossary
        /// [growth]: crate::guide::growth
        /// [growth#copies]: crate::guide::growth#copies
        /// [growth#memory]: crate::guide::growth#memory
        /// [in_front_of_a_database]: crate::guide::in_front_of_a_database
        /// [in_front_of_a_database#what-to-measure]: crate::guide::in_front_of_a_database#what-to-measure
        /// [in_front_of_a_database#who-may-remove]: crate::guide::in_front_of_a_database#who-may-remove
        /// [migrating]: crate::guide::migrating
        /// [`plan`]: crate::ConcurrentBuilder::plan
        /// [rate_limits]: crate::guide::rate_limits
        /// [scaling]: crate::guide::scaling
        /// [scaling#concurrent-writers]: crate::guide::scaling#concurrent-writers
        /// [scaling#tail-latency-of-writers]: crate::guide::scaling#tail-latency-of-writers
        /// [security]: crate::guide::security
        /// [security#a-known-hasher-key]: crate::guide::security#a-known-hasher-key
        /// [security#hazards-without-an-adversary]: crate::guide::security#hazards-without-an-adversary
        /// [security#visible-answers]: crate::guide::security#visible-answers
        /// [several_places]: crate::guide::several_places
        /// [snapshot_format]: crate::guide::snapshot_format
        /// [threads_and_async]: crate::guide::threads_and_async
        /// [`unite`]: crate::ConcurrentCuckooFilter::unite
        /// [verification]: crate::guide::verification
        ///
        #[doc = include_str!(concat!(stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! {
    first_program
    choosing_parameters
    migrating
    growth
    expiry
    rate_limits
    in_front_of_a_database
    several_places
    beyond_one_process
    snapshot_format
    threads_and_async
    consistency
    security
    scaling
    verification
    faq
    glossary
}
