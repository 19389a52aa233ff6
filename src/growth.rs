//! CONCURRENT: several tables as one filter, to which more are added when they fill.
//!
//! # The state
//! Tables 0 to `n - 1`, each twice as large as the one before, and `n`, the *published* count. Each is a
//! [`Table`](crate::table::Table) that keeps to its own protocol (`stripe.rs`), by which its operations take effect in
//! one step each. So everything here is made of such steps on single tables, in one order that agrees with real time.
//! A copy stays in the table into which it was put until it is removed.
//!
//! A new item goes to the newest table; if its buckets there are full and the table holds what it is meant for, to the
//! newest of the older ones that takes it on the same terms, for removals may have left room there. Only if none does,
//! the filter grows. So a filter whose items come and go at constant length does not grow for ever.
//!
//! # Classes nest, and the search goes from the newest table to the oldest
//! Two keys may be of one class in one table and of two in another. That is a trap: `y` and `z` are of one class in the
//! newer table, which holds the copy of `z`, but not in the older one, which holds that of `y`. `remove(y)` takes the
//! copy of `z`, and `z` is lost. It is avoided by two rules:
//!
//! 1. **Keys of one class in some table are of one class in every older one** (`hash.rs`, *Nested tables*).
//! 2. **Lookups and removals go through the tables from the newest to the oldest.**
//!
//! *At every moment there is a matching of the keys that are in to copies: each key to a copy of its own, in a table where
//! that is a copy of its class; and over time a key's copy changes, if at all, for one in the same or an older table.*
//! An insert adds a key and its copy. Where `remove(y)` takes a copy `a` in table `A`, either it was that of `y`, or that of
//! some `z`, of the class of `y` in `A`. Let `b` in table `B` be the copy of `y`; it cannot be newer than `A`: when the
//! removal had passed the tables that are newer than `A` and found nothing there, `b` was in none of them, and it has not
//! moved to one since. By rule 1, `z` is of the class of `y` in `B` too, so `b` is now the copy of `z`. ∎
//!
//! So a key that is in throughout a lookup is found: when the lookup has passed a table in vain, there was a moment at
//! which the key's copy was in none of the tables passed so far, and it is in an older one from then on; and there is none
//! older than table 0. Likewise a removal of a key that is in finds a copy. Tables added during a lookup do not matter:
//! copies of keys that were in before are in older ones.
//!
//! # Gates
//! `remove`, `count` and `insert_if_absent` look into several tables as if in one step, under the *gate* of the key's class
//! in table 0 (`gate.rs`). By rule 1, keys that are of one class anywhere have one gate. Plain inserts and lookups pass by
//! without it. So, for the keys of one gate:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert` | at its step in the table that takes it |
//! | `remove`, `count`, `insert_if_absent` | in the order in which they hold the gate |
//! | `remove`, *true* | at the step that takes the copy |
//! | `remove`, *false* | when it takes the gate: each copy that was there then, it would have seen, for nobody else takes any out. What came in meanwhile is ordered after it |
//! | `count` | between its steps: meanwhile copies only come in, one by one, and it counts no fewer than were there at first and no more than in the end |
//! | `insert_if_absent`, *true* | when it takes the gate, as for `remove`, *false*; plain inserts meanwhile are ordered after it. The next holder of the gate sees its copy |
//! | `contains`, *true* | at the step that saw a copy |
//! | `contains`, *false* | at some moment of the call at which the key was not in, which there is, or it would have been found |
//!
//! # The moment of growth
//! The table is built and put in its place, and then the count is raised; both under one lock, by a thread that has looked
//! under it whether the count is still the one at which it found no room. Tables are never taken away. So who reads a count
//! finds as many tables. The count is read and written `SeqCst`, like all words: an insert into table `i` has read a count
//! above `i`, and a lookup that begins after the insert has ended, on whatever thread, reads no smaller one. A lookup that
//! read the old count can miss only what came in after it began.
//!
//! Nobody waits for the lock while there is another way. Of many inserts that find no room, one builds the table, which
//! takes as long as to fill it with zeros, and the others go on to fill the newest table beyond its capacity. (A table's
//! rate is computed with every slot taken.) Only one that finds no room even there waits. No gate and no stripe is held
//! while the lock is waited for or a table is built; nobody who holds a stripe waits for a gate or for the lock. So no
//! deadlock.
//!
//! # Rates
//! Of what is left of the rate asked for, each table may use up [`SHARE`]: it has the cheapest layout whose rate with
//! every slot taken is at most that. So the sum over any number of tables stays below what was asked for, and so does the
//! probability that one of the tables mistakes a key.

