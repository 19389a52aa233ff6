//! PURE: the traits of `table/face/traits.rs` for a table of one layout. Each method calls the one of `Table` with the
//! same or nearly the same name: in `table/lookup.rs`, `table/change.rs`, `table/maplet.rs` or `table/expiring`.

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError};
use crate::machine::arch::prefetch_line;
use crate::plan::batch::{BLOCK, Hashes};
use crate::table::attempt::IfPresent;
use crate::table::entries::{Entries, Expiry, Nothing, Value};
use crate::table::expiring::clock::{Advance, Clock, Until};
use crate::table::face::any_table::{AnyTable, Facts, HasTable};
use crate::table::face::batch::{InsertBlock, RemoveBlock, nothing};
use crate::table::face::traits::{BlockOfEnds, BlockOfUntil, BlockOfValues, ExpiringTable, FilterTable, MapletTable};
use crate::table::image::merge::{Absorbed, Merge};
use crate::table::image::read::TableImage;
use crate::table::lookup::{Block, PresenceQuery};
use crate::table::maplet::ValuesQuery;
use crate::table::table::{Table, memory_for};
use crate::word::geometry::{Item, Items};
use crate::word::layout::{Known, Layout, by_encoding};
use crate::word::values::Values;

/// A table whose layout is the row `ROW` of `shapes!`.
///
/// Only the operations that get [`layout`](Self::layout) are compiled for each row: the fast paths of single lookups, inserts
/// and removals, where constants save a tenth of the instructions. All other code is that of `Table`, where the layout is
/// data.
pub(crate) struct Shaped<E: Entries, const ROW: usize> {
    pub(crate) table: Table<E>,
}

impl<E: Entries, const ROW: usize> Shaped<E, ROW> {
    /// The table's layout, with the constants of this row.
    #[inline(always)]
    fn layout(&self) -> Known<&E::Layout, ROW> {
        Self::layout_of(&self.table)
    }

    #[inline(always)]
    fn layout_of(table: &Table<E>) -> Known<&E::Layout, ROW> {
        Known(&table.layout)
    }

    #[inline(always)]
    fn item(&self, hash: u64) -> Item {
        self.table.buckets.item(self.layout(), hash)
    }
}

impl<const ROW: usize> Shaped<Nothing, ROW> {
    fn insert_block(
        table: &Table<Nothing>,
        block: Block<'_>,
        (): &(),
        coming: &Items<BLOCK>,
    ) -> (usize, Option<InsertError>) {
        table.insert_block(block, &(), coming, Self::insert_of_batch)
    }

    #[inline(always)]
    fn insert_of_batch(table: &Table<Nothing>, item: Item, hash: u64, (): &(), _: usize) -> Result<(), InsertError> {
        if table.add(Self::layout_of(table), item) { Ok(()) } else { table.insert_uncounted_slow(hash) }
    }

    fn remove_block(
        table: &Table<Nothing>,
        block: Block<'_>,
        (): &(),
        coming: &Items<BLOCK>,
        removed: &mut [bool; BLOCK],
    ) -> usize {
        table.remove_block(block, &(), coming, removed, Self::remove_of_batch)
    }

    #[inline(always)]
    fn remove_of_batch(table: &Table<Nothing>, item: Item, hash: u64, (): &(), _: usize) -> bool {
        table.remove_item(Self::layout_of(table), item, hash)
    }
}

impl<E: Entries, const ROW: usize> HasTable for Shaped<E, ROW> {
    fn table(&self) -> &(dyn AnyTable + 'static) {
        &self.table
    }
}

impl<E: Entries> AnyTable for Table<E> {
    fn facts(&self) -> Facts {
        let (shape, buckets) = (self.layout.shape(), self.buckets.count());
        let memory_usage = size_of_val(self) + memory_for(buckets) + self.entries.memory_usage();
        Facts { shape, buckets, limit: self.limit, memory_usage }
    }

    fn prefetch(&self, hashes: &[u64]) {
        for item in hashes.iter().map(|&hash| self.item(hash)) {
            self.prefetch(item);
            // Of the stripes, only those of a table that is not hot are out of the cache.
            prefetch_line(self.stripe(item.sum));
        }
    }

    fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.look_up_all(PresenceQuery, hashes, answers);
    }

    fn clear(&self) {
        self.clear();
    }
}

