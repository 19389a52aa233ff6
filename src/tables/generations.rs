//! CONCURRENT: tables in a ring, of which the oldest expires at each rotation; and why no young entry is lost by a
//! rotation.
//!
//! # The state
//! With `g` live generations there are `g + 1` tables of one shape and one number of buckets, so a key is of the same
//! class in all of them. They form a ring. One word, [`Now`], says which generation is current and which table is its
//! own. The `g - 1` tables before that one are the older live generations. The one after it is the *spare*, which is
//! empty and becomes current next.
//!
//! # The rules
//! 1. A rotation waits until the spare is clean. Then it stores the next generation, in one step: at that moment the
//!    oldest generation has expired. Only then does it clear the oldest table, which is the spare from now on. So
//!    **no table is cleared from the moment when it becomes current to the moment when it expires.** (Except by
//!    `clear`, whose purpose is to empty the filter.)
//! 2. An insert reads the generation, adds a copy to its table unless there is one, and reads the generation again.
//!    If the generation has changed, it does the same again in the new one.
//! 3. A lookup reads the generation, looks into the live tables, and reads the generation again. *True* is an answer
//!    at once. *False* is an answer only if the generation has not changed; otherwise the lookup looks again.
//! 4. `insert_if_absent` makes a lookup and then an insert, both under the class's gate (`tables/gates.rs`).
//! 5. Locks are taken in this order: the gate, `rotation`, `cleaning`, the stripes of a table. No reader takes any of
//!    them, and no caller's code runs under one. So there is no deadlock.
//!
//! All accesses to the generation and to the words of all tables are `SeqCst`. Below, "before" and "after" refer to
//! their one order.
//!
//! # Why no young entry is lost
//! Let an insert end having read generation `e` twice. Between the two reads, so while `e` was current, it has put
//! its copy into table `e`, or seen one there. By rule 1 the last clearing of that table came before `e` began, and
//! the next one comes after generation `e + g` has begun. So the copy is there throughout the generations from `e` to
//! `e + g - 1`, and in a live table. (In a table, a copy stays until it is removed: `table/stripe.rs`.)
//!
//! Without the second read, a thread that was stopped after the first could put its copy into a table that is no
//! longer current. That table expires too soon, or has expired.
//!
//! # Why no lookup misses a key that was in throughout
//! Let a lookup answer *false* having read `e` twice. In between no table became current or expired. So a copy in one
//! of the tables that it looked into was not cleared before its second read, and the lookup would have found it, by
//! the guarantee of a single table. And a key that is in at the lookup's first read has a copy in one of these
//! tables.
//!
//! Without the second read, the lookup could look into the current table before a key is added to it anew, and into
//! the oldest one after that has been cleared.
//!
//! # Which of several calls that add one key reports it as new
//! Under the gate there is one `insert_if_absent` of the class at a time. It answers *true* if its lookup has found
//! no copy and one of its attempts to insert added one. So the next one either finds that copy or comes after its
//! expiry. A plain `insert` of the class that falls between its lookup and its last attempt counts as the later one.
//!
//! # Copies left behind
//! An attempt that a rotation overtakes may leave a copy in the table of a generation `a` that is no longer current.
//! The insert then takes effect in a later one, `b`. What becomes of such a copy:
//!
//! - As a rule the table is that of a live generation, older than `b`: the copy expires before the one that counts.
//! - If `g` rotations or more have passed within this one attempt, the table may be the spare, already clean. The
//!   copy becomes visible when that table becomes current, at `b + 1` at the latest. It expires with the table, so at
//!   `b + 1 + g` at the latest. Only in this case may the key be found for one period more than `g`. And if the
//!   thread never finishes the call, the key may be found for up to `g` periods although its insert has not ended.
//! - If the table is being cleared, the copy may be cleared or not.
//!
//! Such a copy takes one slot, in a table that will be cleared like any other.

use crossbeam_utils::CachePadded;

use crate::error::insert::{InsertBatchError, InsertError};
use crate::error::kind::FilterKind;
use crate::plan::batch::{Hashes, insert_each_ahead};
use crate::sync::fault::{self, Fault};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, Tally};
use crate::table::face::plan::TablePlan;
use crate::table::face::traits::{AnyTable, FilterTable};
use crate::tables::gates::Gates;
use crate::tables::search::Search;

/// The fewest live generations: with one, a key could expire as soon as it is in.
pub(crate) const MIN_GENERATIONS: usize = 2;

/// The most live generations that [`Now`] can tell apart, with the spare.
pub(crate) const MAX_GENERATIONS: usize = Now::TABLE_MASK as usize;

/// A moment: the number of the current generation, and which table is its own.
///
/// Both are in one word, so that a reader needs one load and no division. The generation has 56 bits, enough for two
/// thousand years at one rotation a microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Now(pub(super) u64);

impl Now {
    pub(super) const TABLE_BITS: u32 = 8;
    const TABLE_MASK: u64 = (1 << Self::TABLE_BITS) - 1;

