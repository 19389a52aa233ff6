//! CONCURRENT: inserts, removals and `clear`. Where an insert finds no room, `table/relocate.rs` makes some.
//! `table/stripe.rs` has the rules that they follow.

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::sync::Ordering;
use crate::table::census::Purpose;
use crate::table::entries::Entries;
use crate::table::image::copy_on_write::Changing;
use crate::table::stripe::Guard;
use crate::table::table::Table;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};

impl<E: Entries> Table<E> {
    /// Adds a copy of the item of this hash.
    #[inline(always)]
    pub(crate) fn insert(&self, layout: impl Layout, hash: u64) -> Result<(), InsertError> {
        if self.is_being_saved() {
            return self.insert_slow(hash);
        }
        if self.add(layout, self.buckets.item(layout, hash)) {
            self.counters.add_len(1);
            return Ok(());
        }
        self.insert_slow(hash)
    }

    /// `insert` where that takes more than one step.
    #[cold]
    #[inline(never)]
    fn insert_slow(&self, hash: u64) -> Result<(), InsertError> {
        let item = self.item(hash);
        self.until_added(item, Purpose::Insert, |all| self.add_slow(item, all).then_some(()))?;
        self.counters.add_len(1);
        Ok(())
    }

    /// `insert_slow` without counting the copy. (The hash takes one register to keep, an item four.)
    #[cold]
    #[inline(never)]
    pub(super) fn insert_uncounted_slow(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_item_slow(self.item(hash))
    }

    /// Adds a copy of the item, by relocations if need be, without counting it.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_item_slow(&self, item: Item) -> Result<(), InsertError> {
        self.until_added(item, Purpose::Insert, |all| self.add_slow(item, all).then_some(()))
    }

    /// Adds a copy of the item of this hash unless there is one. Returns whether it did.
    #[inline(always)]
    pub(super) fn insert_if_absent(&self, layout: impl Layout, hash: u64) -> Result<bool, InsertError> {
        // Avoids the lock where a lookup is enough.
        if self.contains(layout, hash) {
            return Ok(false);
        }
        self.insert_absent(layout, hash)
    }

    /// `insert_if_absent` where a lookup has found none.
    #[inline(never)]
    fn insert_absent(&self, layout: impl Layout, hash: u64) -> Result<bool, InsertError> {
        if !self.is_being_saved()
            && let Some(added) = self.add_if_absent(layout, hash)
        {
            return Ok(added);
        }
        self.insert_absent_slow(hash)
    }

    #[cold]
    #[inline(never)]
    fn insert_absent_slow(&self, hash: u64) -> Result<bool, InsertError> {
        self.insert_absent_item(self.item(hash))
    }

    /// Adds a copy of the item of this hash unless there is one, in one step under the lock. Returns whether it did, or
    /// `None` if neither bucket has room, or if another thread has changed the bucket. No save is running.
    #[inline(always)]
    fn add_if_absent(&self, layout: impl Layout, hash: u64) -> Option<bool> {
        let item = self.buckets.item(layout, hash);
        let _guard = self.stripe(item.sum).lock(&self.counters);
        if layout.either_holds(self.load(item.first), self.load(item.second), layout.fingerprint_of(item.entry)) {
            return Some(false);
        }
        if !self.add(layout, item) {
            return None;
        }
        self.counters.add_len(1);
        Some(true)
    }

    /// Adds a copy of the item unless there is one. Returns whether it did. In a table of values, another item of its class
    /// makes no difference.
    pub(super) fn insert_item_if_absent(&self, item: Item) -> Result<bool, InsertError> {
        // Avoids the lock if a copy is found.
        if self.copies_of_item(self.layout(), item) > 0 {
            return Ok(false);
        }
        self.insert_absent_item(item)
    }

    /// `insert_item_if_absent` where none was found.
    #[inline(never)]
    fn insert_absent_item(&self, item: Item) -> Result<bool, InsertError> {
        self.until_added(item, Purpose::InsertItemIfAbsent, |all| {
            let changing = self.lock_to_change(item.sum, 2, all);
            if self.copies_of_item(self.layout(), item) > 0 {
                return Some(false);
            }
            self.bump_to_add(&changing.guard);
            let added = self.add_locked(&changing, item);
            self.counters.add_len(i64::from(added));
            added.then_some(true)
        })
    }

    /// Removes a copy of the item of this hash with this payload, if there is one.
    #[inline(always)]
    pub(super) fn remove(&self, layout: impl Layout, hash: u64, payload: u16) -> bool {
        let item = self.buckets.item(layout, hash).with(layout, payload);
        // Loads wait until the lock is taken; a prefetch does not.
        self.prefetch(item);
        self.counters.removal(self.remove_item(layout, item, hash))
    }

    /// Removes a copy of the item, which is one of this hash, without counting.
    #[inline(always)]
    pub(super) fn remove_item(&self, layout: impl Layout, item: Item, hash: u64) -> bool {
        if let Some(guard) = self.stripe(item.sum).try_lock()
            && let Some(removed) = self.remove_locked(layout, &guard, item)
        {
            return removed;
        }
        self.remove_slow(hash, layout.payload_of(item.entry))
    }

    /// Removes a copy of the item in one step. `None` if another thread has changed the bucket, or if a save is running.
    #[inline(always)]
    pub(super) fn remove_locked(&self, layout: impl Layout, guard: &Guard<'_>, item: Item) -> Option<bool> {
        // Compares both at once: a branch on which of the two holds the copy would be mispredicted half of the time.
        let (first, second) = (self.load(item.first), self.load(item.second));
        let (in_first, copy) = layout.find_in_either(first, second, item.entry);
        if !copy.exists() {
            return Some(false);
        }
        let bucket = select_unpredictable(in_first, item.first, item.second);
        if !self.is_being_saved() {
            guard.bump();
            if self.exchange(bucket, copy.bucket, layout.without(copy)).is_ok() {
                return Some(true);
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn remove_slow(&self, hash: u64, payload: u16) -> bool {
        let item = self.item_with(hash, payload);
        self.take_any(&self.lock_to_change(item.sum, 1, None), item)
    }

    /// Removes a copy of the item from either bucket. The lock is that of its stripe, to change a word.
    pub(super) fn take_any(&self, changing: &Changing<'_>, item: Item) -> bool {
        [item.first, item.second].into_iter().any(|bucket| self.take_from(changing, bucket, item.entry))
    }

    /// Removes a copy of the entry from this bucket. The lock is that of its stripe, to change a word.
    pub(super) fn take_from(&self, changing: &Changing<'_>, bucket: usize, entry: Entry) -> bool {
        let seen = self.load(bucket);
        if !self.layout.holds_entry(seen, entry) {
            return false;
        }
        let guard = &changing.guard;
        self.set_aside(bucket, changing.spare());
        guard.bump();
        self.change(bucket, seen, |seen| self.layout.remove(seen, entry))
    }

    /// Removes every copy that is there when it begins.
    pub(crate) fn clear(&self) {
        // All locks, so that no relocation moves a copy behind this loop.
        self.under_all_locks(|all| {
            self.stripes.iter().for_each(|stripe| stripe.locked_with_all(all).bump());
            let mut copies = 0;
            for word in &self.words {
                // As in `exchange`.
                let removed = Bucket(word.swap(0, Ordering::SeqCst));
                copies += self.layout.occupied(removed);
            }
            self.counters.add_len(-(copies as i64));
        });
    }
}
