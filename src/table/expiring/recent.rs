//! CONCURRENT: a clock that the filter drives itself, by the keys that come or by the time, and inserts that never fail.
//!
//! `table/expiring/mod.rs` has the protocol. What is different here: no caller passes ticks, so no caller can tell
//! whether ticks passed one by one or several at once, and none waits for a sweep.
//!
//! # A clock that counts keys
//! An entry lives for `l` ticks. A tick ends when `k` keys were *counted* in it: each entry that is added, and each that
//! is renewed, so that it moves into the present tick. A key is counted under the lock of its stripe, by the thread that
//! adds or renews its entry (`Clock::count_key`). The tick ends, and the count is set to 0, under the locks of all
//! stripes. So each key is counted in the tick in which its entry was added: the count needs no further order.
//!
//! **The guarantee**: *a key is found until at least `(l - 1)·k` keys were counted after it*, if no entry is evicted. Let
//! its entry be added, or renewed last, in tick `t`. It expires when tick `t + l` begins. Before that, the ticks from `t + 1`
//! to `t + l - 1` have ended. Each of them had at least `k` keys, since no thread ends a tick that has fewer. All of them
//! were counted after the key. To a thread that holds the locks of all stripes, a key's count and its entry are one step. So
//! this holds in the order in which the operations take effect.
//!
//! *Two threads pass the end of a tick at once.* Both see that it is full, and both wait for the locks of all stripes. The
//! first one ends the tick, and sets the count back. The other one then sees a count that begins anew, and does nothing.
//!
//! *A tick is hardly longer than it is to be.* No call that has counted a key returns while the tick is full: it ends the
//! tick, or finds that another thread has. So at most one key of each other thread is counted beyond `k`. This bounds how
//! many entries are live.
//!
//! *No insert waits for another thread's sweep.* The end of a tick needs the locks of the stripes, and not that of the
//! sweep. A running sweep goes on: it removes what had expired when it began. A sweep that ends changes the reading
//! under a stripe's lock, so that it does not undo the end of a tick (`Table::end_pass`). But the next tick needs a
//! place on the ring. If a thread has been kept from its sweep while a whole tick went by, the next one cannot end.
//! Only then a thread waits for that sweep, and finishes it ([`end_tick`](Table::end_tick)).
//!
//! *Duplicates* are not counted, nor are entries that are renewed for the second time in a tick. So repeated keys do not
//! drive other keys out, however often they come.
//!
//! # A clock that follows the time
//! The filter reads the time, and each operation first [moves the clock on](Table::move_on) to the tick of that time. It
//! does not wait: if another thread has the lock of the sweep, the operation goes by the clock as it is, which is late.
//!
//! 1. *All operations go by the same clock.* So they are linearizable together, as `table/expiring/mod.rs` says, whether
//!    the clock is late or not. The passing of a tick is an operation of its own.
//! 2. *An entry never lives too short.* It is added with an expiry that is `l` ticks after the tick of the time that its
//!    caller has read, or after the clock's if that is later
//!    ([`FromAtLeast`](crate::table::expiring::clock::Until::FromAtLeast)). For that, entries may live one tick
//!    longer than `l`. If the clock is later than that, the insert waits for the lock of the sweep, and moves it on.
//! 3. *A lookup takes no lock of a stripe*, and waits for no thread. It moves the clock on by stores alone.
//!
//! *Why these stores need no locks of stripes.* Elsewhere a clock that skips ticks, or that was ahead of the caller's, is
//! set under the locks of all stripes (rule 7, `table/expiring/evict.rs`). Here a thread that moves it on stores how far it
//! is ahead, `a`, and then its own tick, `o`. The caller's tick is `o - a`, but for an offset that never changes. `a` goes
//! down and `o` goes up. So a writer that reads one before and the other after the change computes a tick between the old
//! one and the new one. It sees the clock as if the ticks had passed one by one, and so may each caller. In particular, *when
//! an entry expires while it is renewed* (`table/expiring/mod.rs`), the tick at which it expired has passed, and the operation
//! takes effect then.
//!
//! # Inserts never fail
//! An insert that finds no room evicts the ticks that expire first (`table/expiring/evict.rs`). Where that makes no room,
//! because all entries within reach were added in the present tick, or because the keys of these buckets were chosen to
//! collide, it [displaces](Table::displace) one entry of its own two buckets: the one that expires first. It takes the entry
//! out as a removal does, under the lock of that entry's stripe and after a bump. This is an eviction, an operation of its own
//! that takes effect at its exchange. Then there is room for the new entry, which is added as by any other insert. The thread
//! holds the locks of all stripes, so no other thread takes that room.
//!
//! *How early it goes* is noted before the exchange: by how many ticks the entry's expiry is after the clock's own
//! tick, and how far that is ahead of the caller's. The time may pass between these two readings, and before the
//! exchange. Meanwhile the first one only goes down, and so does the second one: to run further ahead takes the locks
//! of all stripes. So what is noted is not less than what was left of the entry's lifetime at the exchange. (Read after
//! the exchange, it could be less.)
//!
//! A search that finds no room is long, and so is one under all locks. So the filter notes in which tick an eviction has made no
//! room. During that tick, while it holds as many keys as its capacity, it is [known to be full](Table::is_known_full): an insert
//! that finds its two buckets full displaces an entry at once, with one stripe's lock at a time, and takes the longer way only
//! if others take the room again and again.
//!
//! # A union
//! A filter takes over what another one holds (`unite`): each live entry of an image of that one (`table/image/absorb.rs`),
//! with what is left for it of *this* window. The other one has another window, and counts ticks of its own.
//!
//! *When the entry came* is known up to a tick of the other filter. It counts as the last key of that tick, or of its end, or
//! as coming now if the tick is the present one. So of the keys or of the time after it, no more are taken off than there
//! were: [`Division::left_of`](crate::plan::window::Division::left_of). What comes to the other filter after the image, or
//! passes between the readings of both times, is not taken off either.
//!
//! *What is left is counted from now*, from a reading of this clock under the locks of all stripes, which comes after the
//! image. The entry expires at the first tick of this clock that begins when so much more has come or passed. So the guarantee above
//! holds for it too, by this window: the ticks from now to its expiry have as many keys, less those of the present tick that were counted before. It is found for longer than
//! an entry that was added here by less than a tick of the other filter. That the entry is added later than the reading makes no
//! difference, since the expiry is a tick, and not a number of ticks.
//!
//! *It is not counted as a key*, nor if it renews an entry: it was counted in the other filter. So what is here stays as long as
//! it would have.
//!
//! *While two filters change places*, each call of the guide's recipe (page `expiry`, *Another window*) looks the key up in
//! the old filter, inserts it into the new one, and then into the old one. It ends with `false` at the first of these steps
//! that finds the key, and otherwise with `true`. Until the last insert into the old filter alone has ended, and with it each
//! call of the recipe that began before that, no union begins. Until the union has ended, no thread asks the new filter alone.
//!
//! 1. *At most one is told that the key is new.* A `true` is the answer of the old filter's insert, as it is for a thread
//!    that inserts there alone, and the new filter's insert has also answered so, as it does for a thread that inserts here
//!    alone. So any two threads that may overlap ask one filter in common, which tells at most one of them while it has the key.
//! 2. *One is told.* If the key is in the old filter, an insert there has put it there, which is the last step of its
//!    thread, and the answer was `true`. If it is in the new filter, then it was put there by the union, from the old filter; by a
//!    thread that inserts here alone, which was told `true`; or by a call of the recipe. That one goes on to the old filter,
//!    and is told `true` unless the key has come there meanwhile. So each call that finds the key ends with `false`
//!    rightly. (Its thread may still be on its way to the `true`.)
//! 3. *No key is missing from the new filter*, whenever the union comes. What the old filter had at the image is added by the
//!    union. What came to it later was in the new filter before: no call inserts into the old filter before the new one.
//! 4. *No key counts twice for another one.* Keys that were counted in the old filter before the image are taken off, and those
//!    that are counted here after the reading of this clock, which comes later. A key that is new counts here
//!    first: if it does so after that reading, then it comes to the old filter after the image. A key that the old filter has
//!    at the image, and that comes again, is found there: it is not inserted here. (Without the lookup it would be
//!    new here until the union has added it.) If its call looked it up before it came there, then it came there by
//!    another call of the recipe, and was in the new filter before; for no call is left that began while threads inserted into
//!    the old filter alone. And if its entry has left the old filter since the image, it comes again after its window.
//!
//! Where keys are renewed, the recipe renews the key in the new filter, and in the old one if it is new to the new one. The first
//! three points hold as before. In the last one, a key that comes again counts again, but each time it comes it counts in one of
//! both at most, since it comes to the new filter first.
//!
//! *It is added as by `insert_or_renew`*: under the lock of its stripe, and an entry of its class that expires later stays as it is.
//! If there is no room, ticks that expire before it are evicted. If nothing expires before it that is in the way, it is evicted itself
//! before it is added: it displaces no entry. The same if its tick was evicted already.
//!
//! # At most one is told that a key is new
//! Whether the key has a live entry is read under the lock of its stripe, and its entry is added under the same lock. So
//! of all threads that race to insert one key, the first one to get the lock adds the entry. Each later one finds it, as
//! long as it is live. For that long it is found by any lookup too.

