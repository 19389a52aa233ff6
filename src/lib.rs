//! A cuckoo filter that many threads share: lock-free lookups that never miss a key, inserts, deletes, any rate, any
//! capacity.
//!
//! An approximate-membership filter answers "is this key in the set?" with *no*, which is certain, or *probably*, in a
//! few bits a key. Put one in front of something slow: a database that would find nothing, a list of revoked tokens,
//! the requests seen today. This one is a cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo Filter:
//! Practically Better Than Bloom*, CoNEXT 2014; "the paper" in these pages), so it can delete, and it takes less memory
//! than a Bloom filter at rates below 1 %. It is made to be shared:
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
//! A [`GrowableCuckooFilter`] takes any number of keys. An [`ExpiringCuckooFilter`] forgets each key at a time of its own, and a
//! [`RotatingCuckooFilter`] all keys of a period at once. A [`ConcurrentCuckooMaplet`] remembers a value of a few bits for each key:
//! which of several places may hold it.
//!
//! # Which layout
//!
//! A bucket is one 64-bit word of `b` slots, with a fingerprint of `f` bits in each. [`Builder::false_positive_rate`]
//! takes the cheapest layout whose rate is at most the one asked for with *every* slot taken. *Semi-sorted* buckets
//! (the paper's section 5.2) store a fingerprint in about one bit less than its `f`; *plain* ones are quicker. At
//! capacity:
//!
//! | rate asked for | encoding | `b` | `f` | bits a key | rate at capacity |
//! |---|---|---|---|---|---|
//! | 6.2 % and more | plain | 8 | 8 | 8.25 | 6.0 % |
//! | 2.8 % | plain | 7 | 9 | 9.43 | 2.6 % |
//! | 1.2 % | plain | 6 | 10 | 11.0 | 1.1 % |
//! | 0.3 % | semi-sorted | 6 | 12 | 11.0 | 0.29 % |
//! | 0.25 % | plain | 5 | 12 | 13.2 | 0.24 % |
//! | **0.1 %** (default), to 0.062 % | semi-sorted | 5 | 14 | 13.2 | 0.059 % |
//! | 0.013 % | plain | 4 | 16 | 16.8 | 0.012 % |
//! | 0.0062 % | semi-sorted | 4 | 17 | 16.8 | 0.0058 % |
//! | 0.00029 % | plain | 3 | 21 | 23.2 | 0.00026 % |
//! | 0.00015 % | semi-sorted | 3 | 22 | 23.2 | 0.00013 % |
//! | 1e-9 | plain | 2 | 32 | 38.6 | 0.8e-9 |
//!
//! # Consistency
//!
//! What a thread may rely on while others insert, remove and relocate:
//!
//! - **A key that is in the filter throughout a call of [`contains`](ConcurrentCuckooFilter::contains) is found.**
//!   There are no false negatives, also not while keys move.
//! - Each operation takes effect in one step at some moment of its call: all operations together are *linearizable*.
//!   The exceptions are [`clear`](ConcurrentCuckooFilter::clear), which is many such steps, and
//!   [`len`](ConcurrentCuckooFilter::len) and what is computed from it, which are exact only when nothing changes.
//! - Who finds a key also sees what its inserter did before inserting it: `insert` and `contains` synchronize like a
//!   release and an acquire.
//! - Lookups are lock-free in the strict sense: they take no lock, write no shared memory, and never wait for a writer,
//!   not even one that was stopped by the scheduler in the middle of a relocation. A lookup looks again only if another
//!   thread has just moved or removed something; it then, and only then, adds one to a count of its thread's (which in
//!   small tables all threads share; see [`Stats::lookup_retries`]).
//! - An insert that fails has changed nothing. In this filter it fails only if there was no room within reach of its search, which
//!   looks at up to 2,048 buckets, at some moment of its call; contention alone is never the reason.
//! - No operation on keys allocates (but for the growth of a [`GrowableCuckooFilter`]), and no code of the caller's
//!   (`Hash`, `Drop`) runs while a lock is held that others wait for: a key whose `Hash` panics leaves the filter as it
//!   was. (A writer that has to wait for another is parked by `parking_lot`, which may allocate its own note of a thread
//!   when it parks it for the first time. And while the filter is being saved, each change puts aside the word that it
//!   changes, under a lock that is held for a fraction of a microsecond.)
//! - Every operation runs on a thread with a stack of 64 KiB, in a build without optimizations too. Most need a few KiB. An
//!   insert that searches as far as it may, a `clear` and a save need up to 40 KiB with optimizations.
//! - A snapshot, made by `save` while others are at work, is of the moment at which the call begins: it holds every key that
//!   is in then, as often as it is in, and no key whose insert begins later.
//!
//! "The same key" means, as everywhere in an approximate filter: the same *fingerprint and buckets*. The argument for
//! each of these lines stands in `src/table/stripe.rs`; how each was checked, and what was not, on the page
//! [`verification`].
//!
//! # Cost
//!
//! A lookup reads two cache lines of the table and one of the stripes, which stays in the cache, and writes nothing. In a
//! table larger than the cache it takes as long as these take to come, and few lookups overlap. So where many keys are at
//! hand, look them up by [`contains_batch`](ConcurrentCuckooFilter::contains_batch), which is about four times as fast there;
//! inserts and removals gain as much or more. The feature `huge-pages` (off by default; see `Builder::huge_pages`)
//! adds to that, on Linux. What is to be expected of many threads stands on the page [`scaling`].
//!
//! # What filters do not implement
//!
//! - **`Clone`.** To share a filter, clone an [`Arc`](std::sync::Arc) of it. A second table of the same keys would be out of
//!   step with the first change; where one is wanted all the same, a snapshot is one, of an exact moment.
//! - **`Default`**, except a [`GrowableCuckooFilter`]: the others have no size that would do by default. (All builders are
//!   `Default` and `Clone`.)
//! - **`FromIterator` and `Extend`.** An iterator does not say for how many keys to build the filter, and neither trait can
//!   report a key that is refused. [`insert_batch`](ConcurrentCuckooFilter::insert_batch) can.
//! - **`PartialEq`, `IntoIterator`.** Keys are not kept, so they can't be listed or compared.
//!
//! # Hazards
//!
//! - **Remove only what you inserted, and as often.** A key that was never inserted may look like one that was, and
//!   removing it removes that one (see [`remove`](ConcurrentCuckooFilter::remove)). So let only those remove a key who
//!   have inserted it: whoever may remove any key collects `k` false positives, and up to `k` present keys are gone.
//! - **Duplicates take up room.** A key that is inserted again and again fills its two buckets; after `2b` copies, an
//!   insert fails with [`InsertError::TooManyCopies`].
//! - **Adversaries**, by what they know (`tests/adversaries.rs` shows it):
//!   - *Only the keys.* The default hasher has random keys of its own for each filter. Load and rate are then the same
//!     for chosen keys as for any others.
//!   - *The hasher's key*, or it has none (the identity, FxHash, a published seed). Then there are any number of keys
//!     that look like a chosen one: each is a false positive once one of them is in. After `2b` of them their two
//!     buckets are full, and every other key with these buckets is refused. Who fills a share `x` of the slots in this
//!     way denies others the share `x²` of their inserts, 1 % for a tenth; and no more, for a key is refused only where
//!     both its buckets are full.
//!   - *The answers*, with any hasher: false positives can be collected, and stay what they are. Confirm positives
//!     where that hurts, or now and then rebuild the filter, with a new hasher. Who may insert too can search for keys
//!     that look like his own, at `buckets · 2ᶠ / 2` questions each: some 600,000 in a default filter of 300 keys,
//!     1.7 billion in one of a million.
//!   - *Whatever they know*, no present key is missed, none is lost unless it is removed, and lookups take as long as
//!     ever. A refused insert is slow, 20 to 700 µs in a full table: it searches up to 2,048 buckets, twice. If others disturb
//!     that, it searches a third time and holds up all writers meanwhile. More it never does.
//!   - The default hasher is ahash, which is keyed, but no cryptographic function. Where much is at stake, take
//!     [`std::hash::RandomState`], which is SipHash, and slower.
//! - **The default hasher's hashes are not stable** between processes, versions and processors. Don't store them. For snapshots that are to survive a restart, an upgrade or a move, take `StableState` (feature
//!   `stable-hash`); the documentation of `ConcurrentCuckooFilter::save` (feature `snapshot`) has a table of which hasher
//!   survives what, and the page [`beyond_one_process`] says what to do with snapshots.
//! - **Size for the most you will hold.** This filter does not grow, and what is in it cannot be listed. Where the number
//!   of keys is not known, take a [`GrowableCuckooFilter`], at the price of more memory and slower lookups; where keys are
//!   to be forgotten after some time, an [`ExpiringCuckooFilter`] or a [`RotatingCuckooFilter`].

