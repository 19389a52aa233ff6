//! PURE: a table as filters use it. Each method calls the one of `Table` with the same or nearly the same name: in
//! `table/lookup.rs`, `table/change.rs`, `table/maplet.rs` or `table/expiring`.
//!
//! The shortest operations are compiled for each layout (`word/by_row.rs`): the fast paths of single lookups, inserts and
//! removals. Each has a list of functions, and calls that of its table's row. In all other code, the layout is data.

#![allow(clippy::type_complexity, reason = "the type of a list is that of its functions, written out")]

use crate::error::insert::{ExpiringInsertError, InsertBatchError, InsertError};
use crate::error::kind::FilterKind;
use crate::lookup::batch::Hashes;
use crate::lookup::query::AllValues;
use crate::machine::arch::prefetch_line;
use crate::plan::table_plan::TablePlan;
use crate::table::attempt::IfPresent;
use crate::table::batch::{BlockOfExpiries, BlockOfUntil, BlockOfValues, InsertBlock, RemoveBlock};
use crate::table::core::{Core, Dimensions};
use crate::table::counters::Counters;
use crate::table::entries::{Entries, Expiry, Nothing, Value};
use crate::table::expiring::charge::{Request, Verdict};
use crate::table::expiring::clock::{Advance, Clock, ClockState, Until};
use crate::table::image::merge::{Merge, MergeResult};
use crate::table::image::read::{ImageSource, TableImage};
use crate::table::table::{Table, memory_for};
use crate::word::by_row::{ByRow, by_row};
use crate::word::layout::{Layout as _, Shape};
use crate::word::values::Values;

/// A table and the row of its shape.
pub(crate) struct Shaped<E: Entries> {
    /// In a box of its own: so the compiler knows that the row does not change while threads change what the table counts.
    pub(crate) table: Box<Table<E>>,
    row: usize,
}

/// The table of a concurrent filter: its slots hold only fingerprints.
pub(crate) type FilterTable = Shaped<Nothing>;

/// The table of a maplet: its slots hold a fingerprint and a value, which is the payload.
pub(crate) type MapletTable = Shaped<Value>;

/// The table of an expiring filter: its slots hold a fingerprint and an expiry, which is the payload.
pub(crate) type ExpiringTable = Shaped<Expiry>;

impl TablePlan {
    /// An empty table, or `None` if there is no memory for it.
    pub(crate) fn table(self) -> Option<FilterTable> {
        self.table_of(Nothing)
    }

    /// An empty table whose entries carry values, or `None` if there is no memory for it.
    pub(crate) fn table_of_values(self) -> Option<MapletTable> {
        self.table_of(Value)
    }

    /// An empty table whose entries expire by this clock, or `None` if there is no memory for it.
    pub(crate) fn table_with_clock(self, clock: Clock) -> Option<ExpiringTable> {
        self.table_of(Expiry::by(clock)?)
    }

    fn table_of<E: Entries>(self, entries: E) -> Option<Shaped<E>> {
        let Self { shape, buckets, limit, pages } = self;
        Some(Shaped::of(Table::new(pages, shape, buckets, entries)?.with_limit(limit)))
    }

    /// What [`Dimensions::memory_usage`] of such a table in a filter of this kind will be, without a clock.
    pub(crate) fn memory_usage(self, filter: FilterKind) -> usize {
        let own = match filter {
            FilterKind::Concurrent | FilterKind::Growable => size_of::<Table<Nothing>>(),
            FilterKind::Maplet => size_of::<Table<Value>>(),
            FilterKind::Expiring | FilterKind::Recent | FilterKind::Limiter => size_of::<Table<Expiry>>(),
        };
        memory_for(self.buckets).saturating_add(own)
    }
}

impl<E: Entries> Shaped<E> {
    pub(crate) fn of(table: Table<E>) -> Self {
        let Shape { encoding, slots, .. } = table.layout.shape();
        Self { table: Box::new(table), row: Shape::row(encoding, slots) }
    }

