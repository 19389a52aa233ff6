//! CONCURRENT: several tables as one filter, to which more tables are added when they fill.
//!
//! # The state
//! Tables 0 to `n - 1`, each twice as large as the one before, and `n`, the *published* count. Each is a
//! [`Table`](crate::table::table::Table) that follows its own protocol (`table/stripe.rs`), by which its operations
//! take effect in one step each. So everything here consists of such steps on single tables, in one order that agrees
//! with real time. A copy stays in the table into which it was put until it is removed.
//!
//! A new item goes to the newest table. If its buckets there are full and the table holds what it is made for, the
//! item goes to the newest of the older tables that takes it on the same terms, for removals may have left room
//! there. Only if none does, the filter grows. So a filter whose items come and go at constant length does not grow
//! without end.
//!
//! # Nested classes, and the order of a search
//! Two keys may be of one class in one table and of two classes in another. That could lose a key. Suppose that `y`
//! and `z` are of one class in the newer table, which holds the copy of `z`, but not in the older one, which holds
//! the copy of `y`. `remove(y)` takes the copy of `z`, and `z` is lost. Two rules prevent this:
//!
//! 1. **Keys of one class in some table are of one class in every older one** (`word/geometry.rs`, *Nested tables*).
//! 2. **Lookups and removals go through the tables from the newest to the oldest.**
//!
//! *At every moment there is a matching of the keys that are in to copies: each key has a copy of its own, in a table
//! where that is a copy of its class. Over time a key's copy changes, if at all, for one in the same or an older
//! table.* An insert adds a key and its copy. Let `remove(y)` take a copy `a` in table `A`. Either `a` was the copy
//! of `y`, or that of some `z`, of the class of `y` in `A`. In the second case, let `b` in table `B` be the copy of
//! `y`. `B` cannot be newer than `A`: when the removal had passed the tables that are newer than `A` and found
//! nothing there, `b` was in none of them, and it has not moved to one since. By rule 1, `z` is of the class of `y`
//! in `B` too, so `b` is now the copy of `z`. ∎
//!
//! So a key that is in throughout a lookup is found. When the lookup has passed a table in vain, there was a moment
//! at which the key's copy was in none of the tables passed so far, and from then on it is in an older one. And there
//! is no table older than table 0. Likewise a removal of a key that is in finds a copy. Tables that are added during
//! a lookup do not matter: copies of keys that were in before are in older tables.
//!
//! # Gates
//! `remove`, `count` and `insert_if_absent` look into several tables as if in one step, under the *gate* of the key's
//! class in table 0 (`tables/gates.rs`). By rule 1, keys that are of one class anywhere have one gate. Plain inserts
//! and lookups take no gate. So, for the keys of one gate:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert` | at its step in the table that takes it |
//! | `remove`, `count`, `insert_if_absent` | in the order in which they hold the gate |
//! | `remove`, *true* | at the step that takes the copy |
//! | `remove`, *false* | when it takes the gate: it would have seen each copy that was there then, for no other thread takes any out. What came in meanwhile is ordered after it |
//! | `count` | between its steps: meanwhile copies only come in, one by one, and it counts no fewer than were there at first and no more than are there in the end |
//! | `insert_if_absent`, *true* | when it takes the gate, as for `remove`, *false*; plain inserts meanwhile are ordered after it. The next holder of the gate sees its copy |
//! | `contains`, *true* | at the step that saw a copy |
//! | `contains`, *false* | at some moment of the call at which the key was not in. There is one, or the lookup would have found the key |
//!
//! # The moment of growth
//! The table is built and put in its place, and then the count is raised. Both happen under one lock, by a thread
//! that has checked under it that the count is still the one at which it found no room. Tables are never taken away.
//! So a thread that reads a count finds that many tables. The count is read and written `SeqCst`, like all words. An
//! insert into table `i` has read a count above `i`, and a lookup that begins after the insert has ended, on whatever
//! thread, reads no smaller one. A lookup that read the old count can miss only what came in after it began.
//!
//! No thread waits for the lock while there is another way. Of many inserts that find no room, one builds the table,
//! which takes as long as filling it with zeros. The others meanwhile fill the newest table beyond its capacity. (A
//! table's rate is computed with every slot taken.) Only an insert that finds no room even there waits. No gate and
//! no stripe is held while a thread waits for the lock or builds a table. No thread that holds a stripe waits for a
//! gate or for the lock. So there is no deadlock.