// The modules, from the faces down. What stands below may not import what stands above; PURE modules name no atomics, no
// locks and no input or output. (`verify/model.rs` sees everything, but only models have it.) ARCHITECTURE.md tells how they work together.
//
// | folder | what | |
// |---|---|---|
// | filter | the public types: filters, builders, statistics, the trait | |
// | tables | several tables as one filter: growth, generations | CONCURRENT |
// | snapshot | the format, reading and writing it, files, serde | PURE, and files |
// | table | one table: the protocol (`stripe.rs`), operations, saves | CONCURRENT |
// | plan | what is decided beforehand: paths, sizes, batches | PURE |
// | error | what can go wrong | PURE |
// | word | 64 bits as a bucket; from hashes to fingerprints and buckets | PURE |
// | hasher | the hashers that come with the crate | PURE |
// | sync | atomics and locks, or those of a model | |
// | verify | seeded bugs and what models see | |
// | machine | memory that may be refused; all `unsafe` code | |
// | pages | further pages of the documentation | |

mod error;
mod filter;
mod hasher;
mod machine;
mod plan;
mod snapshot;
mod sync;
mod table;
mod tables;
mod verify;
mod word;

#[cfg(doc)]
#[doc = include_str!("pages/verification.md")]
pub mod verification {}

#[cfg(doc)]
#[doc = include_str!("pages/scaling.md")]
pub mod scaling {}

