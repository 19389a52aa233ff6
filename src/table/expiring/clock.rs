//! CONCURRENT: the clock by which the entries of a table expire. `table/expiring/mod.rs` has the reasoning.

use core::time::Duration;

use crossbeam_utils::CachePadded;

use crate::error::insert::{ExpiringInsertError, InsertError};
use crate::machine::memory::boxed;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, Tally};
use crate::table::counters::Counters;
use crate::table::stripe::AllLocked;
use crate::word::ring::{Arc, MOST_RING_BITS, Reading, Ring};
use crate::word::tick::Tick;

/// The result of a call of `advance_to` on a filter with a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advance {
    /// This is the first tick that the filter was given: its clock begins with this tick.
    Origin,
    /// The tick is the last one that the filter was given: nothing was due.
    Current,
    /// The tick is greater than every one before. Everything that was to expire by then has expired.
    Forward {
        /// By how many ticks the clock has advanced. If no pause explains the number, the caller's
        /// clock has jumped.
        ticks: u64,
    },
    /// The tick is less than an earlier one. Nothing expires until the clock has caught up.
    Behind {
        /// By how many ticks it is behind.
        by: u64,
    },
}

/// What an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) does with an insert that finds no room, and a
/// [`CuckooRateLimiter`](crate::CuckooRateLimiter) with a new key. It is a setting of their builders
/// ([1](crate::ExpiringBuilder::when_full), [2](crate::LimiterBuilder::when_full)), which say more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenFull {
    /// The insert fails with [`ExpiringInsertError::Full`], and no entry expires before its time. A limiter rejects the new key.
    #[default]
    Refuse,
    /// The entries that would expire first are evicted, a whole tick at a time, and the insert continues. A limiter evicts one
    /// key.
    EvictSoonest,
}

/// The clock of a table.
///
/// It counts ticks of its own, which advance by one with each tick of the caller. The caller's name for a tick is the
/// sum of the clock's own tick and an offset.
///
/// The clock may run *ahead* of the caller's by some ticks, which were evicted (`table/expiring/evict.rs`). It then
/// waits until the caller's clock has caught up.
#[derive(Debug)]
pub(crate) struct Clock {
    pub(in crate::table) ring: Ring,
    longest: u64,
    when_full: WhenFull,
    resolution: Option<Duration>,
    /// A [`Reading`]. A lookup needs nothing else.
    reading: AtomicU64,
    /// What is added to a tick of the clock's own to get the caller's tick, modulo 2⁶⁴. Only a thread that holds the
    /// locks of all stripes changes it. So it does not change for a thread that holds any of them.
    offset: AtomicU64,
    /// By how many ticks the clock is ahead of the caller's. It changes as the offset does. While it is not 0, the
    /// reading's `now` changes in that way only.
    ahead: AtomicU64,
    /// The caller's tick that follows from the three above. It is changed after them. So a thread for which all four
    /// agree has read a consistent set, without a lock.
    published_tick: AtomicU64,
    /// The running pass. Only the holder of this lock changes the four above. (Where keys are the drive, a thread that holds
    /// the locks of all stripes ends a tick without this one.)
    sweep: Mutex<Option<Pass>>,
    drive: Drive,
    pub(crate) tallies: Tallies,
}

/// What moves a clock on.
#[derive(Debug)]
pub(crate) enum Drive {
    /// The caller, who passes ticks to `advance_to`.
    Caller,
    /// The keys that are added or renewed, of which each tick has a number (`table/expiring/recent.rs`).
    Keys(Box<Count>),
    /// The time, which the filter reads.
    Time {
        /// [`Clock::tolerated_lag`].
        tolerated_lag: u64,
    },
}

/// The keys of the present tick. In a box, and on a cache line of its own: lookups read the clock, and each new key
/// writes this.
#[derive(Debug)]
pub(crate) struct Count {
    /// A tick that has as many keys is to end.
    per_tick: u64,
    /// How many keys were added or renewed in the present tick. A thread adds to it under the lock of the key's stripe. It
    /// is set to 0 under the locks of all stripes.
    added: CachePadded<AtomicU64>,
}

impl Drive {
    /// A drive by keys, of which `added` have come in the present tick. `None` if there is no memory for it.
    pub(crate) fn by_keys(per_tick: u64, added: u64) -> Option<Self> {
        Some(Self::Keys(boxed(Count { per_tick, added: CachePadded::new(AtomicU64::new(added)) })?))
    }
}