use crate::sync::Ordering;
use crate::table::attempt::Attempt;
use crate::table::entries::Expiry;
use crate::table::expiring::clock::ClockState;
use crate::table::expiring::sweep::reading_after;
use crate::table::image::spare::Spare;
use crate::table::relocate::AttemptFn;
use crate::table::stripe::AllLocked;
use crate::table::table::Table;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};
use crate::word::ring::LAST_TICK;

/// How often an insert displaces an entry for which another thread then takes the room, before it takes all locks.
const TRIES_TO_DISPLACE: usize = 4;

impl Table<Expiry> {
    /// What a call that changes entries does for the filter's own clock: ends the tick if it has as many keys as it is to
    /// have, and sweeps a share of the table if entries have expired and no other thread does.
    #[inline]
    pub(in crate::table) fn keep_up(&self) {
        let clock = self.clock();
        if clock.is_tick_full() || clock.reading().lag() > clock.tolerated_lag() {
            self.keep_up_slow();
        }
    }

    #[cold]
    #[inline(never)]
    fn keep_up_slow(&self) {
        let clock = self.clock();
        while clock.is_tick_full() && !self.end_tick() {
            // The next tick needs a place on the ring.
            self.catch_up(clock.most_lag() - 1);
        }
        if clock.reading().lag() > clock.tolerated_lag() {
            self.sweep_if_nobody_does();
        }
    }

