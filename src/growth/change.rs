//! CONCURRENT: what changes a table that grows: inserts, removals and `clear`.

use crate::error::insert::{InsertBatchError, InsertError};
use crate::growth::table::GrowingTable;
use crate::plan::batch::{BLOCK, Hashes, each_ahead};
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::stripe::Guard;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, Place};

/// An insert asks whether the table is to grow when its thread's own count is a multiple of this.
/// (Where loom explores all executions, it need not ask.)
const INSERTS_PER_CHECK: i64 = if cfg!(ccf_model = "loom") {
    1 << 32
} else if cfg!(ccf_model) {
    1
} else {
    32
};

impl GrowingTable {
    /// Adds a copy.
    #[inline(always)]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), InsertError> {
        let class = self.plan.classes.of(hash);
        if !self.add(class) {
            self.add_slow(class, false)?;
        }
        self.count_added(1);
        Ok(())
    }

    /// Adds a copy unless there is one. Returns whether it did.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        // Avoids the lock where a lookup is enough.
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) && self.contains(hash) {
            return Ok(false);
        }
        let class = self.plan.classes.of(hash);
        let added = match self.add_if_absent(class) {
            Some(added) => added,
            None => self.add_slow(class, true)?,
        };
        if added {
            self.count_added(1);
        }
        Ok(added)
    }

    /// Counts copies that were added, and lets the table grow if it is too full now.
    #[inline(always)]
    fn count_added(&self, count: i64) {
        if self.counters.add_len(count) & (INSERTS_PER_CHECK - 1) < count {
            self.keep_load();
        }
    }

    /// Adds a copy to the emptier of the class's buckets, if either has room. Does not count it.
    #[inline(always)]
    pub(super) fn add(&self, class: Class) -> bool {
        let state = self.state();
        // What is read here only determines where to try first.
        let free = class.sides.map(|side| {
            let Place { number, depth } = state.place(side);
            self.words.get(number as u32).map_or(0, |word| self.layout(depth).free(super::table::load(word)))
        });
        let emptier = usize::from(free[1] > free[0]);
        (free[emptier] > 0 && self.add_on(class, emptier)) || (free[1 - emptier] > 0 && self.add_on(class, 1 - emptier))
    }

    /// Adds a copy on this side, if its bucket has room. Does not count it.
    pub(crate) fn add_on(&self, class: Class, side: usize) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side, Fault::AddsWithoutGate);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).add(seen, self.plan.classes.stored(class, depth)) else { return false };
        self.set_aside(number, Fault::InsertSetsNothingAside);
        self.store(number, changed);
        true
    }

    /// Adds a copy of the class unless there is one. `None` if there is no room. Does not count it.
    pub(super) fn add_if_absent(&self, class: Class) -> Option<bool> {
        let _guard = self.stripe(class).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
        if self.copies(class) != [0; 2] {
            return Some(false);
        }
        self.add(class).then_some(true)
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        // The processor starts no load before it has taken the lock, but it does start a prefetch.
        self.prefetch_class(self.state(), class);
        let guard = self.stripe(class).lock_unless(Fault::RemoveWithoutLock, &self.counters);
        let copies = self.copies(class);
        let removed = (0..2).any(|side| {
            copies[side] > 0
                && self.take_on(&guard, class, side, Fault::RemoveWithoutBump, Fault::RemoveSetsNothingAside)
        });
        if removed {
            self.counters.add_len(-1);
        }
        removed
    }

    /// Takes a copy of the class out on this side. The guard is that of its stripe. `false` if there is none.
    pub(super) fn take_on(
        &self,
        guard: &Guard<'_>,
        class: Class,
        side: usize,
        no_bump: Fault,
        nothing_aside: Fault,
    ) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side, Fault::TakesWithoutGate);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).remove(seen, self.plan.classes.stored(class, depth)) else {
            return false;
        };
        self.set_aside(number, nothing_aside);
        if !fault::injected(no_bump) {
            guard.bump();
        }
        self.store(number, changed);
        true
    }

    /// `insert` for many, in their order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let (mut inserted, mut failed) = (0, None);
        each_ahead(
            hashes,
            |hashes| self.prefetch(hashes),
            |hashes, ()| {
                for &hash in hashes {
                    if let Err(error) = self.insert(hash) {
                        failed = Some(error);
                        return false;
                    }
                    inserted += 1;
                }
                true
            },
        );
        failed.map_or(Ok(inserted), |error| Err(InsertBatchError::new(inserted, error)))
    }

    /// `remove` for many, in their order.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        each_ahead(
            hashes,
            |hashes| self.prefetch(hashes),
            |hashes, ()| {
                let mut removed = [false; BLOCK];
                for (&hash, removed) in hashes.iter().zip(&mut removed) {
                    *removed = self.remove(hash);
                }
                answers(&removed[..hashes.len()]);
                true
            },
        );
    }

    /// Removes every copy that is there when it begins. The size stays.
    pub(crate) fn clear(&self) {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        // All locks, so that no relocation carries a copy past this loop.
        self.under_all_locks(Fault::ClearWithoutLocks, || {
            if !fault::injected(Fault::ClearWithoutBump) {
                self.stripes.iter().for_each(|stripe| stripe.held().bump());
            }
            let state = self.state();
            let mut copies = 0;
            for number in 0..state.buckets() {
                let _gate = self.gate(number);
                // As in `store`.
                let removed = Bucket(self.word(number).swap(0, Ordering::SeqCst));
                copies += self.layout(state.depth(number)).occupied(removed) as i64;
            }
            self.counters.add_len(-copies);
        });
    }
}