use core::iter;
use std::sync::OnceLock;

use crossbeam_utils::CachePadded;

use crate::any_table::{self, AnyTable};
use crate::builder::pages_for;
use crate::error::InsertError;
#[cfg(feature = "snapshot")]
use crate::error::LoadError;
use crate::fault::{self, Fault};
use crate::gate::Gates;
use crate::hash::Nested;
use crate::layout::{Shape, rate_of_any};
use crate::memory::Pages;
use crate::sizing;
#[cfg(feature = "snapshot")]
use crate::snapshot::{Sink, Source};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, Tally};

/// The most tables. The address space ends first: with so many, a table of two buckets has grown to 4 PiB.
pub(crate) const MAX_TABLES: usize = 48;

/// The share of what is left of the rate that the next table may use up.
///
/// A larger one makes the first tables cheaper and the later ones dearer. This lets the first table of a filter for 0.1 %
/// have the layout that a filter of one table has for that rate.
const SHARE: f64 = 0.625;

/// The part of its capacity that the newest table must hold before the filter grows.
///
/// Distinct keys fill a table to its capacity, whatever they are, so this matters only where many copies of few keys, or
/// keys that were chosen to collide, have filled some pairs of buckets. These are refused then, as in a single table, and
/// cannot drive the memory beyond a fixed multiple of what the items in the filter are worth.
const LEAST_LOAD: f64 = 0.25;

/// The layouts of the tables, in order.
pub(crate) fn shapes(rate: f64) -> impl Iterator<Item = Shape> {
    let mut left = rate;
    iter::from_fn(move || {
        let shape = Shape::cheapest_nested(left * SHARE)?;
        left -= shape.nested_false_positive_rate(1.0);
        Some(shape)
    })
}

/// The lowest rate at which there are layouts for all tables.
pub(crate) fn lowest_rate() -> f64 {
    let lowest = Shape::lowest_nested_rate();
    // Rounded up: what is left is the result of so many subtractions.
    lowest * ((MAX_TABLES - 1) as f64 + 1.0 / SHARE) * (1.0 + 1e-9)
}

/// What the tables are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// How many buckets table 0 has: an even number.
    pub(crate) buckets: usize,
    /// The rate that all tables together stay below: at least [`lowest_rate`].
    pub(crate) rate: f64,
    pub(crate) pages: Pages,
    /// How much memory to stay within, in bytes, with what the caller takes up.
    pub(crate) memory_limit: usize,
    /// How much that is.
    pub(crate) memory_of_caller: usize,
}

/// One table of a plan.
#[derive(Clone, Copy, Debug)]
struct Next {
    shape: Shape,
    buckets: usize,
    geometry: Nested,
}

impl Plan {
    /// The table of that number, if it fits in the address space.
    fn table(&self, number: usize) -> Option<Next> {
        let buckets = self.buckets.checked_mul(1 << number).filter(|&buckets| buckets <= sizing::LARGEST)?;
        let mut shapes = shapes(self.rate);
        let coarsest = shapes.next()?;
        let shape = if number == 0 { coarsest } else { shapes.nth(number - 1)? };
        Some(Next { shape, buckets, geometry: Nested::new(self.buckets, coarsest.fingerprint_bits, number as u32) })
    }

    fn build(&self, Next { shape, buckets, geometry }: Next) -> Option<Box<dyn AnyTable>> {
        let pages = pages_for(buckets, self.pages);
        let table = any_table::nested(pages, shape, geometry, sizing::capacity_of(shape, buckets))?;
        if cfg!(ccf_model = "loom") {
            // loom takes the initial value of an atomic for one that a `SeqCst` load may always read; that of a `SeqCst`
            // exchange it treats right.
            table.clear();
        }
        Some(table)
    }
}

impl Next {
    /// In bytes.
    fn memory(&self) -> usize {
        any_table::nested_memory_for(self.shape, self.buckets)
    }
}

/// Why the first table could not be built.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Refusal {
    MemoryLimit { needed: usize },
    OutOfMemory { bytes: usize },
}

/// What a copy is added for.
#[derive(Clone, Copy)]
enum Purpose {
    Insert,
    /// In vain if there is one by then.
    InsertIfAbsent,
}

