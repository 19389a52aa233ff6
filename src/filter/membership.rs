//! What the filters of keys without a value or an end have in common, as a trait.

use core::fmt::Debug;

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::{BatchKey, Sealed};
use crate::filter::stats::Stats;

/// What a [`ConcurrentCuckooFilter`](crate::ConcurrentCuckooFilter), a
/// [`GrowableCuckooFilter`](crate::GrowableCuckooFilter) and a [`RotatingCuckooFilter`](crate::RotatingCuckooFilter)
/// can do, for code that works with any of them. (The other two types take an end or a value with each key.)
///
/// Use it where the type of filter is a parameter: a service that is generic over its filter, a test that runs on
/// all, a filter that the configuration chooses. Everywhere else call the methods of the filter itself. They have the
/// same names, they take borrowed forms of the key (`&str` for a filter of `String`), and there are more of them.
/// Their documentation says what an operation promises and costs, for instance
/// [`ConcurrentCuckooFilter::insert`](crate::ConcurrentCuckooFilter::insert) and
/// [`RotatingCuckooFilter::insert`](crate::RotatingCuckooFilter::insert).
///
/// The types differ in their purpose: a [`RotatingCuckooFilter`](crate::RotatingCuckooFilter) of capacity `n` takes
/// only a share of `n` keys in each period. It also has no `remove`, so this trait has none.
///
/// ```
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, MembershipFilter, RotatingCuckooFilter};
///
/// fn seen_before(seen: &impl MembershipFilter<str>, request: &str) -> Result<bool, InsertError> {
///     Ok(!seen.insert_if_absent(request)?)
/// }
///
/// let for_ever = ConcurrentCuckooFilter::with_capacity(1000);
/// let for_some_time = RotatingCuckooFilter::with_capacity(1000);
/// assert!(!seen_before(&for_ever, "request-1")?);
/// assert!(!seen_before(&for_some_time, "request-1")?);
/// assert!(seen_before(&for_ever, "request-1")?);
/// # Ok::<(), InsertError>(())
/// ```
///
/// Code that uses several threads also asks for `Sync`. The trait has batches too:
///
/// ```
/// use std::thread;
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertBatchError, MembershipFilter};
///
/// fn fill(filter: &(impl MembershipFilter<u64> + Sync), parts: &[Vec<u64>]) -> Result<(), InsertBatchError> {
///     thread::scope(|scope| {
///         let parts: Vec<_> = parts.iter().map(|part| scope.spawn(move || filter.insert_batch(part))).collect();
///         parts.into_iter().try_for_each(|part| part.join().unwrap().map(|_| ()))
///     })
/// }
///
/// let filter = ConcurrentCuckooFilter::with_capacity(1000);
/// fill(&filter, &[vec![1, 2, 3], vec![4, 5]])?;
/// let mut found = Vec::new();
/// MembershipFilter::contains_batch(&filter, &[1, 5, 6_000], &mut found);
/// assert_eq!(found[..2], [true, true]);
/// # Ok::<(), InsertBatchError>(())
/// ```
///
/// A trait object has all methods except the batches. It costs one more indirect call for each operation.
///
/// ```
/// use std::sync::Arc;
/// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, GrowableCuckooFilter, InsertError, MembershipFilter};
///
/// let known_size = Some(10_000); // from the configuration
/// let filter: Arc<dyn MembershipFilter<str> + Send + Sync> = match known_size {
///     Some(capacity) => Arc::new(ConcurrentCuckooFilter::with_capacity(capacity)),
///     None => Arc::new(GrowableCuckooFilter::with_capacity(1000)),
/// };
/// filter.insert("mailinator.com")?;
/// assert!(filter.contains("mailinator.com"));
/// # Ok::<(), InsertError>(())
/// ```
///
/// Only the filters of this crate implement it, so later versions can add methods.
pub trait MembershipFilter<T: ?Sized>: Debug + Sealed {
    /// Returns whether the key is in the filter: definitely absent if `false`, probably present if `true`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, MembershipFilter};
    /// let filter: &dyn MembershipFilter<str> = &ConcurrentCuckooFilter::with_capacity(1000);
    /// filter.insert("a")?;
    /// assert!(filter.contains("a"));
    /// # Ok::<(), InsertError>(())
    /// ```
    #[must_use]
    fn contains(&self, key: &T) -> bool;

