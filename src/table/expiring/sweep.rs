//! CONCURRENT: how a clock advances, and how expired entries are removed. `table/expiring/mod.rs` has the reasoning.

use crate::sync::sizes::{SWEPT_AT_LEAST, SWEPT_WORDS};
use crate::sync::{MutexGuard, Ordering};
use crate::table::entries::{Entries, Expiry};
use crate::table::expiring::clock::{Advance, Clock, ClockState, FIRST_TICK, Pass};
use crate::table::image::spare::Spare;
use crate::table::stripe::{AllLocked, Guard};
use crate::table::table::Table;
use crate::word::layout::{Entry, Layout};
use crate::word::ring::{Arc, LAST_TICK, Reading, Ring};

/// One call sweeps one part in `SHARE` of the table, or [`SWEPT_AT_LEAST`] buckets if that is more.
const SHARE: usize = 1024;

/// What a call has yet to sweep.
struct Due {
    /// First, until `swept` lags by no more than so many ticks.
    most: u64,
    /// Then so many buckets.
    buckets: usize,
}

impl Table<Expiry> {
    #[inline(always)]
    pub(crate) fn clock(&self) -> &Clock {
        self.entries.clock()
    }

    /// Advances the clock to this tick of the caller. If something is to be swept, sweeps a share of the table.
    #[inline]
    pub(crate) fn advance(&self, tick: u64) -> Advance {
        let clock = self.clock();
        match clock.now() {
            Some(now) if tick <= now => {
                if clock.reading().lag() > 0 {
                    self.sweep_if_nobody_does();
                }
                not_after(clock, tick, now)
            }
            _ => self.advance_further(tick),
        }
    }

    #[cold]
    fn advance_further(&self, tick: u64) -> Advance {
        let clock = self.clock();
        let mut pass = clock.lock_sweep();
        let (ring, ClockState { now, reading: before, ahead, .. }) = (clock.ring, clock.state());
        let Some(now) = now else {
            self.publish_with_tick(first_reading(ring, tick), tick, 0);
            return Advance::Origin;
        };
        if tick <= now {
            // Another thread was faster.
            return not_after(clock, tick, now);
        }
        let ticks = tick - now;
        // The ticks by which the clock is ahead have been ended already.
        let (due, ahead_then) = (ticks.saturating_sub(ahead), ahead.saturating_sub(ticks));
        // A jump by a whole round of the ring leaves no entry live, however many rounds it was.
        let own_ticks = if due > ring.len() { ring.len() + due % ring.len() } else { due };
        let reading = reading_after(clock, &mut pass, before, own_ticks);
        // Rule 7. (Otherwise the tick or the offset changes too, which threads with a lock assume to be constant.)
        if ticks == 1 && own_ticks == 1 && reading.now() == before.now() + 1 {
            clock.publish(reading);
            clock.publish_tick(tick);
        } else {
            self.publish_with_tick(reading, tick, ahead_then);
        }
        if ticks >= clock.longest() {
            clock.tallies.jumps.fetch_add(1, Ordering::Relaxed);
        }
        self.sweep_some(pass);
        Advance::Forward { ticks }
    }

    /// Sweeps as much as must be swept by now, and a share of the table. The caller holds the lock of the sweep, which this
    /// releases.
    pub(super) fn sweep_some(&self, pass: MutexGuard<'_, Option<Pass>>) {
        let clock = self.clock();
        self.sweep_in_pieces(Some(pass), Due { most: clock.most_lag(), buckets: self.share() });
    }

    /// Calls the current tick `tick` from now on; entries keep the rest of their lifetimes. Takes the lock of the
    /// sweep.
    pub(crate) fn restart(&self, tick: u64) {
        let clock = self.clock();
        let _pass = clock.lock_sweep();
        let ClockState { reading, ahead, .. } = clock.state();
        let reading = if reading.is_known() { reading } else { first_reading(clock.ring, tick) };
        self.publish_with_tick(reading, tick, ahead);
    }

