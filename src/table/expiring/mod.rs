//! CONCURRENT: what only a table whose entries expire does: it adds entries with an expiry, renews them, removes them, and
//! evicts them. What other operations do differently there, `table/entries.rs` says: lookups and relocations, for example.
//! Here is the proof for all of them.
//!
//! # Entries
//! The payload of an entry is its *expiry*: the tick at which it expires, as a place on a ring (`word/ring.rs`). An entry
//! is *live* until its expiry has come, and *expired* from then on. An entry is an *item* as in a maplet: a class with a
//! payload. The protocol is that of `table/maplet.rs`: each store that adds, takes or replaces a *live* item is made
//! under the lock of its stripe, after a bump of its own. Two things are new: the clock, and the removal of expired
//! entries.
//!
//! What lookups read of the clock is one word, the [`Reading`]: `now`, and how far `swept` lags behind. It changes in
//! two ways, both under the lock of the sweep (`table/expiring/clock.rs`): `now` goes forward, and `swept` catches up.
//! So a reading does not come back (except after 2⁴⁷ ticks). `now` is the clock's own. It is the caller's tick, or ahead
//! of it where ticks were ended early to make room (`table/expiring/evict.rs`). In a filter of recent keys, the filter itself
//! moves the clock on (`table/expiring/recent.rs`).
//!
//! # The rules
//! In these rules, `e` is the number of bits of an expiry, so the ring has `2^e` places.
//!
//! 1. A writer reads the clock under the lock of its stripe, before it reads any word. It acts by that reading before
//!    it releases the lock. (In the other order, an item that it has seen may be swept before it reads the clock, and
//!    the item's place may then mean another expiry.)
//! 2. It adds an item only if the item's expiry is after `now` and at most `swept + 2^e`. If the expiry is beyond that, but
//!    the lifetime is not too long, the writer releases the lock, waits for the sweep, and starts over. (A replaced
//!    payload is an item that is added.)
//! 3. A relocation moves live items only. One that finds its item expired removes it.
//! 4. **A pass** removes all that has expired by its *target*, the `now` that it reads first. Then it passes once through
//!    the locks of all stripes, which drains the writers. Then it visits each bucket once, and then `swept` becomes its
//!    target. It holds the lock of the sweep all the time, or leaves the rest to the next thread that takes that lock.
//!    (While a save is running, it releases the lock to get memory for what it copies, and takes it again.)
//! 5. **Each removal of an expired item comes after a bump of its stripe at a moment at which it had expired.** A pass
//!    bumps each stripe as it drains them. After that it removes what it finds, without a lock and without a further
//!    bump. Any other thread that removes an expired item, to make room, does it under the lock of its stripe, and
//!    bumps first.
//! 6. A lookup reads the clock, and does what a lookup of a maplet does. If a lane has the fingerprint, and its expiry
//!    is live at that reading, the answer is *true*, which counts in any case. If not, the lookup reads the clock again
//!    at the end. *False* counts only if the reading and the version are still the same; if not, it retries. (At a
//!    reading without a lag all places are live. Then it need not read them, and *false* counts if the version is still
//!    the same.)
//! 7. The clock's `now` goes to the next tick. If it skips ticks, that is published under the locks of all stripes. So
//!    a writer that holds a stripe's lock sees no tick skipped.
//!
//! # Why `swept` is true
//! *No item with an expiry up to `swept` is in the table.* Let `T` be the target of a pass. After the pass has drained the
//! writers, each writer that takes a stripe's lock gets a reading whose `now` is `T` or later, for the lock passes that
//! on. So the writer adds nothing that expires by `T` (rule 2), and relocates nothing that does (rule 3). The writers that
//! had the lock before are done. So from then on no bucket gets an item that expires by `T`, and the pass visits each
//! bucket after that.
//!
//! So all expiries in the table are after `swept` and at most `swept + 2^e`, and each place on the ring means exactly one
//! of them. A writer that holds a stripe's lock reads places right: only a thread with that lock could give an item
//! of its stripe another meaning. A pass reads them right too: what its places mean changes when `swept` does, and
//! the pass has the lock of the sweep.
//!
//! The lag is at most `2^e` ticks, however far `now` jumps ahead. After such a jump, `swept` counts as later than it
//! is. That does no harm: nothing is live, nothing is added, and the pass that ends this state removes whatever there
//! is.
//!
//! The clock's own ticks wrap after 2⁴⁷. The thread that wraps them holds the locks of all stripes, keeps the place on
//! the ring, and restarts a running pass.
//!
//! # Why no lookup misses an entry that is live throughout
//! *At a reading without a lag*: it has found the fingerprint nowhere. As in `table/maplet.rs`, and apart from removals of
//! expired entries, what it has read is what the table held at a moment of the attempt. Suppose that there was a live item of
//! the key at that moment, and that a removal of expired entries hid it from the lookup. That removal came before the
//! lookup read the item's word. Before the removal there was a bump (rule 5), at which the item had already expired.
//! The lookup has read the version of that bump, or a later one, the first time too; otherwise it would have seen the
//! version change. So the item had expired when the attempt began, and was not live at that moment: a contradiction.
//!
//! *At a reading with a lag*: it has found no live item. Take the last attempt, at the reading `m`, which was the same
//! before and after it.
//!
//! 1. *It has seen no change that was made at a later reading.* A thread that makes such a change has had that reading
//!    first. So a lookup that reads a word with that change in it gets the later reading at the end.
//! 2. *It has seen what was removed before `m`.* Let `swept` be `s` at `m`. All that the passes up to `s` removed
//!    was gone when `m` was published, and the lookup read `m` first. So no place in the words that it read means an
//!    expiry up to `s`, nor, by 1, one after `s + 2^e`.
//! 3. So it reads places right, and the expired entries that were removed had expired at `m`: the threads that removed
//!    them had had a reading no later than `m`.
//! 4. What is left are the changes of live items, under the rules of `table/maplet.rs`. So the key had no live item at
//!    one moment of the attempt; and throughout the attempt the reading was `m`.
//!
//! # Why no expired entry is found
//! A lookup answers *true* for an item whose place is live at the reading `m` that it read before the words. If the
//! item was in the table then, its place meant its expiry (by 2 above), and it was live. If it was added later, then it
//! was added during the call, and live. Whether the version has changed meanwhile makes no difference.
//!
//! *Why the clock is read twice.* A lookup has a reading at which the place of 14 means 10. It is stopped. The entries that
//! expired at 10 are swept, and the clock advances. The entry of the lookup's own key, which is live, is renewed until 14,
//! and now the lookup reads the words. It considers that entry expired.
//!
//! *Why removals of expired entries bump.* A thread has announced that it adds an entry of the key to the first word. A lookup
//! reads the version and the first word. The entry is added. The clock advances, so another entry of the key expires, and
//! is removed from the second word. The lookup reads the second word. It has found no entry, though there was one at
//! each moment.
//!
//! # Linearizability
//! The filter is a multiset of pairs of a class and an expiry, and a clock.
//!
//! | operation | takes effect |
//! |---|---|
//! | `advance_to` | when the reading is published. All that expires by it is out at once, whenever a pass gets there. If nothing was due: when it reads the clock |
//! | lookups | as in `table/maplet.rs` |
//! | `insert` | *false*, since the expiry has passed: when it reads the clock. *true*: at its compare-exchange; or, if the expiry has passed by then, just before it passed |
//! | `insert_or_renew` | *true*: as `insert`, or as said below. *false*: at its compare-exchange; or, if there is nothing to renew or the expiry has passed, when it reads the clock |
//! | `remove` | at its compare-exchange; or, if the expiry has passed by then, just before it passed: the entry was there, for the lock was held |
//! | `remove` without an expiry | as `remove` of the expiry that it finds. *false*: at any moment under the lock |
//! | `expires_at` | when it reads the clock |
//! | `insert_if_absent` | *false*: when it reads the words, by the reading of the clock by which it also judges the expiry. *true*: as `insert`; under the lock, no other thread has added an entry of the class |
//! | an insert that fails for its lifetime | when it reads the clock |
//! | an insert that fails for lack of room | at the moment without room that `table/relocate.rs` describes. Expired entries count as room there: the search leaves them out, by one reading of the clock for all buckets, and its result does not count if the clock has gone on. At last the insert checks whether its own entry would still be live. If so, it was live at that moment. Where live entries of the class fill both buckets: when the count reads the clock. It holds the lock of their stripe, so no other thread adds or moves one of them meanwhile, and those that it finds were there then |
//!
//! *When an entry expires while it is renewed.* `insert_or_renew` has found a live entry that expires at `a`, and by its
//! exchange that entry expires at `b`. Then it reads the clock. If `now` is before `a`, the entry was live at the
//! exchange, and the answer is *false*. If not, `now` was `a` at one moment of the call, and `b` was not over: the
//! clock has passed from one tick to the next, because it does more than that only under the lock that the call holds
//! (rule 7). The answer is *true*: the call has added an entry at that moment, or at its exchange if that came later
//! (and if `b` is over by then, just before). No entry of the class was live then: the one that was renewed had the
//! latest expiry. If the exchange came first, no thread can observe the difference: a lookup in between finds the key in
//! either case, and any other thread that reads the class's expiries needs the lock.
//!
//! As in `table/stripe.rs`, the orders of all keys agree. The accesses to the reading are `SeqCst` like those to words,
//! except the second time that a lookup reads it, for which step 1 is enough. So, if one thread advances the clock and then
//! looks up a key, and another adds this key and then looks up another key that has expired by then, they do not both miss
//! what the other did.
//!
//! # Who waits
//! Lookups wait for no thread. They retry only where another thread has bumped, as each pass does when it begins, or
//! has changed the reading, which happens twice for each tick. Inserts wait for a pass only where rule 2 says so. That
//! happens while a call of `advance_to` that has come late finishes a pass. When that call returns, `swept` lags by so
//! little that entries with the longest lifetime are admitted. A call that skips ticks holds the locks of all stripes
//! while it sets the reading, which takes two stores. The lock of the sweep comes before the locks of stripes, and a
//! thread that holds one of these never waits for it. So there is no deadlock.
//!
//! An insert that holds the locks of all stripes (`Table::until_added_under_all_locks`) makes a bounded number of
//! searches here too. No other thread adds meanwhile, since that takes a lock. The clock advances by at most as many
//! readings as there are calls of `advance_to` until one of them waits for the writers to drain.
//!
//! # Saves
//! A save reads the clock when it has the locks of all stripes. All items that are live then are in the image
//! (`table/image/copy_on_write.rs`). A pass that began before removes only what has expired by then. One that begins later
//! has drained the writers, sees that a save is running, and copies the words for it: it removes nothing from a bucket before
//! all saves have its word.

