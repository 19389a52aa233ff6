//! [beyond_one_process]: crate::guide::beyond_one_process
//! [beyond_one_process#one-set-on-many-machines]: crate::guide::beyond_one_process#one-set-on-many-machines
//! [beyond_one_process#other-languages]: crate::guide::beyond_one_process#other-languages
//! [beyond_one_process#without-loading]: crate::guide::beyond_one_process#without-loading
//! [choosing_parameters]: crate::guide::choosing_parameters
//! [choosing_parameters#false-positive-rate]: crate::guide::choosing_parameters#false-positive-rate
//! [choosing_parameters#hasher]: crate::guide::choosing_parameters#hasher
//! [consistency]: crate::guide::consistency
//! [costs]: crate::guide::costs
//! [costs#an-insert-that-finds-no-room-at-once]: crate::guide::costs#an-insert-that-finds-no-room-at-once
//! [expiry]: crate::guide::expiry
//! [expiry#de-duplication]: crate::guide::expiry#de-duplication
//! [faq]: crate::guide::faq
//! [first_program]: crate::guide::first_program
//! [first_program#choose-a-type]: crate::guide::first_program#choose-a-type
//! [first_program#export-metrics]: crate::guide::first_program#export-metrics
//! [first_program#handle-a-full-filter]: crate::guide::first_program#handle-a-full-filter
//! [first_program#save]: crate::guide::first_program#save
//! [glossary]: crate::guide::glossary
//! [growth]: crate::guide::growth
//! [in_front_of_a_database]: crate::guide::in_front_of_a_database
//! [in_front_of_a_database#rebuilding]: crate::guide::in_front_of_a_database#rebuilding
//! [memory]: crate::guide::memory
//! [memory#ten-million-keys]: crate::guide::memory#ten-million-keys
//! [migrating]: crate::guide::migrating
//! [migrating#a-cache-or-a-map-of-seen-keys]: crate::guide::migrating#a-cache-or-a-map-of-seen-keys
//! [missing_keys]: crate::guide::missing_keys
//! [missing_keys#it-was-removed-more-often-than-it-was-inserted]: crate::guide::missing_keys#it-was-removed-more-often-than-it-was-inserted
//! [panics_and_versions]: crate::guide::panics_and_versions
//! [panics_and_versions#platforms]: crate::guide::panics_and_versions#platforms
//! [panics_and_versions#versions]: crate::guide::panics_and_versions#versions
//! [rate_limits]: crate::guide::rate_limits
//! [capabilities]: crate::guide::capabilities
//! [expiry#another-window]: crate::guide::expiry#another-window
//! [recipes]: crate::guide::recipes
//! [recipes#a-growable-filter-at-its-memory-limit]: crate::guide::recipes#a-growable-filter-at-its-memory-limit
//! [recipes#a-new-key-for-the-hasher]: crate::guide::recipes#a-new-key-for-the-hasher
//! [recipes#an-expiring-filter-that-is-too-small]: crate::guide::recipes#an-expiring-filter-that-is-too-small
//! [scaling]: crate::guide::scaling
//! [security]: crate::guide::security
//! [several_places]: crate::guide::several_places
//! [threads_and_async]: crate::guide::threads_and_async
//! [threads_and_async#async-tasks]: crate::guide::threads_and_async#async-tasks
//!
#![doc = include_str!("README.md")]

// A page is also read in the repository, where its links are the definitions at its end. In this documentation those of
// the macro come first, and of two definitions the first holds. `ci/links` compares them. A picture in the repository is
// not a part of this documentation, so its definition here has the whole picture: `tests/figures.rs` says how it is made.

