//! A key-value service whose cuckoo filter answers "not there" without touching the database.
//!
//! [`Cache`] puts a [`ConcurrentCuckooFilter`] in front of a [`Store`], such as [`RedbStore`], and keeps the two in
//! step: with concurrent writers ([`cache`]), and across a crash ([`snapshot`]).
//!
//! ```
//! use std::sync::Arc;
//! use db_cache::{Cache, RedbStore};
//!
//! let directory = tempfile::tempdir()?;
//! let store = RedbStore::open(&directory.path().join("my.redb"), 64 << 20)?;
//! let cache = Cache::open(Arc::new(store), directory.path().join("my.filter"), 1_000_000)?;
//! assert!(cache.put(b"apple", b"red")?);
//! assert_eq!(cache.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! assert_eq!(cache.get(b"pear")?, None); // the database was not asked
//! assert!(cache.delete(b"apple")?);
//! cache.snapshot()?; // while others read and write
//! # anyhow::Ok(())
//! ```

pub mod cache;
mod redb_store;
pub mod snapshot;
pub mod store;

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableHashBuilder};

pub use cache::Cache;
pub use redb_store::RedbStore;
pub use store::{Change, Logged, State, Store, WriteError};

/// The filter in front of a store. Its hash is stable, so that another process can load a snapshot.
pub type Filter = ConcurrentCuckooFilter<[u8], StableHashBuilder>;