/// What an attempt at growth came to.
enum Growth {
    /// There is a table more than there was, whoever added it.
    Done,
    /// Another thread is at it.
    UnderWay,
    Refused(InsertError),
}

/// A concurrent multiset of items in several tables. The keys come as hashes, which [`hash::nested`](crate::hash::nested)
/// has made.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The published ones, and for a moment one more, are set. Set under the lock `growth`.
    tables: [OnceLock<Box<dyn AnyTable>>; MAX_TABLES],
    published: AtomicU64,
    /// Apart from what lookups read: inserts try it again and again where growth is refused.
    growth: CachePadded<Mutex<()>>,
    gates: Gates,
    /// Apart from what lookups read, too.
    refused: CachePadded<Tally>,
    plan: Plan,
    #[cfg(ccf_model = "loom")]
    visits: AtomicU64,
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
        let mut tables = [const { OnceLock::new() }; MAX_TABLES];
        tables[0] = OnceLock::from(table);
        Ok(Self {
            tables,
            published: AtomicU64::new(1),
            growth: CachePadded::new(Mutex::new(())),
            gates,
            refused: CachePadded::new(Tally::new(0)),
            plan,
            #[cfg(ccf_model = "loom")]
            visits: AtomicU64::new(0),
        })
    }

    /// How many tables there are.
    #[inline(always)]
    pub(crate) fn tables(&self) -> usize {
        // SeqCst: see above, *The moment of growth*.
        self.published.load(fault::acquire(Fault::AcquirePublished, Ordering::SeqCst)) as usize
    }

    /// The table of that number, which is published.
    #[inline(always)]
    fn table(&self, number: usize) -> &dyn AnyTable {
        // A change that changes nothing and orders nothing. A thread's own loads hide from loom that another one could come
        // first (tokio-rs/loom, issues 166 and 392); so it is told that one could, at least before each visit of a table.
        #[cfg(ccf_model = "loom")]
        self.visits.fetch_add(0, Ordering::Relaxed);
        &**self.tables[number].get().expect("a table is set before it is published")
    }

    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &dyn AnyTable> {
        (0..self.tables()).rev().map(|number| self.table(number))
    }

    /// All tables in the order for a search, unless the model turns it round.
    #[inline(always)]
    fn in_order(&self, oldest_first: Fault) -> impl Iterator<Item = &dyn AnyTable> {
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
            // The newest table holds that many, and others may hold more.
            Err(InsertError::TooManyCopies { .. }) => {
                Err(self.refused(InsertError::TooManyCopies { copies: self.count(hash) }))
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// The error, counted.
    fn refused(&self, error: InsertError) -> InsertError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        error
    }

    /// Adds a copy unless there is one.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        loop {
            // Spares the gate where a lookup is enough. (Not in the model without the gate, where it would hide the bug.)
            if !fault::injected(Fault::InsertIfAbsentWithoutGate) && self.contains(hash) {
                return Ok(false);
            }
            match self.add(hash, Purpose::InsertIfAbsent) {
                // Plain inserts have brought them in meanwhile: another look finds one.
                Err(InsertError::TooManyCopies { .. }) => {}
                settled => return settled.map_err(|error| self.refused(error)),
            }
        }
    }

    /// Adds a copy, in a further table if need be.
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
            // As long as there is room at all, nobody waits for a table and none is refused.
            match (self.attempt(hash, purpose, || self.newest(tables).insert(hash)), refused) {
                (Err(InsertError::Full { .. }), Some(error)) => return Err(error),
                (Err(InsertError::Full { .. }), None) => drop(self.growth.lock()),
                (settled, _) => return settled,
            }
        }
    }

    /// `put`; if the copy is to be the only one, under the gate and unless there is one.
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

    /// Adds a table to these, unless another thread has.
    fn grow(&self, tables: usize) -> Growth {
        let _growth = if fault::injected(Fault::GrowWithoutLock) {
            None
        } else if let Some(growth) = self.growth.try_lock() {
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
            return Growth::Refused(InsertError::Full { len: self.len(), capacity: self.capacity() });
        }
        match self.add_table(number) {
            Ok(()) => Growth::Done,
            Err(error) => Growth::Refused(error),
        }
    }

    /// Adds the table of that number, the next one. Under the lock for growth.
    fn add_table(&self, number: usize) -> Result<(), InsertError> {
        let next = (number < MAX_TABLES).then(|| self.plan.table(number)).flatten();
        let too_large = || InsertError::OutOfMemory { bytes: self.newest(number).memory_usage().saturating_mul(2) };
        let next = next.ok_or_else(too_large)?;
        let (needed, limit) = (self.memory_usage().saturating_add(next.memory()), self.plan.memory_limit);
        if needed > limit {
            return Err(InsertError::MemoryLimit { len: self.len(), needed, limit });
        }
        let table = self.plan.build(next).ok_or_else(|| InsertError::OutOfMemory { bytes: next.memory() })?;
        // SeqCst: see above, *The moment of growth*.
        let publish = |tables| self.published.fetch_add(tables, Ordering::SeqCst);
        if fault::injected(Fault::PublishBeforeSet) {
            publish(1);
            // For loom, which lets others go first only where something is done that they could notice.
            publish(0);
        }
        self.tables[number].set(table).expect("one growth, one table");
        if !fault::injected(Fault::PublishBeforeSet) {
            publish(1);
        }
        Ok(())
    }

    /// Removes all copies that are there when it begins. The tables stay.
    pub(crate) fn clear(&self) {
        self.newest_first().for_each(AnyTable::clear);
    }

    pub(crate) fn len(&self) -> usize {
        self.newest_first().map(AnyTable::len).sum()
    }

    /// How many items the tables that there are were made for.
    pub(crate) fn capacity(&self) -> usize {
        self.newest_first().map(AnyTable::capacity).sum()
    }

    /// In bytes, with what the caller takes up.
    pub(crate) fn memory_usage(&self) -> usize {
        let tables: usize = self.newest_first().map(AnyTable::memory_usage).sum();
        self.plan.memory_of_caller + Gates::memory_for(self.plan.buckets) + tables
    }

    /// How many inserts were refused by the filter, and not only by a table.
    pub(crate) fn inserts_refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The oldest table, which counts what concerns no table more than another.
    pub(crate) fn oldest(&self) -> &dyn AnyTable {
        self.table(0)
    }

    /// The probability that some table takes an absent key for one that is in, at the present load.
    pub(crate) fn false_positive_rate(&self) -> f64 {
        self.rate_at(|table, slots| table.len() as f64 / slots)
    }

    /// The same with every slot taken.
    pub(crate) fn max_false_positive_rate(&self) -> f64 {
        self.rate_at(|_, _| 1.0)
    }

    fn rate_at(&self, load: impl Fn(&dyn AnyTable, f64) -> f64) -> f64 {
        let of_each =
            |table: &dyn AnyTable| table.shape().nested_false_positive_rate(load(table, table.slots() as f64));
        rate_of_any(self.newest_first().map(of_each))
    }

    /// The newest of so many tables.
    #[inline(always)]
    fn newest(&self, tables: usize) -> &dyn AnyTable {
        self.table(tables - 1)
    }

    /// The lock of all keys that are of one class with this one in any table.
    fn gate_unless(&self, fault: Fault, hash: u64) -> Option<MutexGuard<'_, ()>> {
        (!fault::injected(fault)).then(|| self.gates.lock(self.table(0).lower_bucket(hash)))
    }
}

