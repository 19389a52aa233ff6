//! PURE: batches on a table of one layout.

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError, Refusal};
use crate::machine::arch::{VectorUnit, Vectorized};
use crate::plan::batch::{BLOCK, Coming, Hashes, Window};
use crate::table::expiring::IfPresent;
use crate::table::expiring::clock::Until;
use crate::table::face::traits::{BlockOfEnds, BlockOfUntil, BlockOfValues};
use crate::table::lookup::{Block, Query};
use crate::table::table::Table;
use crate::word::geometry::{Buckets, Item, Items};
use crate::word::layout::{Layout, OfShape};

/// A batch of lookups, all of which is compiled for each vector unit.
pub(in crate::table) struct LookupBatch<'a, L, Q: Query> {
    pub(in crate::table) table: &'a Table<L>,
    pub(in crate::table) hashes: Hashes<'a>,
    pub(in crate::table) answers: &'a mut dyn FnMut(&[Q::Answer]),
}

impl<L: Layout, Q: Query> Vectorized for LookupBatch<'_, L, Q> {
    #[inline(always)]
    fn run(self) {
        let (table, is_far) = (self.table, self.table.is_far());
        let mut window = Window::<Items<BLOCK>>::new(self.hashes);
        loop {
            while let Some(Coming { hashes, prepared: items, is_first, .. }) = window.coming() {
                table.buckets.items(table.layout, hashes, items);
                if is_first && is_far {
                    table.prefetch_block(items);
                }
            }
            let Some((block, coming)) = window.next() else { return };
            let mut answers = [Q::ABSENT; BLOCK];
            table.look_up_block::<Q>(block, is_far.then_some(coming), &mut answers);
            (self.answers)(&answers[..block.len]);
        }
    }
}

/// The items of a block for a batch of changes. Only that step is compiled for each vector unit: the changes
/// themselves are made one by one.
struct Prepare<'a, L> {
    layout: L,
    buckets: Buckets,
    hashes: &'a [u64; BLOCK],
    items: &'a mut Items<BLOCK>,
}

impl<L: Layout> Vectorized for Prepare<'_, L> {
    #[inline(always)]
    fn run(self) {
        self.buckets.items(self.layout, self.hashes, self.items);
    }
}

