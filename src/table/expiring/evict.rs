//! CONCURRENT: eviction: when an insert finds no room, the entries that would expire first do so early.
//!
//! # What it does
//! The clock of a table counts ticks of its own (`table/expiring/clock.rs`). It follows the caller's clock. To end
//! entries early, it runs *ahead*: its `now` advances, and the caller's tick stays. All that `table/expiring/mod.rs`
//! says about the clock holds, because lookups, sweeps and relocations know no other `now`. So each entry that expires
//! early leaves in one step with all others of its tick, its slot is room from then on, and no other entry is
//! missed meanwhile.
//!
//! The caller's clock later reaches the ticks that were ended early. Then the clock stands still and `ahead` shrinks.
//! So no tick ends twice, and the other entries keep their expiries: an expiry of the caller's is always the same tick of
//! the clock's own.
//!
//! # How far it runs ahead
//! An insert has found no room, by the argument of `table/relocate.rs`. It takes the lock of the sweep, so that the
//! reading stays as it is, and then the locks of all stripes. Now no other thread adds, relocates or removes an entry.
//! The insert searches once more.
//!
//! 1. *There is room.* Another thread has made it, for instance by eviction. The insert tries again, and no tick ends.
//!    So of many inserts that fail at once, only the first evicts. The same if the insert needs no room because its key
//!    has an entry by now.
//! 2. *There is none.* This is a moment without room. Let `t` be the earliest expiry in all buckets that the search has
//!    reached. No tick before `t` would make room here. So the clock runs ahead up to `t`, just as if each
//!    tick were ended in turn until there is room. The earlier ticks are ended with it: an entry never stays
//!    when one that expires later goes.
//!
//! It does not run ahead in three cases, and the insert fails:
//!
//! - `t` is not before the expiry of the new entry. Then this is the entry that would expire first. (If everything expires in
//!   the last tick that a lifetime allows, to end that tick would empty the table. And no entry could be added until
//!   the caller's clock goes on.)
//! - All slots of both buckets hold entries of this class. To evict all other entries for one key would be a bad trade.
//!   (Usually the count in `table/relocate.rs` has found that before, and the insert fails without these locks.)
//! - The table holds less than half of its capacity. Then it is not full: entries of a few keys fill these buckets.
//!
//! # Linearizability
//! To end ticks early is an operation of its own: it takes effect when the reading is published, under all locks. It
//! belongs to an insert in progress that has no room at that moment. A writer reads the clock and `ahead` under the
//! lock of its stripe, so they belong together, and their difference is the caller's tick. (Without the locks, an entry
//! that is to live for a number of ticks would live too short by the ticks in between.)
//!
//! # Who waits
//! Others that change entries wait for one search, of at most `path::BUDGET` buckets. Lookups wait for no thread. The
//! insert tries again after each tick that it ends. Others may take that room. But each time it is a later tick, and
//! all are before the new entry's expiry, so the attempts run out.

use core::cell::Cell;

use crate::search::path::Outcome;
use crate::table::attempt::IfPresent;
use crate::table::entries::Expiry;
use crate::table::expiring::clock::{ClockState, Until};
use crate::table::expiring::sweep::reading_after;
use crate::table::table::Table;
use crate::word::geometry::Item;

impl Table<Expiry> {
    /// For an entry of this class that found no room: ends early the entries within its reach that expire before it.
    /// Returns by how many ticks, 0 if that is not needed any more, or `None` if the insert is to fail.
    #[cold]
    #[inline(never)]
    pub(crate) fn evict(&self, class: Item, until: &Until, if_present: IfPresent) -> Option<u64> {
        let clock = self.clock();
        let mut pass = clock.lock_sweep();
        let ended = self.under_all_locks(|all| {
            let state = clock.state();
            let ClockState { now: Some(now), reading, ahead, .. } = state else { return Some(0) };
            let Some(expiry) = clock.expiry_for(state, until) else { return Some(0) };
            if if_present != IfPresent::Add && self.copies(class) > 0 {
                return Some(0);
            }
            let earliest = Cell::new(u64::MAX);
            let outcome = self.search(class, reading, &|_| false, Some(&earliest));
            if matches!(outcome, Outcome::PathFound) {
                return Some(0);
            }
            if earliest.get() >= expiry.min(clock.latest_expiry(state))
                || self.copies(class) == self.slots_of(class)
                || self.counters.len() < self.capacity() / 2
            {
                return None;
            }
            let ticks = earliest.get() - reading.now();
            let then = reading_after(clock, &mut pass, reading, ticks);
            clock.note_early(ahead + ticks);
            clock.set_callers_tick(all, then, now, ahead + ticks);
            clock.publish(then);
            Some(ticks)
        });
        if clock.reading().lag() > 0 {
            self.sweep_some(pass);
        }
        ended
    }
}
