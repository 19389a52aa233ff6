//! A filter, as callers see it that have the hashes of their keys.

/// The operations of a filter on hashes instead of keys: `filter.by_hash()`.
///
/// It is for callers that have the hash already: they hash a key once for several filters with the same hasher, or for a
/// filter and a map. It is also for keys that cannot be borrowed, such as those that an iterator makes on the way.
///
/// Each operation is the one of the same name on the key that has this hash, by the filter's `hash_one` or by a hasher that
/// is equal to its `hasher`. It has the same promises, cost and errors. The hashes need not have 64 good bits, but keys of
/// equal hashes are one key to the filter.
///
/// **A `u64` key is not its hash.** In a filter of `u64`, `by_hash().contains(7)` compiles, and asks for another key than
/// `contains(&7)`: pass `filter.hash_one(&7)`.
///
/// ```
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, DefaultHashBuilder};
///
/// let hasher = DefaultHashBuilder::new();
/// let today = ConcurrentCuckooFilter::<str>::with_capacity_and_hasher(1000, hasher.clone());
/// let yesterday = ConcurrentCuckooFilter::<str>::with_capacity_and_hasher(1000, hasher);
/// yesterday.insert("request-1")?;
/// let hash = today.hash_one("request-1"); // once for both
/// assert!(!today.by_hash().contains(hash) && yesterday.by_hash().contains(hash));
///
/// let made = (2..100).map(|number| format!("request-{number}"));
/// today.by_hash().insert_batch(made.map(|key| today.hash_one(key.as_str())))?;
/// assert!(today.contains("request-17"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ByHash<'a, F>(pub(crate) &'a F);

impl<F> Clone for ByHash<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for ByHash<'_, F> {}

/// How to get the view.
macro_rules! by_hash {
    () => {
        /// Returns the same filter with operations on hashes instead of keys.
        #[inline(always)]
        #[must_use]
        pub fn by_hash(&self) -> ByHash<'_, Self> {
            ByHash(self)
        }
    };
}
pub(crate) use by_hash;