use crossbeam_utils::CachePadded;

use crate::error::insert::{InsertBatchError, InsertError, ReserveError};
use crate::error::kind::FilterKind;
use crate::plan::batch::{BLOCK, Hashes, each_ahead, insert_each_ahead};
use crate::sync::fault::{self, Fault};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, Tally};
use crate::table::face::traits::{AnyTable, FilterTable};
use crate::tables::gates::Gates;
use crate::tables::growth_plan::{MAX_TABLES, Plan, memory_of_places};
use crate::tables::places::Places;
use crate::tables::search::Search;
use crate::word::layout::rate_of_any;

/// The part of its capacity that the newest table must hold before the filter grows.
///
/// Distinct keys fill a table to its capacity, whatever they are. So this matters only where some pairs of buckets
/// are full of many copies of few keys, or of keys that were chosen to collide. Further ones are then refused, as in
/// a single table. So they cannot drive the memory beyond a fixed multiple of what the items in the filter need.
const LEAST_LOAD: f64 = 0.25;

/// Why the first table could not be built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    MemoryLimit { needed: usize },
    OutOfMemory { bytes: usize },
}

/// The operation for which a copy is added.
#[derive(Clone, Copy)]
enum Purpose {
    Insert,
    /// No copy is added if there is one by then.
    InsertIfAbsent,
}

/// The result of an attempt at growth.
pub(super) enum Growth {
    /// There is one table more than before, whichever thread added it.
    Done,
    /// Another thread is adding one.
    UnderWay,
    Refused(InsertError),
}

/// A concurrent multiset of items in several tables. Keys are passed as hashes, which
/// [`nested`](crate::word::geometry::nested) has made.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The tables that are set: the published ones, and for a moment one more. They are set under the lock in
    /// `growth`.
    pub(super) tables: Places,
    pub(super) published: AtomicU64,
    pub(super) gates: Gates,
    /// On cache lines apart from what lookups read: where growth is refused, inserts change it again and again.
    pub(super) growth: CachePadded<Growing>,
    pub(super) plan: Plan,
    #[cfg(ccf_model = "loom")]
    pub(super) visits: AtomicU64,
}

/// What an insert that finds no room may change.
#[derive(Debug)]
pub(super) struct Growing {
    /// Held while a table is added.
    pub(super) lock: Mutex<()>,
    /// How many inserts were refused.
    refused: Tally,
}

impl Growing {
    pub(super) fn new() -> CachePadded<Self> {
        CachePadded::new(Self { lock: Mutex::new(()), refused: Tally::new(0) })
    }
}

impl Tables {
    /// One empty table.
    pub(crate) fn new(plan: Plan) -> Result<Self, Refusal> {
        let gates_memory = Gates::memory_for(plan.buckets);
        let Some(first) = plan.table(0) else { return Err(Refusal::OutOfMemory { bytes: usize::MAX }) };
        let bytes = first.memory() + gates_memory;
        let needed = bytes.saturating_add(plan.memory_of_caller);
        if needed > plan.memory_limit {
            return Err(Refusal::MemoryLimit { needed });
        }
        let built = Gates::new(plan.buckets).and_then(|gates| Some((gates, plan.build(first)?)));
        let (gates, table) = built.ok_or(Refusal::OutOfMemory { bytes })?;
        let tables = Places::default();
        tables.set(0, table);
        Ok(Self {
            tables,
            published: AtomicU64::new(1),
            gates,
            growth: Growing::new(),
            plan,
            #[cfg(ccf_model = "loom")]
            visits: AtomicU64::new(0),
        })
    }

    /// How many tables there are.
    #[inline(always)]
    pub(crate) fn tables(&self) -> usize {
        // SeqCst: see above, *The moment of growth*.
        self.published.load(Ordering::SeqCst) as usize
    }

