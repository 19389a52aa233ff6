//! The batches of the maplet.

use core::cell::Cell;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::{InsertBatchError, MapletInsertError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::maplet::filter::CuckooMaplet;
use crate::filter::shared::batches::{add_absent, blocks, blocks_of_pairs};
use crate::filter::shared::operations::{batch_on_keys, batches_on_keys, hashed};
use crate::plan::batch::BLOCK;
use crate::word::values::Values;

batches_on_keys! {
    /// The operations on many keys at a time.
    ///
    /// In a table larger than the cache, they are several times as fast as one call for each key: while the maplet works on
    /// the first keys, the buckets of the next ones are on their way from memory. Keys are passed by reference, as [`BatchKey`]
    /// describes. A batch is not a transaction, but an operation for each key, with all that a single one promises. What the
    /// [batches of a filter](crate::ConcurrentCuckooFilter::contains_batch) promise of memory, locks and panics holds here too.
    CuckooMaplet:

    /// [`values`](Self::values) for many keys: appends the values of each key to `found`, in the same order. They take 16
    /// bytes for each key.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let segments = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
    /// segments.insert_batch([("apple", 3), ("pear", 9)])?;
    ///
    /// let mut found = Vec::new();
    /// segments.values_batch(["apple", "pear", "no such key"], &mut found);
    /// assert!(found.len() == 3 && found[0].contains(3) && found[1].contains(9));
    /// let to_be_read = found.iter().fold(0, |all, values| all | values.mask().unwrap());
    /// assert_eq!(to_be_read & (1 << 3 | 1 << 9), 1 << 3 | 1 << 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    values_batch(keys, found: &mut Vec<Values>) = |maplet, hashes| {
        let mut hashes = blocks(hashes);
        maplet.core.values_batch(&mut hashes, &mut |answers| found.extend_from_slice(answers));
    };

    /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in the same
    /// order.
    contains_batch(keys, found: &mut Vec<bool>) = |maplet, hashes| {
        let mut hashes = blocks(hashes);
        maplet.core.contains_batch(&mut hashes, &mut |answers| found.extend_from_slice(answers));
    };

    /// [`insert`](Self::insert) for many pairs, in their order.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair. Pairs after it may have been taken from the
    /// iterator, but none of them went in.
    insert_batch(pairs of u16) -> Result<(), InsertBatchError<MapletInsertError>> = |maplet, pairs| {
        let values = Cell::new([0; BLOCK]);
        let mut too_large = None;
        let checked = pairs.map_while(|(Hashed(hash), value)| {
            too_large = maplet.check(value).err();
            too_large.is_none().then_some((hash, value))
        });
        let inserted = maplet.core.insert_values_batch(&mut blocks_of_pairs(checked, &values), &values);
        match (inserted, too_large) {
            (Ok(inserted), Some(error)) => Err(InsertBatchError::new(inserted, error.into())),
            (Ok(_), None) => Ok(()),
            (Err(refused), _) => Err(refused.map()),
        }
    };

    /// [`insert_if_absent`](Self::insert_if_absent) for many pairs, in their order: appends to `had`, for each pair, the
    /// values that its key had: none if the pair was added. Returns how many were.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair, and the pairs before it have their answers
    /// in `had`.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::CuckooMaplet;
    /// let owners = CuckooMaplet::<str>::builder().capacity(1000).value_bits(4).build()?;
    /// let mut had = Vec::new();
    /// assert_eq!(owners.insert_if_absent_batch([("job-1", 3), ("job-1", 9)], &mut had)?, 1);
    /// assert!(had[0].is_empty() && had[1].contains(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    insert_if_absent_batch(pairs of u16, had: &mut Vec<Values>)
        -> Result<usize, InsertBatchError<MapletInsertError>> = |maplet, pairs| {
            let pairs = pairs.map(|(Hashed(hash), value)| (hash, value));
            add_absent(pairs, |hashes| maplet.core.prefetch(hashes), |hash, value| {
                let values = maplet.by_hash().insert_if_absent(Hashed(hash), value)?;
                had.push(values);
                Ok(values.is_empty())
            })
        };

    /// [`remove`](Self::remove) for many pairs, in their order: appends to `removed`, for each pair, whether there
    /// was one.
    remove_batch(pairs of u16, removed: &mut Vec<bool>) = |maplet, pairs| {
        let values = Cell::new([0; BLOCK]);
        let mut pairs = pairs;
        loop {
            // A value with too many bits can't have been inserted. It ends one batch, and another begins after it.
            let mut too_large = false;
            let checked = pairs.by_ref().map_while(|(Hashed(hash), value)| {
                too_large = maplet.check(value).is_err();
                (!too_large).then_some((hash, value))
            });
            maplet.core.remove_values_batch(&mut blocks_of_pairs(checked, &values), &values, &mut |answers| {
                removed.extend_from_slice(answers);
            });
            if !too_large {
                return;
            }
            removed.push(maplet.core.counters().removal(false));
        }
    };
}
