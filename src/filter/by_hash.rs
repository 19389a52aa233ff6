//! Operations on hashes instead of keys.

/// The hash of a key, for the operations of [`ByHash`].
///
/// `filter.hash_one(&key)` returns one. `Hashed(hash)` makes one of a hash from a hasher equal to the filter's. Nothing else
/// converts to it, so a key that is a number cannot be mistaken for a hash:
///
/// ```compile_fail,E0308
/// # use concurrent_cuckoo_filter::ConcurrentCuckooFilter;
/// # let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// numbers.by_hash().contains(7); // the key 7, or the hash 7?
/// ```
///
/// ```
/// use std::hash::BuildHasher;
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, Hashed};
///
/// let numbers = ConcurrentCuckooFilter::<u64>::with_capacity(1000);
/// numbers.insert(&7)?;
/// assert!(numbers.by_hash().contains(numbers.hash_one(&7)));
/// let own = numbers.hasher().hash_one(7_u64); // for example, since a map needs it too
/// assert!(numbers.by_hash().contains(Hashed(own)));
/// # Ok::<(), concurrent_cuckoo_filter::InsertError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Hashed(pub u64);

/// The operations of a filter on hashes instead of keys: `filter.by_hash()`.
///
/// It is for callers that have the hash already: they hash a key once for several filters with the same hasher, or for
/// a filter and a map. It is also for keys that cannot be borrowed, such as those that an iterator generates.
///
/// Each operation is the one of the same name on the key that has this [hash](Hashed), with its promises, cost and errors.
/// The hashes need not have 64 good bits, but keys of equal hashes are one key to the filter. If a filter gets only hashes of
/// your own, let its key type be an empty enum: then no operation on keys can be called by mistake.
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