#[cfg(doc)]
#[doc = include_str!("pages/beyond_one_process.md")]
pub mod beyond_one_process {}

pub use error::absorb::{AbsorbError, Geometry};
pub use error::build::BuildError;
pub use error::insert::{InsertBatchError, InsertError, ReserveError, ValueTooLarge};
pub use error::kind::FilterKind;
#[cfg(feature = "snapshot")]
pub use error::load::LoadError;
pub use filter::batch_key::BatchKey;
pub use filter::concurrent::ConcurrentCuckooFilter;
pub use filter::concurrent_builder::Builder;
pub use filter::expiring::ExpiringCuckooFilter;
pub use filter::expiring_builder::ExpiringBuilder;
pub use filter::growable::GrowableCuckooFilter;
pub use filter::growable_builder::GrowableBuilder;
pub use filter::maplet::ConcurrentCuckooMaplet;
pub use filter::maplet_builder::MapletBuilder;
pub use filter::membership::MembershipFilter;
pub use filter::rotating::RotatingCuckooFilter;
pub use filter::rotating_builder::RotatingBuilder;
pub use filter::stats::Stats;
pub use hasher::default::{DefaultHashBuilder, DefaultHasher};
#[cfg(feature = "stable-hash")]
pub use hasher::stable::{StableHasher, StableState};
#[cfg(feature = "snapshot")]
pub use snapshot::loader::{FromSnapshot, Loaded, Loader};
#[cfg(feature = "snapshot")]
pub use snapshot::save::Save;
#[cfg(feature = "serde")]
pub use snapshot::serde::SameByDefault;
pub use table::clock::Advance;
#[cfg(ccf_model)]
pub use verify::model;
pub use word::layout::Encoding;
pub use word::values::{Values, ValuesIter};

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