    /// Adds the key.
    ///
    /// # Errors
    /// Fails if there is no room. Nothing has changed then. (For the exception of a rotating filter, see
    /// [`insert`](crate::RotatingCuckooFilter::insert).)
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{InsertError, MembershipFilter, RotatingCuckooFilter};
    /// let filter: &dyn MembershipFilter<str> = &RotatingCuckooFilter::with_capacity(1000);
    /// filter.insert("a")?;
    /// assert_eq!(filter.len(), 1);
    /// # Ok::<(), InsertError>(())
    /// ```
    fn insert(&self, key: &T) -> Result<(), InsertError>;

    /// Adds the key if it is absent, and returns `true` if it added the key.
    ///
    /// # Errors
    /// Fails if the key is absent and there is no room. Nothing has changed then.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{GrowableCuckooFilter, InsertError, MembershipFilter};
    /// let seen: &dyn MembershipFilter<str> = &GrowableCuckooFilter::with_capacity(1000);
    /// assert!(seen.insert_if_absent("request-1")?);
    /// assert!(!seen.insert_if_absent("request-1")?);
    /// # Ok::<(), InsertError>(())
    /// ```
    fn insert_if_absent(&self, key: &T) -> Result<bool, InsertError>;

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same
    /// order. The trait's documentation has an example.
    fn contains_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>, found: &mut impl Extend<bool>)
    where
        Self: Sized;

    /// [`insert`](Self::insert) for many keys. Returns how many there were. The trait's documentation has an example.
    ///
    /// # Errors
    /// Fails if one of the keys is refused. The error says how many keys went in before it.
    fn insert_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, InsertBatchError>
    where
        Self: Sized;

    /// Returns the hash of a key, for [`insert_hash_batch`](Self::insert_hash_batch) and
    /// [`contains_hash_batch`](Self::contains_hash_batch).
    #[must_use]
    fn hash_one(&self, key: &T) -> u64;

    /// [`contains_batch`](Self::contains_batch) by hashes. [`insert_hash_batch`](Self::insert_hash_batch) has an
    /// example.
    fn contains_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, found: &mut impl Extend<bool>)
    where
        Self: Sized;

    /// [`insert_batch`](Self::insert_batch) by hashes.
    ///
    /// # Errors
    /// Fails if one of the hashes is refused. The error says how many went in before it.
    ///
    /// ```
    /// use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertBatchError, MembershipFilter};
    ///
    /// fn fill_and_find(filter: &impl MembershipFilter<u64>) -> Result<Vec<bool>, InsertBatchError> {
    ///     let mut found = Vec::new();
    ///     filter.insert_hash_batch((0..100).map(|key| filter.hash_one(&key)))?;
    ///     filter.contains_hash_batch((0..100).map(|key| filter.hash_one(&key)), &mut found);
    ///     Ok(found)
    /// }
    ///
    /// assert_eq!(fill_and_find(&ConcurrentCuckooFilter::with_capacity(1000))?, [true; 100]);
    /// # Ok::<(), InsertBatchError>(())
    /// ```
    fn insert_hash_batch(&self, hashes: impl IntoIterator<Item = u64>) -> Result<usize, InsertBatchError>
    where
        Self: Sized;

    /// Returns how many keys are in the filter.
    #[must_use]
    fn len(&self) -> usize;

    /// Returns how many keys the filter is made for.
    #[must_use]
    fn capacity(&self) -> usize;

    /// Returns whether the filter holds no keys.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all keys that are in the filter when the call begins.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, InsertError, MembershipFilter};
    /// let filter: &dyn MembershipFilter<str> = &ConcurrentCuckooFilter::with_capacity(1000);
    /// filter.insert("a")?;
    /// assert!(filter.len() == 1 && filter.capacity() >= 1000);
    /// filter.clear();
    /// assert!(filter.is_empty());
    /// # Ok::<(), InsertError>(())
    /// ```
    fn clear(&self);

    /// Returns all figures at once.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ConcurrentCuckooFilter, MembershipFilter};
    /// let filter: &dyn MembershipFilter<str> = &ConcurrentCuckooFilter::with_capacity(1000);
    /// filter.record_negatives(999);
    /// filter.record_false_positives(1);
    /// assert_eq!(filter.stats().observed_false_positive_rate(), Some(0.001));
    /// ```
    #[must_use]
    fn stats(&self) -> Stats;

    /// Records that `count` positive answers turned out to be wrong. [`stats`](Self::stats) has an example.
    fn record_false_positives(&self, count: u64);

    /// Records that `count` lookups were answered `false`. [`stats`](Self::stats) has an example.
    fn record_negatives(&self, count: u64);
}
