//! PURE: batches on a table of one layout.

use core::cell::Cell;

use crate::error::insert::{InsertBatchError, InsertError, Refusal};
use crate::machine::arch::{VectorUnit, Vectorized};
use crate::plan::batch::{self, BLOCK, Hashes, Steps};
use crate::table::lookup::{Block, Lookup};
use crate::table::table::Table;
use crate::word::geometry::{Geometry, Item, Items};
use crate::word::layout::Layout;

/// A batch of lookups, all of which is compiled for each vector unit.
pub(in crate::table) struct Lookups<'a, L, G: Geometry, K: Lookup> {
    pub(in crate::table) table: &'a Table<L, G>,
    pub(in crate::table) hashes: Hashes<'a>,
    pub(in crate::table) answers: &'a mut dyn FnMut(&[K::Answer]),
}

impl<L: Layout, G: Geometry, K: Lookup> Vectorized for Lookups<'_, L, G, K> {
    #[inline(always)]
    fn run(self) {
        batch::for_each_block(self.hashes, &mut LookUp::<_, _, K> { table: self.table, answers: self.answers });
    }
}

/// The steps of a batch of lookups.
struct LookUp<'a, L, G: Geometry, K: Lookup> {
    table: &'a Table<L, G>,
    answers: &'a mut dyn FnMut(&[K::Answer]),
}

impl<L: Layout, G: Geometry, K: Lookup> Steps for LookUp<'_, L, G, K> {
    type Prepared = Items<BLOCK>;

    #[inline(always)]
    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, items: &mut Self::Prepared) {
        self.table.buckets.items(self.table.layout, hashes, items);
    }

    #[inline(always)]
    fn prefetch_block(&self, items: &Self::Prepared) {
        if self.table.is_far() {
            self.table.prefetch_block(items);
        }
    }

    #[inline(always)]
    fn act(&mut self, block: Block<'_>, coming: &Self::Prepared) -> bool {
        let mut answers = [K::ABSENT; BLOCK];
        self.table.look_up_block::<K>(block, self.table.is_far().then_some(coming), &mut answers);
        (self.answers)(&answers[..block.len]);
        true
    }
}

/// The second column of a batch of changes: nothing, or a value or an end for each hash.
pub(super) trait Beside: Copy {
    type OfBlock: Copy + Default;
    type OfOne;

    fn of_block(self) -> Self::OfBlock;
    fn nth(block: &Self::OfBlock, nth: usize) -> Self::OfOne;
}

impl Beside for () {
    type OfBlock = ();
    type OfOne = ();

    fn of_block(self) {}

    #[inline(always)]
    fn nth((): &(), _: usize) {}
}

impl<P: Copy> Beside for &Cell<[P; BLOCK]>
where
    [P; BLOCK]: Default,
{
    type OfBlock = [P; BLOCK];
    type OfOne = P;

    fn of_block(self) -> [P; BLOCK] {
        self.get()
    }

    #[inline(always)]
    fn nth(block: &[P; BLOCK], nth: usize) -> P {
        block[nth]
    }
}

/// The items of a block for a batch of changes. Only that step is compiled for each vector unit: the changes
/// themselves are made one by one.
struct Prepare<'a, L, G: Geometry> {
    table: &'a Table<L, G>,
    hashes: &'a [u64; BLOCK],
    items: &'a mut Items<BLOCK>,
}

impl<L: Layout, G: Geometry> Vectorized for Prepare<'_, L, G> {
    #[inline(always)]
    fn run(self) {
        self.table.buckets.items(self.table.layout, self.hashes, self.items);
    }
}

/// The steps of a batch of changes. `act` makes those of a block, prefetches the buckets of the next one, and returns
/// whether to continue.
struct Change<'a, L, G: Geometry, B, A> {
    table: &'a Table<L, G>,
    beside: B,
    act: A,
}