#[cfg(feature = "snapshot")]
impl Tables {
    /// Writes what is to be known of the tables, and them, the newest first: see `snapshot.rs`.
    pub(crate) fn save(&self, sink: &mut Sink<'_>) -> std::io::Result<()> {
        let tables = self.tables();
        sink.put(&[tables as u8])?;
        sink.put(&(self.plan.buckets as u64).to_le_bytes())?;
        sink.put(&self.plan.rate.to_le_bytes())?;
        sink.seal()?;
        (0..tables).rev().try_for_each(|number| sink.section(self.table(number)))
    }

    /// Reads what [`save`](Self::save) has written; `memory_of_caller` is as in [`Plan`], and the limit is the source's.
    pub(crate) fn load(source: &mut Source<'_>, memory_of_caller: usize) -> Result<Self, LoadError> {
        let [number] = source.take()?;
        let buckets = u64::from_le_bytes(source.take()?);
        let rate = f64::from_le_bytes(source.take()?);
        source.header_seal()?;
        let largest = sizing::LARGEST as u64;
        if buckets == 0 || !buckets.is_multiple_of(2) || buckets > largest {
            return Err(LoadError::InvalidBuckets { buckets, largest });
        }
        // Another machine may have computed the lowest one a little differently.
        if !(rate >= lowest_rate() * (1.0 - 1e-9) && rate < 1.0) {
            return Err(LoadError::InvalidRate { rate, lowest: lowest_rate() });
        }
        let buckets = buckets as usize;
        let plan = Plan { buckets, rate, pages: Pages::DEFAULT, memory_limit: source.limit(), memory_of_caller };
        let mut planned: Vec<Next> = (0..MAX_TABLES).map_while(|number| plan.table(number)).collect();
        let most = planned.len() as u8;
        if number == 0 || number > most {
            return Err(LoadError::InvalidTables { tables: number, least: 1, most });
        }
        planned.truncate(usize::from(number));
        let in_all = planned.iter().fold(0usize, |sum, next| sum.saturating_add(next.buckets));
        source.expect_tables_of(in_all)?;
        let bytes = planned.iter().fold(Gates::memory_for(buckets), |sum, next| sum.saturating_add(next.memory()));
        source.reserve(bytes.saturating_add(memory_of_caller))?;

        let out_of_memory = || LoadError::OutOfMemory { bytes };
        let mut tables = [const { OnceLock::new() }; MAX_TABLES];
        for (number, &next) in planned.iter().enumerate().rev() {
            let stated = source.table_header()?;
            if (stated.shape, stated.buckets) != (next.shape, next.buckets) {
                return Err(LoadError::UnexpectedTable { number });
            }
            let mut table = plan.build(next).ok_or_else(out_of_memory)?;
            source.words(&mut *table)?;
            tables[number] = OnceLock::from(table);
        }
        Ok(Self {
            tables,
            published: AtomicU64::new(u64::from(number)),
            growth: CachePadded::new(Mutex::new(())),
            gates: Gates::new(buckets).ok_or_else(out_of_memory)?,
            refused: CachePadded::new(Tally::new(0)),
            plan,
            #[cfg(ccf_model = "loom")]
            visits: AtomicU64::new(0),
        })
    }
}

