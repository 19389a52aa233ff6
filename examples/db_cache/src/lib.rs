//! A key-value service whose cuckoo filter answers "not there" without touching the database.
//!
//! [`Cache`] puts a [`ConcurrentCuckooFilter`](concurrent_cuckoo_filter::ConcurrentCuckooFilter) in front of a
//! [`Store`]. It keeps the two in step: with every insert and delete, with several threads, and across a crash. A get
//! of an absent key then reads two cache lines of memory. It goes to the store once in a thousand times or less
//! often. The program `db-cache` uses the store [`RedbStore`]. [`MemoryStore`] shows what another store has to
//! provide.
//!
//! - [`store`]: what a store must do;
//! - [`cache`]: the protocol, and the argument why the filter never lacks a committed key;
//! - [`snapshot`]: how the filter outlives the process, and when it is rebuilt.
//!
//! `tests/cache.rs` and `tests/snapshot.rs` check the arguments of these two pages line by line, with a store that
//! fails on demand. `tests/kill.rs` kills the program in the middle of its writes, and then looks up every key.
//!
//! ```
//! use db_cache::{Cache, MemoryStore, Options};
//!
//! let cache = Cache::open(MemoryStore::new()?, Options::new(1000))?;
//! cache.put(b"apple", b"red")?;
//! assert_eq!(cache.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! assert_eq!(cache.get(b"pear")?, None); // the store was not asked
//! assert!(cache.delete(b"apple")?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cache;
mod error;
mod filter;
mod memory_store;
mod options;
mod reader;
mod redb_store;
mod restore;
pub mod snapshot;
pub mod store;

pub use cache::{Applied, Cache};
pub use error::{CacheError, Opened, RebuildReason};
pub use filter::Filter;
pub use memory_store::MemoryStore;
pub use options::Options;
pub use reader::Reader;
pub use redb_store::{RedbError, RedbStore};
pub use store::{ApplyError, Change, Logged, Membership, Store};