    /// Publishes the reading under all locks, with the caller's tick and with how far the clock is ahead of that. The
    /// caller holds the lock of the sweep.
    fn publish_with_tick(&self, reading: Reading, tick: u64, ahead: u64) {
        let clock = self.clock();
        self.under_all_locks(|all| {
            clock.set_callers_tick(all, reading, tick, ahead);
            clock.publish(reading);
        });
        clock.publish_tick(tick);
    }

    /// Sweeps until `swept` lags by no more than so many ticks. The caller holds no lock.
    pub(in crate::table) fn catch_up(&self, most: u64) {
        self.sweep_in_pieces(None, Due { most, buckets: 0 });
    }

    /// Sweeps until all is done that is due, under the lock of the sweep. If a save is running, it releases the lock for each
    /// further piece of spare memory.
    fn sweep_in_pieces(&self, locked: Option<MutexGuard<'_, Option<Pass>>>, mut due: Due) {
        let clock = self.clock();
        let spare = Spare::default();
        let mut pass = locked.unwrap_or_else(|| clock.lock_sweep());
        while !self.sweep_due(&mut pass, &spare, &mut due) {
            drop(pass);
            self.running_saves().fill(&spare, SWEPT_WORDS);
            pass = clock.lock_sweep();
        }
    }

    /// Sweeps what is due, as far as the spare memory goes. Returns whether all was done. The caller holds the lock of the
    /// sweep.
    fn sweep_due(&self, pass: &mut Option<Pass>, spare: &Spare, due: &mut Due) -> bool {
        let clock = self.clock();
        while clock.reading().lag() > due.most {
            // The target of a running pass may be too early. To finish it would not be enough.
            if pass.is_some_and(|pass| clock.reading().now() - pass.target > due.most) {
                *pass = None;
            }
            if !self.sweep(pass, spare, &mut { usize::MAX }) {
                return false;
            }
        }
        due.buckets == 0 || clock.reading().lag() == 0 || self.sweep(pass, spare, &mut due.buckets)
    }

    #[cold]
    pub(super) fn sweep_if_nobody_does(&self) {
        let clock = self.clock();
        let (spare, mut buckets) = (Spare::default(), self.share());
        while let Some(mut pass) = clock.try_lock_sweep()
            && clock.reading().lag() > 0
            && !self.sweep(&mut pass, &spare, &mut buckets)
        {
            drop(pass);
            self.running_saves().fill(&spare, SWEPT_WORDS);
        }
    }

    fn share(&self) -> usize {
        (self.words.len() / SHARE).max(SWEPT_AT_LEAST)
    }

    /// Continues a pass, or begins one, for this many buckets, which it lowers. Returns whether the spare memory was enough.
    /// The caller holds the lock of the sweep.
    fn sweep(&self, pass: &mut Option<Pass>, spare: &Spare, buckets: &mut usize) -> bool {
        let clock = self.clock();
        let Pass { target, expired, next } = *pass.get_or_insert_with(|| self.begin_pass());
        let end = next.saturating_add(*buckets).min(self.words.len());
        let early = clock.ended_early(target);
        let (mut swept, mut evicted, mut reached) = (0, 0, next);
        while reached < end
            && let Some(lanes) = self.sweep_bucket(reached, expired, early, spare)
        {
            (swept, evicted, reached) = (swept + lanes.0, evicted + lanes.1, reached + 1);
        }
        clock.count_expired(&self.counters, swept, evicted);
        *pass = if reached < self.words.len() {
            Some(Pass { target, expired, next: reached })
        } else {
            self.end_pass(target);
            None
        };
        *buckets -= reached - next;
        reached == end
    }

    fn begin_pass(&self) -> Pass {
        let clock = self.clock();
        // Before the bumps, so that all that expires by it has expired when its stripe is bumped: a clock that counts
        // keys moves on without the lock of the sweep.
        let reading = clock.reading();
        // After this, whatever other threads add or relocate has not expired by the pass's target. The bumps invalidate
        // lookups in progress.
        for stripe in &self.stripes {
            stripe.lock(&self.counters).bump();
        }
        Pass { target: reading.now(), expired: Arc::of_expired(clock.ring, reading), next: 0 }
    }

