//! CONCURRENT: how a filter that grows gets another table. `growth/mod.rs` has the reasoning.

use std::sync::Arc;

use crate::error::insert::{InsertError, ReserveError};
use crate::error::kind::FilterKind;
use crate::growth::growth::{FREEING, Growth, NOTHING, RESIZING, Resizing, is_amid};
use crate::growth::level::{Level, memory_for, new_level};
use crate::sync::fault::{self, Fault};
use crate::sync::replaceable::Retired;
use crate::sync::{MutexGuard, Ordering};
use crate::table::face::level::Added;
use crate::table::relocate::Purpose;

/// How many buckets an insert splits while a larger table is being filled. With two to seven slots in a bucket, the old
/// table is split before a tenth as many keys as it holds have come in.
const SPLITS_PER_INSERT: usize = if cfg!(ccf_model) { 1 } else { 16 };

/// The part of its capacity that the table must hold before the filter grows.
///
/// Distinct keys fill a table to its capacity, whatever they are. So this matters only where some pairs of buckets
/// are full of many copies of few keys, or of keys that were chosen to collide. Further ones are then refused, as in
/// a table of a fixed size. So they cannot drive the memory beyond a fixed multiple of what the items in the filter
/// need.
const LEAST_LOAD: f64 = 0.25;

/// One in so many inserts looks whether a table that was replaced can be freed: a reader that was stopped would else make
/// each of them look.
const INSERTS_PER_RELEASE: u64 = if cfg!(ccf_model) { 1 } else { 16 };

/// How many buckets of a table that is freed such an insert gives back: half a mebibyte.
const RELEASED_PER_INSERT: usize = (512 << 10) / size_of::<u64>();

/// The result of an attempt at growth.
pub(crate) enum Grown {
    /// There is another table now, whichever thread has made it.
    Done,
    /// Another thread is at it.
    UnderWay,
    Refused(InsertError),
}

impl Growth {
    /// Begins to move everything to a larger table, unless that has begun, or the table is not the current one.
    pub(crate) fn grow(&self, from: &Level) -> Grown {
        let resizing = if fault::injected(Fault::ResizeWithoutLock) {
            None
        } else if let Some(resizing) = crate::sync::try_lock(&self.resizing) {
            Some(resizing)
        } else {
            return Grown::UnderWay;
        };
        let level = self.current_level();
        let is_current = core::ptr::eq(&*level, from) && !from.next.is_some();
        if !is_current && !fault::injected(Fault::ResizeWithoutLock) {
            self.go_on(&level);
            return Grown::Done;
        }
        if (self.len() as f64) < from.made_for() as f64 * LEAST_LOAD {
            let (filter, len, capacity) = (FilterKind::Growable, self.len(), self.capacity());
            return Grown::Refused(InsertError::Full { filter, len, capacity });
        }
        if from.number() == self.plan.doublings {
            return Grown::Refused(InsertError::MaxCapacity {
                len: self.len(),
                max_capacity: self.plan.max_capacity(),
            });
        }
        let memory = memory_for(self.plan.buckets(from.number() + 1));
        let (needed, limit) = (self.memory_usage().saturating_add(memory), self.plan.memory_limit);
        if needed > limit {
            return Grown::Refused(InsertError::MemoryLimit { len: self.len(), needed, limit });
        }
        let Some(next) = self.table_after(&level, from.number() + 1) else {
            return Grown::Refused(InsertError::OutOfMemory { bytes: memory });
        };
        self.begin(from, next);
        drop(resizing);
        Grown::Done
    }

    /// An empty table to which everything will be moved from this one, or `None` if there is no memory for it. A larger
    /// one gets each bucket before it is used.
    pub(crate) fn table_after(&self, level: &Arc<Level>, number: u32) -> Option<Arc<Level>> {
        let source = (number > level.number()).then(|| Arc::downgrade(level));
        new_level(&self.plan, number, &self.common, &self.registry, source)
    }

    /// Announces the table to which everything is being moved.
    pub(crate) fn begin(&self, from: &Level, to: Arc<Level>) {
        // Under all locks: no relocation is under way, and the later ones know.
        from.under_all_locks(&mut || {
            // The thread that ended the resize before may have died before it told others.
            if is_amid(self.phase()) {
                self.begin_phase();
            }
            self.common.make_newest(to.serial());
            // There was none before.
            let _ = from.next.replace(Some(Arc::clone(&to)));
            self.begin_phase();
        });
        self.pending.store(RESIZING, Ordering::Relaxed);
    }

