//! Batches: from the caller's iterator to the blocks of hashes that a table takes, and back to the caller's vector.

use core::cell::Cell;

use crate::error::insert::InsertBatchError;
use crate::filter::by_hash::Hashed;
use crate::lookup::batch::{BLOCK, Pipeline};
use crate::table::core::Core;

/// Passes on the hashes a block at a time.
pub(crate) fn blocks(hashes: impl IntoIterator<Item = Hashed>) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    let mut hashes = hashes.into_iter();
    move |block| {
        let mut len = 0;
        for (slot, hash) in block.iter_mut().zip(&mut hashes) {
            *slot = hash.0;
            len += 1;
        }
        len
    }
}

/// Passes on the hashes a block at a time, and puts what goes with them into `others`.
pub(in crate::filter) fn blocks_of_pairs<P: Copy + Default>(
    pairs: impl IntoIterator<Item = (Hashed, P)>,
    others: &Cell<[P; BLOCK]>,
) -> impl FnMut(&mut [u64; BLOCK]) -> usize {
    let mut pairs = pairs.into_iter();
    move |block| {
        let mut block_of_others = [P::default(); BLOCK];
        let mut len = 0;
        for ((slot, other_slot), (hash, other)) in block.iter_mut().zip(&mut block_of_others).zip(&mut pairs) {
            (*slot, *other_slot) = (hash.0, other);
            len += 1;
        }
        others.set(block_of_others);
        len
    }
}

/// Appends the answers to a block of hashes.
pub(crate) fn append_to<A: Copy>(answers: &mut Vec<A>) -> impl FnMut(&[A]) {
    |block| answers.extend_from_slice(block)
}

/// Hashes with nothing beside them, for [`add_each`].
pub(in crate::filter) fn without_others(
    hashes: impl IntoIterator<Item = Hashed>,
) -> impl IntoIterator<Item = (Hashed, ())> {
    hashes.into_iter().map(|hash| (hash, ()))
}

/// Calls `add` for each hash, in order, with what goes with it, and appends the answer to `answers`. `add` decides what
/// becomes of a key that is there, and counts what it adds. Prefetches for the next ones. Returns how many were added, as
/// `is_added` tells by the answer.
pub(in crate::filter) fn add_each<P: Copy + Default, A: Copy, E>(
    core: &impl Core,
    pairs: impl IntoIterator<Item = (Hashed, P)>,
    add: impl Fn(u64, P) -> Result<A, E>,
    answers: &mut Vec<A>,
    is_added: impl Fn(A) -> bool,
) -> Result<usize, InsertBatchError<E>> {
    let others = Cell::new([P::default(); BLOCK]);
    let mut hashes = blocks_of_pairs(pairs, &others);
    let mut pipeline = Pipeline::new(&mut hashes, others.get());
    let (mut done, mut added) = (0, 0);
    loop {
        while let Some(block) = pipeline.unprepared() {
            core.prefetch(&block.hashes[..block.len]);
            *block.prepared = others.get();
        }
        let Some((block, _)) = pipeline.next() else { return Ok(added) };
        for (&hash, &other) in block.hashes[..block.len].iter().zip(block.prepared) {
            let answer = add(hash, other).map_err(|error| InsertBatchError::new(done, error))?;
            answers.push(answer);
            added += usize::from(is_added(answer));
            done += 1;
        }
    }
}