    /// The table of that number, which is published.
    #[inline(always)]
    pub(super) fn table(&self, number: usize) -> &dyn FilterTable {
        // A change that changes nothing and orders nothing. loom does not notice, from a thread's own loads, that
        // another thread could run first (tokio-rs/loom, issues 166 and 392). This access makes it consider that, at
        // least before each visit of a table.
        #[cfg(ccf_model = "loom")]
        self.visits.fetch_add(0, Ordering::Relaxed);
        self.tables.get(number).expect("a table is set before it is published")
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &dyn FilterTable> {
        (0..self.tables()).rev().map(|number| self.table(number))
    }

    /// All tables in the order of a search, unless the model reverses it.
    #[inline(always)]
    fn in_order(&self, oldest_first: Fault) -> impl Iterator<Item = &dyn FilterTable> {
        let tables = self.tables();
        let turned = fault::injected(oldest_first);
        (0..tables).map(move |nth| self.table(if turned { nth } else { tables - 1 - nth }))
    }

    /// Whether a copy is in. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        self.in_order(Fault::LookupOldestFirst).any(|table| table.contains(hash))
    }

    /// How many copies are in.
    pub(crate) fn count(&self, hash: u64) -> usize {
        let _gate = self.gate_unless(Fault::CountWithoutGate, hash);
        self.newest_first().map(|table| table.count(hash)).sum()
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let _gate = self.gate_unless(Fault::RemoveWithoutGate, hash);
        self.in_order(Fault::RemoveOldestFirst).any(|table| table.remove(hash))
    }

    /// Adds a copy.
    pub(crate) fn insert(&self, hash: u64) -> Result<(), InsertError> {
        match self.add(hash, Purpose::Insert) {
            Ok(_) => Ok(()),
            // The newest table holds that many copies, and others may hold more.
            Err(InsertError::TooManyCopies { filter, .. }) => {
                Err(self.refused(InsertError::TooManyCopies { filter, copies: self.count(hash) }))
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Counts the refusal and returns its error.
    fn refused(&self, error: InsertError) -> InsertError {
        self.growth.refused.fetch_add(1, Ordering::Relaxed);
        error.of(FilterKind::Growable)
    }

    /// Adds a copy unless there is one.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        loop {
            // Avoids the gate where a lookup is enough. (Not in the model without the gate, where it would hide the
            // bug.)
            if !fault::injected(Fault::InsertIfAbsentWithoutGate) && self.contains(hash) {
                return Ok(false);
            }
            match self.add(hash, Purpose::InsertIfAbsent) {
                // Plain inserts have added the copies meanwhile, so another look finds one.
                Err(InsertError::TooManyCopies { .. }) => {}
                settled => return settled.map_err(|error| self.refused(error)),
            }
        }
    }

    /// `contains` for many. Each is looked up in all tables, from the newest to the oldest, like a single one.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut search = Search::new();
        while search.take(hashes) {
            search.look_into(self.in_order(Fault::LookupOldestFirst));
            answers(search.answers());
        }
    }

