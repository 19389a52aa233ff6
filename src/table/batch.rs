//! CONCURRENT: batches of changes: the operations on a block of keys after the other. `lookup/batch.rs` has the pipeline of blocks in which
//! their buckets are prefetched.

use core::cell::Cell;

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError};
use crate::lookup::batch::{BLOCK, Hashes, Pipeline, Unprepared};
use crate::lookup::fixed::Block;
use crate::machine::arch::VectorUnit;
use crate::table::attempt::IfPresent;
use crate::table::entries::{Entries, Expiry, Nothing, Value};
use crate::table::expiring::clock::Until;
use crate::table::table::Table;
use crate::word::geometry::{Item, Items};
use crate::word::layout::Layout;

/// Makes the inserts of a block in a set, and meanwhile prefetches the buckets of other items. Returns how many were made, and
/// why no more.
pub(super) type InsertBlock = fn(&Table<Nothing>, Block<'_>, &Items<BLOCK>) -> (usize, Option<InsertError>);

/// Makes the removals of a block in the same way. Notes for each key whether a copy was removed, and returns how many were.
pub(super) type RemoveBlock = fn(&Table<Nothing>, Block<'_>, &Items<BLOCK>, &mut [bool; BLOCK]) -> usize;

/// The values that go with a block of hashes.
pub(crate) type BlockOfValues = Cell<[u16; BLOCK]>;

/// The expiries that go with a block of hashes, in the caller's ticks.
pub(crate) type BlockOfExpiries = Cell<[u64; BLOCK]>;

/// The expiries of entries to add that go with a block of hashes.
pub(crate) type BlockOfUntil = Cell<[Until; BLOCK]>;

/// What goes with a block of keys alone.
fn nothing() {}

impl<E: Entries> Table<E> {
    /// The next block of a batch of changes, what goes with its hashes, and the items whose buckets to prefetch meanwhile.
    /// `column` returns what goes with the hashes that were taken last.
    #[inline(always)]
    fn next_block<'w, B: Copy>(
        &self,
        unit: VectorUnit,
        pipeline: &'w mut Pipeline<'_, (Items<BLOCK>, B)>,
        column: &impl Fn() -> B,
    ) -> Option<(Block<'w>, &'w B, &'w Items<BLOCK>)> {
        while let Some(Unprepared { hashes, prepared: (items, of_block), is_first, .. }) = pipeline.unprepared() {
            self.prepare(unit, hashes, items, is_first);
            *of_block = column();
        }
        let (block, (next, _)) = pipeline.next()?;
        let (items, column) = block.prepared;
        Some((Block { hashes: block.hashes, prepared: items, len: block.len }, column, next))
    }

    #[inline(never)]
    fn prepare(&self, unit: VectorUnit, hashes: &[u64; BLOCK], items: &mut Items<BLOCK>, is_first: bool) {
        self.geometry.items(unit, self.layout.lanes(), hashes, items);
        if is_first {
            self.prefetch_block(items);
        }
    }

    /// Inserts all, in order, until an insert fails: `insert_block` does so for a block, with what goes with it, and
    /// decides what becomes of keys that are there. It leaves it to this function to count what it has added, except where
    /// entries expire: there it counts each, since an eviction asks how many there are. Its error says how many keys there
    /// are, with those that it has added.
    fn insert_all<B: Copy, R>(
        &self,
        hashes: Hashes<'_>,
        column: impl Fn() -> B,
        mut insert_block: impl FnMut(&Self, Block<'_>, &B, &Items<BLOCK>) -> (usize, Option<R>),
    ) -> Result<usize, InsertBatchError<R>> {
        let (unit, mut pipeline, mut inserted) =
            (VectorUnit::widest(), Pipeline::new(hashes, (Items::default(), column())), 0);
        while let Some((block, column, next)) = self.next_block(unit, &mut pipeline, &column) {
            let (added, failed) = insert_block(self, block, column, next);
            if !E::EXPIRE {
                self.counters.add_len(added as i64);
            }
            inserted += added;
            if let Some(error) = failed {
                return Err(InsertBatchError::new(inserted, error));
            }
        }
        Ok(inserted)
    }

    /// The inserts of a block, each by `insert`: with the item, the hash, what goes with the block, and the key's place
    /// there. `insert` decides what becomes of a key that is there, takes the locks that it needs, and counts or does not.
    /// (Where that is a function and no closure, it is certain to be inlined.) Returns how many were made, and why no more.
    /// (Not inlined: the loop needs all registers.)
    #[inline(never)]
    fn insert_each<B, R>(
        &self,
        block: Block<'_>,
        column: &B,
        next: &Items<BLOCK>,
        mut insert: impl FnMut(&Self, Item, u64, &B, usize) -> Result<(), R>,
    ) -> (usize, Option<R>) {
        for nth in 0..block.len.min(BLOCK) {
            self.prefetch(next.get(nth));
            if let Err(error) = insert(self, block.prepared.get(nth), block.hashes[nth], column, nth) {
                return (nth, Some(error));
            }
        }
        (block.len, None)
    }

    /// Removes all, in order, which counts nothing by itself: `remove_block` does so for a block, with what goes with it.
    fn remove_all<B: Copy>(
        &self,
        hashes: Hashes<'_>,
        column: impl Fn() -> B,
        remove_block: impl Fn(&Self, Block<'_>, &B, &Items<BLOCK>, &mut [bool; BLOCK]) -> usize,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        let (unit, mut pipeline) = (VectorUnit::widest(), Pipeline::new(hashes, (Items::default(), column())));
        while let Some((block, column, next)) = self.next_block(unit, &mut pipeline, &column) {
            let mut removed = [false; BLOCK];
            let count = remove_block(self, block, column, next, &mut removed);
            self.counters.add_len(-(count as i64));
            if count < block.len {
                self.counters.removals_not_found((block.len - count) as u64);
            }
            answers(&removed[..block.len]);
        }
    }

    /// The removals of a block, each by `remove`: with the hash, what goes with its block, and its place there. Returns how
    /// many copies were removed.
    #[inline(never)]
    fn remove_each<B>(
        &self,
        block: Block<'_>,
        column: &B,
        next: &Items<BLOCK>,
        removed: &mut [bool; BLOCK],
        remove: impl Fn(&Self, Item, u64, &B, usize) -> bool,
    ) -> usize {
        let mut count = 0;
        for (nth, removed) in removed.iter_mut().enumerate().take(block.len) {
            self.prefetch(next.get(nth));
            *removed = remove(self, block.prepared.get(nth), block.hashes[nth], column, nth);
            count += usize::from(*removed);
        }
        count
    }
}

impl Table<Nothing> {
    /// Adds a copy of each class, in order, a further one if there are some, and counts them. `insert_block` is
    /// [`insert_block`](Self::insert_block), compiled for the table's layout.
    pub(super) fn insert_batch(
        &self,
        hashes: Hashes<'_>,
        insert_block: InsertBlock,
    ) -> Result<usize, InsertBatchError> {
        self.insert_all(hashes, nothing, |table, block, (), next| {
            // Asked once for the block: a save that begins later overlaps the inserts.
            let (added, failed) =
                if table.is_being_saved() { table.insert_block_slow(block) } else { insert_block(table, block, next) };
            (added, failed.map(|error| error.with_uncounted(added)))
        })
    }

    /// The inserts of a block: adds a copy of each class, a further one if there are some, without counting them. Takes no lock
    /// where there is room. (Not inlined: the loop needs all registers.)
    #[inline(never)]
    pub(super) fn insert_block(
        &self,
        layout: impl Layout,
        block: Block<'_>,
        next: &Items<BLOCK>,
    ) -> (usize, Option<InsertError>) {
        for nth in 0..block.len.min(BLOCK) {
            self.prefetch(next.get(nth));
            if !self.add(layout, block.prepared.get(nth))
                && let Err(error) = self.insert_item_where_full(self.item(block.hashes[nth]))
            {
                return (nth, Some(error));
            }
        }
        (block.len, None)
    }

    /// [`insert_block`](Self::insert_block) in a filter that is being saved.
    #[cold]
    #[inline(never)]
    fn insert_block_slow(&self, block: Block<'_>) -> (usize, Option<InsertError>) {
        for (nth, &hash) in block.hashes[..block.len].iter().enumerate() {
            if let Err(error) = self.insert_item_slow(self.item(hash)) {
                return (nth, Some(error));
            }
        }
        (block.len, None)
    }

    pub(super) fn remove_batch(&self, hashes: Hashes<'_>, remove_block: RemoveBlock, answers: &mut dyn FnMut(&[bool])) {
        let remove_block = |table: &Self, block: Block<'_>, (): &(), next: &_, removed: &mut _| {
            remove_block(table, block, next, removed)
        };
        self.remove_all(hashes, nothing, remove_block, answers);
    }

    /// The removals of a block.
    #[inline(never)]
    pub(super) fn remove_block(
        &self,
        layout: impl Layout,
        block: Block<'_>,
        next: &Items<BLOCK>,
        removed: &mut [bool; BLOCK],
    ) -> usize {
        let mut count = 0;
        for (nth, removed) in removed.iter_mut().enumerate().take(block.len) {
            self.prefetch(next.get(nth));
            *removed = self.remove_item(layout, block.prepared.get(nth), block.hashes[nth]);
            count += usize::from(*removed);
        }
        count
    }
}

impl Table<Value> {
    /// Adds each pair, in order, a further copy if there are some, and counts them.
    pub(super) fn insert_values(
        &self,
        hashes: Hashes<'_>,
        values: &BlockOfValues,
    ) -> Result<usize, InsertBatchError<InsertError>> {
        self.insert_all(
            hashes,
            || values.get(),
            |table, block, values: &[u16; BLOCK], next| {
                let (added, failed) = table.insert_each(block, values, next, Self::insert_nth_value);
                (added, failed.map(|error| error.with_uncounted(added)))
            },
        )
    }

    /// Adds a copy of the class of this item with the value in this place of the block, as [`insert_value`](Self::insert_value)
    /// does.
    #[inline(always)]
    fn insert_nth_value(&self, item: Item, _: u64, values: &[u16; BLOCK], nth: usize) -> Result<(), InsertError> {
        self.insert_value(self.layout(), item.with(self.layout(), values[nth]))
    }

    pub(super) fn remove_values(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool])) {
        let remove_block = |table: &Self, block: Block<'_>, values: &_, next: &_, removed: &mut _| {
            table.remove_each(block, values, next, removed, Self::remove_nth_value)
        };
        self.remove_all(hashes, || values.get(), remove_block, answers);
    }

    #[inline(always)]
    fn remove_nth_value(&self, item: Item, hash: u64, values: &[u16; BLOCK], nth: usize) -> bool {
        self.remove_item(self.layout(), item.with(self.layout(), values[nth]), hash)
    }
}