    /// Ends the present tick of a clock that counts keys, unless another thread has. Returns `false` if there is no place on
    /// the ring for the next tick, because the sweep is late.
    fn end_tick(&self) -> bool {
        let clock = self.clock();
        // When the clock's own ticks begin again, the running pass does too.
        let mut pass = (clock.reading().now() >= LAST_TICK).then(|| clock.lock_sweep());
        self.under_all_locks(|all| {
            if !clock.is_tick_full() {
                return true;
            }
            let ClockState { now, reading, ahead, .. } = clock.state();
            let tick = now.expect("the filter has set its clock").wrapping_add(1);
            // A tick that was evicted has ended already.
            let reading = match &mut pass {
                _ if ahead > 0 => reading,
                _ if reading.lag() >= clock.most_lag() => return false,
                Some(pass) => reading_after(clock, pass, reading, 1),
                None if reading.now() >= LAST_TICK => return false,
                None => reading_after(clock, &mut None, reading, 1),
            };
            clock.set_callers_tick(all, reading, tick, ahead.saturating_sub(1));
            clock.publish(reading);
            clock.publish_tick(tick);
            clock.begin_count(all);
            true
        })
    }

    /// Moves a clock that follows the time on to this tick. If another thread has the lock of the sweep, waits for it if
    /// so asked, and otherwise does nothing.
    #[cold]
    #[inline(never)]
    pub(in crate::table) fn move_on(&self, tick: u64, wait: bool) {
        let clock = self.clock();
        let lock = if wait { Some(clock.lock_sweep()) } else { clock.try_lock_sweep() };
        let Some(mut pass) = lock else { return };
        let ClockState { now, reading, ahead, .. } = clock.state();
        let ticks = tick.saturating_sub(now.expect("the filter has set its clock"));
        if ticks == 0 {
            // Another thread was faster.
            return;
        }
        // The ticks by which the clock is ahead have been ended already.
        let due = ticks.saturating_sub(ahead);
        clock.set_ahead(ahead.saturating_sub(ticks));
        if due > 0 {
            // Not under the locks that a wrap of the clock's own ticks would need: these last for thousands of years, since
            // a tick has at least a millisecond (`plan/window.rs`).
            clock.publish(reading_after(clock, &mut pass, reading, due));
        }
        clock.publish_tick(tick);
    }

