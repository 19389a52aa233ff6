//! CONCURRENT: inserts, removals and `clear`. Where an insert finds no room, `table/relocate.rs` makes some.

use crate::error::insert::InsertError;
use crate::sync::Ordering;
use crate::table::relocate::Purpose;
use crate::table::stripe::{Guard, MAX_STRIPES};
use crate::table::words::{Table, TakeFaults};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::Layout;

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Adds a copy of the item.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn insert(&self, item: Item) -> Result<(), InsertError> {
        if self.is_being_saved() { self.insert_as::<true>(item) } else { self.insert_as::<false>(item) }
    }

    /// `insert`; `SAVED` says whether the table is being saved.
    #[inline(always)]
    pub(super) fn insert_as<const SAVED: bool>(&self, item: Item) -> Result<(), InsertError> {
        self.insert_uncounted::<SAVED>(item)?;
        self.counters.add_len(1);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn insert_uncounted<const SAVED: bool>(&self, item: Item) -> Result<(), InsertError> {
        while !self.put_in_either::<SAVED>(item) {
            self.make_room(item, Purpose::Insert)?;
        }
        Ok(())
    }

    /// Adds a copy of the item, unless its buckets are full and the table holds as many items as it is meant for. Then
    /// that is the answer, without a search.
    #[inline(always)]
    pub(super) fn insert_within_capacity_as<const SAVED: bool>(&self, item: Item) -> Result<(), InsertError> {
        if self.put_in_either::<SAVED>(item) {
            self.counters.add_len(1);
            return Ok(());
        }
        // The sum of some counters: only now, for most inserts find room.
        let len = self.counters.len();
        if len < self.capacity {
            return self.insert_as::<SAVED>(item);
        }
        let copies = self.count(item);
        if copies == self.slots_of(item) {
            return Err(InsertError::too_many(copies));
        }
        Err(InsertError::full(len, self.capacity))
    }

    /// Adds a copy of the item unless there is one.
    #[inline]
    pub(crate) fn insert_if_absent(&self, item: Item) -> Result<bool, InsertError> {
        // Spares the lock where a lookup is enough. (Not in the model without the lock, where it would hide the bug.)
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) && self.contains(item) {
            return Ok(false);
        }
        if self.is_being_saved() { self.insert_if_absent_saved(item) } else { self.insert_if_absent_as::<false>(item) }
    }

    #[cold]
    #[inline(never)]
    fn insert_if_absent_saved(&self, item: Item) -> Result<bool, InsertError> {
        self.insert_if_absent_as::<true>(item)
    }

    #[inline(always)]
    fn insert_if_absent_as<const SAVED: bool>(&self, item: Item) -> Result<bool, InsertError> {
        loop {
            {
                let _guard =
                    self.stripe(item.first, item.second).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
                if self.holds(item.first, item.fingerprint) || self.holds(item.second, item.fingerprint) {
                    return Ok(false);
                }
                if self.put_in_either::<SAVED>(item) {
                    self.counters.add_len(1);
                    return Ok(true);
                }
            }
            self.make_room(item, Purpose::InsertIfAbsent)?;
        }
    }

    /// Removes a copy of the item, if there is one.
    #[inline]
    pub(crate) fn remove(&self, item: Item) -> bool {
        // No load of a processor's overtakes the taking of a lock; a prefetch does.
        self.prefetch(item);
        self.remove_and(item, || self.counters.add_len(-1))
    }

    /// `remove`, with `count` called under the lock if there was a copy.
    #[inline(always)]
    pub(super) fn remove_and(&self, item: Item, count: impl FnOnce()) -> bool {
        let guard = self.stripe(item.first, item.second).lock_unless(Fault::RemoveWithoutLock, &self.counters);
        for bucket in [item.first, item.second] {
            if self.holds(bucket, item.fingerprint) {
                self.keep(bucket, Fault::RemoveKeepsNothing);
                if self.bump_and_take(&guard, bucket, item.fingerprint, TakeFaults::REMOVE) {
                    count();
                    return true;
                }
            }
        }
        false
    }

    /// Removes every copy that is there when it begins.
    pub(crate) fn clear(&self) {
        // All locks, so that no relocation carries a copy past this sweep.
        let guards = self.lock_all(Fault::ClearWithoutLocks);
        if !fault::injected(Fault::ClearWithoutBump) {
            guards.iter().flatten().for_each(Guard::bump);
        }
        let mut copies = 0;
        for word in &self.words {
            // As in `bump_and_take`.
            let removed = Bucket(word.swap(0, fault::ordering(Fault::RelaxedClear, Ordering::SeqCst)));
            copies += self.layout.occupied(removed);
        }
        self.counters.add_len(-(copies as i64));
    }

    /// Locks all stripes, unless the model leaves that out. In order, and nobody waits for a lock while holding another.
    pub(crate) fn lock_all(&self, fault: Fault) -> [Option<Guard<'_>>; MAX_STRIPES] {
        let mut guards = [const { None }; MAX_STRIPES];
        for (guard, stripe) in guards.iter_mut().zip(&self.stripes) {
            *guard = Some(stripe.lock_unless(fault, &self.counters));
        }
        guards
    }
}