macro_rules! pages {
    ($($page:ident $([$picture:literal])?)*) => {$(
        /// [`ConcurrentBuilder`]: crate::ConcurrentBuilder
        /// [`ConcurrentCuckooFilter`]: crate::ConcurrentCuckooFilter
        /// [`CuckooMaplet`]: crate::CuckooMaplet
        /// [`CuckooRateLimiter`]: crate::CuckooRateLimiter
        /// [`ExpiringCuckooFilter`]: crate::ExpiringCuckooFilter
        /// [`ExpiryStats`]: crate::ExpiryStats
        /// [`GrowableCuckooFilter`]: crate::GrowableCuckooFilter
        /// [`RecentCuckooFilter`]: crate::RecentCuckooFilter
        /// [`RecentStats`]: crate::RecentStats
        /// [`Stats`]: crate::Stats
        /// [`WhenFull`]: crate::WhenFull
        /// [`absorb`]: crate::ConcurrentCuckooFilter::absorb
        /// [`advance_to`]: crate::ExpiringCuckooFilter::advance_to
        /// [`plan`]: crate::ConcurrentBuilder::plan
        /// [`unite`]: crate::ConcurrentCuckooFilter::unite
        /// [`empty_like_last`]: crate::RecentCuckooFilter::empty_like_last
        /// [`empty_like_within`]: crate::RecentCuckooFilter::empty_like_within
        /// [beyond_one_process]: crate::guide::beyond_one_process
        /// [beyond_one_process#one-set-on-many-machines]: crate::guide::beyond_one_process#one-set-on-many-machines
        /// [beyond_one_process#publishing-snapshots]: crate::guide::beyond_one_process#publishing-snapshots
        /// [beyond_one_process#redis-and-valkey]: crate::guide::beyond_one_process#redis-and-valkey
        /// [beyond_one_process#replaying-a-log]: crate::guide::beyond_one_process#replaying-a-log
        /// [beyond_one_process#when-a-snapshot-cannot-be-loaded]: crate::guide::beyond_one_process#when-a-snapshot-cannot-be-loaded
        /// [choosing_parameters]: crate::guide::choosing_parameters
        /// [choosing_parameters#batches-and-huge-pages]: crate::guide::choosing_parameters#batches-and-huge-pages
        /// [choosing_parameters#capacity]: crate::guide::choosing_parameters#capacity
        /// [choosing_parameters#false-positive-rate]: crate::guide::choosing_parameters#false-positive-rate
        /// [choosing_parameters#layouts]: crate::guide::choosing_parameters#layouts
        /// [consistency#all-types]: crate::guide::consistency#all-types
        /// [costs]: crate::guide::costs
        /// [costs#an-insert-that-finds-no-room-at-once]: crate::guide::costs#an-insert-that-finds-no-room-at-once
        /// [expiry]: crate::guide::expiry
        /// [expiry#clocks]: crate::guide::expiry#clocks
        /// [faq#how-do-i-count-beyond-4-to-16-copies]: crate::guide::faq#how-do-i-count-beyond-4-to-16-copies
        /// [first_program#choose-a-type]: crate::guide::first_program#choose-a-type
        /// [first_program#choose-the-key]: crate::guide::first_program#choose-the-key
        /// [first_program#handle-a-full-filter]: crate::guide::first_program#handle-a-full-filter
        /// [growth]: crate::guide::growth
        /// [growth#copies]: crate::guide::growth#copies
        /// [growth#memory]: crate::guide::growth#memory
        /// [in_front_of_a_database#what-to-measure]: crate::guide::in_front_of_a_database#what-to-measure
        /// [in_front_of_a_database#who-may-remove]: crate::guide::in_front_of_a_database#who-may-remove
        /// [memory]: crate::guide::memory
        /// [missing_keys]: crate::guide::missing_keys
        /// [panics_and_versions]: crate::guide::panics_and_versions
        /// [`room_for`]: crate::RecentBuilder::room_for
        /// [scaling]: crate::guide::scaling
        /// [scaling#concurrent-writers]: crate::guide::scaling#concurrent-writers
        /// [scaling#tail-latency-of-writers]: crate::guide::scaling#tail-latency-of-writers
        /// [security#a-known-hasher-key]: crate::guide::security#a-known-hasher-key
        /// [security#hazards-without-an-adversary]: crate::guide::security#hazards-without-an-adversary
        /// [security#replaced-snapshots]: crate::guide::security#replaced-snapshots
        /// [security#visible-answers]: crate::guide::security#visible-answers
        /// [threads_and_async]: crate::guide::threads_and_async
        /// [capabilities]: crate::guide::capabilities
        /// [expiry#another-window]: crate::guide::expiry#another-window
        /// [growth#at-the-largest-size]: crate::guide::growth#at-the-largest-size
        /// [recipes]: crate::guide::recipes
        /// [recipes#a-growable-filter-at-its-memory-limit]: crate::guide::recipes#a-growable-filter-at-its-memory-limit
        /// [recipes#a-new-key-for-the-hasher]: crate::guide::recipes#a-new-key-for-the-hasher
        /// [recipes#an-expiring-filter-that-is-too-small]: crate::guide::recipes#an-expiring-filter-that-is-too-small
        /// [`RecentCuckooFilter::unite`]: crate::RecentCuckooFilter::unite
        /// [first_program#save]: crate::guide::first_program#save
        ///
        $(#[doc = include_str!($picture)])?
        #[doc = include_str!(concat!(stringify!($page), ".md"))]
        pub mod $page {}
    )*};
}

pages! {
    first_program
    capabilities
    choosing_parameters
    missing_keys
    memory
    migrating
    growth ["growth.svg.txt"]
    expiry
    rate_limits
    in_front_of_a_database
    several_places
    recipes
    beyond_one_process
    threads_and_async
    costs
    consistency
    panics_and_versions
    security
    scaling
    faq
    glossary
}