    fn end_pass(&self, target: u64) {
        let clock = self.clock();
        // No thread ends a tick of a clock that counts keys meanwhile: that takes the locks of all stripes.
        let _guard = self.stripes[0].lock(&self.counters);
        let now = clock.reading().now();
        clock.publish(Reading::new(clock.ring, now, now - target));
        clock.tallies.sweeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes from the bucket the entries that expired at one of these expiries. Returns how many there were, and how many of
    /// them were ended early. `None` if that needs more spare memory.
    #[inline]
    fn sweep_bucket(&self, bucket: usize, expired: Arc, early: Option<Arc>, spare: &Spare) -> Option<(usize, usize)> {
        let mut seen = self.load(bucket);
        loop {
            let lanes = match expired.only() {
                Some(expiry) => seen.lanes_with_payload(self.layout, expiry),
                None => seen.lanes_with(self.layout, |expiry| expired.contains(expiry)),
            };
            if lanes == 0 {
                return Some((0, 0));
            }
            let left = seen.without_all(self.layout, lanes);
            if !self.try_copy_for_saves(bucket, Some(spare)) {
                return None;
            }
            match self.exchange(bucket, seen, left) {
                Ok(()) => {
                    // Of those that were removed.
                    let early = early.map_or(0, |early| seen.lanes_with(self.layout, |expiry| early.contains(expiry)));
                    return Some((lanes.count_ones() as usize, (lanes & early).count_ones() as usize));
                }
                Err(now) => seen = now,
            }
        }
    }
}

impl<E: Entries> Table<E> {
    /// Removes the expired entries of a bucket if it is full. Returns whether it has room then. The caller holds the
    /// locks of all stripes, or none.
    pub(in crate::table) fn remove_expired(&self, bucket: usize, all: Option<&AllLocked<'_>>) -> bool {
        let seen = self.load(bucket);
        if seen.has_room(self.layout) {
            return true;
        }
        if !self.entries.may_hold_expired(self.entries.reading()) {
            return false;
        }
        for entry in seen.entries(self.layout) {
            let payload = self.layout.payload_of(entry);
            if self.entries.is_live(self.entries.reading(), payload) {
                continue;
            }
            let changing = self.lock_to_change(self.geometry.bucket_sum(self.layout.fingerprint_of(entry)), 1, all);
            // Checked again under the lock: the place may mean another expiry by now.
            if self.entries.is_live(self.entries.reading(), payload) {
                continue;
            }
            self.remove_expired_entry(&changing.guard, changing.spare(), bucket, entry);
        }
        self.load(bucket).has_room(self.layout)
    }

    /// Removes an expired entry from the bucket, if it is still there. The caller holds the lock of its stripe.
    pub(in crate::table) fn remove_expired_entry(
        &self,
        guard: &Guard<'_>,
        spare: Option<&Spare>,
        bucket: usize,
        entry: Entry,
    ) {
        self.copy_for_saves(bucket, spare);
        guard.bump();
        if self.change(bucket, self.load(bucket), |seen| seen.remove(self.layout, entry)) {
            self.entries.count_expired(&self.counters, self.layout.payload_of(entry));
        }
    }
}

/// The reading this many ticks later. A running pass starts over if the clock's own ticks do.
pub(super) fn reading_after(clock: &Clock, pass: &mut Option<Pass>, before: Reading, ticks: u64) -> Reading {
    let mut own = before.now() + ticks;
    if own > LAST_TICK {
        own = FIRST_TICK + u64::from(clock.ring.place(own));
        *pass = None;
    }
    Reading::new(clock.ring, own, before.lag() + ticks)
}

/// The first reading of a clock that is set to this tick. It is at the tick's place on the ring, the same
/// place as in a clock that began with another tick.
fn first_reading(ring: Ring, tick: u64) -> Reading {
    Reading::new(ring, FIRST_TICK + u64::from(ring.place(tick)), 0)
}

/// The answer to a tick that is no later than `now`.
fn not_after(clock: &Clock, tick: u64, now: u64) -> Advance {
    match now - tick {
        0 => Advance::Current,
        by => {
            clock.tallies.steps_back.fetch_add(1, Ordering::Relaxed);
            Advance::Behind { by }
        }
    }
}
