//! The filter, and how to make one from a scan of the store.

use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, StableState};

use crate::error::CacheError;
use crate::options::Options;
use crate::snapshot::SCHEMA;
use crate::store::Store;

/// The filter in front of a store. Its keys are any bytes, hashed so that another process can load a snapshot.
pub type Filter = ConcurrentCuckooFilter<[u8], StableState>;

/// How many keys of a scan are inserted at a time.
const SCANNED: usize = 1024;

/// A filter of all keys of the store.
pub(crate) fn scan<S: Store>(
    store: &S,
    hasher: &StableState,
    options: &Options,
) -> Result<Filter, CacheError<S::Error>> {
    let filter = Filter::builder_with_hasher(hasher.clone())
        .capacity(options.capacity_for(store.len().map_err(CacheError::Store)?))
        .false_positive_rate(options.false_positive_rate)
        .schema(SCHEMA)
        .build()
        .map_err(CacheError::Build)?;
    let mut hashes = Vec::with_capacity(SCANNED);
    let mut refused = None;
    let mut insert = |hashes: &mut Vec<u64>| {
        if let Err(batch) = filter.insert_hash_batch(hashes.drain(..)) {
            refused.get_or_insert(batch.error);
        }
    };
    let scanned = store.for_each_key(&mut |key| {
        hashes.push(hasher.hash_bytes(key));
        if hashes.len() == SCANNED {
            insert(&mut hashes);
        }
    });
    insert(&mut hashes);
    scanned.map_err(CacheError::Store)?;
    refused.map_or(Ok(filter), |error| Err(CacheError::Full(error)))
}
