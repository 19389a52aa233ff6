//! The operations on many keys of a [`CuckooRateLimiter`].

use core::convert::Infallible;
use core::hash::{BuildHasher, Hash};

use crate::error::limited::Limited;
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::limiter::filter::CuckooRateLimiter;
use crate::filter::shared::batches::{add_each, without_others};

/// The operations on many keys at a time.
///
/// In a table larger than the cache, they are faster than one call for each key: while the limiter works on the first keys,
/// the buckets of the next ones are on their way from memory.
impl<T: ?Sized, S: BuildHasher> CuckooRateLimiter<T, S> {
    /// [`check`](Self::check) for many keys, in their order: appends the answers to `answers`. Returns how many requests are
    /// allowed. A key that is in the batch twice makes two requests.
    ///
    /// Keys are passed by reference, as [`BatchKey`] describes. A batch is not a transaction: each of its requests is an
    /// operation of its own. It allocates only for what the answers are appended to, and holds no lock while it asks the
    /// iterator for a key.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use concurrent_cuckoo_filter::CuckooRateLimiter;
    /// let second = Duration::from_secs(1);
    /// let limiter = CuckooRateLimiter::<str>::builder().allow(1, second).capacity(1000).build()?;
    /// let mut answers = Vec::new();
    /// assert_eq!(limiter.check_batch(["a", "b", "a"], &mut answers), 2);
    /// assert!(answers[2].is_err());
    /// # Ok::<(), concurrent_cuckoo_filter::BuildError>(())
    /// ```
    pub fn check_batch<K: BatchKey<T> + Hash>(
        &self,
        keys: impl IntoIterator<Item = K>,
        answers: &mut Vec<Result<(), Limited>>,
    ) -> usize {
        self.by_hash().check_batch(self.parts.hash_all(keys), answers)
    }
}

/// The operations on many keys at a time, by the hashes of the keys.
impl<T: ?Sized, S> ByHash<'_, CuckooRateLimiter<T, S>> {
    /// Counts a request of each key with these hashes, or rejects it, and appends the answers to `answers`. See
    /// [`check_batch`](CuckooRateLimiter::check_batch).
    pub fn check_batch(
        self,
        hashes: impl IntoIterator<Item = Hashed>,
        answers: &mut Vec<Result<(), Limited>>,
    ) -> usize {
        let core = &self.0.parts.core;
        let check = |hash, ()| Ok::<_, Infallible>(core.check(hash));
        let Ok(allowed) = add_each(core, without_others(hashes), check, answers, |answer| answer.is_ok());
        allowed
    }
}