impl<const ROW: usize> FilterTable for Shaped<Nothing, ROW> {
    fn contains(&self, hash: u64) -> bool {
        self.table.contains(self.layout(), hash)
    }

    fn count(&self, hash: u64) -> usize {
        by_encoding!(&self.table.layout, layout => self.table.count(layout, hash, 0))
    }

    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        self.table.insert(self.layout(), hash)
    }

    fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        self.table.insert_if_absent(self.layout(), hash)
    }

    fn remove(&self, hash: u64) -> bool {
        self.table.remove(self.layout(), hash, 0)
    }

    fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let insert_block: InsertBlock<Nothing, (), InsertError> = Self::insert_block;
        self.table.insert_all(hashes, nothing, insert_block)
    }

    fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let remove_block: RemoveBlock<Nothing, ()> = Self::remove_block;
        self.table.remove_all(hashes, nothing, remove_block, answers);
    }

    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed {
        self.table.absorb(image, merge)
    }
}

impl<const ROW: usize> MapletTable for Shaped<Value, ROW> {
    fn contains(&self, hash: u64) -> bool {
        self.table.contains(self.layout(), hash)
    }

    fn values(&self, hash: u64) -> Values {
        self.table.values(self.layout(), hash)
    }

    fn count_value(&self, hash: u64, value: u16) -> usize {
        by_encoding!(&self.table.layout, layout => self.table.count(layout, hash, value))
    }

    fn insert_value(&self, hash: u64, value: u16) -> Result<(), InsertError> {
        by_encoding!(&self.table.layout, layout => self.table.insert_value_of_hash(layout, hash, value))
    }

    fn insert_value_if_absent(&self, hash: u64, value: u16) -> Result<Values, InsertError> {
        self.table.insert_value_if_absent(hash, value)
    }

    fn remove_value(&self, hash: u64, value: u16) -> bool {
        self.table.remove(self.layout(), hash, value)
    }

    fn replace_value(&self, hash: u64, old: u16, new: u16) -> bool {
        self.table.replace(hash, old, new)
    }

    fn values_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values])) {
        self.table.look_up_all(ValuesQuery, hashes, answers);
    }

    fn insert_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues) -> Result<usize, InsertBatchError> {
        self.table.insert_values(hashes, values)
    }

    fn remove_values_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_values(hashes, values, answers);
    }

    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed {
        self.table.absorb(image, merge)
    }
}

impl<const ROW: usize> ExpiringTable for Shaped<Expiry, ROW> {
    fn clock(&self) -> &Clock {
        self.table.clock()
    }

    fn advance_to(&self, tick: u64) -> Advance {
        self.table.advance(self.table.clock(), tick)
    }

    fn restart_clock(&self, tick: u64) {
        self.table.restart(self.table.clock(), tick);
    }

    fn keep_up(&self) {
        self.table.keep_up(self.table.clock());
    }

    fn move_on(&self, tick: u64, wait: bool) {
        self.table.move_on(self.table.clock(), tick, wait);
    }

    fn contains(&self, hash: u64) -> bool {
        self.table.contains(self.layout(), hash)
    }

    fn add_until(&self, hash: u64, until: Until, if_present: IfPresent) -> Result<bool, ExpiringInsertError> {
        self.table.add_until(self.layout(), self.item(hash), until, if_present)
    }

    fn remove_until(&self, hash: u64, expires_at: u64) -> bool {
        self.table.counters.removal(self.table.remove_until(self.layout(), self.item(hash), hash, expires_at))
    }

    fn remove_first(&self, hash: u64) -> bool {
        self.table.counters.removal(self.table.remove_first(self.item(hash)))
    }

    fn last_end(&self, hash: u64) -> Option<(u64, u64)> {
        self.table.last_end(self.item(hash))
    }

    fn live_in(&self, ticks: u64) -> usize {
        self.table.live_in(ticks)
    }

    fn insert_live_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.table.insert_all_live(hashes)
    }

    fn add_until_batch(
        &self,
        hashes: Hashes<'_>,
        ends: &BlockOfUntil,
        if_present: IfPresent,
        answer: &mut dyn FnMut(bool),
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.table.add_all_until(hashes, ends, if_present, answer)
    }

    fn remove_until_batch(&self, hashes: Hashes<'_>, ends: &BlockOfEnds, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_all_until(hashes, ends, answers);
    }

    fn remove_first_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_all_first(hashes, answers);
    }

    fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> Absorbed {
        self.table.absorb(image, merge)
    }
}
