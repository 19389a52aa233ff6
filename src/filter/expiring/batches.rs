//! The batches of the filter whose entries expire.

use core::cell::Cell;
use core::hash::{BuildHasher, Hash};

use crate::error::insert::{ExpiringInsertError, InsertBatchError};
use crate::filter::batch_key::BatchKey;
use crate::filter::by_hash::{ByHash, Hashed};
use crate::filter::expiring::expiry::Expiry;
use crate::filter::expiring::filter::ExpiringCuckooFilter;
use crate::filter::shared::batches::{batches, blocks, blocks_of_pairs};
use crate::filter::shared::operations::{batch_on_keys, batches_on_keys, hashed};
use crate::plan::batch::BLOCK;
use crate::table::expiring::IfPresent;
use crate::table::expiring::clock::Until;
use crate::word::tick::Tick;

batches! {
    ExpiringCuckooFilter, ExpiringInsertError:
    /// In a table larger than the cache, they are several times as fast as one call for each key: while the filter works
    /// on the first keys, the buckets of the next ones are on their way from memory.
    contains(found) = |filter, hashes| {
        let mut hashes = blocks(hashes);
        filter.core.contains_live_batch(&mut hashes, &mut |answers| found.extend_from_slice(answers));
    };
    insert() = |filter, hashes| filter.core.insert_live_batch(&mut blocks(hashes)).map(drop);
    insert_if_absent(added) = |filter, hashes| {
        let until = filter.whole_lifetime();
        filter.add_all(hashes.map(|hash| (hash, until)), IfPresent::Refuse, added)
    };
    remove(removed) = |filter, hashes| {
        let mut hashes = blocks(hashes);
        filter.core.remove_first_batch(&mut hashes, &mut |answers| removed.extend_from_slice(answers));
    };
}

batches_on_keys! {
    /// The operations on many keys at a time that renew entries, or take an expiry with each key.
    ExpiringCuckooFilter:

    /// [`insert_or_renew`](Self::insert_or_renew) for many keys, in their order: appends to `added`, for each key, whether it
    /// is new. Returns how many are.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which key, and the keys before it have their answers in
    /// `added`.
    insert_or_renew_batch(keys, added: &mut Vec<bool>)
        -> Result<usize, InsertBatchError<ExpiringInsertError>> = |filter, hashes| {
            let until = filter.whole_lifetime();
            filter.add_all(hashes.map(|hash| (hash, until)), IfPresent::Extend, added)
        };

    /// [`insert_until`](Self::insert_until) for many pairs of a key and its [`Expiry`] (or a tick, a time, or a time to
    /// live), in their order: appends to `added`, for each pair, whether it was added. Returns how many were.
    ///
    /// # Errors
    /// [`InsertBatchError`] if an insert fails. The error says which pair, and the pairs before it have their answers in
    /// `added`. Pairs after it may have been taken from the iterator, but none of them went in.
    ///
    /// ```
    /// # use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Tick};
    /// let revoked = ExpiringCuckooFilter::<str>::builder().capacity(1000).lifetime_in_ticks(15).build()?;
    /// revoked.advance_to(Tick::new(100));
    /// let mut added = Vec::new();
    /// revoked.insert_until_batch([("token-1", Tick::new(105)), ("token-2", Tick::new(90))], &mut added)?;
    /// assert_eq!(added, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    insert_until_batch<E: Into<Expiry>>(pairs of E, added: &mut Vec<bool>)
        -> Result<usize, InsertBatchError<ExpiringInsertError>> = |filter, pairs| {
            filter.add_all(pairs.map(|(hash, expiry)| (hash, filter.until(expiry))), IfPresent::Add, added)
        };

    /// [`insert_if_absent_until`](Self::insert_if_absent_until) for many pairs, as
    /// [`insert_until_batch`](Self::insert_until_batch) takes them.
    ///
    /// # Errors
    /// As for `insert_until_batch`.
    insert_if_absent_until_batch<E: Into<Expiry>>(pairs of E, added: &mut Vec<bool>)
        -> Result<usize, InsertBatchError<ExpiringInsertError>> = |filter, pairs| {
            filter.add_all(pairs.map(|(hash, expiry)| (hash, filter.until(expiry))), IfPresent::Refuse, added)
        };

    /// [`insert_or_renew_until`](Self::insert_or_renew_until) for many pairs, as
    /// [`insert_until_batch`](Self::insert_until_batch) takes them: appends to `added`, for each pair, whether its key is
    /// new. Returns how many are.
    ///
    /// # Errors
    /// As for `insert_until_batch`.
    insert_or_renew_until_batch<E: Into<Expiry>>(pairs of E, added: &mut Vec<bool>)
        -> Result<usize, InsertBatchError<ExpiringInsertError>> = |filter, pairs| {
            filter.add_all(pairs.map(|(hash, expiry)| (hash, filter.until(expiry))), IfPresent::Extend, added)
        };

    /// [`remove_expiring_at`](Self::remove_expiring_at) for many pairs, in their order: appends to `removed`, for each pair,
    /// whether there was one.
    remove_expiring_at_batch(pairs of Tick, removed: &mut Vec<bool>) = |filter, pairs| {
        let ends = Cell::new([0; BLOCK]);
        let mut hashes = blocks_of_pairs(pairs.map(|(Hashed(hash), expires_at)| (hash, expires_at.get())), &ends);
        filter.core.remove_until_batch(&mut hashes, &ends, &mut |answers| removed.extend_from_slice(answers));
    };
}

impl<T: ?Sized, S> ExpiringCuckooFilter<T, S> {
    fn add_all(
        &self,
        entries: impl Iterator<Item = (Hashed, Until)>,
        if_present: IfPresent,
        added: &mut Vec<bool>,
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        let ends = Cell::new([Until::default(); BLOCK]);
        let mut count = 0;
        let answer = &mut |is_new: bool| {
            added.push(is_new);
            count += usize::from(is_new);
        };
        let mut hashes = blocks_of_pairs(entries.map(|(Hashed(hash), until)| (hash, until)), &ends);
        self.core.add_until_batch(&mut hashes, &ends, if_present, answer)?;
        Ok(count)
    }
}