pub(crate) mod charge;
pub(crate) mod clock;
mod evict;
pub(crate) mod presence;
mod recent;
mod sweep;
pub(crate) mod timer;

#[cfg(test)]
mod expiring_tests;

use crate::error::insert::{ExpiringInsertError, InsertError};
use crate::sync::Ordering;
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::entries::Expiry;
use crate::table::expiring::clock::{Clock, ClockState, NotAdded, Until, WhenFull};
use crate::table::image::copy_on_write::Changing;
use crate::table::image::spare::Spare;
use crate::table::relocate::AttemptFn;
use crate::table::stripe::{AllLocked, Guard};
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout, by_encoding};
use crate::word::ring::Reading;

/// Which of a class's entries is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    First,
    Last,
}

impl Table<Expiry> {
    /// Adds an entry of the class that expires at `until`, or makes one of the class live until then. Returns whether it
    /// was added: `false` if the entry has expired already, or if the class has one that is not to have a second beside it.
    /// Counts it, under the lock of the class's stripe.
    #[inline(always)]
    pub(in crate::table) fn add_until(
        &self,
        layout: impl Layout,
        class: Item,
        until: &Until,
        if_present: IfPresent,
    ) -> Result<bool, ExpiringInsertError> {
        // As in `remove`.
        self.prefetch(class);
        let guard = self.stripe(class.bucket_sum).lock(&self.counters);
        let (clock, mut is_full) = (self.clock(), false);
        let state = clock.state();
        if !self.is_being_saved()
            && let Some(expiry) = clock.expiry_for(state, until)
        {
            let add = |item| self.add(layout, item);
            match self.add_admitted(layout, (&guard, None), &class, (state.reading, expiry, until), if_present, add) {
                Attempt::Added => return Ok(true),
                Attempt::Present => return Ok(false),
                Attempt::NoRoom => is_full = true,
            }
        }
        drop(guard);
        self.add_until_slow(class, until, if_present, is_full)
    }