/// What models do to single tables.
#[cfg(ccf_model)]
impl Tables {
    /// Grows, whatever room there is.
    pub(crate) fn grow_anyway(&self) {
        let _growth = self.growth.lock();
        self.add_table(self.tables()).expect("a model has memory");
    }

    /// Puts a copy into the table of that number.
    pub(crate) fn place(&self, number: usize, hash: u64) {
        self.table(number).insert(hash).expect("there is room to begin with");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Geometry, nested};
    use crate::layout::{Fingerprint, SHAPES};

    /// Rates that are asked for, and the lowest.
    fn rates() -> impl Iterator<Item = f64> {
        (1..=120).map(|tenths| 10f64.powf(f64::from(-tenths) / 16.0)).chain([0.999, 0.03, 0.001, lowest_rate()])
    }

    #[test]
    fn all_tables_together_stay_below_the_rate_and_fingerprints_never_shrink() {
        for rate in rates().filter(|&rate| rate >= lowest_rate()) {
            let shapes: Vec<_> = shapes(rate).take(MAX_TABLES).collect();
            assert_eq!(shapes.len(), MAX_TABLES, "rate {rate:e}");
            let sum: f64 = shapes.iter().map(|shape| shape.nested_false_positive_rate(1.0)).sum();
            assert!(sum <= rate, "rate {rate:e}: {sum:e} in all");
            assert!(shapes.is_sorted_by_key(|shape| shape.fingerprint_bits), "rate {rate:e}: {shapes:?}");
        }
        assert!(shapes(lowest_rate() * 0.99).take(MAX_TABLES).count() < MAX_TABLES, "it could be lower");
    }

    #[test]
    fn the_first_tables_of_a_filter_for_the_default_rate() {
        let shapes: Vec<_> = shapes(0.001).take(5).map(|shape| (shape.slots, shape.fingerprint_bits)).collect();
        assert_eq!(shapes, [(5, 14), (4, 16), (4, 16), (4, 17), (3, 21)]);
    }