    /// Calls `answers` with the answers to all hashes, in order and a block at a time. Expired entries do not count.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.table.ask_all(self.table.entries.presence(), hashes, answers);
    }
}

impl<E: Entries> Core for Shaped<E> {
    fn dimensions(&self) -> Dimensions {
        let (table, shape, buckets) = (&*self.table, self.table.layout.shape(), self.table.words.len());
        let memory_usage = size_of_val(table) + memory_for(buckets) + table.entries.memory_usage();
        Dimensions { shape, buckets, limit: table.limit, memory_usage }
    }

    fn counters(&self) -> &Counters {
        &self.table.counters
    }

    fn image_source(&self) -> &(dyn ImageSource + 'static) {
        &*self.table
    }

    fn prefetch(&self, hashes: &[u64]) {
        for item in hashes.iter().map(|&hash| self.table.item(hash)) {
            self.table.prefetch(item);
            // Of the stripes, only those of a table that is not hot are out of the cache.
            prefetch_line(self.table.stripe(item.bucket_sum));
        }
    }

    fn clear(&self) {
        self.table.clear();
    }
}

impl FilterTable {
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        static CONTAINS: ByRow<fn(&Table<Nothing>, u64) -> bool> =
            by_row!(shapes, { |table, layout, hash| table.contains(layout, hash) });
        CONTAINS.of(self.row)(&self.table, hash)
    }

    #[inline]
    pub(crate) fn count(&self, hash: u64) -> usize {
        static COUNT: ByRow<fn(&Table<Nothing>, u64) -> usize> =
            by_row!(shapes, { |table, layout, hash| table.count(layout, hash, 0) });
        COUNT.of(self.row)(&self.table, hash)
    }

    /// Adds a copy of the class of this hash, a further one if there are some, and counts it.
    #[inline]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), InsertError> {
        static INSERT: ByRow<fn(&Table<Nothing>, u64) -> Result<(), InsertError>> =
            by_row!(shapes, { |table, layout, hash| table.insert(layout, hash) });
        INSERT.of(self.row)(&self.table, hash)
    }

    /// Adds a copy of the class of this hash unless there is one, and counts it. Returns whether it did.
    #[inline]
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        static INSERT_IF_ABSENT: ByRow<fn(&Table<Nothing>, u64) -> Result<bool, InsertError>> =
            by_row!(shapes, { |table, layout, hash| table.insert_if_absent(layout, hash) });
        INSERT_IF_ABSENT.of(self.row)(&self.table, hash)
    }

    #[inline]
    pub(crate) fn remove(&self, hash: u64) -> bool {
        static REMOVE: ByRow<fn(&Table<Nothing>, u64) -> bool> =
            by_row!(shapes, { |table, layout, hash| table.remove(layout, hash, 0) });
        REMOVE.of(self.row)(&self.table, hash)
    }

    /// [`insert`](Self::insert) for all, in order. Returns how many there are.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        static INSERT_BLOCK: ByRow<InsertBlock> =
            by_row!(shapes, { |table, layout, block, next| table.insert_block(layout, block, next) });
        self.table.insert_batch(hashes, INSERT_BLOCK.of(self.row))
    }

    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        static REMOVE_BLOCK: ByRow<RemoveBlock> =
            by_row!(shapes, { |table, layout, block, next, removed| table.remove_block(layout, block, next, removed) });
        self.table.remove_batch(hashes, REMOVE_BLOCK.of(self.row), answers);
    }

    /// Adds the copies of an image of another table, all or those that this one lacks.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        self.table.absorb(image, merge)
    }
}

