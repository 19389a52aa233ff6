//! A key-value service whose cuckoo filter answers "not there" without touching the database.
//!
//! [`Cache`] puts a [`Filter`] in front of a [`Store`], such as [`RedbStore`], and keeps the two in step: [`cache`] says
//! how.
//!
//! ```
//! use std::sync::Arc;
//! use db_cache::{Cache, RedbStore};
//!
//! let directory = tempfile::tempdir()?;
//! let store = RedbStore::open(&directory.path().join("my.redb"), 64 << 20)?;
//! let cache = Cache::open(Arc::new(store), 1_000_000)?;
//! assert!(cache.put(b"apple", b"red")?);
//! assert_eq!(cache.get(b"apple")?.as_deref(), Some(&b"red"[..]));
//! assert_eq!(cache.get(b"pear")?, None); // the database was not asked
//! assert!(cache.delete(b"apple")?);
//! cache.snapshot()?; // while others read and write
//! # anyhow::Ok(())
//! ```

pub mod cache;
mod redb_store;

pub use cache::{Cache, Change, Filter, Logged, State, Store, WriteError};
pub use redb_store::RedbStore;