/// The first tick of a clock's own, to which it also goes back. It is a multiple of the length of every ring, and
/// greater than that length.
pub(in crate::table) const FIRST_TICK: u64 = 1 << (MOST_RING_BITS + 1);

#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) expired: Tally,
    /// Passes over the whole table that have ended.
    pub(crate) sweeps: Tally,
    pub(crate) steps_back: Tally,
    pub(crate) jumps: Tally,
    /// Entries that were evicted.
    pub(crate) evicted: Tally,
    /// The most ticks by which the clock was ahead, or by which an entry was evicted early.
    pub(crate) most_ahead: Tally,
    /// The clock's own tick in which an insert found last that a search and an eviction made no room, in a filter that drives
    /// its clock.
    pub(in crate::table) found_full: Tally,
}

/// A pass over the table that removes expired entries.
#[derive(Clone, Copy, Debug)]
pub(in crate::table) struct Pass {
    /// The pass removes what has expired by this tick.
    pub(in crate::table) target: u64,
    pub(in crate::table) expired: Arc,
    /// The next bucket to sweep.
    pub(in crate::table) next: usize,
}

/// When an entry is to expire.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Until {
    /// The caller has named a time, and the clock does not know how long a tick is.
    #[default]
    Unknown,
    /// At this tick of the caller.
    Tick(u64),
    /// This many ticks from now.
    After(u64),
    /// This many ticks after this tick of the caller. The expiry may be beyond the largest tick.
    Since { tick: u64, ticks: u64 },
    /// This many ticks from now, or from this tick of the caller if the clock has not reached it.
    FromAtLeast { tick: u64, ticks: u64 },
}

impl Until {
    /// Whether it is the expiry of an entry that a filter which drives its clock takes over from another one: it names the tick.
    #[inline(always)]
    pub(in crate::table) fn is_of_union(&self) -> bool {
        matches!(self, Self::Tick(_))
    }

    /// How many ticks after this tick of the caller that is; 0 if it is not later.
    #[inline(always)]
    pub(in crate::table) fn ticks_from(&self, now: u64) -> u64 {
        match *self {
            Self::Unknown => 0,
            Self::Tick(tick) => tick.saturating_sub(now),
            Self::After(ticks) => ticks,
            Self::Since { tick, ticks } if tick < now => ticks.saturating_sub(now - tick),
            Self::Since { tick, ticks } => ticks.saturating_add(tick - now),
            Self::FromAtLeast { tick, ticks } => ticks + tick.saturating_sub(now),
        }
    }
}

/// Why an entry is not added, apart from those that are there.
#[derive(Clone, Debug)]
pub(in crate::table) enum NotAdded {
    /// It has expired already.
    Expired,
    /// It would be live, but its tick was evicted.
    Evicted(ExpiringInsertError),
    /// Its expiry would take the place on the ring of an expiry that is yet to be swept.
    Unswept,
    /// There is no room.
    Full(InsertError),
    /// It never can be, as the caller has called.
    Invalid(ExpiringInsertError),
}

impl From<InsertError> for NotAdded {
    fn from(error: InsertError) -> Self {
        Self::Full(error)
    }
}

/// What a clock shows at one point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// The caller's tick. `None` while the clock has none.
    pub(crate) now: Option<u64>,
    /// What lookups read of it.
    pub(crate) reading: Reading,
    /// By how many ticks the reading's `now` is ahead of the caller's tick.
    pub(crate) ahead: u64,
    /// How many keys the present tick has, if it counts them. Only [`Clock::state_for_save`] has this, otherwise it is 0.
    pub(crate) added: u64,
}

impl ClockState {
    /// How many ticks of the caller after the caller's own `now` a live entry expires whose expiry has this place on the ring.
    ///
    /// It is counted from there, and not from the reading's `now`: with the ticks that were evicted, that may be beyond
    /// the largest tick of the caller.
    pub(crate) fn ticks_until(self, ring: Ring, place: u16) -> u64 {
        self.ahead + ring.ticks_until(self.reading, place)
    }
}

impl Clock {
    pub(crate) fn new(ring: Ring, longest: u64, resolution: Option<Duration>, when_full: WhenFull) -> Self {
        Self {
            ring,
            longest,
            when_full,
            resolution,
            reading: AtomicU64::new(Reading::UNKNOWN.0),
            offset: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            published_tick: AtomicU64::new(0),
            sweep: Mutex::new(None),
            drive: Drive::Caller,
            tallies: Tallies::default(),
        }
    }

