//! CONCURRENT: inserts, removals and `clear`. Where an insert finds no room, `table/relocate.rs` makes some.

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::relocate::{Effort, Purpose};
use crate::table::stripe::Guard;
use crate::table::table::{Table, TakeFaults};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::Layout;

impl<L: Layout, G: Geometry> Table<L, G> {
    /// Adds a copy of the item of this hash.
    #[inline(always)]
    pub(super) fn insert_hash(&self, layout: impl Layout, hash: u64) -> Result<(), InsertError> {
        self.insert_or_again(layout, self.buckets.item(layout, hash), self.item_again(hash))
    }

    /// Adds a copy of the item.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn insert(&self, item: Item) -> Result<(), InsertError> {
        if L::HAS_PAYLOAD {
            self.insert_with_value(item)
        } else if self.is_being_saved() {
            self.insert_anyhow::<true>(self.same_again(item))
        } else {
            self.insert_or_again(self.layout(), item, self.same_again(item))
        }
    }

    /// Adds a copy of the item, which `again` returns too. The table is not being saved.
    #[inline(always)]
    fn insert_or_again(
        &self,
        layout: impl Layout,
        item: Item,
        again: impl FnOnce() -> Item,
    ) -> Result<(), InsertError> {
        if self.insert_at_once(layout, item) {
            return Ok(());
        }
        self.insert_anyhow::<false>(again)
    }

    /// `insert` if that takes one step.
    #[inline(always)]
    fn insert_at_once(&self, layout: impl Layout, item: Item) -> bool {
        let added = self.put_at_once(layout, item);
        if added {
            self.counters.add_len(1);
        }
        added
    }

    /// `insert` where that takes more than one step.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_anyhow<const SAVED: bool>(&self, item: impl FnOnce() -> Item) -> Result<(), InsertError> {
        self.insert_uncounted::<SAVED>(self.layout(), item())?;
        self.counters.add_len(1);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn insert_uncounted<const SAVED: bool>(
        &self,
        layout: impl Layout,
        item: Item,
    ) -> Result<(), InsertError> {
        if !SAVED && self.put_at_once(layout, item) {
            return Ok(());
        }
        self.insert_uncounted_anyhow::<SAVED>(item)
    }

    #[inline(never)]
    fn insert_uncounted_anyhow<const SAVED: bool>(&self, item: Item) -> Result<(), InsertError> {
        let mut effort = Effort::default();
        while !self.put_in_either::<SAVED>(item) {
            if effort.is_enough() {
                return self.is_inserted_undisturbed(item, Purpose::Insert).map(|_| ());
            }
            self.make_room(item, Purpose::Insert, &mut effort)?;
        }
        Ok(())
    }

    /// Adds a copy of the item of this hash. If its buckets are full and the table holds its capacity, fails without a
    /// search.
    #[inline(never)]
    pub(super) fn insert_within_capacity(&self, hash: u64) -> Result<(), InsertError> {
        if self.is_being_saved() {
            self.insert_within_capacity_anyhow::<true>(self.item_again(hash))
        } else if self.insert_at_once(self.layout(), self.item(hash)) {
            Ok(())
        } else {
            self.insert_within_capacity_anyhow::<false>(self.item_again(hash))
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_within_capacity_anyhow<const SAVED: bool>(&self, item: impl FnOnce() -> Item) -> Result<(), InsertError> {
        let item = item();
        if self.put_in_either::<SAVED>(item) {
            self.counters.add_len(1);
            return Ok(());
        }
        // The sum of several counters. It is computed only here, because most inserts find room.
        let len = self.counters.len();
        if len < self.capacity() {
            return self.insert_anyhow::<SAVED>(self.same_again(item));
        }
        let copies = self.copies_locked(item);
        if copies == self.slots_of(item) {
            return Err(InsertError::too_many(copies));
        }
        Err(InsertError::full(len, self.capacity()))
    }

    /// Adds a copy of the item of this hash unless there is one.
    #[inline(always)]
    pub(super) fn insert_if_absent_hash(&self, layout: impl Layout, hash: u64) -> Result<bool, InsertError> {
        self.insert_if_absent_or_again(layout, self.buckets.item(layout, hash), self.item_again(hash))
    }

    /// Adds a copy of the item unless there is one.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn insert_if_absent(&self, item: Item) -> Result<bool, InsertError> {
        self.insert_if_absent_or_again(self.layout(), item, self.same_again(item))
    }

    #[inline(always)]
    fn insert_if_absent_or_again(
        &self,
        layout: impl Layout,
        item: Item,
        again: impl FnOnce() -> Item + Copy,
    ) -> Result<bool, InsertError> {
        // Avoids the lock where a lookup is enough. (Not in the model without the lock, where it would hide the bug.)
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) && self.contains_or_again(layout, item, again) {
            return Ok(false);
        }
        self.insert_if_absent_locked(layout, again)
    }

    #[inline(never)]
    fn insert_if_absent_locked(&self, layout: impl Layout, item: impl FnOnce() -> Item) -> Result<bool, InsertError> {
        let item = item();
        if self.is_being_saved() {
            self.insert_if_absent_saved(item)
        } else {
            self.insert_if_absent_as::<false>(layout, item)
        }
    }

    #[cold]
    #[inline(never)]
    fn insert_if_absent_saved(&self, item: Item) -> Result<bool, InsertError> {
        self.insert_if_absent_as::<true>(self.layout(), item)
    }

    #[inline(always)]
    fn insert_if_absent_as<const SAVED: bool>(&self, layout: impl Layout, item: Item) -> Result<bool, InsertError> {
        let mut effort = Effort::default();
        loop {
            {
                let _guard = self.stripe(item.sum).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
                let (first, second) = (self.look(item.first), self.look(item.second));
                if layout.either_holds(first, second, self.fingerprint(item)) {
                    return Ok(false);
                }
                if !SAVED && self.put_at_once(layout, item) || self.put_in_either::<SAVED>(item) {
                    self.counters.add_len(1);
                    return Ok(true);
                }
            }
            if effort.is_enough() {
                let added = self.is_inserted_undisturbed(item, Purpose::InsertIfAbsent)?;
                self.counters.add_len(i64::from(added));
                return Ok(added);
            }
            self.make_room(item, Purpose::InsertIfAbsent, &mut effort)?;
        }
    }

    /// Removes a copy of the item of this hash, if there is one.
    #[inline(always)]
    pub(super) fn remove_hash(&self, layout: impl Layout, hash: u64) -> bool {
        let item = self.buckets.item(layout, hash);
        // The processor starts no load before it has taken the lock, but it does start a prefetch.
        self.prefetch(item);
        self.remove_or_again::<true>(layout, item, self.item_again(hash))
    }

    /// Removes a copy of the item, if there is one.
    #[cfg(any(test, ccf_model))]
    pub(crate) fn remove(&self, item: Item) -> bool {
        self.remove_or_again::<true>(self.layout(), item, self.same_again(item))
    }

    /// Removes a copy of the item, which `again` returns too. `COUNTED` says whether the removal is counted here,
    /// under the lock.
    #[inline(always)]
    pub(super) fn remove_or_again<const COUNTED: bool>(
        &self,
        layout: impl Layout,
        item: Item,
        again: impl FnOnce() -> Item + Copy,
    ) -> bool {
        let Some(guard) = self.stripe(item.sum).try_lock_unless(Fault::RemoveWithoutLock) else {
            return self.remove_when_free::<COUNTED>(again);
        };
        self.remove_under::<COUNTED>(layout, guard, item, again)
    }

    /// `remove_or_again` under the lock.
    #[inline(always)]
    pub(super) fn remove_under<const COUNTED: bool>(
        &self,
        layout: impl Layout,
        guard: Guard<'_>,
        item: Item,
        again: impl FnOnce() -> Item,
    ) -> bool {
        // Looks at both at once: a branch on which of the two holds the copy would be mispredicted half of the time.
        let (first, second) = (self.look(item.first), self.look(item.second));
        let (in_first, copy) = layout.place(first, second, item.entry);
        if !copy.exists() {
            return false;
        }
        let bucket = select_unpredictable(in_first, item.first, item.second);
        if self.is_being_saved()
            || !self.take_at_once(&guard, bucket, copy.bucket, layout.without(copy), TakeFaults::REMOVE)
        {
            return self.remove_locked::<COUNTED>(guard, again);
        }
        if COUNTED {
            self.counters.add_len(-1);
        }
        true
    }

    /// `remove` where the lock was not free.
    #[cold]
    #[inline(never)]
    fn remove_when_free<const COUNTED: bool>(&self, item: impl FnOnce() -> Item) -> bool {
        let item = item();
        let guard = self.stripe(item.sum).lock_after_wait(&self.counters);
        self.remove_locked::<COUNTED>(guard, self.same_again(item))
    }

    /// `remove` under the lock where it takes more than one step.
    #[cold]
    #[inline(never)]
    fn remove_locked<const COUNTED: bool>(&self, guard: Guard<'_>, item: impl FnOnce() -> Item) -> bool {
        let item = item();
        for bucket in [item.first, item.second] {
            let seen = self.look(bucket);
            if self.layout.holds_entry(seen, item.entry) {
                self.keep(bucket, Fault::RemoveKeepsNothing);
                if self.bump_and_take(&guard, bucket, seen, item.entry, TakeFaults::REMOVE) {
                    if COUNTED {
                        self.counters.add_len(-1);
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Removes every copy that is there when it begins.
    pub(crate) fn clear(&self) {
        // All locks, so that no relocation carries a copy past this sweep.
        self.with_all_locked(Fault::ClearWithoutLocks, || {
            if !fault::injected(Fault::ClearWithoutBump) {
                self.stripes.iter().for_each(|stripe| stripe.held().bump());
            }
            let mut copies = 0;
            for word in &self.words {
                // As in `bump_and_take`.
                let removed = Bucket(word.swap(0, Ordering::SeqCst));
                copies += self.layout.occupied(removed);
            }
            self.counters.add_len(-(copies as i64));
        });
    }
}
