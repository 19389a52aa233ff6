//! The batches that all filters have, written once: see `filter/shared/operations.rs`.

use core::cell::Cell;

use crate::error::insert::InsertBatchError;
use crate::plan::batch::{BLOCK, each_ahead};

/// The operations on many keys.
macro_rules! batches {
    ($Filter:ident, $Error:ident: $(#[$doc:meta])*) => {
        /// The operations on many keys at a time.
        ///
        $(#[$doc])*
        ///
        /// A batch of any size works. Batches are at their best from about a hundred keys on. Keys are passed by
        /// reference, as [`BatchKey`] describes.
        ///
        /// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at some moment
        /// of the call and promises all that the operation on a single key promises. A batch allocates only where the
        /// operation on a single key does, and for what the answers are appended to. It holds no lock while it asks the
        /// iterator for a key or passes on an answer. If the iterator or a key's `Hash` panics, the batch ends there.
        /// All keys that it took before, except the last few hundred, have been processed.
        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in
            /// the same order.
            ///
            /// The lookups themselves run in any order, each after its key was taken from the iterator.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("let filter = ", stringify!($Filter), "::<str>::with_capacity(1000);")]
            /// filter.insert_batch(["a", "b"])?;
            /// let mut found = Vec::new();
            /// filter.contains_batch(["a", "no such key", "b"], &mut found);
            /// assert_eq!(found, [true, false, true]);
            ///
            #[doc = concat!("let numbers = ", stringify!($Filter), "::<u64>::with_capacity(10_000);")]
            /// let keys: Vec<u64> = (0..1000).collect();
            /// numbers.insert_batch(&keys)?;
            /// found.clear(); // what it has allocated is used again
            /// numbers.contains_batch(&keys, &mut found);
            /// assert!(found.iter().all(|&found| found));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn contains_batch<K: BatchKey<T> + Hash>(
                &self,
                keys: impl IntoIterator<Item = K>,
                found: &mut Vec<bool>,
            ) {
                self.by_hash().contains_batch(keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key))), found);
            }

            /// [`insert`](Self::insert) for many keys, in their order.
            ///
            /// It adds a copy for each key. If the keys may repeat, use
            /// [`insert_if_absent_batch`](Self::insert_if_absent_batch). While a batch runs, [`len`](Self::len) may count
            /// its keys by 32 at a time.
            ///
            /// # Errors
            /// Fails if one of the inserts fails. The error says which key. Later keys may have been taken from the
            /// iterator, but were not inserted.
            ///
            /// To continue after a failed batch:
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("# let filter = ", stringify!($Filter), "::<u64>::with_capacity(1000);")]
            /// let keys: Vec<u64> = (0..10_000).collect(); // perhaps too many
            /// if let Err(error) = filter.insert_batch(&keys) {
            ///     let (inserted, others) = keys.split_at(error.index);
            ///     assert!(inserted.iter().all(|key| filter.contains(key)));
            ///     println!("{} keys are not in: {error}", others.len());
            /// }
            /// ```
            pub fn insert_batch<K: BatchKey<T> + Hash>(
                &self,
                keys: impl IntoIterator<Item = K>,
            ) -> Result<(), InsertBatchError<$Error>> {
                self.by_hash().insert_batch(keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key))))
            }

            /// [`insert_if_absent`](Self::insert_if_absent) for many keys, in their order: appends to `added`, for each
            /// key, whether it was added. Returns how many were.
            ///
            /// # Errors
            /// Fails if one of the inserts fails. The error says which key, and the keys before it have their answers in
            /// `added`. Later keys may have been taken from the iterator, but were not inserted.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("let seen = ", stringify!($Filter), "::<str>::with_capacity(1000);")]
            /// let mut added = Vec::new();
            /// assert_eq!(seen.insert_if_absent_batch(["a", "b", "a"], &mut added)?, 2);
            /// assert_eq!(added, [true, true, false]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn insert_if_absent_batch<K: BatchKey<T> + Hash>(
                &self,
                keys: impl IntoIterator<Item = K>,
                added: &mut Vec<bool>,
            ) -> Result<usize, InsertBatchError<$Error>> {
                self.by_hash().insert_if_absent_batch(keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key))), added)
            }
        }
    };
    ($Filter:ident, $Error:ident with removal: $(#[$doc:meta])*) => {
        batches! { $Filter, $Error: $(#[$doc])* }

        impl<T: ?Sized, S: BuildHasher> $Filter<T, S> {
            /// [`remove`](Self::remove) for many keys, in their order: appends to `removed`, for each key, whether
            /// there was a copy of it.
            ///
            /// ```
            #[doc = concat!("# use concurrent_cuckoo_filter::", stringify!($Filter), ";")]
            #[doc = concat!("let filter = ", stringify!($Filter), "::<str>::with_capacity(1000);")]
            /// filter.insert_batch(["a", "b"])?;
            /// let mut removed = Vec::new();
            /// filter.remove_batch(["a", "b", "b"], &mut removed);
            /// assert_eq!(removed, [true, true, false]);
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn remove_batch<K: BatchKey<T> + Hash>(
                &self,
                keys: impl IntoIterator<Item = K>,
                removed: &mut Vec<bool>,
            ) {
                self.by_hash().remove_batch(keys.into_iter().map(|key| Hashed(self.hasher.hash_one(key))), removed);
            }
        }
    };
}
pub(in crate::filter) use batches;

/// Passes on the hashes a block at a time.
pub(crate) fn blocks(mut hashes: impl Iterator<Item = u64>) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    move |block| {
        let mut len = 0;
        for (slot, hash) in block.iter_mut().zip(&mut hashes) {
            *slot = hash;
            len += 1;
        }
        len
    }
}

/// Calls `add` for each hash, in order, with its second column. Prefetches for the next ones. Returns how many were
/// added.
pub(in crate::filter) fn add_absent<P: Copy + Default, E>(
    pairs: impl Iterator<Item = (u64, P)>,
    prefetch: impl Fn(&[u64]),
    mut add: impl FnMut(u64, P) -> Result<bool, E>,
) -> Result<usize, InsertBatchError<E>> {
    let others = Cell::default();
    let (mut done, mut added, mut refused) = (0, 0, None);
    let ahead = |hashes: &[u64]| {
        prefetch(hashes);
        others.get()
    };
    each_ahead(&mut blocks_of_pairs(pairs, &others), ahead, |hashes, others| {
        for (&hash, other) in hashes.iter().zip(others) {
            match add(hash, other) {
                Ok(is_new) => added += usize::from(is_new),
                Err(error) => {
                    refused = Some(error);
                    return false;
                }
            }
            done += 1;
        }
        true
    });
    refused.map_or(Ok(added), |error| Err(InsertBatchError::new(done, error)))
}

/// Passes on the hashes a block at a time, and their second column.
pub(in crate::filter) fn blocks_of_pairs<P: Copy + Default>(
    mut pairs: impl Iterator<Item = (u64, P)>,
    others: &Cell<[P; BLOCK]>,
) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    move |block| {
        let mut block_of_others = [P::default(); BLOCK];
        let mut len = 0;
        for ((hash, slot), pair) in block.iter_mut().zip(&mut block_of_others).zip(&mut pairs) {
            (*hash, *slot) = pair;
            len += 1;
        }
        others.set(block_of_others);
        len
    }
}