    /// This generation, with `table` as its own.
    #[cfg(feature = "snapshot")]
    pub(super) fn new(generation: u64, table: usize) -> Self {
        Self(generation << Self::TABLE_BITS | table as u64)
    }

    pub(super) fn generation(self) -> u64 {
        self.0 >> Self::TABLE_BITS
    }

    pub(super) fn table(self) -> usize {
        (self.0 & Self::TABLE_MASK) as usize
    }

    /// The next generation, in a ring of this many tables.
    fn next(self, tables: usize) -> Self {
        let table = (self.table() + 1) % tables;
        Self(self.generation().wrapping_add(1) << Self::TABLE_BITS | table as u64)
    }
}

/// What the caller's clock has done, as it is being counted.
#[derive(Debug, Default)]
pub(super) struct ClockTallies {
    pub(super) steps_back: Tally,
    pub(super) jumps: Tally,
}

/// What the caller's clock has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockCounts {
    pub(crate) steps_back: u64,
    pub(crate) jumps: u64,
}

/// A set of classes that forgets its oldest generation at each rotation.
#[derive(Debug)]
pub(crate) struct Generations {
    /// A ring of the tables of the live generations and the spare.
    pub(super) tables: Box<[Box<dyn FilterTable>]>,
    pub(super) gates: Gates,
    /// A [`Now`].
    pub(super) now: AtomicU64,
    /// One more than the last tick of the caller's clock, or 0 before the first.
    pub(super) next_tick: AtomicU64,
    /// Held to decide whether to rotate, until the step in which the rotation takes effect.
    pub(super) rotation: Mutex<()>,
    /// Held while a table is being cleared. A thread takes it while it holds `rotation`, and releases `rotation`
    /// first.
    cleaning: Mutex<()>,
    /// Whether an insert that finds the current generation full rotates.
    pub(super) rotate_when_full: bool,
    /// On a cache line apart from what lookups read.
    refused: CachePadded<Tally>,
    pub(super) clock: CachePadded<ClockTallies>,
}

impl Generations {
    /// This many empty generations, whose tables are as planned, or `None` if there is no memory for them.
    pub(crate) fn new(plan: TablePlan, live: usize, rotate_when_full: bool) -> Option<Self> {
        assert!((MIN_GENERATIONS..=MAX_GENERATIONS).contains(&live), "{live} generations");
        Some(Self {
            tables: plan.tables(live + 1)?,
            gates: Gates::new(plan.buckets)?,
            now: AtomicU64::new(0),
            next_tick: AtomicU64::new(0),
            rotation: Mutex::new(()),
            cleaning: Mutex::new(()),
            rotate_when_full,
            refused: CachePadded::new(Tally::new(0)),
            clock: CachePadded::default(),
        })
    }

