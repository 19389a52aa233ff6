//! CONCURRENT: a rate limiter: an entry is the debt of a key, and a request adds to it or is rejected.
//!
//! `word/quota.rs` has the algorithm and its bound, `table/expiring/mod.rs` the protocol. The expiry of an entry is the
//! tick at which the debt of its class is repaid. So a class has one entry at most, or none while it owes nothing: a
//! request adds an entry only where it has found none under the lock of the class's stripe.
//!
//! # A request
//! The caller reads the time, and moves the clock on to its tick if it can do so at once (`Table::move_on`). Then:
//!
//! 1. **It reads, without a lock.** The clock, both words by an optimistic read, and the clock again. If the debt that it
//!    finds leaves no room for the cost, the request is rejected. Otherwise, if the read was invalidated or the clock has
//!    changed, it reads again.
//! 2. **It charges, under the lock of the class's stripe.** It reads the clock, and then the words, and decides again.
//!    If the request is allowed, it gives the class's entry the new expiry, by one exchange after a bump; or it adds an
//!    entry, as any insert does. An entry that has expired and is not swept yet is given the new expiry too: that is a
//!    removal of an expired item and an addition in one store, after a bump at a moment at which the item had expired
//!    (rule 5 there).
//!
//! # Why it is right
//! *Of all threads that race for a key's last request, exactly one gets it.* The debt is read and raised under one lock. What
//! was read before the lock decides nothing, except that a request is rejected.
//!
//! *A request that is rejected without a lock is rejected rightly.* A lane with the fingerprint was read at some moment
//! of the call, and the clock showed the same before and after. The place in it means the expiry of an entry that was
//! in the table when the word was read, or else that entry expires later (a place cannot mean an expiry that was swept
//! before the clock was read). So at the read of the word, by the clock of that moment, the class owed at least that
//! much. That is enough: whether the version has changed makes no difference. Only a request that is not rejected needs
//! both words of one state, so that no request that is rejected throughout its call takes a lock. Such a request writes
//! no word of the table. It takes the lock only if the debt came to be too large after it was read.
//!
//! *The clock is late*, because another thread has the lock of the sweep. The read then goes by the tick of the caller's
//! time, which is later. By a later tick a class owes less, so a request that is rejected by that is rejected by the clock,
//! too. A charge goes by the clock alone. If that is late, it releases the stripe, waits for the lock of the sweep and moves
//! the clock on. Otherwise an earlier tick would be noted as the beginning of the debt, and the debt would end too early.
//! So a charge goes by a tick that has come during the call, and of the charges of one class each later one goes by a tick
//! that is no earlier. The bound in `word/quota.rs` needs no more than that.
//!
//! *A tick passes between the reading of the clock and the exchange.* The request takes effect when it reads the clock. Until
//! its exchange, other threads may read the old debt. A charge and a `peek` cannot, for they need the lock. A request that
//! is rejected by the old debt is rejected by the new one, which is greater. So it takes effect after this one.
//!
//! *The entry expires between the reading of the clock and the exchange.* If no sweep has removed it, the exchange gives it
//! the new expiry, and this is the case above. If one has, the exchange fails, and the request is decided anew.
//!
//! *It would expire at a place that is not swept yet.* Then the request waits for the sweep, as any insert (rule 2
//! there). With the places that `plan/limits.rs` leaves, that happens only where hardly any requests have come for a
//! while.
//!
//! # Linearizability
//! The limiter is a map from classes to expiries, and a clock.
//!
//! | operation | takes effect |
//! |---|---|
//! | a request that is allowed | when it reads the clock under the lock |
//! | one that is rejected by what was read without a lock | at the read of the word with the debt, after a request of the class that has the lock then |
//! | one that is rejected under the lock | when it reads the clock there |
//! | one that is rejected for lack of room | as an insert that fails; in a limiter that is known to be full, when it finds its two buckets full |
//! | `peek` | when it reads the clock, under the lock |
//! | `remove` | as in `table/expiring/mod.rs` |
//! | a class that is evicted | at the exchange by which its entry is displaced |
//!
//! # A full table
//! No tick ends early here, as it does in `table/expiring/evict.rs`: all debts would be forgiven that end by then, and no
//! smaller one could be noted until the time has caught up. Where a request finds no room for a new entry, it
//! [displaces](Table::displace) the one of its two buckets that is repaid first, or is rejected if the limiter was built
//! so. In a flood of new keys, that is another key of the flood: an entry that has been charged more than once
//! stays as long as there is one beside it that owes less. In a limiter that is [known to be full](Table::is_known_full), a
//! request does not search for room before it displaces an entry.
//!
//! # The sweep
//! Expired entries do no harm here: a lookup reads expiries in any case, expired entries are room for a search, and the
//! entry of a key that comes again is used again. So the table is swept only when an eighth of the ring's places will
//! soon be needed ([`tolerated_lag`](Clock::tolerated_lag)).

