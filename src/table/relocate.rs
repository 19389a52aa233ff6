//! CONCURRENT: how an insert makes room by relocations, and how it verifies that there is none.
//!
//! # Why contention never makes an insert fail
//! An insert that finds both buckets full searches for a path (`search/path.rs`) and carries it out hop by hop. Under
//! the lock, each hop checks again that its fingerprint is still there and that there is room. If a path has gone
//! stale, the insert searches again. A hop that was carried out does no harm, whatever becomes of the rest.
//!
//! If a search finds no path, the reason may be that a free slot has moved to a bucket that the search had already read, or that
//! a relocation is half done and its item takes up two slots. So the insert passes once through all locks, searches
//! again, and passes through all locks again. Suppose that no version has changed between the two passes. Then no
//! copy left its bucket during the second search, and each bucket that the search saw full was full until the end. So
//! there was a moment without any path. Where relocations lead to few buckets only, it is enough to pass through the
//! locks of those stripes whose copies are in them (`table/dead_end.rs`). This holds in a table of any size.
//!
//! Other threads can invalidate each of these searches. So after a few the insert takes the locks of all stripes, in
//! order, and holds them to the end (`Table::until_added_under_all_locks`). From then on no other thread takes a copy
//! out (rule 2 of `table/stripe.rs`), and no relocation is half done (rule 4 there). Others can only add. The insert
//! searches once more:
//!
//! 1. *It finds no path.* Each bucket that it saw was full and stays full. So this is a moment without room, and the
//!    insert fails.
//! 2. *It finds one and carries it out.* It holds the locks that this takes. Then it adds its copy, unless another
//!    thread has taken the free slot. In that case it searches again. Each further search is due to a copy that another thread
//!    has added, and while the locks are held no other thread removes one. So there are no more searches than free
//!    slots.
//!
//! Therefore an insert makes a bounded number of searches, whatever others do.
//!
//! # The reasons for which an insert fails
//! In the order in which it asks for them, which is that of what they cost:
//!
//! - **Its copies fill both buckets**: all slots of both hold copies of this class, counted under its lock. Such copies can only
//!   move from one of the two buckets to the other, so there was no path at the moment of the count.
//! - **Few buckets can be reached**, all of them full, and no version has changed of the stripes whose copies are in them.
//! - **Nothing has left its bucket**: a search between two passes through all locks has found no path, and no version has
//!   changed between the passes.
//! - **Two searches have seen the same words**, with a pass between them. Only asked in a table of more than `path::BUDGET`
//!   buckets, see below.
//! - **A search under all locks** has found no path.
//!
//! In a table of at most `path::BUDGET` buckets a search is exact, so each of these is a moment without room.
//! (`table/expiring/mod.rs` says what a clock adds.)
//!
//! In a larger table, a search that ends because of its budget shows only that there is no room *near*, and other
//! threads keep bumping versions far from the buckets in question. So there it is enough that two searches saw exactly the same
//! words. Then the insert need not take all locks, and the other threads need not wait for it. (In theory, words can be changed and
//! changed back between the two searches. Then a free slot may have been missed each time.)
//!
//! A failed insert has added nothing and removed nothing, so it changes nothing.

use core::cell::Cell;

use crate::error::insert::InsertError;
use crate::machine::arch::prefetch;
use crate::search::path::{self, Graph, Hop, Outcome};
use crate::sync::sizes::SEARCHES;
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::copy_count::NextStep;
use crate::table::entries::Entries;
use crate::table::image::spare::Spare;
use crate::table::stripe::{AllLocked, Guard, drain_writers};
use crate::table::table::Table;
use crate::word::bucket::Bucket;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout, by_encoding};

/// How many of an insert's [`SEARCHES`] may find no path. Without interference, a failed insert makes that many, or one
/// if its few buckets or the count of its copies decide.
const FAILED_SEARCHES: usize = 2;

/// How many words an attempt to add changes at most, and a relocation: those of two buckets.
const WORDS_PER_STEP: u64 = 2;

/// An attempt of an insert, with the locks of all stripes if they are held. It fails for another reason than a lack of room.
pub(super) type AttemptFn<'a, F> = dyn Fn(Option<&AllLocked<'_>>) -> Result<Attempt, F> + 'a;