    /// Makes sure that others know of a resize that has begun. They do, unless the thread that began it died just before
    /// it told them.
    fn go_on(&self, level: &Level) {
        if level.next.is_some() && !is_amid(self.phase()) {
            self.begin_phase();
        }
    }

    /// Does a part of what is pending. Inserts call it.
    #[cold]
    #[inline(never)]
    pub(crate) fn help(&self) {
        let is_done = self.with_tables(|tables| match tables.next {
            Some(next) => next.number() > tables.level.number() && tables.level.split_some(SPLITS_PER_INSERT, next),
            None => self.passed_by.fetch_add(1, Ordering::Relaxed).is_multiple_of(INSERTS_PER_RELEASE),
        });
        if !is_done {
            return;
        }
        if let Some(mut resizing) = crate::sync::try_lock(&self.resizing) {
            let level = self.current_level();
            if let Some(next) = level.next.get(&self.registry)
                && next.number() > level.number()
                && level.split_some(0, &next)
            {
                self.switch(&mut resizing, next);
            }
            drop(level);
            self.free_some(&mut resizing);
        }
    }

    /// Makes `next` the current table. All buckets of the one before are marked.
    fn switch(&self, resizing: &mut Resizing, next: Arc<Level>) {
        // A table that is still read keeps no later one alive, only the one that takes its place now. (That is the current
        // one until then, and afterwards it is on this list.) Who reads an earlier one begins again in any case.
        for table in &resizing.retired {
            drop(table.next.replace(None).map(Retired::into_inner));
        }
        resizing.retired.extend(self.current.replace(Some(next)));
        self.begin_phase();
    }

    /// Frees the tables that no reader has any more.
    fn free_retired(&self, resizing: &mut Resizing) {
        resizing.leaving = Vec::new();
        self.let_go(resizing, |_| ());
        self.tell(resizing);
    }

    /// Frees a part of a table that no reader has any more.
    fn free_some(&self, resizing: &mut Resizing) {
        let Resizing { leaving, .. } = resizing;
        if let Some((level, given_back)) = leaving.last_mut() {
            if *given_back < level.buckets() {
                level.release(*given_back, RELEASED_PER_INSERT);
                *given_back += RELEASED_PER_INSERT;
            } else {
                leaving.pop();
                leaving.shrink_to_fit();
            }
        }
        let mut more = Vec::new();
        // A save may have it too. Then that frees it.
        self.let_go(resizing, |level| more.extend(Arc::into_inner(level).map(|level| (level, 0))));
        resizing.leaving.extend(more);
        self.tell(resizing);
    }

    /// Tells inserts what there is to help with.
    fn tell(&self, resizing: &Resizing) {
        let pending = if self.current().next.is_some() {
            RESIZING
        } else if resizing.retired.is_empty() && resizing.leaving.is_empty() {
            NOTHING
        } else {
            FREEING
        };
        self.pending.store(pending, Ordering::Relaxed);
    }

    /// Passes on each table that was replaced, and that no reader has any more.
    fn let_go(&self, resizing: &mut Resizing, mut each: impl FnMut(Arc<Level>)) {
        for table in core::mem::take(&mut resizing.retired) {
            match table.free(&self.registry) {
                Ok(level) => {
                    // A save may keep it, but not the one that has taken its place too.
                    drop(level.next.replace(None).map(Retired::into_inner));
                    each(level);
                }
                Err(table) => resizing.retired.push(table),
            }
        }
    }

    /// Ends a resize that is under way. From here on the caller is the only one that may begin another. `false` if a
    /// resize to a smaller table can neither be ended nor undone for want of room.
    pub(crate) fn at_rest(&self) -> (MutexGuard<'_, Resizing>, bool) {
        let mut resizing = self.resizing.lock();
        let ended = self.finish(&mut resizing);
        (resizing, ended)
    }

    pub(crate) fn finish(&self, resizing: &mut Resizing) -> bool {
        let level = self.current_level();
        self.go_on(&level);
        let ended = match level.next.get(&self.registry) {
            Some(next) if next.number() > level.number() => {
                level.split_all(&next);
                self.switch(resizing, next);
                true
            }
            Some(next) => self.undo(resizing, &level, &next),
            None => true,
        };
        drop(level);
        self.free_retired(resizing);
        ended
    }