    /// Whoever knows the hasher's key fills a pair of buckets, and is refused, but does not drive the memory up.
    #[test]
    fn keys_that_were_chosen_to_fill_a_pair_do_not_make_the_filter_grow() {
        let plan =
            Plan { buckets: 64, rate: 0.001, pages: Pages::Usual, memory_limit: usize::MAX, memory_of_caller: 0 };
        let tables = Tables::new(plan).expect("some kilobytes");
        let geometry = plan.table(0).expect("it is small").geometry;
        // Hashes whose fingerprints lead from bucket 0 to one and the same.
        let alike = (256..1 << 14).filter(|&hash: &u64| {
            hash & 0xff != 0
                && geometry.alternate(0, Fingerprint(hash as u32)) == geometry.alternate(0, Fingerprint(257))
        });
        let (mut inserted, mut refused) = (0, 0);
        for hash in alike {
            match tables.insert(hash) {
                Ok(()) => inserted += 1,
                Err(InsertError::Full { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(inserted == 10 && refused > 100, "{inserted} inserted, {refused} refused");
        assert_eq!((tables.tables(), tables.len()), (1, 10));
        // Others go in as ever.
        let others = sizing::capacity_of(shapes(plan.rate).next().expect("a layout"), plan.buckets) as u64 * 4 / 5;
        (0..others).for_each(|key| tables.insert(nested(key)).expect("there is room"));
        assert_eq!(tables.tables(), 1);
    }

    fn held_before_refusal(shape: Shape, geometry: Nested, buckets: usize, seed: u64) -> usize {
        let table = any_table::nested(Pages::Usual, shape, geometry, 0).expect("some megabytes");
        let refused = (0..).find(|&key: &u64| table.insert(nested(seed << 32 | key)).is_err()).expect("it fills");
        assert_eq!(table.len(), refused as usize);
        assert_eq!(table.buckets(), buckets);
        refused as usize
    }

    /// Tables whose alternates are found from fewer bits than they store, on all levels.
    #[test]
    #[cfg_attr(miri, ignore = "millions of inserts")]
    fn nested_tables_fill_to_their_capacity() {
        for (coarse, shape) in SHAPES.iter().flat_map(|coarse| SHAPES.map(|shape| (coarse, shape))) {
            if coarse.fingerprint_bits > shape.fingerprint_bits {
                continue;
            }
            for (coarsest, level) in [(2, 3), (2, 7), (6, 5), (32, 1), (32, 8), (250, 2), (1000, 4)] {
                let buckets = coarsest << level;
                let geometry = Nested::new(coarsest, coarse.fingerprint_bits, level);
                let capacity = sizing::capacity_of(shape, buckets);
                for seed in 0..(20_000 / buckets as u64).clamp(1, 50) {
                    let held = held_before_refusal(shape, geometry, buckets, seed);
                    assert!(
                        held >= capacity,
                        "{coarse:?}, then {shape:?}, {coarsest} << {level}: {held} of {capacity}"
                    );
                }
            }
        }
    }

    /// The load at the first refused insert, of nested tables and of such as stand alone.
    #[test]
    #[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
    fn load_of_nested_tables() {
        for (coarse, shape) in
            [(SHAPES[0], SHAPES[0]), (SHAPES[0], SHAPES[5]), (SHAPES[5], SHAPES[6]), (SHAPES[5], SHAPES[8])]
        {
            for (coarsest, level) in [(2, 6), (2, 15), (32, 8), (32, 15), (1000, 6), (1 << 16, 4)] {
                let buckets = coarsest << level;
                let geometry = Nested::new(coarsest, coarse.fingerprint_bits, level);
                let slots = buckets as f64 * f64::from(shape.slots);
                let share = |held: usize| held as f64 / slots * 100.0;
                let alone = any_table::new(Pages::Usual, shape, buckets, 0).expect("some megabytes");
                let alone = (0..).find(|&key| alone.insert(key).is_err()).expect("it fills") as usize;
                let tables = (400_000 / buckets as u64).clamp(3, 200);
                let mut held: Vec<_> =
                    (0..tables).map(|seed| held_before_refusal(shape, geometry, buckets, seed)).collect();
                held.sort_unstable();
                println!(
                    "{:2} bits, {} by {:2}, {coarsest:6} << {level:2}: capacity {:6.2} %, lowest {:6.2} %, median {:6.2} %, alone {:6.2} %",
                    coarse.fingerprint_bits,
                    shape.slots,
                    shape.fingerprint_bits,
                    share(sizing::capacity_of(shape, buckets)),
                    share(held[0]),
                    share(held[held.len() / 2]),
                    share(alone),
                );
            }
        }
    }
}