    /// Whether the class is in a live generation. Takes no lock and waits for no thread.
    #[inline]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        loop {
            let now = self.now();
            if self.live(now).any(|table| table.contains(hash)) {
                return true;
            }
            if self.is_still(now, Fault::LookupIgnoresRotation) {
                return false;
            }
        }
    }

    /// Ensures that the class is in the generation that is current when the call ends.
    #[inline]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_into_current(hash).map(|_| ())
    }

    /// `insert`. Returns whether the class was added to that generation, or to an earlier one that passed meanwhile.
    #[inline(always)]
    fn insert_into_current(&self, hash: u64) -> Result<bool, InsertError> {
        let mut added = false;
        loop {
            let now = self.now();
            let result = self.tables[now.table()].insert_if_absent(hash);
            added |= result == Ok(true);
            // Checked even if the insert was refused: the table that refused it may be no longer current.
            if self.is_still(now, Fault::InsertIgnoresRotation) {
                match result {
                    Ok(_) => return Ok(added),
                    Err(InsertError::Full { .. }) if self.rotate_when_full => self.rotate_from(now),
                    Err(error) => {
                        self.refused.fetch_add(1, Ordering::Relaxed);
                        return Err(error.of(FilterKind::Rotating));
                    }
                }
            }
        }
    }

    /// Inserts the class unless it is in a live generation. Returns whether it did.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        // Avoids the gate where a lookup is enough. (Not in the model of a lookup that is wrong, where it would hide
        // the bug.)
        if !fault::injected(Fault::LookupIgnoresRotation) && self.contains(hash) {
            return Ok(false);
        }
        let _gate = (!fault::injected(Fault::InsertIfAbsentWithoutGate))
            .then(|| self.gates.lock(self.tables[0].lower_bucket(hash)));
        if self.contains(hash) { Ok(false) } else { self.insert_into_current(hash) }
    }

    /// `contains` for many. Each is looked up in the tables of the live generations, the newest first, like a single
    /// one. Where a rotation came in between, those that were not found are looked up again.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut search = Search::new();
        while search.take(hashes) {
            loop {
                let now = self.now();
                search.look_into(self.live(now));
                if search.is_over() || self.is_still(now, Fault::LookupIgnoresRotation) {
                    break;
                }
            }
            answers(search.answers());
        }
    }

    /// `insert` for many, in their order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let ahead = |hashes: &[u64]| self.tables[self.now().table()].prefetch(hashes);
        insert_each_ahead(hashes, ahead, |hash| self.insert(hash))
    }

    /// Begins the next generation; returns its number.
    pub(crate) fn rotate(&self) -> u64 {
        let rotation = self.rotation.lock();
        let cleaning = self.begin_next();
        drop(rotation);
        cleaning.finish()
    }

    /// Begins the next generation, unless another thread has done so since `now`.
    #[cold]
    fn rotate_from(&self, now: Now) {
        let rotation = self.lock_rotation();
        if self.now() != now && !fault::injected(Fault::FullRotatesAgain) {
            return;
        }
        let cleaning = self.begin_next();
        drop(rotation);
        cleaning.finish();
    }

    /// The step of a rotation. The caller holds `rotation`. When this returns, the oldest generation has expired, but
    /// it is not yet cleared.
    pub(super) fn begin_next(&self) -> Cleaning<'_> {
        let lock = (!fault::injected(Fault::RotationIntoDirtyTable)).then(|| self.cleaning.lock());
        let now = self.now().next(self.tables.len());
        let expired = &*self.tables[now.next(self.tables.len()).table()];
        if fault::injected(Fault::RotationClearsFirst) {
            expired.clear();
        }
        // SeqCst: see the head of this module.
        self.now.store(now.0, Ordering::SeqCst);
        Cleaning { now, expired, _lock: lock }
    }

    /// The lock, unless the model leaves it out.
    pub(super) fn lock_rotation(&self) -> Option<MutexGuard<'_, ()>> {
        (!fault::injected(Fault::RotationWithoutLock)).then(|| self.rotation.lock())
    }

    /// Removes every copy that is there when it begins, from the spare too.
    pub(crate) fn clear(&self) {
        self.tables.iter().for_each(|table| table.clear());
    }

    #[inline(always)]
    pub(super) fn now(&self) -> Now {
        // SeqCst: see the head of this module.
        Now(self.now.load(Ordering::SeqCst))
    }

    /// Whether no rotation has come since `now`. The fault `ignores` leaves the check out.
    #[inline(always)]
    fn is_still(&self, now: Now, ignores: Fault) -> bool {
        fault::injected(ignores) || self.now() == now
    }

    /// The tables of the live generations, the newest first.
    #[inline(always)]
    fn live(&self, now: Now) -> impl Iterator<Item = &dyn FilterTable> {
        let (older, newer) = self.tables.split_at(now.table() + 1);
        older.iter().rev().chain(newer.iter().rev()).take(self.live_generations()).map(|table| &**table)
    }

    /// The number of the current generation.
    pub(crate) fn generation(&self) -> u64 {
        self.now().generation()
    }

    /// How many generations are live.
    pub(crate) fn live_generations(&self) -> usize {
        self.tables.len() - 1
    }

    /// How many copies are in live generations.
    pub(crate) fn len(&self) -> usize {
        self.lens().sum()
    }

    /// How many copies are in each live generation.
    pub(crate) fn lens(&self) -> impl Iterator<Item = usize> {
        self.live(self.now()).map(AnyTable::len)
    }

    /// All tables, the spare too.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &dyn FilterTable> {
        self.tables.iter().map(|table| &**table)
    }

    /// How many inserts the filter has refused. An insert that one generation refuses, and that succeeds after a
    /// rotation, does not count.
    pub(crate) fn inserts_refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn record_negatives(&self, count: u64) {
        self.any_table().record_negatives(count);
    }

    pub(crate) fn record_false_positives(&self, count: u64) {
        self.any_table().record_false_positives(count);
    }

    /// What the caller's clock has done.
    pub(crate) fn clock_counts(&self) -> ClockCounts {
        let ClockTallies { steps_back, jumps } = &*self.clock;
        ClockCounts { steps_back: steps_back.load(Ordering::Relaxed), jumps: jumps.load(Ordering::Relaxed) }
    }

    /// One of the tables, for properties that all of them share.
    pub(crate) fn any_table(&self) -> &dyn FilterTable {
        &*self.tables[0]
    }

    /// In bytes, without the struct itself.
    pub(crate) fn memory_usage(&self) -> usize {
        let tables: usize = self.tables.iter().map(|table| table.memory_usage()).sum();
        tables + size_of_val(&*self.tables) + Gates::memory_for(self.any_table().buckets())
    }
}

/// A rotation that has taken effect, whose expired table is not yet cleared.
pub(super) struct Cleaning<'a> {
    now: Now,
    expired: &'a dyn FilterTable,
    /// `None` only where a model leaves the lock out.
    _lock: Option<MutexGuard<'a, ()>>,
}

impl Cleaning<'_> {
    /// Clears the table that has expired. Returns the number of the generation that the rotation began.
    pub(super) fn finish(self) -> u64 {
        if !fault::injected(Fault::RotationClearsFirst) {
            self.expired.clear();
        }
        self.now.generation()
    }
}
