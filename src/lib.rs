//! A cuckoo filter that many threads share. Lookups are lock-free and never miss a key, and keys can be removed.
//! False-positive rates can be from 10% to 10⁻⁹, and capacities up to billions of keys.
//!
//! An approximate-membership filter is a set that answers "definitely absent" or "probably present" in a few bits per
//! key. Put one in front of something slow or large: a database, a list of blocked domains, a store of messages that were
//! processed. Where nothing exact decides after a wrong "present", as for revoked tokens, choose a [lower
//! rate](guide::choosing_parameters#false-positive-rate). This one is a cuckoo filter (Fan, Andersen, Kaminsky,
//! Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom*, CoNEXT 2014; called "the paper" in this
//! documentation). So it can remove keys, and at most rates below 1% it uses less memory than a Bloom filter.
//!
//! ```
//! use std::sync::Arc;
//! use std::thread;
//! use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
//!
//! let blocked = Arc::new(ConcurrentCuckooFilter::<str>::with_capacity(10_000));
//! blocked.insert("mailinator.com")?;
//!
//! let readers: Vec<_> = (0..4)
//!     .map(|_| {
//!         let blocked = Arc::clone(&blocked);
//!         thread::spawn(move || blocked.contains("mailinator.com"))
//!     })
//!     .collect();
//! blocked.insert("trashmail.com")?; // no `mut`, no lock
//! assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
//! assert!(blocked.remove("trashmail.com"));
//! # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
//! ```
//!
//! # Which type
//!
//! | you need | type | bits per key at 0.1% |
//! |---|---|---|
//! | a set, and you know how many keys it has at most | [`ConcurrentCuckooFilter`] | 13.2 |
//! | a set that grows and shrinks, or whose size you do not know | [`GrowableCuckooFilter`] | 17.1 |
//! | recent keys: was this key among the last million, or seen within the last minute? | [`RecentCuckooFilter`] | 19.4 |
//! | keys that each expire at a time of their own, such as revoked tokens | [`ExpiringCuckooFilter`] | 16.8 |
//! | the place of a key: in which segment, shard or node is it? | [`CuckooMaplet`] | 16.8 |
//! | a limit for each client or account: requests per second or per hour | [`CuckooRateLimiter`] | 23.2 |
//!
//! Bits per key are for ten million keys at a false-positive rate of 0.1%: with `expected_keys`, a lifetime of 14 ticks,
//! values of 4 bits, and bursts of 20. Revoked tokens need a [lower
//! rate](guide::choosing_parameters#false-positive-rate): they take 38.6 bits per key at 10⁻⁵, and 23.2 at 2.3·10⁻⁵. The page
//! [`memory`](guide::memory) has other sizes, rates and settings, and [a first
//! program](guide::first_program#choose-a-type) says what to do if two types fit.
//!
//! Each type has a builder for its rate and hasher. All have batches and metrics for Prometheus and other systems
//! ([`Stats::figures`]), and with the feature `snapshot` they can be saved and loaded. All but the [`RecentCuckooFilter`]
//! and the [`CuckooRateLimiter`] have digests, and can absorb another filter of their kind. A `RecentCuckooFilter` can take over
//! the keys of one with another window.
//!
//! # What you can rely on
//!
//! - **A key that is present throughout a lookup is found**, as long as only inserted keys are removed, once for each insert.
//! - A lookup takes no lock and never waits for another thread. It retries, and writes to shared memory, only if a
//!   concurrent change has invalidated what it read.
//! - Each operation on a key takes effect at one moment of its call (it is *linearizable*). `clear` and `len` are
//!   exceptions ([conditions](guide::consistency#the-other-types)).
//! - An insert that fails has changed no key. (A growable filter may have grown, and one that evicts may have evicted
//!   entries.) It fails for lack of room or because of too many copies, never because of contention.
//! - No operation on a key allocates after construction. The exceptions are growth, changes while a save, a digest or an
//!   `absorb` runs, which keep copies of old buckets, and a thread's first wait for a lock. Nothing is allocated or freed
//!   under a lock. All the same, a global allocator may only look up keys in a filter, and
//!   [must not change it](guide::consistency#all-types).
//!
//! The page [`consistency`](guide::consistency) states this exactly, for each type and operation, and the page
//! [`costs`](guide::costs) has what each operation costs.
//!
//! # Hazards
//!
//! The page [`missing_keys`](guide::missing_keys) lists everything that can make a key go missing, and how to notice it.
//!
//! - **Remove only what you inserted, once for each insert.** If you remove a key that was never inserted, another one
//!   with the same fingerprint may be lost.
//! - **Size for the most keys that are present at one time.** A [`ConcurrentCuckooFilter`] does not grow, a
//!   [`GrowableCuckooFilter`] grows to the [largest size](GrowableBuilder::max_capacity) that it was built with, and keys
//!   cannot be listed.
//! - **Copies take up slots.** After 4 to 16 inserts of one key (2 to 8 in a growable filter, and 4 to 12 in an expiring
//!   filter or a maplet), a further one fails with [`InsertError::TooManyCopies`].
//! - **The default hasher's hashes differ** between processes, versions and processors. For a snapshot that is to
//!   survive a restart, use `StableHashBuilder` (feature `stable-hash`): see
//!   [`beyond_one_process`](guide::beyond_one_process).
//! - **Anyone who knows the hasher's key can forge false positives.** The default hasher has random keys. The page
//!   [`security`](guide::security) says what each kind of adversary can do.
//!
//! # Speed, async, platforms
//!
//! A lookup takes 4 to 120 nanoseconds, most of which it waits for two cache lines. Batches in large tables are two to
//! six times as fast as single calls. The documentation of each operation has its cost, in cache lines and in
//! *stripes*: locks of writers, each shared by many pairs of buckets ([glossary](guide::glossary)). `benches/README.md` in the
//! repository compares filters. Async tasks call the operations directly, except [those that belong on a blocking
//! thread](guide::threads_and_async). The crate needs Rust 1.88 or later, `std`, and 64-bit atomics or the feature
//! `portable-atomic`. Short programs for each type are in `examples/`: `cargo run --example filter`.
//!
//! # Features
//!
//! All are off by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `snapshot` | `save`, `load` and their variants, to and from readers, writers and files; `SnapshotInfo`; `View`, for a snapshot that is not loaded |
//! | `stable-hash` | `StableHashBuilder`, a keyed hasher (SipHash-1-3) with the same output everywhere |
//! | `serde` | filters serialize as snapshots; so does `Stats` |
//! | `portable-atomic` | targets without 64-bit atomics, such as 32-bit PowerPC and ARMv5. There a lookup may wait for a lock. Elsewhere it changes nothing |
//!
//! If a feature is off, the compiler reports its methods only as "not found". The documentation of each method names
//! the feature that it needs.
//!
//! # Guide
//!
//! The module [`guide`] leads from this example to production: [a first program](guide::first_program), [choosing
//! parameters](guide::choosing_parameters), [migrating from other filters](guide::migrating), [expiry](guide::expiry),
//! [a filter in front of a database](guide::in_front_of_a_database), [security](guide::security), and more.