impl MapletTable {
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        static CONTAINS: ByRow<fn(&Table<Value>, u64) -> bool> =
            by_row!(shapes_with_payload, { |table, layout, hash| table.contains(layout, hash) });
        CONTAINS.of(self.row)(&self.table, hash)
    }

    #[inline]
    pub(crate) fn values(&self, hash: u64) -> Values {
        static VALUES: ByRow<fn(&Table<Value>, u64) -> Values> =
            by_row!(shapes_with_payload, { |table, layout, hash| table.values(layout, hash) });
        VALUES.of(self.row)(&self.table, hash)
    }

    #[inline]
    pub(crate) fn count(&self, hash: u64, value: u16) -> usize {
        static COUNT: ByRow<fn(&Table<Value>, u64, u16) -> usize> =
            by_row!(shapes_with_payload, { |table, layout, hash, value| table.count(layout, hash, value) });
        COUNT.of(self.row)(&self.table, hash, value)
    }

    /// Adds a copy of the pair, a further one if there are some, and counts it.
    #[inline]
    pub(crate) fn insert(&self, hash: u64, value: u16) -> Result<(), InsertError> {
        static INSERT: ByRow<fn(&Table<Value>, u64, u16) -> Result<(), InsertError>> = by_row!(shapes_with_payload, {
            |table, layout, hash, value| table.insert_value_of_hash(layout, hash, value)
        });
        INSERT.of(self.row)(&self.table, hash, value)
    }

    /// Adds the pair unless the class of this hash has a value, and counts it. Returns the values that it found, or none if the
    /// pair was added.
    pub(crate) fn insert_if_absent(&self, hash: u64, value: u16) -> Result<Values, InsertError> {
        self.table.insert_value_if_absent(hash, value)
    }

    #[inline]
    pub(crate) fn remove(&self, hash: u64, value: u16) -> bool {
        static REMOVE: ByRow<fn(&Table<Value>, u64, u16) -> bool> =
            by_row!(shapes_with_payload, { |table, layout, hash, value| table.remove(layout, hash, value) });
        REMOVE.of(self.row)(&self.table, hash, value)
    }

    pub(crate) fn replace(&self, hash: u64, old: u16, new: u16) -> bool {
        self.table.replace(hash, old, new)
    }

    pub(crate) fn values_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[Values])) {
        self.table.ask_all(AllValues, hashes, answers);
    }

    /// [`insert`](Self::insert) for pairs, in order. `hashes` puts the values that go with a block into `values`. Returns
    /// how many there are.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues) -> Result<usize, InsertBatchError> {
        self.table.insert_values(hashes, values)
    }

    /// `remove` for pairs, in order. `hashes` puts the values that go with a block into `values`.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, values: &BlockOfValues, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_values(hashes, values, answers);
    }

    /// Adds the pairs of an image of another table, all or those that this one lacks.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        self.table.absorb(image, merge)
    }
}

impl ExpiringTable {
    pub(crate) fn clock(&self) -> &Clock {
        self.table.clock()
    }

    pub(crate) fn advance_to(&self, tick: u64) -> Advance {
        self.table.advance(tick)
    }

    pub(crate) fn restart_clock(&self, tick: u64) {
        self.table.restart(tick);
    }

    /// Does what is due after an entry was added or renewed, if the filter drives the clock: see
    /// `table/expiring/recent.rs`.
    pub(crate) fn keep_up(&self) {
        self.table.keep_up();
    }

