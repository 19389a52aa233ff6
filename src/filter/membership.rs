//! What all filters have in common, as a trait.

use core::fmt::Debug;

use crate::error::insert::{InsertBatchError, InsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::sealed::Sealed;
use crate::filter::stats::Stats;

/// What all filters of this crate can do, for code that is to work with any of them.
///
/// Use it where the type of filter is a parameter: a service that is generic over its filter, a test that runs on all, a
/// filter that is chosen by the configuration. Everywhere else call the methods of the filter itself: they have the same
/// names, take borrowed forms of the key (`&str` for a filter of `String`), and there are more of them. What an operation
/// promises and costs is documented there, for instance at
/// [`ConcurrentCuckooFilter::insert`](crate::ConcurrentCuckooFilter::insert) and
/// [`RotatingCuckooFilter::insert`](crate::RotatingCuckooFilter::insert).
///
/// Mind that the types differ in what they are for: a
/// [`RotatingCuckooFilter`](crate::RotatingCuckooFilter) of capacity `n` takes a share of `n` keys in each period.
/// There is no `remove`, which a [`RotatingCuckooFilter`](crate::RotatingCuckooFilter) does not have.
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
/// Code that uses several threads also asks for `Sync`, and batches are there too:
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
/// It can be an object, which has all but the batches. An object costs one more indirect call for each operation.
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
/// Only the filters of this crate implement it, so that it can get further methods.
pub trait MembershipFilter<T: ?Sized>: Debug + Sealed {
    /// Whether the key is in: definitely absent if `false`, probably present if `true`.
    #[must_use]
    fn contains(&self, key: &T) -> bool;

    /// Adds the key.
    ///
    /// # Errors
    /// If there is no room; nothing has changed then. (Of a rotating filter, see
    /// [`insert`](crate::RotatingCuckooFilter::insert).)
    fn insert(&self, key: &T) -> Result<(), InsertError>;

    /// Adds the key unless it is in: `true` if it was added.
    ///
    /// # Errors
    /// If the key is absent and there is no room; nothing has changed then.
    fn insert_if_absent(&self, key: &T) -> Result<bool, InsertError>;

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`.
    fn contains_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>, found: &mut impl Extend<bool>)
    where
        Self: Sized;

    /// [`insert`](Self::insert) for many keys; returns how many there were.
    ///
    /// # Errors
    /// If one of them is refused; the error tells how many went in before it.
    fn insert_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, InsertBatchError>
    where
        Self: Sized;

    /// The hash of a key, for [`insert_hash_batch`](Self::insert_hash_batch) and its like.
    #[must_use]
    fn hash_one(&self, key: &T) -> u64;

    /// [`contains_batch`](Self::contains_batch) by hashes.
    fn contains_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, found: &mut impl Extend<bool>)
    where
        Self: Sized;

    /// [`insert_batch`](Self::insert_batch) by hashes.
    ///
    /// # Errors
    /// If one of them is refused; the error tells how many went in before it.
    fn insert_hash_batch(&self, hashes: impl IntoIterator<Item = u64>) -> Result<usize, InsertBatchError>
    where
        Self: Sized;

    /// How many keys are in.
    #[must_use]
    fn len(&self) -> usize;

    /// How many keys the filter is made for.
    #[must_use]
    fn capacity(&self) -> usize;

    /// Whether no keys are in.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all keys that are in when the call begins.
    fn clear(&self);

    /// All figures at once.
    #[must_use]
    fn stats(&self) -> Stats;

    /// Tells the filter that so many positive answers turned out to be wrong.
    fn record_false_positives(&self, count: u64);

    /// Tells the filter that so many lookups were answered `false`.
    fn record_negatives(&self, count: u64);
}