// ARCHITECTURE.md has the modules, from the public types down, and says how they work together. A module may import those
// below it, and none above it. It also says what the first word of a file means, PURE or CONCURRENT.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::missing_errors_doc)]

mod error;
mod filter;
mod growth;
mod hasher;
mod lookup;
mod machine;
mod plan;
mod search;
mod snapshot;
mod sync;
mod table;
mod word;

#[cfg(doc)]
pub mod guide;

pub use error::absorb::AbsorbError;
pub use error::build::BuildError;
#[cfg(feature = "snapshot")]
pub use error::damage::SnapshotDamage;
pub use error::insert::{
    ExpiringInsertError, GrowableInsertError, InsertBatchError, InsertError, MapletInsertError, ReserveError,
    ValueTooLarge,
};
pub use error::kind::FilterKind;
pub use error::limited::{LimitReason, Limited};
#[cfg(feature = "snapshot")]
pub use error::load::LoadError;
#[cfg(feature = "snapshot")]
pub use error::load_path::LoadPathError;
pub use error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
pub use error::mismatch::{SnapshotMismatch, UnsupportedSnapshot};
pub use error::quota::QuotaError;
pub use error::tick::TickError;
pub use filter::batch_key::BatchKey;
pub use filter::by_hash::{ByHash, Hashed};
pub use filter::concurrent::builder::ConcurrentBuilder;
pub use filter::concurrent::filter::ConcurrentCuckooFilter;
pub use filter::expiring::builder::ExpiringBuilder;
pub use filter::expiring::expiry::Expiry;
pub use filter::expiring::filter::ExpiringCuckooFilter;
pub use filter::figures::{Figure, FigureValue};
pub use filter::growable::builder::GrowableBuilder;
pub use filter::growable::filter::GrowableCuckooFilter;
pub use filter::limiter::builder::LimiterBuilder;
pub use filter::limiter::filter::CuckooRateLimiter;
pub use filter::maplet::builder::MapletBuilder;
pub use filter::maplet::filter::CuckooMaplet;
pub use filter::recent::builder::RecentBuilder;
pub use filter::recent::filter::RecentCuckooFilter;
#[cfg(feature = "snapshot")]
pub use filter::snapshot_info::SnapshotInfo;
pub use filter::stats::{ExpiryStats, LimiterStats, RecentStats, Stats};
#[cfg(feature = "snapshot")]
pub use filter::view::view::View;
#[cfg(feature = "snapshot")]
pub use filter::view::viewed::Viewed;
pub use hasher::default::{DefaultHashBuilder, DefaultHasher};
#[cfg(feature = "stable-hash")]
pub use hasher::stable::{StableHashBuilder, StableHasher};
#[cfg(feature = "snapshot")]
pub use snapshot::loader::{FromSnapshot, Loaded, Loader};
#[cfg(feature = "snapshot")]
pub use snapshot::save::{Save, SaveReader};
#[cfg(feature = "serde")]
pub use snapshot::serde::StableDefault;
pub use table::expiring::clock::{Advance, WhenFull};
pub use table::filter_plan::FilterPlan;
pub use table::limiter_table::Allowance;
pub use word::layout::Encoding;
pub use word::quota::Quota;
pub use word::table_layout::TableLayout;
pub use word::tick::Tick;
pub use word::values::{Values, ValuesIter};
pub use word::window::Window;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