impl<L: OfShape> Table<L> {
    pub(super) fn look_up_all<Q: Query>(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Q::Answer])) {
        VectorUnit::widest().run(LookupBatch::<_, Q> { table: self, hashes, answers });
    }

    /// The next block of a batch of changes, what goes with its hashes, and the items whose buckets to prefetch meanwhile.
    /// `beside` returns what goes with the hashes that were taken last.
    #[inline(always)]
    fn next_block<'w, B: Copy + Default>(
        &self,
        window: &'w mut Window<'_, (Items<BLOCK>, B)>,
        beside: &impl Fn() -> B,
    ) -> Option<(Block<'w>, &'w B, &'w Items<BLOCK>)> {
        while let Some(Coming { hashes, prepared: (items, of_block), is_first, .. }) = window.coming() {
            self.prepare(hashes, items, is_first);
            *of_block = beside();
        }
        let (block, (coming, _)) = window.next()?;
        let (items, beside) = block.prepared;
        Some((Block { hashes: block.hashes, prepared: items, len: block.len }, beside, coming))
    }

    #[inline(never)]
    fn prepare(&self, hashes: &[u64; BLOCK], items: &mut Items<BLOCK>, is_first: bool) {
        VectorUnit::widest().run(Prepare { layout: self.layout, buckets: self.buckets, hashes, items });
        if is_first {
            self.prefetch_block(items);
        }
    }

    /// Calls `insert` for all, in order, until one is refused: with the hash, what goes with its block, and its place
    /// there. (Where that is a function and no closure, it is certain to be inlined.) It counts nothing, except where
    /// entries expire: an eviction asks how many there are. In a filter, it is not called while a save is running.
    #[inline(always)]
    pub(super) fn insert_all<B: Copy + Default, E: Refusal>(
        &self,
        hashes: Hashes<'_>,
        beside: impl Fn() -> B,
        mut insert: impl FnMut(&Self, Item, u64, &B, usize) -> Result<(), E>,
    ) -> Result<usize, InsertBatchError<E>> {
        let (mut window, mut inserted) = (Window::new(hashes), 0);
        while let Some((block, beside, coming)) = self.next_block(&mut window, &beside) {
            // Asked once for the block: a save that begins later overlaps the inserts.
            let (added, refused) = if !L::HAS_PAYLOAD && self.is_being_saved() {
                self.insert_block_slow(block)
            } else {
                self.insert_block(block, beside, coming, &mut insert)
            };
            let uncounted = if self.clock().is_none() { added } else { 0 };
            self.counters.add_len(uncounted as i64);
            inserted += added;
            if let Some(mut error) = refused {
                error.len_when_full().into_iter().for_each(|len| *len += uncounted);
                return Err(InsertBatchError::new(inserted, error));
            }
        }
        Ok(inserted)
    }

    /// The inserts of a block. Returns how many were made, and why no more. (Not inlined: the loop needs all registers.)
    #[inline(never)]
    fn insert_block<B, E>(
        &self,
        block: Block<'_>,
        beside: &B,
        coming: &Items<BLOCK>,
        insert: &mut impl FnMut(&Self, Item, u64, &B, usize) -> Result<(), E>,
    ) -> (usize, Option<E>) {
        for nth in 0..block.len.min(BLOCK) {
            self.prefetch(coming.get(nth));
            if let Err(error) = insert(self, block.prepared.get(nth), block.hashes[nth], beside, nth) {
                return (nth, Some(error));
            }
        }
        (block.len, None)
    }

    /// The inserts of a block in a filter that is being saved.
    #[cold]
    #[inline(never)]
    fn insert_block_slow<E: Refusal>(&self, block: Block<'_>) -> (usize, Option<E>) {
        for (nth, &hash) in block.hashes[..block.len].iter().enumerate() {
            if let Err(error) = self.insert_uncounted_slow(hash) {
                return (nth, Some(error.into()));
            }
        }
        (block.len, None)
    }

    /// Calls `remove` for all, in order, which counts nothing by itself: with the hash, what goes with its block, and its
    /// place there.
    #[inline(always)]
    pub(super) fn remove_all<B: Copy + Default>(
        &self,
        hashes: Hashes<'_>,
        beside: impl Fn() -> B,
        remove: impl Fn(&Self, Item, u64, &B, usize) -> bool,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        let mut window = Window::new(hashes);
        while let Some((block, beside, coming)) = self.next_block(&mut window, &beside) {
            let mut removed = [false; BLOCK];
            let mut count = 0;
            for (nth, removed) in removed.iter_mut().enumerate().take(block.len) {
                self.prefetch(coming.get(nth));
                *removed = remove(self, block.prepared.get(nth), block.hashes[nth], beside, nth);
                count += i64::from(*removed);
            }
            self.counters.add_len(-count);
            if count < block.len as i64 {
                self.counters.removals_not_found(block.len as u64 - count as u64);
            }
            answers(&removed[..block.len]);
        }
    }

    pub(super) fn insert_values(
        &self,
        hashes: Hashes<'_>,
        values: &BlockOfValues,
    ) -> Result<usize, InsertBatchError<InsertError>> {
        self.insert_all(hashes, || values.get(), Self::insert_nth_value)
    }

    #[inline(always)]
    fn insert_nth_value(&self, item: Item, _: u64, values: &[u16; BLOCK], nth: usize) -> Result<(), InsertError> {
        self.insert_value(item.with(self.layout(), values[nth]))
    }

    pub(super) fn remove_values(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool])) {
        self.remove_all(hashes, || values.get(), Self::remove_nth_value, answers);
    }

    #[inline(always)]
    fn remove_nth_value(&self, item: Item, hash: u64, values: &[u16; BLOCK], nth: usize) -> bool {
        self.remove_item(self.layout(), item.with(self.layout(), values[nth]), hash)
    }

    pub(super) fn insert_all_live(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        let until = Until::After(self.own_clock().longest());
        let insert =
            |_: &Self, item, _, &(): &(), _| self.add_until(self.layout(), item, until, IfPresent::Add).map(drop);
        self.insert_all(hashes, || (), insert)
    }

    pub(super) fn add_all_until(
        &self,
        hashes: Hashes<'_>,
        ends: &BlockOfUntil,
        if_present: IfPresent,
        answer: &mut dyn FnMut(bool),
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        // Compiled once more for plain inserts: without the question what is there, they are a good part shorter.
        if if_present == IfPresent::Add {
            let add = |_: &Self, item, _, ends: &[Until; BLOCK], nth: usize| {
                self.add_until(self.layout(), item, ends[nth], IfPresent::Add).map(&mut *answer)
            };
            return self.insert_all(hashes, || ends.get(), add);
        }
        let add = |_: &Self, item, _, ends: &[Until; BLOCK], nth: usize| {
            self.add_until(self.layout(), item, ends[nth], if_present).map(&mut *answer)
        };
        self.insert_all(hashes, || ends.get(), add)
    }

    pub(super) fn remove_all_until(&self, hashes: Hashes<'_>, ends: &BlockOfEnds, answers: &mut dyn FnMut(&[bool])) {
        let remove = |_: &Self, item, hash, ends: &[u64; BLOCK], nth: usize| {
            self.remove_until(self.layout(), item, hash, ends[nth])
        };
        self.remove_all(hashes, || ends.get(), remove, answers);
    }

    pub(super) fn remove_all_first(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.remove_all(hashes, || (), |_, item, _, &(), _| self.remove_first(item), answers);
    }
}