/// How often an insert has tried to make room so far, and how many of its searches have found no path.
pub(super) struct Effort<R> {
    tries: usize,
    failed_searches: usize,
    last_failed: Option<FailedSearch<R>>,
}

/// A search that has found no path, and the pass through all locks after it.
#[derive(Clone, Copy)]
struct FailedSearch<R> {
    /// Two searches with the same trace have seen the same words.
    trace: u64,
    /// The bumps of all versions, as the pass has counted them.
    bumps: u64,
    /// The reading of the clock after the pass.
    reading: R,
}

impl<R> Effort<R> {
    pub(super) const NONE: Self = Self { tries: 0, failed_searches: 0, last_failed: None };

    /// Whether the searches were invalidated so often that the insert must now exclude other writers.
    pub(super) fn is_exhausted(&self) -> bool {
        self.tries >= SEARCHES || self.failed_searches >= FAILED_SEARCHES
    }
}

/// A table at a reading of its clock, as the graph that a search follows.
struct TableGraph<'a, E: Entries, K> {
    table: &'a Table<E>,
    /// The table's layout, of a known encoding: nearly all of a relocation's time is that of its search.
    layout: K,
    reading: E::Reading,
    /// Is lowered to the earliest expiry that the search reads.
    earliest: Option<&'a Cell<u64>>,
}

impl<E: Entries, K: Layout> Graph for TableGraph<'_, E, K> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.table.geometry.buckets()
    }

    #[inline(always)]
    fn load(&self, bucket: usize) -> Bucket {
        let seen = self.table.load_live(self.reading, bucket);
        if E::EXPIRE
            && let Some(earliest) = self.earliest
        {
            let expiry = |entry| self.table.entries.expiry(self.reading, self.layout.payload_of(entry));
            earliest.set(seen.entries(self.layout).map(expiry).fold(earliest.get(), u64::min));
        }
        seen
    }

    #[inline(always)]
    fn prefetch(&self, bucket: usize) {
        prefetch(&self.table.words, bucket);
    }

    #[inline(always)]
    fn has_room(&self, _: usize, word: Bucket) -> bool {
        word.has_room(self.layout)
    }

    #[inline(always)]
    fn hops(&self, bucket: usize, mut each: impl FnMut(Entry, usize)) {
        let (layout, geometry) = (self.layout, self.table.geometry);
        self.load(bucket)
            .entries(layout)
            .for_each(|entry| each(entry, geometry.alternate(bucket, layout.fingerprint_of(entry))));
    }
}

