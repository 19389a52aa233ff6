//! The batches of the maplet.

use core::cell::Cell;
use core::hash::BuildHasher;

use crate::error::insert::InsertBatchError;
use crate::error::kind::FilterKind;
use crate::filter::batch_key::BatchKey;
use crate::filter::batches::{blocks, blocks_of_pairs};
use crate::filter::maplet::ConcurrentCuckooMaplet;
use crate::plan::batch::BLOCK;
use crate::word::values::Values;

/// The operations on many keys at a time.
///
/// In a table larger than the cache, they are several times as fast as one call for each key: while the first keys are looked
/// at, the buckets of the next are on their way from memory. From some hundred keys on batches are at their best; any number
/// will do. [`BatchKey`] says what they take for keys: references.
///
/// A batch is no transaction. Each of its keys is an operation of its own, with all that the operation on a single key promises,
/// which takes effect at some moment of the call. None of them allocates, except for what the answers are appended to. No lock
/// is held while the iterator is asked for a key or an answer is handed on.
impl<T: ?Sized, S: BuildHasher> ConcurrentCuckooMaplet<T, S> {
    /// [`values`](Self::values) for many keys: calls `answer` with the values of each key, in order.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let segments = ConcurrentCuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
    /// segments.insert_batch([("apple", 3), ("pear", 9)])?;
    ///
    /// let mut to_be_read = 0;
    /// segments.values_batch(["apple", "pear"], |values| to_be_read |= values.mask().unwrap());
    /// assert_eq!(to_be_read & (1 << 3 | 1 << 9), 1 << 3 | 1 << 9);
    ///
    /// let mut found = Vec::new(); // or into a buffer
    /// segments.values_batch(["apple", "no such key"], |values| found.push(values));
    /// assert!(found[0].contains(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn values_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>, answer: impl FnMut(Values)) {
        self.values_hash_batch(keys.into_iter().map(|key| key.hash_by(&self.hasher)), answer);
    }

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same order.
    pub fn contains_batch<K: BatchKey<T>>(&self, keys: impl IntoIterator<Item = K>, found: &mut impl Extend<bool>) {
        self.contains_hash_batch(keys.into_iter().map(|key| key.hash_by(&self.hasher)), found);
    }

    /// [`insert`](Self::insert) for many pairs, in their order; returns how many there were.
    ///
    /// # Errors
    /// If one of them is refused: the error tells how many went in before it, and no other did. Pairs that came after it may have
    /// been taken from the iterator, but no more.
    pub fn insert_batch<K: BatchKey<T>>(
        &self,
        pairs: impl IntoIterator<Item = (K, u16)>,
    ) -> Result<usize, InsertBatchError> {
        self.insert_hash_batch(pairs.into_iter().map(|(key, value)| (key.hash_by(&self.hasher), value)))
    }

    /// [`remove`](Self::remove) for many pairs, in their order: appends to `removed`, for each, whether there was one.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::ConcurrentCuckooMaplet;
    /// let segments = ConcurrentCuckooMaplet::<u64>::builder().capacity(1000).value_bits(4).build()?;
    /// segments.insert_batch([(&1, 3), (&2, 9)])?;
    /// let mut removed = Vec::new();
    /// segments.remove_batch([(&1, 3), (&2, 9), (&2, 9)], &mut removed);
    /// assert_eq!(removed, [true, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_batch<K: BatchKey<T>>(
        &self,
        pairs: impl IntoIterator<Item = (K, u16)>,
        removed: &mut impl Extend<bool>,
    ) {
        self.remove_hash_batch(pairs.into_iter().map(|(key, value)| (key.hash_by(&self.hasher), value)), removed);
    }
}

/// The operations on many hashes.
impl<T: ?Sized, S> ConcurrentCuckooMaplet<T, S> {
    /// [`values_batch`](Self::values_batch) by hashes.
    pub fn values_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, mut answer: impl FnMut(Values)) {
        self.core.values_batch(&mut blocks(hashes.into_iter()), &mut |answers| {
            answers.iter().copied().for_each(&mut answer);
        });
    }

    /// [`contains_batch`](Self::contains_batch) by hashes.
    pub fn contains_hash_batch(&self, hashes: impl IntoIterator<Item = u64>, found: &mut impl Extend<bool>) {
        self.core.contains_batch(&mut blocks(hashes.into_iter()), &mut |answers| found.extend(answers.iter().copied()));
    }

    /// [`insert_batch`](Self::insert_batch) by hashes.
    ///
    /// # Errors
    /// If one of them is refused: the error tells how many went in before it, and no other did.
    pub fn insert_hash_batch(&self, pairs: impl IntoIterator<Item = (u64, u16)>) -> Result<usize, InsertBatchError> {
        let values = Cell::new([0; BLOCK]);
        let mut too_large = None;
        let checked = pairs.into_iter().map_while(|(hash, value)| {
            too_large = self.check(value).err();
            too_large.is_none().then_some((hash, value))
        });
        let inserted = self.core.insert_values_batch(&mut blocks_of_pairs(checked, &values), &values);
        match (inserted, too_large) {
            (Ok(inserted), Some(error)) => Err(InsertBatchError { inserted, error: error.into() }),
            (Ok(inserted), None) => Ok(inserted),
            (Err(InsertBatchError { inserted, error }), _) => {
                Err(InsertBatchError { inserted, error: error.of(FilterKind::Maplet) })
            }
        }
    }

    /// [`remove_batch`](Self::remove_batch) by hashes.
    pub fn remove_hash_batch(&self, pairs: impl IntoIterator<Item = (u64, u16)>, removed: &mut impl Extend<bool>) {
        let values = Cell::new([0; BLOCK]);
        let mut pairs = pairs.into_iter();
        loop {
            // What can't have been inserted ends a batch, and another begins after it.
            let mut too_large = false;
            let checked = pairs.by_ref().map_while(|(hash, value)| {
                too_large = self.check(value).is_err();
                (!too_large).then_some((hash, value))
            });
            self.core.remove_values_batch(&mut blocks_of_pairs(checked, &values), &values, &mut |answers| {
                removed.extend(answers.iter().copied());
            });
            if !too_large {
                return;
            }
            removed.extend([false]);
        }
    }
}
