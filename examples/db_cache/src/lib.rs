//! A key-value service whose cuckoo filter answers "not there" without touching the database: [`Cache`] puts a [`Filter`]
//! in front of a [`Store`], such as [`RedbStore`], and keeps the two in step. [`cache`] says how.

pub mod cache;
mod redb_store;

pub use cache::{Cache, Change, Filter, Logged, State, Store, WriteError};
pub use redb_store::RedbStore;