    /// A clock that its filter drives, for entries that live at most `longest` ticks. It shows the tick 0.
    pub(crate) fn with_drive(ring: Ring, longest: u64, drive: Drive) -> Self {
        Self { drive, ..Self::new(ring, longest, None, WhenFull::EvictSoonest) }.at(0, 0, 0, 0)
    }

    pub(crate) fn with_when_full(self, when_full: WhenFull) -> Self {
        Self { when_full, ..self }
    }

    /// A clock like this one that shows the same tick, for an empty table.
    pub(crate) fn another(&self) -> Self {
        let clock = Self::new(self.ring, self.longest, self.resolution, self.when_full);
        match self.now() {
            Some(now) => clock.at(now, 0, 0, 0),
            None => clock,
        }
    }

    /// The place on the ring of the current tick.
    #[cfg(feature = "snapshot")]
    pub(crate) fn place(&self, reading: Reading) -> u16 {
        self.ring.place(reading.now())
    }

    /// The clock as it is at this tick of the caller, when it is ahead of that by `ahead` ticks, its own tick has this
    /// place on the ring, and the sweep lags by `lag` ticks.
    pub(crate) fn at(self, now: u64, ahead: u64, place: u16, lag: u64) -> Self {
        let reading = Reading::new(self.ring, FIRST_TICK + u64::from(place), lag);
        Self {
            reading: AtomicU64::new(reading.0),
            offset: AtomicU64::new(now.wrapping_add(ahead).wrapping_sub(reading.now())),
            ahead: AtomicU64::new(ahead),
            published_tick: AtomicU64::new(now),
            ..self
        }
    }

    pub(crate) fn ring(&self) -> Ring {
        self.ring
    }

    pub(crate) fn memory_usage(&self) -> usize {
        size_of::<Self>() + if let Drive::Keys(count) = &self.drive { size_of_val(&**count) } else { 0 }
    }

    /// Whether the filter drives the clock. Then no insert fails: `Table::displace` makes room where no eviction does.
    pub(in crate::table) fn is_driven_by_filter(&self) -> bool {
        !matches!(self.drive, Drive::Caller)
    }