    /// `insert` for many, in their order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let ahead = |hashes: &[u64]| self.newest(self.tables()).prefetch(hashes);
        insert_each_ahead(hashes, ahead, |hash| self.insert(hash))
    }

    /// `remove` for many, in their order.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let ahead = |hashes: &[u64]| self.newest_first().for_each(|table| table.prefetch(hashes));
        each_ahead(hashes, ahead, |hashes| {
            let mut removed = [false; BLOCK];
            for (&hash, removed) in hashes.iter().zip(&mut removed) {
                *removed = self.remove(hash);
            }
            answers(&removed[..hashes.len()]);
            true
        });
    }

    /// Adds a copy, in a new table if need be.
    fn add(&self, hash: u64, purpose: Purpose) -> Result<bool, InsertError> {
        loop {
            let tables = self.tables();
            match self.attempt(hash, purpose, || self.put(hash, tables)) {
                Err(InsertError::Full { .. }) => {}
                settled => return settled,
            }
            let refused = match self.grow(tables) {
                Growth::Done => continue,
                Growth::UnderWay => None,
                Growth::Refused(error) => Some(error),
            };
            // As long as there is any room, no thread waits for a table and none is refused.
            match (self.attempt(hash, purpose, || self.newest(tables).insert(hash)), refused) {
                (Err(InsertError::Full { .. }), Some(error)) => return Err(error),
                (Err(InsertError::Full { .. }), None) => drop(self.growth.lock.lock()),
                (settled, _) => return settled,
            }
        }
    }

    /// `put`. If the copy is to be the only one, this is done under the gate, and only if there is none.
    fn attempt(
        &self,
        hash: u64,
        purpose: Purpose,
        put: impl FnOnce() -> Result<(), InsertError>,
    ) -> Result<bool, InsertError> {
        let _gate = match purpose {
            Purpose::Insert => None,
            Purpose::InsertIfAbsent => {
                let gate = self.gate_unless(Fault::InsertIfAbsentWithoutGate, hash);
                if self.contains(hash) {
                    return Ok(false);
                }
                gate
            }
        };
        put().map(|()| true)
    }

    /// Adds a copy to the newest of these tables that takes it without going beyond its capacity.
    fn put(&self, hash: u64, tables: usize) -> Result<(), InsertError> {
        let full = match self.newest(tables).insert_within_capacity(hash) {
            Err(error @ InsertError::Full { .. }) => error,
            settled => return settled,
        };
        let mut older = (0..tables - 1).rev().map(|number| self.table(number));
        if older.any(|table| table.insert_within_capacity(hash).is_ok()) { Ok(()) } else { Err(full) }
    }

    /// Removes all copies that are there when it begins. The tables stay.
    pub(crate) fn clear(&self) {
        self.newest_first().for_each(AnyTable::clear);
    }

    pub(crate) fn len(&self) -> usize {
        self.newest_first().map(AnyTable::len).sum()
    }

    /// How many items the present tables are made for.
    pub(crate) fn capacity(&self) -> usize {
        self.newest_first().map(AnyTable::capacity).sum()
    }

    /// In bytes, including the caller's own memory.
    pub(crate) fn memory_usage(&self) -> usize {
        let tables: usize = self.newest_first().map(AnyTable::memory_usage).sum();
        let places: usize = (0..self.tables()).map(memory_of_places).sum();
        self.plan.memory_of_caller + Gates::memory_for(self.plan.buckets) + places + tables
    }

    /// How many inserts the filter has refused. Refusals by a single table do not count.
    pub(crate) fn inserts_refused(&self) -> u64 {
        self.growth.refused.load(Ordering::Relaxed)
    }

    /// Counted by the oldest table, because they concern all tables alike.
    pub(crate) fn record_negatives(&self, count: u64) {
        self.table(0).record_negatives(count);
    }

    pub(crate) fn record_false_positives(&self, count: u64) {
        self.table(0).record_false_positives(count);
    }

    /// How many slots there are in all tables.
    pub(crate) fn slots(&self) -> usize {
        self.newest_first().map(AnyTable::slots).sum()
    }

    /// The probability that some table takes an absent key for one that is in, at the present load.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        self.rate_at(|table, slots| table.len() as f64 / slots)
    }

    /// The same with every slot taken.
    pub(crate) fn max_false_positive_rate(&self) -> f64 {
        self.rate_at(|_, _| 1.0)
    }

    fn rate_at(&self, load: impl Fn(&dyn FilterTable, f64) -> f64) -> f64 {
        let of_each =
            |table: &dyn FilterTable| table.shape().nested_false_positive_rate(load(table, table.slots() as f64));
        rate_of_any(self.newest_first().map(of_each))
    }

    /// The newest of this many tables.
    #[inline(always)]
    pub(super) fn newest(&self, tables: usize) -> &dyn FilterTable {
        self.table(tables - 1)
    }

    /// The lock that this key shares with all keys that are of its class in any table.
    fn gate_unless(&self, fault: Fault, hash: u64) -> Option<MutexGuard<'_, ()>> {
        (!fault::injected(fault)).then(|| self.gates.lock(self.table(0).lower_bucket(hash)))
    }
}

