//! CONCURRENT: inserts, removals and `clear`. Where an insert finds no room, `table/relocate.rs` makes some.
//! `table/stripe.rs` has the rules that they follow.

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::sync::Ordering;
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::entries::{Entries, Nothing};
use crate::table::image::spare::Spare;
use crate::table::stripe::{AllLocked, Guard};
use crate::table::table::Table;
use crate::word::bucket::Bucket;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};

impl Table<Nothing> {
    /// Adds a copy of the class of this hash, a further one if there are some, and counts it. Takes no lock if there is room.
    #[inline(always)]
    pub(crate) fn insert(&self, layout: impl Layout, hash: u64) -> Result<(), InsertError> {
        if self.is_being_saved() {
            return self.insert_slow(hash);
        }
        if self.add(layout, self.geometry.item(layout, hash)) {
            self.counters.add_len(1);
            return Ok(());
        }
        self.insert_where_full(hash)
    }

    /// [`insert`](Self::insert) while a save is running. It copies the word for the save before it adds to it.
    #[cold]
    #[inline(never)]
    fn insert_slow(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_item_slow(self.item(hash))?;
        self.counters.add_len(1);
        Ok(())
    }

    /// [`insert`](Self::insert) where `add` has found no room: by relocations. (The hash takes one register to keep, an
    /// item four.)
    #[cold]
    #[inline(never)]
    fn insert_where_full(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_item_where_full(self.item(hash))?;
        self.counters.add_len(1);
        Ok(())
    }

    /// Adds a copy of the class of this hash unless there is one, and counts it. Returns whether it did. Takes the lock of the
    /// stripe if it finds none.
    #[inline(always)]
    pub(super) fn insert_if_absent(&self, layout: impl Layout, hash: u64) -> Result<bool, InsertError> {
        // Avoids the lock where a lookup is enough.
        if self.contains(layout, hash) {
            return Ok(false);
        }
        self.insert_absent(layout, hash)
    }

    /// [`insert_if_absent`](Self::insert_if_absent) where a lookup has found none. It looks again under the lock.
    #[inline(never)]
    fn insert_absent(&self, layout: impl Layout, hash: u64) -> Result<bool, InsertError> {
        if self.is_being_saved() {
            return self.insert_absent_slow(hash);
        }
        match self.add_if_absent(layout, hash) {
            Attempt::Added => Ok(true),
            Attempt::Present => Ok(false),
            Attempt::NoRoom => self.insert_absent_slow(hash),
        }
    }

    /// [`insert_absent`](Self::insert_absent) while a save is running, or where the first attempt has found no room.
    #[cold]
    #[inline(never)]
    fn insert_absent_slow(&self, hash: u64) -> Result<bool, InsertError> {
        Ok(self.insert_item_unless_equal_slow(self.item(hash))? == Attempt::Added)
    }

    /// Adds a copy of the class of this hash unless there is one, and counts it: one attempt, under the lock of the stripe,
    /// which this takes. It finds no room also if another thread has changed the bucket. No save is running.
    #[inline(always)]
    fn add_if_absent(&self, layout: impl Layout, hash: u64) -> Attempt {
        let item = self.geometry.item(layout, hash);
        let _guard = self.stripe(item.bucket_sum).lock(&self.counters);
        let pair = [self.load(item.first), self.load(item.second)];
        if Bucket::either_holds(layout, pair, layout.fingerprint_of(item.entry)) {
            return Attempt::Present;
        }
        if !self.add(layout, item) {
            return Attempt::NoRoom;
        }
        self.counters.add_len(1);
        Attempt::Added
    }
}

impl<E: Entries> Table<E> {
    /// Adds a copy of the item, a further one if there are some, by relocations if need be. Copies words for the saves that are
    /// running. Counts nothing. The caller holds no lock.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_item_slow(&self, item: Item) -> Result<(), InsertError> {
        if self.add_slow(item, None) { Ok(()) } else { self.insert_item_where_full(item) }
    }

    /// [`insert_item_slow`](Self::insert_item_slow) where there was no room in the item's buckets.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_item_where_full(&self, item: Item) -> Result<(), InsertError> {
        let attempt = |all: Option<&AllLocked<'_>>| Ok(Attempt::of(self.add_slow(item, all)));
        self.until_added_where_full(item, IfPresent::Add, attempt).map(drop)
    }
}