    /// Counts a key that was added or renewed until then, if the clock counts keys and it comes now. The caller holds the lock
    /// of the key's stripe.
    #[inline(always)]
    pub(in crate::table) fn count_key(&self, until: &Until) {
        if let Drive::Keys(count) = &self.drive
            && !until.is_of_union()
        {
            // Relaxed: it is set back under the locks of all stripes. Others only compare it.
            count.added.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the present tick has as many keys as it is to have.
    pub(in crate::table) fn is_tick_full(&self) -> bool {
        // Relaxed: a thread sees at least its own key. Before the tick ends, it is read once more under the locks of all
        // stripes.
        matches!(&self.drive, Drive::Keys(count) if count.added.load(Ordering::Relaxed) >= count.per_tick)
    }

    /// How many ticks what has expired may stay before calls begin to sweep the table, and a table that was full counts as full:
    /// 0, except in a rate limiter (`table/expiring/charge.rs`).
    pub(in crate::table) fn tolerated_lag(&self) -> u64 {
        if let Drive::Time { tolerated_lag } = self.drive { tolerated_lag } else { 0 }
    }

    /// Begins the count of a tick.
    pub(in crate::table) fn begin_count(&self, _: &AllLocked<'_>) {
        if let Drive::Keys(count) = &self.drive {
            // Relaxed: the locks order it.
            count.added.store(0, Ordering::Relaxed);
        }
    }

    /// The expiry of an entry that is added at this reading by a thread for which the clock is not late: no eviction ends that
    /// tick.
    pub(in crate::table) fn latest_expiry(&self, state: ClockState) -> u64 {
        // See `table/expiring/recent.rs`, *An entry never lives too short*.
        let lifetime = if matches!(self.drive, Drive::Time { .. }) { self.longest - 1 } else { self.longest };
        state.reading.now() + lifetime - state.ahead
    }

    pub(crate) fn longest(&self) -> u64 {
        self.longest
    }

    pub(crate) fn resolution(&self) -> Option<Duration> {
        self.resolution
    }

    pub(crate) fn when_full(&self) -> WhenFull {
        self.when_full
    }

    pub(crate) fn ahead(&self) -> u64 {
        // Acquire, with `call`: see `now`.
        self.ahead.load(Ordering::Acquire)
    }

    /// The earliest tick of the caller whose entries expired and were not swept yet. Not exact while the clock advances.
    pub(crate) fn oldest_unswept(&self) -> Option<u64> {
        let ClockState { now, reading, ahead, .. } = self.state();
        // The last `lag` ticks up to the reading's `now`, which is `ahead` ticks after the caller's.
        let before = reading.lag().checked_sub(1)?;
        Some(now?.saturating_add(ahead.saturating_sub(before)).saturating_sub(before.saturating_sub(ahead)))
    }

    /// The reading, at the beginning of a lookup, and for writers.
    #[inline(always)]
    pub(in crate::table) fn reading(&self) -> Reading {
        // Acquire, with `publish`: a thread that sees that the table was swept sees it without what was swept.
        // SeqCst: see `table/expiring/mod.rs`, *Linearizability*.
        Reading(self.reading.load(Ordering::SeqCst))
    }

    /// Whether it is still the same reading, at the end of a lookup.
    #[inline(always)]
    pub(in crate::table) fn is_still(&self, reading: Reading) -> bool {
        // Relaxed: the lookup's reads of words come before it and acquire what they have seen. With that come the
        // readings that matter.
        self.reading.load(Ordering::Relaxed) == reading.0
    }

    /// Sets the reading. The caller holds the lock of the sweep.
    pub(in crate::table) fn publish(&self, reading: Reading) {
        // Release, and SeqCst: see `reading`.
        self.reading.store(reading.0, Ordering::SeqCst);
    }

    /// From now on, the caller's tick is `tick` at this reading, which is ahead of that by `ahead`. The caller holds the
    /// lock of the sweep, too.
    pub(in crate::table) fn set_callers_tick(&self, _: &AllLocked<'_>, reading: Reading, tick: u64, ahead: u64) {
        // Relaxed: the locks order it.
        self.offset.store(tick.wrapping_add(ahead).wrapping_sub(reading.now()), Ordering::Relaxed);
        // Release: see `now`.
        self.ahead.store(ahead, Ordering::Release);
    }

    /// The caller's tick has come closer to the clock's own, which was ahead of it. The caller holds the lock of the sweep,
    /// and the filter drives the clock (`table/expiring/recent.rs`).
    pub(in crate::table) fn set_ahead(&self, ahead: u64) {
        // Relaxed: a thread may read it before or after the change, whichever reading it has.
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    /// Publishes what the caller's tick is. The caller holds the lock of the sweep, has set both and is about
    /// to release it.
    pub(in crate::table) fn publish_tick(&self, tick: u64) {
        self.published_tick.store(tick, Ordering::Relaxed);
    }

    /// The caller's tick that was published last. It may be the one before while another thread moves the clock on.
    pub(crate) fn published_tick(&self) -> u64 {
        // Relaxed: a caller that reads an old tick moves the clock on, and reads it again under a lock.
        self.published_tick.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn now(&self) -> Option<u64> {
        let ClockState { now, .. } = self.state();
        // Relaxed, after the acquire read of `ahead`: a thread that sees a tick ended early also sees the caller's tick
        // that was published before.
        let published = self.published_tick.load(Ordering::Relaxed);
        if now == Some(published) || now.is_none() { now } else { self.now_when_it_is_set() }
    }

    /// `now` while another thread changes it.
    #[cold]
    fn now_when_it_is_set(&self) -> Option<u64> {
        let _pass = self.lock_sweep();
        self.state().now
    }

    /// The reading, and the caller's tick. The caller holds the lock of a stripe or that of the sweep.
    pub(crate) fn state(&self) -> ClockState {
        let reading = self.reading();
        let (offset, ahead) = (self.offset.load(Ordering::Relaxed), self.ahead());
        let now = reading.now().wrapping_add(offset).wrapping_sub(ahead);
        ClockState { now: reading.is_known().then_some(now), reading, ahead, added: 0 }
    }

    /// [`state`](Self::state) with the number of keys of the present tick, for a save.
    pub(in crate::table) fn state_for_save(&self, _: &AllLocked<'_>) -> ClockState {
        let Drive::Keys(count) = &self.drive else { return self.state() };
        // Relaxed: the locks order it.
        ClockState { added: count.added.load(Ordering::Relaxed), ..self.state() }
    }

    /// The name of this tick for callers. Nobody knows the ticks of a clock that the filter drives, and a loaded one begins
    /// anew: there the present tick is 0.
    pub(in crate::table) fn as_callers(&self, now: u64) -> u64 {
        if self.is_driven_by_filter() { 0 } else { now }
    }

    /// The expiry, in the clock's own ticks, of an entry that is added at this reading and expires at `until`. `None` if no such
    /// entry is added.
    #[inline(always)]
    pub(in crate::table) fn expiry_for(&self, state: ClockState, until: &Until) -> Option<u64> {
        let ClockState { now, reading, ahead, .. } = state;
        let lifetime = until.ticks_from(now?);
        if lifetime <= ahead || lifetime > self.longest {
            return None;
        }
        let expiry = reading.now() + (lifetime - ahead);
        if self.ring.has_room_for(reading, expiry) { Some(expiry) } else { None }
    }

    /// [`expiry_for`](Self::expiry_for), or why there is none.
    pub(in crate::table) fn admit(&self, state: ClockState, until: &Until) -> Result<u64, NotAdded> {
        if let Some(expiry) = self.expiry_for(state, until) {
            return Ok(expiry);
        }
        let ClockState { now: Some(now), ahead, .. } = state else {
            return Err(NotAdded::Invalid(ExpiringInsertError::ClockNotSet));
        };
        let lifetime = until.ticks_from(now);
        let after = |ticks| Tick::new(now.saturating_add(ticks));
        Err(match until {
            Until::Unknown => NotAdded::Invalid(ExpiringInsertError::ResolutionUnknown),
            _ if lifetime == 0 => NotAdded::Expired,
            _ if lifetime <= ahead => {
                NotAdded::Evicted(ExpiringInsertError::Evicted { expires_at: after(lifetime), up_to: after(ahead) })
            }
            _ if lifetime > self.longest => {
                let (expires_at, now) = (after(lifetime), Tick::new(now));
                let (longest, resolution) = (self.longest, self.resolution);
                NotAdded::Invalid(ExpiringInsertError::LifetimeTooLong { expires_at, now, longest, resolution })
            }
            _ => NotAdded::Unswept,
        })
    }

    /// How far `swept` may lag behind so that entries with the longest lifetime are admitted.
    pub(in crate::table) fn most_lag(&self) -> u64 {
        self.ring.len() - self.longest + self.ahead()
    }

    /// Notes that entries are about to be evicted so many ticks early, at most. The eviction comes after it: a thread that
    /// misses one of their keys finds in the statistics how early it was evicted.
    pub(in crate::table) fn note_early(&self, ticks: u64) {
        // Relaxed: the store that evicts them, of the reading or of a word, releases it.
        self.tallies.most_ahead.fetch_max(ticks, Ordering::Relaxed);
    }

    /// The expiry of an entry with this payload that is live at the reading.
    pub(in crate::table) fn expiry_of(&self, reading: Reading, payload: u16) -> u64 {
        reading.now() + self.ring.ticks_until(reading, payload)
    }

    /// Counts an expired entry with this expiry that was removed.
    pub(in crate::table) fn count_expired_at(&self, counters: &Counters, expiry: u16) {
        let evicted = self.ended_early(self.reading().now()).is_some_and(|early| early.contains(expiry));
        self.count_expired(counters, 1, usize::from(evicted));
    }

    /// Counts expired entries that were removed, and how many of them were ended early.
    pub(in crate::table) fn count_expired(&self, counters: &Counters, entries: usize, evicted: usize) {
        if entries > 0 {
            counters.add_len(-(entries as i64));
            self.tallies.expired.fetch_add((entries - evicted) as u64, Ordering::Relaxed);
        }
        if evicted > 0 {
            self.tallies.evicted.fetch_add(evicted as u64, Ordering::Relaxed);
        }
    }

    /// The expiries up to this tick of the clock's own that were ended early: those that the caller's clock has yet to reach.
    pub(in crate::table) fn ended_early(&self, tick: u64) -> Option<Arc> {
        let ClockState { reading, ahead, .. } = self.state();
        let len = ahead.saturating_sub(reading.now().saturating_sub(tick));
        (len > 0).then(|| Arc::up_to(self.ring, tick, len))
    }

    pub(in crate::table) fn lock_sweep(&self) -> MutexGuard<'_, Option<Pass>> {
        self.sweep.lock()
    }

    pub(in crate::table) fn try_lock_sweep(&self) -> Option<MutexGuard<'_, Option<Pass>>> {
        crate::sync::try_lock(&self.sweep)
    }
}

/// The number of ticks of this length for which to keep an entry, so that it lives for at least its lifetime, even if
/// it is added at the end of a tick.
pub(crate) fn ticks_for(lifetime: Duration, resolution: Duration) -> u64 {
    let whole = lifetime.as_nanos().div_ceil(resolution.as_nanos());
    u64::try_from(whole).map_or(u64::MAX, |whole| whole.saturating_add(1))
}