    /// [`add_until`](Self::add_until) where that takes more than one step. `is_full`: an attempt was made, and has found no
    /// room.
    #[cold]
    #[inline(never)]
    fn add_until_slow(
        &self,
        class: Item,
        until: &Until,
        if_present: IfPresent,
        is_full: bool,
    ) -> Result<bool, ExpiringInsertError> {
        let clock = self.clock();
        let attempt = |all: Option<&AllLocked<'_>>| {
            let changing = self.lock_to_change(class.bucket_sum, 2, all);
            self.attempt_until(&changing, class, until, if_present)
        };
        let mut result = if is_full { Ok(Attempt::NoRoom) } else { attempt(None) };
        loop {
            result = match result {
                Ok(Attempt::Added) => return Ok(true),
                Ok(Attempt::Present) | Err(NotAdded::Expired) => return Ok(false),
                Err(NotAdded::Invalid(error)) => return Err(error),
                Err(NotAdded::Evicted(error)) => {
                    self.count_failed(until);
                    return Err(error);
                }
                Err(NotAdded::Unswept) => {
                    self.catch_up(clock.most_lag());
                    attempt(None)
                }
                // An entry that another filter had may be older than those in its buckets.
                Ok(Attempt::NoRoom) if until.is_of_union() => self.until_added_where_full(class, if_present, attempt),
                Ok(Attempt::NoRoom) => self.add_where_full(class, if_present, &attempt),
                Err(NotAdded::Full(error)) => match attempt(None) {
                    // It is still live, so it was live when there was no room.
                    Ok(Attempt::NoRoom) if self.eviction_makes_room(class, until, if_present, &error) => {
                        Ok(Attempt::NoRoom)
                    }
                    Ok(Attempt::NoRoom) if clock.is_driven_by_filter() && !until.is_of_union() => {
                        self.displace(class, &attempt)
                    }
                    Ok(Attempt::NoRoom) => {
                        self.count_failed(until);
                        let evicts = clock.when_full() == WhenFull::EvictSoonest;
                        return Err(ExpiringInsertError::of(error, evicts));
                    }
                    result => result,
                },
            };
        }
    }

    /// Counts an entry that is not added for lack of room. A filter that drives its clock evicts it: it comes from another
    /// filter, and would be the first to leave.
    fn count_failed(&self, until: &Until) {
        let clock = self.clock();
        if clock.is_driven_by_filter() {
            clock.note_early(until.ticks_from(clock.published_tick()));
            clock.tallies.evicted.fetch_add(1, Ordering::Relaxed);
        } else {
            self.counters.insert_failed();
        }
    }

    /// Attempts to add an entry for which there was no room, and makes room before each further attempt. `attempt` takes
    /// the lock, decides as `if_present` says what becomes of an entry of the class, and counts what it adds.
    fn add_where_full<F: From<InsertError>>(
        &self,
        class: Item,
        if_present: IfPresent,
        attempt: &AttemptFn<'_, F>,
    ) -> Result<Attempt, F> {
        if self.clock().is_driven_by_filter() && self.is_known_full() {
            match self.displace_at_once(class, attempt) {
                Ok(Attempt::NoRoom) => {}
                result => return result,
            }
        }
        self.until_added_where_full(class, if_present, attempt)
    }

    /// Evicts what is in the way of an entry whose insert fails with this error, if the clock is to evict. Returns whether
    /// there may be room now.
    fn eviction_makes_room(&self, class: Item, until: &Until, if_present: IfPresent, error: &InsertError) -> bool {
        let clock = self.clock();
        // Entries of this class alone fill both buckets: then no eviction helps (`evict.rs`).
        let is_final = clock.when_full() == WhenFull::Refuse || matches!(error, InsertError::TooManyCopies { .. });
        !is_final && self.evict(class, until, if_present).is_some()
    }

    /// One attempt to add an entry of the class, which counts it. If the class has a live one, `if_present` decides. The
    /// lock is that of its stripe, to change two words.
    fn attempt_until(
        &self,
        changing: &Changing<'_>,
        class: Item,
        until: &Until,
        if_present: IfPresent,
    ) -> Result<Attempt, NotAdded> {
        let clock = self.clock();
        let state = clock.state();
        let is_present = || self.copies_at(state.reading, class) > 0;
        match clock.admit(state, until) {
            Ok(expiry) => {
                let lock = (&changing.guard, changing.spare());
                let add = |item| self.add_locked(changing, item);
                Ok(self.add_admitted(self.layout(), lock, &class, (state.reading, expiry, until), if_present, add))
            }
            Err(NotAdded::Invalid(error)) => Err(NotAdded::Invalid(error)),
            Err(_) if if_present == IfPresent::Skip && is_present() => Ok(Attempt::Present),
            // The other entry lives longer.
            Err(NotAdded::Evicted(_)) if if_present == IfPresent::Extend && is_present() => Ok(Attempt::Present),
            Err(reason) => Err(reason),
        }
    }

    /// Adds an entry of the class by `add`, which is admitted: it expires at `expiry`, and is live at the reading. If the
    /// class has a live entry, `if_present` says what happens: a second one is added, nothing is, or the entry is extended.
    /// Counts what it adds. The caller holds the lock of its stripe, has read the clock since, and has spare memory for a
    /// word, if a save is running.
    ///
    /// `SkipEqual` never comes here: only `insert_item_unless_equal` makes one, which tables with a clock do not have.
    #[inline(always)]
    fn add_admitted(
        &self,
        layout: impl Layout,
        (guard, spare): (&Guard<'_>, Option<&Spare>),
        class: &Item,
        (reading, expiry, until): (Reading, u64, &Until),
        if_present: IfPresent,
        add: impl Fn(Item) -> bool,
    ) -> Attempt {
        let clock = self.clock();
        if if_present == IfPresent::Skip && self.copies_at(reading, *class) > 0 {
            return Attempt::Present;
        }
        if if_present == IfPresent::Extend
            && let Some(was_live) = self.extend((guard, spare), class, (reading, expiry, until))
        {
            return if was_live { Attempt::Present } else { Attempt::Added };
        }
        let item = class.with(layout, clock.ring.place(expiry));
        self.bump_to_add(guard);
        if !add(item) {
            return Attempt::NoRoom;
        }
        self.counters.add_len(1);
        clock.count_key(until);
        Attempt::Added
    }

    /// Makes the class's entry that lives longest live until `expiry` at least, if the class has a live entry at the
    /// reading. Returns whether that was still live when it was renewed.
    fn extend(
        &self,
        (guard, spare): (&Guard<'_>, Option<&Spare>),
        class: &Item,
        (reading, expiry, until): (Reading, u64, &Until),
    ) -> Option<bool> {
        let clock = self.clock();
        let (latest, bucket, old) = self.live_entry(reading, *class, Which::Last)?;
        if latest >= expiry {
            return Some(true);
        }
        let new = class.with(self.layout(), clock.ring.place(expiry)).entry;
        self.copy_for_saves(bucket, spare);
        let replaced = self.replace_entry(guard, bucket, self.load(bucket), old, new);
        clock.count_key(until);
        // Read after the exchange: see *When an entry expires while it is renewed*.
        let was_live = clock.reading().now() < latest;
        replaced.then_some(was_live)
    }

    /// Of the class's entries that are live at the reading, the one that expires first or last: its expiry, its bucket,
    /// and the entry. The caller holds the lock of the class's stripe, and has read the clock since.
    fn live_entry(&self, reading: Reading, class: Item, which: Which) -> Option<(u64, usize, Entry)> {
        let clock = self.clock();
        by_encoding!(&self.layout, layout => self.live_entry_by(layout, clock, reading, class, which))
    }

    #[inline(always)]
    fn live_entry_by(
        &self,
        layout: impl Layout,
        clock: &Clock,
        reading: Reading,
        class: Item,
        which: Which,
    ) -> Option<(u64, usize, Entry)> {
        let fingerprint = layout.fingerprint_of(class.entry);
        let mut found: Option<(u64, usize, Entry)> = None;
        for bucket in [class.first, class.second] {
            for entry in self.load(bucket).entries(layout) {
                let payload = layout.payload_of(entry);
                if layout.fingerprint_of(entry) != fingerprint || !clock.ring.is_live(reading, payload) {
                    continue;
                }
                let expiry = clock.expiry_of(reading, payload);
                let is_it = |so_far| if which == Which::First { expiry < so_far } else { expiry > so_far };
                if found.is_none_or(|(so_far, ..)| is_it(so_far)) {
                    found = Some((expiry, bucket, entry));
                }
            }
        }
        found
    }

    /// Removes an entry of the class that expires at this tick of the caller, if a live one does.
    #[inline(always)]
    pub(in crate::table) fn remove_until(&self, layout: impl Layout, class: Item, expires_at: u64) -> bool {
        // As in `remove`.
        self.prefetch(class);
        let clock = self.clock();
        let guard = self.stripe(class.bucket_sum).lock(&self.counters);
        // An expiry that is not admitted can't have been added.
        let Some(expiry) = clock.expiry_for(clock.state(), &Until::Tick(expires_at)) else {
            return false;
        };
        let item = class.with(layout, clock.ring.place(expiry));
        if let Some(removed) = self.remove_locked(layout, &guard, item) {
            return removed;
        }
        drop(guard);
        self.remove_until_slow(class, expires_at)
    }

    #[cold]
    #[inline(never)]
    fn remove_until_slow(&self, class: Item, expires_at: u64) -> bool {
        let clock = self.clock();
        let changing = self.lock_to_change(class.bucket_sum, 1, None);
        // Again under this lock: the place of an expiry may be another one's by now.
        let Some(expiry) = clock.expiry_for(clock.state(), &Until::Tick(expires_at)) else {
            return false;
        };
        self.remove_with_spare(&changing.guard, changing.spare(), class.with(self.layout(), clock.ring.place(expiry)))
    }

    /// Removes the class's live entry that expires first, if there is one, without counting.
    pub(in crate::table) fn remove_first(&self, class: Item) -> bool {
        // As in `remove`.
        self.prefetch(class);
        let clock = self.clock();
        let changing = self.lock_to_change(class.bucket_sum, 1, None);
        let first = self.live_entry(clock.reading(), class, Which::First);
        first.is_some_and(|(_, bucket, entry)| self.remove_from(&changing.guard, changing.spare(), bucket, entry))
    }

    /// The caller's tick, and how many ticks later the class's live entry that lives longest expires; `None` if there is no
    /// live one.
    pub(in crate::table) fn last_expiry(&self, class: Item) -> Option<(u64, u64)> {
        let clock = self.clock();
        let _guard = self.stripe(class.bucket_sum).lock(&self.counters);
        let ClockState { now, reading, ahead, .. } = clock.state();
        let (expiry, ..) = self.live_entry(reading, class, Which::Last)?;
        Some((now?, expiry - reading.now() + ahead))
    }

    /// How many entries will be live in this many ticks of the caller, by a scan of all buckets.
    pub(in crate::table) fn live_in(&self, ticks: u64) -> usize {
        let clock = self.clock();
        let (reading, ticks) = (clock.reading(), ticks.saturating_sub(clock.ahead()));
        let is_live = |expiry| clock.ring.is_live(reading, expiry) && clock.ring.ticks_until(reading, expiry) > ticks;
        (0..self.words.len()).map(|bucket| self.load(bucket).count_payloads(self.layout, is_live)).sum()
    }
}