/// How it gets further tables: when it must, and when the caller reserves room.
impl Tables {
    /// Adds a table to these, unless another thread has.
    fn grow(&self, tables: usize) -> Growth {
        let _growth = if fault::injected(Fault::GrowWithoutLock) {
            None
        } else if let Some(growth) = self.growth.lock.try_lock() {
            Some(growth)
        } else {
            return Growth::UnderWay;
        };
        let number = self.tables();
        if number != tables && !fault::injected(Fault::GrowWithoutRecheck) {
            return Growth::Done;
        }
        let newest = self.newest(number);
        if (newest.len() as f64) < newest.capacity() as f64 * LEAST_LOAD {
            let (filter, len, capacity) = (FilterKind::Growable, self.len(), self.capacity());
            return Growth::Refused(InsertError::Full { filter, len, capacity });
        }
        match self.add_table(number) {
            Ok(()) => Growth::Done,
            Err(error) => Growth::Refused(error),
        }
    }

    /// Adds as many tables as it takes for this many further copies, or none.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        if additional == 0 {
            return Ok(());
        }
        let _growth = self.growth.lock.lock();
        let tables = self.tables();
        let wanted = self.len().saturating_add(additional);
        let (mut capacity, mut needed) = (self.capacity(), self.memory_usage());
        let mut planned = [const { None }; MAX_TABLES];
        for (place, next) in planned.iter_mut().zip(self.plan.all()).skip(tables) {
            if capacity >= wanted {
                break;
            }
            capacity = capacity.saturating_add(next.capacity());
            needed = needed.saturating_add(next.memory());
            *place = Some(next);
        }
        if capacity < wanted {
            return Err(ReserveError::CapacityTooLarge { additional, largest: capacity });
        }
        let limit = self.plan.memory_limit;
        if needed > limit {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        // All tables are built before the first is announced, so if the memory for one is refused, nothing has
        // changed. The largest comes first, because it is the one most likely to be refused.
        let mut built = [const { None }; MAX_TABLES];
        for (place, next) in built.iter_mut().zip(planned).rev() {
            let Some(next) = next else { continue };
            let out_of_memory = ReserveError::OutOfMemory { bytes: next.memory() };
            self.tables.prepare(next.number).ok_or(out_of_memory)?;
            *place = Some(self.plan.build(next).ok_or(out_of_memory)?);
        }
        for (number, table) in built.into_iter().enumerate() {
            table.into_iter().for_each(|table| self.publish(number, table));
        }
        Ok(())
    }

    /// Adds the table of that number, the next one. The caller holds the lock for growth.
    fn add_table(&self, number: usize) -> Result<(), InsertError> {
        let next = (number < MAX_TABLES).then(|| self.plan.table(number)).flatten();
        let too_large = || InsertError::OutOfMemory { bytes: self.newest(number).memory_usage().saturating_mul(2) };
        let next = next.ok_or_else(too_large)?;
        let (needed, limit) = (self.memory_usage().saturating_add(next.memory()), self.plan.memory_limit);
        if needed > limit {
            return Err(InsertError::MemoryLimit { len: self.len(), needed, limit });
        }
        let out_of_memory = || InsertError::OutOfMemory { bytes: next.memory() };
        self.tables.prepare(number).ok_or_else(out_of_memory)?;
        let table = self.plan.build(next).ok_or_else(out_of_memory)?;
        self.publish(number, table);
        Ok(())
    }

    /// Puts the table of that number, the next one, in its place and announces it. The caller holds the lock for
    /// growth.
    fn publish(&self, number: usize, table: Box<dyn FilterTable>) {
        // SeqCst: see *The moment of growth*.
        let publish = |tables| self.published.fetch_add(tables, Ordering::SeqCst);
        if fault::injected(Fault::PublishBeforeSet) {
            publish(1);
            // For loom, which lets other threads run first only where something is done that they could notice.
            publish(0);
        }
        self.tables.set(number, table);
        if !fault::injected(Fault::PublishBeforeSet) {
            publish(1);
        }
    }
}

/// Functions by which models change single tables.
#[cfg(ccf_model)]
impl Tables {
    /// Grows, whether or not there is room.
    pub(crate) fn grow_anyway(&self) {
        let _growth = self.growth.lock.lock();
        self.add_table(self.tables()).expect("a model has memory");
    }

    /// Puts a copy into the table of that number.
    pub(crate) fn place(&self, number: usize, hash: u64) {
        self.table(number).insert(hash).expect("there is room to begin with");
    }
}

#[cfg(test)]
#[path = "growth_tests.rs"]
mod tests;