    /// The clock, with the number of keys of the present tick.
    pub(in crate::table) fn clock_state(&self) -> ClockState {
        let clock = self.clock();
        self.under_all_locks(|all| clock.state_for_save(all))
    }

    /// Whether the filter is full of keys of the present tick, as far as is known: then no search and no eviction of a tick makes
    /// room.
    pub(super) fn is_known_full(&self) -> bool {
        let clock = self.clock();
        // Relaxed, as where it is set: it only decides which of two ways to make room is tried first.
        let since = clock.reading().now().wrapping_sub(clock.tallies.found_full.load(Ordering::Relaxed));
        since <= clock.tolerated_lag() && self.counters.len() >= self.capacity()
    }

    /// Notes that neither a search nor an eviction of a tick has made room.
    pub(super) fn note_full(&self) {
        let clock = self.clock();
        clock.tallies.found_full.store(clock.reading().now(), Ordering::Relaxed);
    }

    /// Adds an entry of this class, for which no eviction of a tick makes room, by `attempt`: removes the entry from its
    /// buckets that expires first. Returns what came of the last attempt.
    #[cold]
    #[inline(never)]
    pub(super) fn displace<F>(&self, class: Item, attempt: &AttemptFn<'_, F>) -> Result<Attempt, F> {
        // Those of the class's two buckets.
        const WORDS: u64 = 2;
        let spare = Spare::default();
        let result = loop {
            self.running_saves().fill(&spare, WORDS);
            let result = self.under_all_locks_with(&spare, WORDS, |all| match attempt(Some(all)) {
                Ok(Attempt::NoRoom) => {
                    self.displace_first_to_expire(class, Some(all));
                    attempt(Some(all))
                }
                done => done,
            });
            // If not, a save has begun meanwhile.
            if let Some(result) = result {
                break result;
            }
        };
        self.note_full();
        result
    }

    /// [`displace`](Self::displace) in a filter that is known to be full. It takes one stripe's lock at a time. So another thread may take the
    /// room that it has made, and after some tries it gives up.
    #[cold]
    #[inline(never)]
    pub(super) fn displace_at_once<F>(&self, class: Item, attempt: &AttemptFn<'_, F>) -> Result<Attempt, F> {
        for _ in 0..TRIES_TO_DISPLACE {
            for displaces in [false, true] {
                if displaces {
                    self.displace_first_to_expire(class, None);
                }
                match attempt(None) {
                    Ok(Attempt::NoRoom) => {}
                    done => return done,
                }
            }
        }
        Ok(Attempt::NoRoom)
    }

    /// Removes an entry from the buckets of this class: of those that it reads there, the one that expires first.
    fn displace_first_to_expire(&self, class: Item, all: Option<&AllLocked<'_>>) {
        let clock = self.clock();
        // Entries that have died go before all others.
        let ticks_left = |entry| clock.ring.ticks_left(clock.reading(), self.layout.payload_of(entry));
        let mut first: Option<(u64, usize, Entry)> = None;
        for bucket in [class.first, class.second] {
            for entry in self.load(bucket).entries(self.layout) {
                let ticks = ticks_left(entry);
                if first.is_none_or(|(so_far, ..)| ticks < so_far) {
                    first = Some((ticks, bucket, entry));
                }
            }
        }
        let Some((_, bucket, entry)) = first else { return };
        let changing = self.lock_to_change(self.geometry.bucket_sum(self.layout.fingerprint_of(entry)), 1, all);
        // Read again under the lock: only then its place is sure to mean that tick.
        match ticks_left(entry) {
            0 => self.remove_expired_entry(&changing.guard, changing.spare(), bucket, entry),
            // While the lock is held, no other thread removes an entry that was live at the reading.
            ticks if self.load(bucket).holds_entry(self.layout, entry) => {
                clock.note_early(clock.ahead() + ticks);
                self.remove_from(&changing.guard, changing.spare(), bucket, entry);
                self.counters.add_len(-1);
                clock.tallies.evicted.fetch_add(1, Ordering::Relaxed);
            }
            _ => (),
        }
    }
}

#[cfg(test)]
#[path = "recent_tests.rs"]
mod tests;
