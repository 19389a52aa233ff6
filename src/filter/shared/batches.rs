//! The batches of keys alone, which all filters have.

use core::cell::Cell;

use crate::error::insert::InsertBatchError;
use crate::filter::by_hash::Hashed;
use crate::plan::batch::{BLOCK, Window};

/// The operations on many keys, and what each does with hashes.
macro_rules! batches {
    (
        $Filter:ident, $Error:ident: $(#[$doc:meta])*
        contains($found:ident) = |$filter0:ident, $hashes0:ident| $contains:expr;
        insert() = |$filter1:ident, $hashes1:ident| $insert:expr;
        insert_if_absent($added:ident) = |$filter2:ident, $hashes2:ident| $insert_if_absent:expr;
        remove($removed:ident) = |$filter3:ident, $hashes3:ident| $remove:expr;
    ) => {
        batches_on_keys! {
            /// The operations on many keys at a time.
            ///
            $(#[$doc])*
            ///
            /// Batches of any size work, and are at their best from about a hundred keys on. Keys are passed by reference, as
            /// [`BatchKey`] describes.
            ///
            /// A batch is not a transaction. Each of its keys is an operation of its own, which takes effect at some moment
            /// of the call, with all that a single one promises. A batch allocates only where a single one does, and for what
            /// the answers are appended to. It holds no lock while it asks the iterator for a key or passes on an answer. If
            /// the iterator or a key's `Hash` panics, the batch ends there. All keys that it took before, except the last few
            /// hundred, have been processed.
            $Filter:

            /// [`contains`](Self::contains) for many keys: appends the answers to `found`, one for each key and in
            /// their order.
            ///
            /// The lookups themselves run in any order, each after its key was taken from the iterator.
            contains_batch(keys, $found: &mut Vec<bool>) = |$filter0, $hashes0| $contains;

            /// [`insert`](Self::insert) for many keys, in their order.
            ///
            /// It adds a copy for each key. If the keys may repeat, use
            /// [`insert_if_absent_batch`](Self::insert_if_absent_batch). While a batch runs, [`len`](Self::len) may count
            /// its keys by 32 at a time.
            ///
            /// # Errors
            /// Fails if one of the inserts fails. The error says which key. Later keys may have been taken from the
            /// iterator, but were not inserted.
            insert_batch(keys) -> Result<(), InsertBatchError<$Error>> = |$filter1, $hashes1| $insert;

            /// [`insert_if_absent`](Self::insert_if_absent) for many keys, in their order: appends to `added`, for each
            /// key, whether it was added. Returns how many were.
            ///
            /// # Errors
            /// Fails if one of the inserts fails. The error says which key, and the keys before it have their answers in
            /// `added`. Later keys may have been taken from the iterator, but were not inserted.
            insert_if_absent_batch(keys, $added: &mut Vec<bool>) -> Result<usize, InsertBatchError<$Error>>
                = |$filter2, $hashes2| $insert_if_absent;

            /// [`remove`](Self::remove) for many keys, in their order: appends the answers to `removed`.
            remove_batch(keys, $removed: &mut Vec<bool>) = |$filter3, $hashes3| $remove;
        }
    };
}
pub(in crate::filter) use batches;

/// The batches of a filter of keys alone. `$prepared` turns a hash into what its core takes.
macro_rules! batches_of_keys_alone {
    ($Filter:ident, $Error:ident, $prepared:expr; $(#[$doc:meta])*) => {
        batches! {
            $Filter, $Error:
            $(#[$doc])*
            contains(found) = |filter, hashes| {
                let mut hashes = blocks(hashes.map(|hash| Hashed($prepared(hash.0))));
                filter.core.contains_batch(&mut hashes, &mut |answers| found.extend_from_slice(answers));
            };
            insert() = |filter, hashes| {
                filter.core.insert_batch(&mut blocks(hashes.map(|hash| Hashed($prepared(hash.0))))).map(drop)
            };
            insert_if_absent(added) = |filter, hashes| {
                let hashes = hashes.map(|hash| ($prepared(hash.0), ()));
                add_absent(hashes, |hashes| filter.core.prefetch(hashes), |hash, ()| {
                    let is_new = filter.core.insert_if_absent(hash)?;
                    added.push(is_new);
                    Ok(is_new)
                })
            };
            remove(removed) = |filter, hashes| {
                let mut hashes = blocks(hashes.map(|hash| Hashed($prepared(hash.0))));
                filter.core.remove_batch(&mut hashes, &mut |answers| removed.extend_from_slice(answers));
            };
        }
    };
}
pub(in crate::filter) use batches_of_keys_alone;

/// Passes on the hashes a block at a time.
pub(crate) fn blocks(mut hashes: impl Iterator<Item = Hashed>) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    move |block| {
        let mut len = 0;
        for (slot, hash) in block.iter_mut().zip(&mut hashes) {
            *slot = hash.0;
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
    let mut hashes = blocks_of_pairs(pairs, &others);
    let mut window = Window::<[P; BLOCK]>::new(&mut hashes);
    let (mut done, mut added) = (0, 0);
    loop {
        while let Some(coming) = window.coming() {
            prefetch(&coming.hashes[..coming.len]);
            *coming.prepared = others.get();
        }
        let Some((block, _)) = window.next() else { return Ok(added) };
        for (&hash, &other) in block.hashes[..block.len].iter().zip(block.prepared) {
            added += usize::from(add(hash, other).map_err(|error| InsertBatchError::new(done, error))?);
            done += 1;
        }
    }
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