impl<E: Entries> Table<E> {
    /// Repeats `attempt` until it finds room, or needs none. Before each further attempt, makes room in one of the item's two
    /// buckets. The insert fails if there is no room.
    ///
    /// `attempt` decides what becomes of a class that has a copy, and counts what it adds or leaves that to the caller.
    /// `if_present` tells what it does if a copy is there: then no room is needed. An attempt gets the locks of all stripes
    /// if they are held. Otherwise it takes the lock that it needs. The caller holds none.
    #[inline(always)]
    pub(super) fn until_added<F: From<InsertError>>(
        &self,
        item: Item,
        if_present: IfPresent,
        attempt: impl Fn(Option<&AllLocked<'_>>) -> Result<Attempt, F>,
    ) -> Result<Attempt, F> {
        match attempt(None)? {
            Attempt::NoRoom => self.until_added_where_full(item, if_present, attempt),
            done => Ok(done),
        }
    }

    /// [`until_added`](Self::until_added) after an attempt that has found no room.
    #[inline(always)]
    pub(super) fn until_added_where_full<F: From<InsertError>>(
        &self,
        item: Item,
        if_present: IfPresent,
        attempt: impl Fn(Option<&AllLocked<'_>>) -> Result<Attempt, F>,
    ) -> Result<Attempt, F> {
        let mut effort = Effort::NONE;
        loop {
            match self.make_room(item, if_present, &mut effort) {
                NextStep::TryAgain => {}
                NextStep::Fail { copies } => return Err(self.no_room_error(item, copies).into()),
                NextStep::ExcludeOthers => return self.until_added_under_all_locks(item, &attempt),
            }
            match attempt(None)? {
                Attempt::NoRoom => {}
                done => return Ok(done),
            }
        }
    }

    /// Makes room in one of the item's two buckets, if no other thread invalidates the path. Another insert may take that
    /// room before the caller does.
    ///
    /// *The reasons for which an insert fails* (above) say why there is no room.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&self, item: Item, if_present: IfPresent, effort: &mut Effort<E::Reading>) -> NextStep {
        while !effort.is_exhausted() {
            effort.tries += 1;
            if E::EXPIRE && (self.remove_expired(item.first, None) || self.remove_expired(item.second, None)) {
                return NextStep::TryAgain;
            }
            let reading = self.entries.reading();
            // Do its copies fill both buckets?
            if let Some(counted) = self.copies_filling_both_buckets(item, if_present) {
                return counted.next_step();
            }
            let trace = match self.search(item, reading, &|hop| self.relocate(hop, None), None) {
                Outcome::PathFound => return NextStep::TryAgain,
                Outcome::Nothing { trace } => trace,
            };
            // Can few buckets be reached? Asked only after the first failed search: if other threads change just these
            // buckets, more tries would hardly help.
            if effort.failed_searches == 0
                && let Some(counted) = self.copies_at_dead_end(item, if_present)
            {
                return counted.next_step();
            }
            // Is there a copy by now, or do its copies fill both buckets by now?
            let counted = self.count_copies(item, if_present);
            if counted.needs_no_room || counted.copies == self.slots_of(item) {
                return counted.next_step();
            }
            let bumps = drain_writers(&mut self.stripes.iter(), &self.counters);
            let failed = FailedSearch { trace, bumps, reading: self.entries.reading() };
            let is_certain = effort.last_failed.is_some_and(|last| {
                let is_one_reading = last.reading == reading && reading == failed.reading;
                let nothing_has_left_its_bucket = last.bumps == failed.bumps && is_one_reading;
                let same_words_were_seen = last.trace == failed.trace && self.geometry.buckets() > path::BUDGET;
                nothing_has_left_its_bucket || same_words_were_seen
            });
            if is_certain {
                return counted.next_step();
            }
            effort.failed_searches += 1;
            effort.last_failed = Some(failed);
        }
        NextStep::ExcludeOthers
    }

    /// [`until_added`](Self::until_added) while no other thread removes any copy. It needs no `if_present`: after a search
    /// without a path, `attempt` itself tells whether there is a copy by then.
    ///
    /// If a save is running, what this copies may use up the spare memory that the thread has brought. Then it begins
    /// again with twice as much. Each time, it makes a bounded number of searches (above), so at last there is enough.
    #[cold]
    #[inline(never)]
    fn until_added_under_all_locks<F: From<InsertError>>(
        &self,
        item: Item,
        attempt: &AttemptFn<'_, F>,
    ) -> Result<Attempt, F> {
        let (spare, mut words) = (Spare::default(), 4 * WORDS_PER_STEP);
        loop {
            self.running_saves().fill(&spare, words);
            let result = self.under_all_locks_with(&spare, words, |all| self.add_under_all_locks(item, attempt, all));
            // Otherwise there was not enough of it, from the start or at some step.
            if let Some(result) = result.flatten() {
                return result;
            }
            words *= 2;
        }
    }

    /// [`until_added_under_all_locks`](Self::until_added_under_all_locks) with the spare memory of these locks, of which
    /// each attempt and each hop takes at most [`WORDS_PER_STEP`]. `None` if there is no more of it.
    fn add_under_all_locks<F: From<InsertError>>(
        &self,
        item: Item,
        attempt: &AttemptFn<'_, F>,
        all: &AllLocked<'_>,
    ) -> Option<Result<Attempt, F>> {
        let has_spare = || all.spare.is_none_or(|spare| self.running_saves().has_enough(spare, 2 * WORDS_PER_STEP));
        let remove_expired = |bucket| self.remove_expired(bucket, Some(all));
        while has_spare() {
            match attempt(Some(all)) {
                Ok(Attempt::NoRoom) => {}
                done => return Some(done),
            }
            if E::EXPIRE && (remove_expired(item.first) || remove_expired(item.second)) {
                continue;
            }
            let relocate = |hop: Hop| has_spare() && self.relocate(hop, Some(all));
            let reading = self.entries.reading();
            if let Outcome::Nothing { .. } = self.search(item, reading, &relocate, None)
                && reading == self.entries.reading()
            {
                // What is full stays full (a sweep apart), so there was a moment without room. The last attempt
                // only finds whether the item is present, or needs no room any more.
                return Some(match attempt(Some(all)) {
                    Ok(Attempt::NoRoom) => Err(self.no_room_error(item, self.copies(item)).into()),
                    done => done,
                });
            }
        }
        None
    }

    /// Searches for a path to room for the item, at a reading of the table's clock. `relocate` carries out its hops.
    /// Counts those that were carried out. Lowers `earliest` to the earliest expiry that the search reads. (The search
    /// itself is `path::search`.)
    pub(super) fn search(
        &self,
        item: Item,
        reading: E::Reading,
        relocate: &dyn Fn(Hop) -> bool,
        earliest: Option<&Cell<u64>>,
    ) -> Outcome {
        let mut hops = 0;
        let mut relocate = |hop| {
            let relocated = relocate(hop);
            hops += u64::from(relocated);
            relocated
        };
        let outcome = by_encoding!(&self.layout, layout => {
            let graph = TableGraph { table: self, layout, reading, earliest };
            path::search(&graph, [item.first, item.second], &mut relocate)
        });
        if hops > 0 {
            self.counters.relocated(hops);
        }
        outcome
    }

    /// The error of an insert that found no room for the item. `copies` is how many copies of its class there are.
    /// Counts the failure, except where entries expire: there the insert may still succeed, by eviction.
    fn no_room_error(&self, item: Item, copies: usize) -> InsertError {
        if !E::EXPIRE {
            self.counters.insert_failed();
        }
        if copies == self.slots_of(item) {
            InsertError::TooManyCopies { copies }
        } else {
            InsertError::full(self.counters.len(), self.capacity())
        }
    }

    /// [`relocate_locked`](Self::relocate_locked) under the lock of the hop's stripe, which this takes unless those of all are
    /// held. Returns whether the copy has left the bucket `from`.
    #[inline(never)]
    pub(crate) fn relocate(&self, hop: Hop, all: Option<&AllLocked<'_>>) -> bool {
        if E::EXPIRE {
            self.remove_expired(hop.to, all);
        }
        let bucket_sum = self.geometry.bucket_sum(self.layout.fingerprint_of(hop.entry));
        let changing = self.lock_to_change(bucket_sum, WORDS_PER_STEP, all);
        self.relocate_locked(&changing.guard, changing.spare(), hop)
    }

    /// Moves the hop's copy, if it is still where it was and there is room; if it has expired, removes it instead.
    /// Returns whether it has left its bucket. The lock is that of its stripe.
    #[inline(always)]
    fn relocate_locked(&self, guard: &Guard<'_>, spare: Option<&Spare>, hop: Hop) -> bool {
        by_encoding!(&self.layout, layout => self.relocate_locked_by(layout, guard, spare, hop))
    }

    #[inline(always)]
    fn relocate_locked_by(&self, layout: impl Layout, guard: &Guard<'_>, spare: Option<&Spare>, hop: Hop) -> bool {
        let Hop { entry, from, to } = hop;
        // Read before the word: otherwise the sweep could intervene, and an entry that it removed would be mistaken for
        // one that expires a round of the ring later.
        let reading = self.entries.reading();
        if !self.load(from).holds_entry(layout, entry) {
            return false;
        }
        if !self.entries.is_live(reading, layout.payload_of(entry)) {
            self.remove_expired_entry(guard, spare, from, entry);
            return true;
        }
        self.copy_for_saves(from, spare);
        self.copy_for_saves(to, spare);
        self.bump_to_add(guard);
        if !self.put(layout, to, entry) {
            return false;
        }
        // Until the next change there are two copies. At no moment is there none.
        let seen = self.load(from);
        guard.bump();
        self.change(from, seen, |seen| seen.remove(layout, entry));
        true
    }
}