    /// Moves a clock that follows the time on to this tick. If another thread is doing so and `wait` is false, does nothing.
    pub(crate) fn move_on(&self, tick: u64, wait: bool) {
        self.table.move_on(tick, wait);
    }

    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        static CONTAINS: ByRow<fn(&Table<Expiry>, u64) -> bool> =
            by_row!(shapes_with_payload, { |table, layout, hash| table.contains(layout, hash) });
        CONTAINS.of(self.row)(&self.table, hash)
    }

    /// Adds an entry that expires at `until`, and counts it. `if_present` says what happens if the class has a live one.
    /// Returns whether the entry was added. If not, it has expired already, or the class has one (which is then renewed, if
    /// so asked).
    #[inline]
    pub(crate) fn add_until(
        &self,
        hash: u64,
        until: Until,
        if_present: IfPresent,
    ) -> Result<bool, ExpiringInsertError> {
        // By reference, because such a function would copy it.
        type AddUntil = fn(&Table<Expiry>, u64, &Until, IfPresent) -> Result<bool, ExpiringInsertError>;
        static ADD_UNTIL: ByRow<AddUntil> = by_row!(shapes_with_payload, {
            |table, layout, hash, until, if_present| {
                table.add_until(layout, table.geometry.item(layout, hash), until, if_present)
            }
        });
        ADD_UNTIL.of(self.row)(&self.table, hash, &until, if_present)
    }

    /// Charges the class of this hash, whose entry is its debt.
    #[inline]
    pub(crate) fn charge(&self, hash: u64, request: Request) -> Verdict {
        static CHARGE: ByRow<fn(&Table<Expiry>, u64, Request) -> Verdict> =
            by_row!(shapes_with_payload, { |table, layout, hash, request| table.charge(layout, hash, request) });
        CHARGE.of(self.row)(&self.table, hash, request)
    }

    #[inline]
    pub(crate) fn remove_until(&self, hash: u64, expires_at: u64) -> bool {
        static REMOVE_UNTIL: ByRow<fn(&Table<Expiry>, u64, u64) -> bool> = by_row!(shapes_with_payload, {
            |table, layout, hash, expires_at| {
                let class = table.geometry.item(layout, hash);
                table.counters.removal(table.remove_until(layout, class, expires_at))
            }
        });
        REMOVE_UNTIL.of(self.row)(&self.table, hash, expires_at)
    }

    pub(crate) fn remove_first(&self, hash: u64) -> bool {
        self.table.counters.removal(self.table.remove_first(self.table.item(hash)))
    }

    /// The caller's tick, and how many ticks later the last live entry expires.
    pub(crate) fn last_expiry(&self, hash: u64) -> Option<(u64, u64)> {
        self.table.last_expiry(self.table.item(hash))
    }

    pub(crate) fn live_in(&self, ticks: u64) -> usize {
        self.table.live_in(ticks)
    }

    /// Adds an entry with the longest lifetime for each hash, in order, a further one if the class has some, and counts it.
    pub(crate) fn insert_live_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.table.insert_all_live(hashes)
    }

    /// [`add_until`](Self::add_until) for all, in order, each with its answer. `hashes` puts the expiries that go with a
    /// block into `expiries`.
    pub(crate) fn add_until_batch(
        &self,
        hashes: Hashes<'_>,
        expiries: &BlockOfUntil,
        if_present: IfPresent,
        answer: &mut dyn FnMut(bool),
    ) -> Result<usize, InsertBatchError<ExpiringInsertError>> {
        self.table.add_all_until(hashes, expiries, if_present, answer)
    }

    /// `hashes` puts the expiries that go with a block into `expiries`.
    pub(crate) fn remove_until_batch(
        &self,
        hashes: Hashes<'_>,
        expiries: &BlockOfExpiries,
        answers: &mut dyn FnMut(&[bool]),
    ) {
        self.table.remove_all_until(hashes, expiries, answers);
    }

    pub(crate) fn remove_first_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        self.table.remove_all_first(hashes, answers);
    }

    pub(crate) fn clock_state(&self) -> ClockState {
        self.table.clock_state()
    }

    /// Adds the entries of an image of another table that this one lacks, in a filter of recent keys: each until the tick that
    /// `expiry_of` returns for the number of ticks that it has to live there.
    pub(crate) fn unite_recent(&self, image: &TableImage<'_>, expiry_of: &dyn Fn(u64) -> Option<u64>) -> MergeResult {
        self.table.unite_recent(image, expiry_of)
    }

    /// Adds the entries of an image of another table, all or those that this one lacks.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        self.table.absorb(image, merge)
    }
}