impl Table<Expiry> {
    /// Adds an entry with the longest lifetime for each class, in order, a further one if there are some. Each is counted, and
    /// added under the lock of its stripe ([`add_until`](Self::add_until)).
    pub(super) fn insert_all_live(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        let until = Until::After(self.clock().longest());
        self.insert_all(hashes, nothing, |table, block, &(), next| {
            table.insert_each(block, &(), next, |table, item, _, &(), _| {
                table.add_until(table.layout(), item, &until, IfPresent::Add).map(drop)
            })
        })
    }

    /// [`add_until`](Self::add_until) for each class, in order, with the expiry that goes with it: `if_present` says what
    /// happens if it has an entry. Calls `answer` with whether each was added.
    pub(super) fn add_all_until(
        &self,
        hashes: Hashes<'_>,
        expiries: &BlockOfUntil,
        if_present: IfPresent,
        answer: &mut dyn FnMut(bool),
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        // Compiled once more for plain inserts: without the question what is there, they are a good part shorter.
        if if_present == IfPresent::Add {
            return self.insert_all(
                hashes,
                || expiries.get(),
                |table, block, expiries: &[Until; BLOCK], next| {
                    table.insert_each(block, expiries, next, |table, item, _, expiries, nth| {
                        table.add_until(table.layout(), item, &expiries[nth], IfPresent::Add).map(&mut *answer)
                    })
                },
            );
        }
        self.insert_all(
            hashes,
            || expiries.get(),
            |table, block, expiries: &[Until; BLOCK], next| {
                table.insert_each(block, expiries, next, |table, item, _, expiries, nth| {
                    table.add_until(table.layout(), item, &expiries[nth], if_present).map(&mut *answer)
                })
            },
        )
    }

    pub(super) fn remove_all_until(
        &self,
        hashes: Hashes<'_>,
        expiries: &BlockOfExpiries,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        let remove_block = |table: &Self, block: Block<'_>, expiries: &[u64; BLOCK], next: &_, removed: &mut _| {
            table.remove_each(block, expiries, next, removed, |table, item, _, expiries, nth| {
                table.remove_until(table.layout(), item, expiries[nth])
            })
        };
        self.remove_all(hashes, || expiries.get(), remove_block, answers);
    }

    pub(super) fn remove_all_first(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let remove_block = |table: &Self, block: Block<'_>, &(): &(), next: &_, removed: &mut _| {
            table.remove_each(block, &(), next, removed, |table, item, _, &(), _| table.remove_first(item))
        };
        self.remove_all(hashes, nothing, remove_block, answers);
    }
}
