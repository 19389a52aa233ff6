//! Opens the database and its filter.

use std::ffi::OsString;
use std::path::Path;

use db_cache::{Cache, Options, RedbStore};

use crate::failure::Failure;

/// Opens a database and its filter, whose snapshot is beside it.
pub(crate) fn open(path: &Path, cache_mib: usize, capacity: usize, rate: f64) -> Result<Cache<RedbStore>, Failure> {
    let store =
        RedbStore::open(path, cache_mib << 20).map_err(|error| Failure::Open { path: path.to_owned(), error })?;
    let mut snapshot = OsString::from(path);
    snapshot.push(".filter");
    let options = Options { capacity, false_positive_rate: rate, snapshot: Some(snapshot.into()) };
    Ok(Cache::open(store, options)?)
}
