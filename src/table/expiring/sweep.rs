//! CONCURRENT: how a clock advances, and how dead entries are taken out. `table/expiring/mod.rs` has the reasoning.

use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::expiring::clock::{Advance, Clock, FIRST_TICK, Pass, Reading};
use crate::table::stripe::Guard;
use crate::table::table::Table;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::Geometry;
use crate::word::layout::{Entry, Layout};
use crate::word::payloads::PayloadOps;
use crate::word::ring::{Arc, LAST_TICK, Moment, Ring};

/// One call sweeps at least `PIECE` buckets, or one part in `SHARE` of the table if that is more.
const PIECE: usize = if cfg!(ccf_model) { 1 } else { 4096 };
const SHARE: usize = 1024;

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Advances the clock to this tick of the caller. If something is to be swept, sweeps a share of the table.
    #[inline]
    pub(crate) fn advance(&self, clock: &Clock, tick: u64) -> Advance {
        match clock.now() {
            Some(now) if tick <= now => {
                if clock.moment().lag() > 0 {
                    self.sweep_if_nobody_does(clock);
                }
                not_after(clock, tick, now)
            }
            _ => self.advance_further(clock, tick),
        }
    }

    #[cold]
    fn advance_further(&self, clock: &Clock, tick: u64) -> Advance {
        let mut pass = clock.lock_sweep();
        let (ring, Reading { now, moment: before }) = (clock.ring, clock.read());
        let Some(now) = now else {
            self.call_and_publish(clock, first_moment(ring, tick), tick);
            return Advance::Origin;
        };
        if tick <= now {
            // Another thread was faster.
            return not_after(clock, tick, now);
        }
        let ticks = tick - now;
        // A leap beyond a whole round of the ring leaves no entry live. So it makes no difference how many rounds it
        // was.
        let own_ticks = if ticks > ring.len() { ring.len() + ticks % ring.len() } else { ticks };
        let (mut own, lag) = (before.now() + own_ticks, before.lag() + own_ticks);
        let begins_again = own > LAST_TICK;
        if begins_again {
            own = FIRST_TICK + u64::from(ring.place(own));
            *pass = None;
        }
        let moment = Moment::new(ring, own, lag);
        if begins_again || own_ticks < ticks {
            self.call_and_publish(clock, moment, tick);
        } else {
            clock.publish(moment);
            clock.note(tick);
        }
        if ticks >= clock.longest() {
            clock.tallies.jumps.fetch_add(1, Ordering::Relaxed);
        }
        self.catch_up(clock, &mut pass);
        if clock.moment().lag() > 0 {
            self.sweep(clock, &mut pass, self.share());
        }
        Advance::Forward { ticks }
    }

    /// Calls the current tick `tick` from now on; entries keep the rest of their lifetimes. Takes the lock of the
    /// sweep.
    pub(crate) fn restart(&self, clock: &Clock, tick: u64) {
        let _pass = clock.lock_sweep();
        let moment = clock.moment();
        let moment = if moment.is_known() { moment } else { first_moment(clock.ring, tick) };
        self.call_and_publish(clock, moment, tick);
    }

    /// Sets the moment and the caller's name for its tick.
    fn call_and_publish(&self, clock: &Clock, moment: Moment, tick: u64) {
        self.under_all_locks(Fault::RestartWithoutLocks, || {
            clock.call(moment, tick);
            clock.publish(moment);
        });
        clock.note(tick);
    }

    /// Sweeps until entries with the longest lifetime are admitted. For a caller whose entry was not admitted yet.
    #[cold]
    #[inline(never)]
    pub(in crate::table) fn wait_for_sweep(&self, clock: &Clock) {
        self.catch_up(clock, &mut clock.lock_sweep());
    }

    /// Sweeps as far as it takes to admit entries with the longest lifetime.
    fn catch_up(&self, clock: &Clock, pass: &mut Option<Pass>) {
        while clock.moment().lag() > clock.spare() {
            // A pass that is under way may have too early a target. To finish it would not be enough.
            if pass.is_some_and(|pass| clock.moment().now() - pass.target > clock.spare()) {
                *pass = None;
            }
            self.sweep(clock, pass, usize::MAX);
        }
    }

    #[cold]
    fn sweep_if_nobody_does(&self, clock: &Clock) {
        if let Some(mut pass) = clock.try_lock_sweep()
            && clock.moment().lag() > 0
        {
            self.sweep(clock, &mut pass, self.share());
        }
    }

    /// How many buckets one call sweeps.
    fn share(&self) -> usize {
        (self.words.len() / SHARE).max(PIECE)
    }

    /// Continues a pass, or begins one, for this many buckets. The caller holds the lock of the sweep.
    fn sweep(&self, clock: &Clock, pass: &mut Option<Pass>, buckets: usize) {
        let Pass { target, dead, next } = *pass.get_or_insert_with(|| self.begin_pass(clock));
        let end = next.saturating_add(buckets).min(self.words.len());
        if fault::injected(Fault::SweptTooSoon) {
            self.end_pass(clock, target);
        }
        let swept: usize = (next..end).map(|bucket| self.sweep_bucket(bucket, dead)).sum();
        self.count_expired(clock, swept);
        *pass = if end < self.words.len() {
            Some(Pass { target, dead, next: end })
        } else {
            self.end_pass(clock, target);
            None
        };
    }

    fn begin_pass(&self, clock: &Clock) -> Pass {
        // After this, whatever other threads add or relocate is not dead by the pass's target. The bumps make lookups
        // that have begun look again.
        if !fault::injected(Fault::SweepWithoutSettling) {
            self.under_each_lock(|stripe| {
                if !fault::injected(Fault::SweepWithoutBump) {
                    stripe.bump();
                }
            });
        }
        let moment = clock.moment();
        Pass { target: moment.now(), dead: Arc::of_dead(clock.ring, moment), next: 0 }
    }

    fn end_pass(&self, clock: &Clock, target: u64) {
        let now = clock.moment().now();
        clock.publish(Moment::new(clock.ring, now, now - target));
        clock.tallies.sweeps.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes out of the bucket the entries that died at one of these ends. Returns how many there were.
    #[inline]
    fn sweep_bucket(&self, bucket: usize, dead: Arc) -> usize {
        let mut seen = self.load(bucket);
        loop {
            let lanes = match dead.only() {
                Some(end) => self.layout.lanes_with_payload(seen, end),
                None => self.layout.lanes_with(seen, |end| dead.contains(end)),
            };
            if lanes == 0 {
                return 0;
            }
            let left = self.layout.without_all(seen, lanes);
            self.set_aside(bucket, Fault::SweepSetsNothingAside);
            match self.exchange(bucket, seen, left, Fault::TakeOverwrites) {
                Ok(()) => return lanes.count_ones() as usize,
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the dead out of a bucket if it is full. Returns whether it has room then. `held`: whether the caller
    /// holds the locks of all stripes; otherwise it must hold none.
    pub(in crate::table) fn drop_dead(&self, bucket: usize, held: bool) -> bool {
        let seen = self.load(bucket);
        let Some(clock) = self.clock() else {
            return self.layout.has_room(seen);
        };
        if self.layout.has_room(seen) {
            return true;
        }
        if clock.moment().lag() == 0 {
            return false;
        }
        for entry in self.layout.entries(seen) {
            let payload = self.layout.payload_of(entry);
            if clock.ring.is_live(clock.moment(), payload) {
                continue;
            }
            let stripe = self.stripe(self.buckets.sum(self.layout.fingerprint_of(entry)));
            let guard = if held { stripe.held() } else { stripe.lock_unless(Fault::DropWithoutLock, &self.counters) };
            // Checked again under the lock: the place may mean another end by now.
            if clock.ring.is_live(clock.moment(), payload) && !fault::injected(Fault::DropWithoutLock) {
                continue;
            }
            self.take_dead(clock, &guard, bucket, entry);
        }
        self.layout.has_room(self.load(bucket))
    }

    /// Takes a dead entry out of the bucket, if it is still there. The caller holds the lock of its stripe.
    pub(in crate::table) fn take_dead(&self, clock: &Clock, guard: &Guard<'_>, bucket: usize, entry: Entry) {
        self.set_aside(bucket, Fault::SweepSetsNothingAside);
        if !fault::injected(Fault::DropWithoutBump) {
            guard.bump();
        }
        let taken =
            self.change(bucket, self.load(bucket), Fault::TakeOverwrites, |seen| self.layout.remove(seen, entry));
        self.count_expired(clock, usize::from(taken));
    }

    /// Counts dead entries that were taken out.
    fn count_expired(&self, clock: &Clock, entries: usize) {
        if entries > 0 {
            self.counters.add_len(-(entries as i64));
            clock.tallies.expired.fetch_add(entries as u64, Ordering::Relaxed);
        }
    }

    /// What the bucket holds, without the entries that are dead at a moment of the table's clock.
    pub(in crate::table) fn load_live(&self, bucket: usize, moment: Option<Moment>) -> Bucket {
        let seen = self.load(bucket);
        let (Some(clock), Some(moment)) = (self.clock(), moment) else {
            return seen;
        };
        if moment.lag() == 0 {
            return seen;
        }
        self.layout.without_all(seen, self.layout.lanes_with(seen, |end| !clock.ring.is_live(moment, end)))
    }
}

/// The moment at which a clock begins that is first set to this tick. It is at the tick's place on the ring, the same
/// place as in a clock that began with another tick.
fn first_moment(ring: Ring, tick: u64) -> Moment {
    Moment::new(ring, FIRST_TICK + u64::from(ring.place(tick)), 0)
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