impl<L: Layout, G: Geometry, B: Beside, A> Steps for Change<'_, L, G, B, A>
where
    A: FnMut(Block<'_>, &B::OfBlock, &Items<BLOCK>) -> bool,
{
    type Prepared = (Items<BLOCK>, B::OfBlock);

    fn prepare(&self, hashes: &[u64; BLOCK], _len: usize, (items, beside): &mut Self::Prepared) {
        VectorUnit::widest().run(Prepare { table: self.table, hashes, items });
        *beside = self.beside.of_block();
    }

    fn prefetch_block(&self, (items, _): &Self::Prepared) {
        self.table.prefetch_block(items);
    }

    fn act(&mut self, block: batch::Block<'_, Self::Prepared>, (coming, _): &Self::Prepared) -> bool {
        let (items, beside) = block.prepared;
        (self.act)(Block { hashes: block.hashes, prepared: items, len: block.len }, beside, coming)
    }
}

impl<L: Layout, G: Geometry> Table<L, G> {
    pub(super) fn look_up_all<K: Lookup>(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[K::Answer])) {
        VectorUnit::widest().run(Lookups::<_, _, K> { table: self, hashes, answers });
    }

    /// Calls `insert` for all, in order, until one fails. `counts` says whether `insert` counts what it adds; if not, a
    /// block is counted at once. In a filter, `insert` is not called while a save is running.
    #[inline(always)]
    pub(super) fn insert_all<B: Beside, E: Refusal>(
        &self,
        hashes: Hashes<'_>,
        beside: B,
        counts: bool,
        mut insert: impl FnMut(&Self, Item, B::OfOne) -> Result<(), E>,
    ) -> Result<usize, InsertBatchError<E>> {
        let mut outcome = (0, None);
        let (inserted, refused) = (&mut outcome.0, &mut outcome.1);
        let act = move |block: Block<'_>, beside: &B::OfBlock, coming: &Items<BLOCK>| {
            // Read once for the block: a save that begins later overlaps the inserts.
            if !L::HAS_PAYLOAD && self.is_being_saved() {
                let (added, error) = self.insert_block_slow(block);
                *refused = error.map(E::from);
                *inserted += added;
                return refused.is_none();
            }
            let mut added = 0;
            for nth in 0..block.len.min(BLOCK) {
                self.prefetch(coming.get(nth));
                if let Err(mut error) = insert(self, block.prepared.get(nth), B::nth(beside, nth)) {
                    if let Some(len) = error.len_when_full().filter(|_| !counts) {
                        *len += added;
                    }
                    *refused = Some(error);
                    break;
                }
                added += 1;
            }
            if !counts {
                self.common.counters.add_len(added as i64);
            }
            *inserted += added;
            refused.is_none()
        };
        batch::for_each_block(hashes, &mut Change { table: self, beside, act });
        match outcome {
            (inserted, None) => Ok(inserted),
            (inserted, Some(error)) => Err(InsertBatchError::new(inserted, error)),
        }
    }

    /// The inserts of a block of a filter that is being saved. Returns how many were made, and why no more.
    #[cold]
    #[inline(never)]
    fn insert_block_slow(&self, block: Block<'_>) -> (usize, Option<InsertError>) {
        for (nth, &hash) in block.hashes[..block.len].iter().enumerate() {
            if let Err(error) = self.insert_slow(hash) {
                return (nth, Some(error));
            }
        }
        (block.len, None)
    }

    /// Calls `remove` for all, in order, which counts nothing by itself.
    #[inline(always)]
    pub(super) fn remove_all<B: Beside>(
        &self,
        hashes: Hashes<'_>,
        beside: B,
        remove: impl Fn(&Self, Item, u64, B::OfOne) -> bool,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        let act = move |block: Block<'_>, beside: &B::OfBlock, coming: &Items<BLOCK>| {
            let mut removed = [false; BLOCK];
            let mut count = 0;
            for (nth, removed) in removed.iter_mut().enumerate().take(block.len) {
                self.prefetch(coming.get(nth));
                *removed = remove(self, block.prepared.get(nth), block.hashes[nth], B::nth(beside, nth));
                count += i64::from(*removed);
            }
            self.common.counters.add_len(-count);
            if count < block.len as i64 {
                self.common.counters.removals_not_found(block.len as u64 - count as u64);
            }
            answers(&removed[..block.len]);
            true
        };
        batch::for_each_block(hashes, &mut Change { table: self, beside, act });
    }
}