use crate::error::insert::InsertError;
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::entries::Expiry;
use crate::table::expiring::clock::{Clock, ClockState, WhenFull};
use crate::table::image::spare::Spare;
use crate::table::stripe::{AllLocked, Guard};
use crate::table::table::Table;
use crate::word::bucket::{Bucket, FoundSlot};
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};
use crate::word::payloads::OnlySlot;
use crate::word::ring::Reading;

/// A request, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// A tick of the caller that has come.
    pub(crate) tick: u64,
    pub(crate) cost: u64,
    /// How many ticks after now the debt may end.
    pub(crate) most: u64,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// The debt is too large until this tick of the caller.
    Over {
        until: u64,
    },
    /// There is no room for the key, perhaps until this tick of the caller.
    NoRoom {
        until: u64,
    },
}

/// Why an attempt has not charged a request, except for lack of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotCharged {
    /// The debt is too large until this tick of the caller.
    Over { until: u64 },
    /// The clock is behind the tick of the request.
    Late,
    /// The expiry has no place on the ring before the next sweep.
    Unswept,
    /// It must be decided anew, since the entry expired and was swept meanwhile; or a save is running, so this takes memory.
    Again,
    /// There is no room for an entry.
    Full,
}

impl From<InsertError> for NotCharged {
    fn from(_: InsertError) -> Self {
        Self::Full
    }
}

/// The entry of a class, where it was seen, and its debt in ticks: 0 if it has expired.
struct Debt {
    entry: Entry,
    bucket: usize,
    /// Its slot in that bucket, if it is known.
    slot: FoundSlot,
    ticks: u64,
}

impl Table<Expiry> {
    /// Charges the class of this hash for a request, or rejects it.
    #[inline(always)]
    pub(in crate::table) fn charge(&self, layout: impl Layout, hash: u64, request: Request) -> Verdict {
        let class = self.geometry.item(layout, hash);
        let clock = self.clock();
        if let Some(until) = self.over_limit(layout, clock, class, request) {
            return Verdict::Over { until };
        }
        let guard = self.stripe(class.bucket_sum).lock(&self.counters);
        let add = |item| self.add(layout, item);
        let first = if self.is_being_saved() {
            Err(NotCharged::Again)
        } else {
            self.charge_locked(layout, clock, (&guard, None), class, request, add)
        };
        match first {
            Ok(Attempt::Added | Attempt::Present) => Verdict::Allowed,
            first => {
                drop(guard);
                self.charge_slow(class, request, first)
            }
        }
    }

    /// Until which tick of the caller the debt of the class leaves no room for the request; `None` if it does. Lock-free.
    #[inline(always)]
    fn over_limit(&self, layout: impl Layout, clock: &Clock, class: Item, request: Request) -> Option<u64> {
        loop {
            // Without a lock: only the reading of such a clock changes, so what is read is consistent.
            let ClockState { now, reading, .. } = clock.state();
            let now = now?;
            let read = self.lookup(layout).load_pair(class, |pair| (pair, true), |pair| (pair, false));
            let (pair, is_valid) = read;
            let is_still = clock.is_still(reading);
            let after = self.debt_in(layout, clock, reading, class, pair) + request.cost;
            // By the later one of both ticks.
            if after > request.most + request.tick.saturating_sub(now) && is_still {
                return Some(now + (after - request.most));
            }
            if is_valid && is_still {
                return None;
            }
            self.counters.lookup_retried();
        }
    }

