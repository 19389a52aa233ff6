//! CONCURRENT: the gets of one thread.

use arc_swap::ArcSwap;
use concurrent_cuckoo_filter::StableState;

use crate::error::CacheError;
use crate::filter::Filter;
use crate::store::Store;

/// How many negatives a [`Reader`] counts before it adds them to the filter's count.
const HAND_OVER: u64 = 1024;

/// Reads for one thread. Made by [`Cache::reader`](crate::Cache::reader).
#[derive(Debug)]
pub struct Reader<'c, S: Store> {
    store: &'c S,
    hasher: &'c StableState,
    filter: &'c ArcSwap<Filter>,
    /// Negatives that are not in the filter's count yet.
    negatives: u64,
}

impl<'c, S: Store> Reader<'c, S> {
    pub(crate) fn new(store: &'c S, hasher: &'c StableState, filter: &'c ArcSwap<Filter>) -> Self {
        Self { store, hasher, filter, negatives: 0 }
    }

    /// The value of a key. If the filter says "absent", the store is not asked.
    ///
    /// If the filter says "present" and the store has no such key, that is recorded as a false positive. (Now and
    /// then that happens for a key that is put or deleted at the same time.)
    ///
    /// # Errors
    /// If the store was asked, and failed.
    #[inline]
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError<S::Error>> {
        let filter = self.filter.load();
        if !filter.contains_hash(self.hasher.hash_bytes(key)) {
            drop(filter);
            self.negatives += 1;
            if self.negatives == HAND_OVER {
                self.hand_over();
            }
            return Ok(None);
        }
        let value = self.store.get(key).map_err(CacheError::Store)?;
        if value.is_none() {
            filter.record_false_positives(1);
        }
        Ok(value)
    }

    /// Adds the negatives counted so far to the filter's count, so that [`Cache::stats`](crate::Cache::stats)
    /// includes them. This also happens after 1,024 of them, and when the reader is dropped.
    pub fn hand_over(&mut self) {
        if self.negatives > 0 {
            self.filter.load().record_negatives(self.negatives);
            self.negatives = 0;
        }
    }
}

impl<S: Store> Drop for Reader<'_, S> {
    fn drop(&mut self) {
        self.hand_over();
    }
}