    /// Makes room for this many further copies, or none.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        if additional == 0 {
            return Ok(());
        }
        let (mut resizing, ended) = self.at_rest();
        if !ended {
            return Err(ReserveError::Full { len: self.len() });
        }
        let wanted = self.len().saturating_add(additional);
        let too_large = ReserveError::CapacityTooLarge { additional, largest: self.plan.max_capacity() };
        let target = self.plan.level_for(wanted).ok_or(too_large)?;
        let now = self.current_level().number();
        if target <= now {
            return Ok(());
        }
        // While the last doubling is under way, there are two tables.
        let bytes = memory_for(self.plan.buckets(target));
        let before = memory_for(self.plan.buckets(target - 1));
        let needed = self.own_memory().saturating_add(bytes).saturating_add(before);
        let limit = self.plan.memory_limit;
        if needed > limit {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        for number in now + 1..=target {
            let level = self.current_level();
            let bytes = memory_for(self.plan.buckets(number));
            let next = self.table_after(&level, number).ok_or(ReserveError::OutOfMemory { bytes })?;
            self.begin(&level, next);
            drop(level);
            self.finish(&mut resizing);
        }
        Ok(())
    }

    /// Moves everything to the smallest table that is made for what is in, and for this many items.
    pub(crate) fn shrink_to(&self, capacity: usize) {
        let (mut resizing, ended) = self.at_rest();
        let wanted = self.len().max(capacity);
        let now = self.current_level().number();
        let first = self.plan.level_for(wanted).unwrap_or(now);
        for number in first..now {
            // One that could not be undone is still under way.
            let at_rest = ended && !self.current().next.is_some();
            if !at_rest || self.shrink_to_level(&mut resizing, number) {
                return;
            }
        }
    }

    /// Moves everything to the table of a lower level. Returns whether that was possible.
    pub(crate) fn shrink_to_level(&self, resizing: &mut Resizing, number: u32) -> bool {
        let memory = memory_for(self.plan.buckets(number));
        if self.memory_usage().saturating_add(memory) > self.plan.memory_limit {
            return false;
        }
        let level = self.current_level();
        let Some(next) = self.table_after(&level, number) else { return false };
        self.begin(&level, Arc::clone(&next));
        if move_all(&level, &next).is_ok() {
            self.switch(resizing, next);
            drop(level);
            self.wait_and_free(resizing);
            return true;
        }
        self.undo(resizing, &level, &next);
        drop((level, next));
        self.free_retired(resizing);
        false
    }

    /// Moves everything back from a smaller table, which has no room for all of it.
    pub(crate) fn undo(&self, resizing: &mut Resizing, level: &Arc<Level>, next: &Arc<Level>) -> bool {
        level.under_all_locks(&mut || self.common.make_newest(level.serial()));
        if fault::injected(Fault::UndoEndsTooSoon) {
            self.begin_phase();
        }
        (0..level.buckets()).for_each(|bucket| level.unmark(bucket));
        if move_all(next, level).is_err() {
            return false;
        }
        resizing.retired.extend(level.next.replace(None));
        if !fault::injected(Fault::UndoEndsTooSoon) {
            self.begin_phase();
        }
        true
    }

    /// Frees the tables that were replaced, for a caller that may take its time: waits a little for readers.
    fn wait_and_free(&self, resizing: &mut Resizing) {
        for _ in 0..if cfg!(ccf_model) { 1 } else { 100 } {
            self.free_retired(resizing);
            if resizing.retired.is_empty() {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Moves every copy from one table to another, one by one, and marks each bucket that is empty then.
///
/// # Errors
/// If the other table has no room for one.
pub(crate) fn move_all(from: &Level, to: &Level) -> Result<(), InsertError> {
    for bucket in 0..from.buckets() {
        while let Some(hash) = from.any_or_mark(bucket) {
            to.until_added(hash, Purpose::Insert, true, &|guard| {
                if !from.holds(bucket, hash) {
                    return Some(Added::No);
                }
                if !to.add_moved(hash) {
                    return None;
                }
                from.take_moved(guard, bucket, hash);
                Some(Added::Yes)
            })?;
        }
    }
    Ok(())
}

impl Drop for Growth {
    fn drop(&mut self) {
        // Nobody else has the filter, so nobody reads its tables.
        let Resizing { retired, .. } = core::mem::take(&mut *self.resizing.lock());
        retired.into_iter().for_each(|table| drop(table.into_inner()));
    }
}