    /// The debt of the class by what its two buckets hold.
    #[inline(always)]
    fn debt_in(&self, layout: impl Layout, clock: &Clock, reading: Reading, class: Item, pair: [Bucket; 2]) -> u64 {
        let lanes = Bucket::lanes_in_either(layout, pair, layout.fingerprint_of(class.entry));
        let OnlySlot { slot, several } = OnlySlot::of(pair, lanes);
        if several != 0 {
            return self.debt_in_slowly(reading, class, pair);
        }
        if slot.exists() { clock.ring.ticks_left(reading, slot.payload(layout)) } else { 0 }
    }

    /// [`debt_in`](Self::debt_in) where several lanes seem to match. (An entry that is being moved is in two.)
    #[cold]
    #[inline(never)]
    fn debt_in_slowly(&self, reading: Reading, class: Item, pair: [Bucket; 2]) -> u64 {
        let clock = self.clock();
        let debts = pair.map(|bucket| {
            let of_class = bucket.entries(self.layout).filter(|&entry| self.is_of(class, entry));
            of_class.map(|entry| clock.ring.ticks_left(reading, self.layout.payload_of(entry))).max()
        });
        debts.into_iter().flatten().max().unwrap_or(0)
    }

    fn is_of(&self, class: Item, entry: Entry) -> bool {
        self.layout.fingerprint_of(entry) == self.layout.fingerprint_of(class.entry)
    }