/// Without a clock: what is here is for entries that do not expire.
impl<E: Entries<Reading = ()>> Table<E> {
    /// Adds a copy of the item unless there is an equal one: of its class and, in a maplet, with its value. Counts it.
    /// Takes the lock of the stripe if it finds none. The result is `Added` or `Present`.
    pub(super) fn insert_item_unless_equal(&self, item: Item) -> Result<Attempt, InsertError> {
        // Avoids the lock if a copy is found.
        if self.copies_of_item(self.layout(), item) > 0 {
            return Ok(Attempt::Present);
        }
        self.insert_item_unless_equal_slow(item)
    }

    /// [`insert_item_unless_equal`](Self::insert_item_unless_equal) where a lookup without the lock has found none. Each attempt
    /// looks again under the lock. If there is no room, relocations make some.
    #[inline(never)]
    fn insert_item_unless_equal_slow(&self, item: Item) -> Result<Attempt, InsertError> {
        self.until_added(item, IfPresent::SkipEqual, |all| {
            let changing = self.lock_to_change(item.bucket_sum, 2, all);
            if self.copies_of_item(self.layout(), item) > 0 {
                return Ok(Attempt::Present);
            }
            self.bump_to_add(&changing.guard);
            let added = self.add_locked(&changing, item);
            self.counters.add_len(i64::from(added));
            Ok(Attempt::of(added))
        })
    }
}

impl<E: Entries> Table<E> {
    /// Removes a copy of the item of this hash with this payload, if there is one.
    #[inline(always)]
    pub(super) fn remove(&self, layout: impl Layout, hash: u64, payload: u16) -> bool {
        let item = self.geometry.item(layout, hash).with(layout, payload);
        // Loads wait until the lock is taken; a prefetch does not.
        self.prefetch(item);
        self.counters.removal(self.remove_item(layout, item, hash))
    }

    /// Removes a copy of the item, which is one of this hash, without counting.
    #[inline(always)]
    pub(super) fn remove_item(&self, layout: impl Layout, item: Item, hash: u64) -> bool {
        if let Some(guard) = self.stripe(item.bucket_sum).try_lock()
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
        let pair = [self.load(item.first), self.load(item.second)];
        let (in_first, copy) = Bucket::find_in_either(layout, pair, item.entry);
        if !copy.exists() {
            return Some(false);
        }
        let bucket = select_unpredictable(in_first, item.first, item.second);
        if !self.is_being_saved() {
            guard.bump();
            if self.exchange(bucket, copy.bucket, copy.emptied(layout)).is_ok() {
                return Some(true);
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn remove_slow(&self, hash: u64, payload: u16) -> bool {
        let item = self.item_with(hash, payload);
        let changing = self.lock_to_change(item.bucket_sum, 1, None);
        self.remove_with_spare(&changing.guard, changing.spare(), item)
    }

    /// Removes a copy of the item from either bucket. The lock is that of its stripe, to change a word.
    pub(super) fn remove_with_spare(&self, guard: &Guard<'_>, spare: Option<&Spare>, item: Item) -> bool {
        [item.first, item.second].into_iter().any(|bucket| self.remove_from(guard, spare, bucket, item.entry))
    }

    /// Removes a copy of the entry from this bucket. The lock is that of its stripe, to change a word.
    pub(super) fn remove_from(&self, guard: &Guard<'_>, spare: Option<&Spare>, bucket: usize, entry: Entry) -> bool {
        let seen = self.load(bucket);
        if !seen.holds_entry(self.layout, entry) {
            return false;
        }
        self.copy_for_saves(bucket, spare);
        guard.bump();
        self.change(bucket, seen, |seen| seen.remove(self.layout, entry))
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
                copies += removed.occupied(self.layout);
            }
            self.counters.add_len(-(copies as i64));
        });
    }
}