    /// Charges the class if the request is allowed. Then the result is `Present` if the class has an entry, which expires later
    /// now; `Added` if it had none, and has one now, by `add`; and `NoRoom` if there is no room for one. The caller holds the lock
    /// of its stripe, and has spare memory for a word, if a save is running.
    #[inline(always)]
    fn charge_locked(
        &self,
        layout: impl Layout,
        clock: &Clock,
        (guard, spare): (&Guard<'_>, Option<&Spare>),
        class: Item,
        request: Request,
        add: impl Fn(Item) -> bool,
    ) -> Result<Attempt, NotCharged> {
        let ClockState { now: Some(now), reading, .. } = clock.state() else { return Err(NotCharged::Late) };
        if now < request.tick {
            return Err(NotCharged::Late);
        }
        let debt = self.debt(layout, clock, reading, class);
        let after = debt.as_ref().map_or(0, |debt| debt.ticks) + request.cost;
        if after > request.most {
            return Err(NotCharged::Over { until: now + (after - request.most) });
        }
        if request.cost == 0 {
            return Ok(Attempt::Present);
        }
        let expiry = reading.now() + after;
        if !clock.ring.has_room_for(reading, expiry) {
            return Err(NotCharged::Unswept);
        }
        let new = class.with(layout, clock.ring.place(expiry));
        let Some(Debt { entry, bucket, slot, .. }) = debt else {
            self.bump_to_add(guard);
            let attempt = Attempt::of(add(new));
            self.counters.add_len(i64::from(attempt == Attempt::Added));
            return Ok(attempt);
        };
        if slot.exists() && !self.is_being_saved() {
            guard.bump();
            if self.exchange(bucket, slot.bucket, slot.replaced(layout, entry, new.entry)).is_ok() {
                return Ok(Attempt::Present);
            }
        }
        self.replace_debt((guard, spare), bucket, (entry, new.entry))
    }

    /// Replaces an entry where its slot is not known, or another thread has changed the bucket.
    #[cold]
    #[inline(never)]
    fn replace_debt(
        &self,
        (guard, spare): (&Guard<'_>, Option<&Spare>),
        bucket: usize,
        (old, new): (Entry, Entry),
    ) -> Result<Attempt, NotCharged> {
        self.copy_for_saves(bucket, spare);
        let is_replaced = self.replace_entry(guard, bucket, self.load(bucket), old, new);
        if is_replaced { Ok(Attempt::Present) } else { Err(NotCharged::Again) }
    }

    /// The entry of the class: of several, which only a snapshot can bring, the one that owes most. The caller holds the lock
    /// of the class's stripe, and has read the clock since.
    #[inline(always)]
    fn debt(&self, layout: impl Layout, clock: &Clock, reading: Reading, class: Item) -> Option<Debt> {
        let pair = [self.load(class.first), self.load(class.second)];
        let lanes = Bucket::lanes_in_either(layout, pair, layout.fingerprint_of(class.entry));
        let OnlySlot { slot, several } = OnlySlot::of(pair, lanes);
        if several != 0 {
            return self.debt_slowly(reading, class);
        }
        if !slot.exists() {
            return None;
        }
        let place = slot.payload(layout);
        let bucket = core::hint::select_unpredictable(lanes[0] != 0, class.first, class.second);
        Some(Debt {
            entry: class.with(layout, place).entry,
            bucket,
            slot,
            ticks: clock.ring.ticks_left(reading, place),
        })
    }

    #[cold]
    #[inline(never)]
    fn debt_slowly(&self, reading: Reading, class: Item) -> Option<Debt> {
        let clock = self.clock();
        let in_bucket = |bucket| {
            let of_class = self.load(bucket).entries(self.layout).filter(|&entry| self.is_of(class, entry));
            let ticks = |entry| clock.ring.ticks_left(reading, self.layout.payload_of(entry));
            of_class
                .map(|entry| Debt { entry, bucket, slot: FoundSlot::default(), ticks: ticks(entry) })
                .max_by_key(|debt| debt.ticks)
        };
        [class.first, class.second].into_iter().filter_map(in_bucket).max_by_key(|debt| debt.ticks)
    }

    /// [`charge`](Self::charge) after its first attempt, which was not enough.
    #[cold]
    #[inline(never)]
    fn charge_slow(&self, class: Item, request: Request, first: Result<Attempt, NotCharged>) -> Verdict {
        let clock = self.clock();
        let attempt = |all: Option<&AllLocked<'_>>| {
            let changing = self.lock_to_change(class.bucket_sum, 2, all);
            let (locked, add) = ((&changing.guard, changing.spare()), |item| self.add_locked(&changing, item));
            self.charge_locked(self.layout(), clock, locked, class, request, add)
        };
        let refuses = clock.when_full() == WhenFull::Refuse;
        let mut result = first;
        loop {
            result = match result {
                Ok(Attempt::Added | Attempt::Present) => return Verdict::Allowed,
                Err(NotCharged::Over { until }) => return Verdict::Over { until },
                Err(NotCharged::Late) => {
                    self.move_on(request.tick, true);
                    attempt(None)
                }
                Err(NotCharged::Unswept) => {
                    self.catch_up(clock.most_lag());
                    attempt(None)
                }
                Err(NotCharged::Again) => attempt(None),
                Ok(Attempt::NoRoom) if refuses && self.is_known_full() => {
                    // Without a search. Only what has expired makes room.
                    if !self.remove_expired(class.first, None) && !self.remove_expired(class.second, None) {
                        return self.no_room(class);
                    }
                    attempt(None)
                }
                Ok(Attempt::NoRoom) => self.add_where_full(class, IfPresent::Skip, &attempt),
                Err(NotCharged::Full) => match attempt(None) {
                    Ok(Attempt::NoRoom) if refuses => {
                        self.note_full();
                        return self.no_room(class);
                    }
                    Ok(Attempt::NoRoom) => self.displace(class, &attempt),
                    result => result,
                },
            };
        }
    }

    /// The answer to a request of a new key for which there is no room.
    fn no_room(&self, class: Item) -> Verdict {
        let clock = self.clock();
        self.counters.insert_failed();
        let ClockState { now, reading, .. } = clock.state();
        let of_bucket = |bucket| {
            let entries = self.load(bucket).entries(self.layout);
            entries.map(|entry| clock.ring.ticks_left(reading, self.layout.payload_of(entry))).min()
        };
        let soonest = [class.first, class.second].into_iter().filter_map(of_bucket).min();
        Verdict::NoRoom { until: now.unwrap_or(0) + soonest.unwrap_or(0).max(1) }
    }
}
