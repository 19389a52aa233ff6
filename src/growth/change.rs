//! CONCURRENT: changes of a growing table: inserts, removals and `clear`.
//!
//! An insert that finds both buckets full searches for a path to a bucket with room (`room.rs`). If there is none, it
//! grows the table, if that holds more items than its capacity, and tries again.
//!
//! # Why a failed insert is right
//! In the end the insert holds the lock by which the size changes, and those of all stripes. So the size stays, no copy
//! is taken out, and no relocation is half done: others can only add. It searches once more. If there is no path, each
//! bucket that it saw was full and stays full, so this is a moment without room. If there is one, it is carried out,
//! and the copy is added unless another thread has taken the room. Each further turn is due to a copy that another
//! thread has added, and free slots run out. So contention alone never makes an insert fail.
//!
//! A failed insert has added nothing and taken nothing out. If there is no room for it, the table grows as long as it
//! holds at least [`LEAST_LOAD`] of its capacity. (Keys of one class are counted first: the table does not grow for
//! them.)

use crate::error::insert::{GrowableInsertError, InsertBatchError};
use crate::growth::table::GrowingTable;
use crate::plan::batch::{BLOCK, Hashes, Window};
use crate::plan::path::Outcome;
use crate::sync::sizes::{INSERTS_PER_CHECK, SEARCHES_WHILE_GROWING};
use crate::word::bucket::Bucket;
use crate::word::classes::Class;

/// How many groups an insert that finds no room splits.
const GROUPS_PER_INSERT: usize = 2;

/// The share of its capacity that a table must hold to grow for an insert that finds no room. (In a small table, a few
/// keys may by chance have the same two buckets. In any other, keys of several copies each may have.) So keys that were
/// chosen to collide cannot drive the memory beyond a fixed multiple of what the keys need.
const LEAST_LOAD: f64 = 0.25;

impl GrowingTable {
    /// Adds a copy.
    #[inline(always)]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), GrowableInsertError> {
        let class = self.plan.classes.of(hash);
        if !self.add(class) {
            self.add_slow(class, false)?;
        }
        self.count_added(1);
        Ok(())
    }

    /// Adds a copy unless there is one. Returns whether it did.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, GrowableInsertError> {
        // Avoids the lock where a lookup is enough.
        if self.contains(hash) {
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

    /// Counts copies that were added, and grows the table if it is too full now.
    #[inline(always)]
    fn count_added(&self, count: i64) {
        if self.counters().add_len(count) & (INSERTS_PER_CHECK as i64 - 1) < count {
            self.keep_load();
        }
    }

    /// `insert`, or `insert_if_absent` if `absent`, where neither bucket had room. Returns whether it added a copy.
    /// Does not count it.
    #[cold]
    #[inline(never)]
    pub(super) fn add_slow(&self, class: Class, absent: bool) -> Result<bool, GrowableInsertError> {
        let attempt = || if absent { self.add_if_absent(class) } else { self.add(class).then_some(true) };
        for _ in 0..SEARCHES_WHILE_GROWING {
            let outcome = self.search(class.sides, &|class, side| {
                let guard = self.stripe(class).lock(self.counters());
                self.relocate(&guard, class, side)
            });
            let buckets = self.state().buckets();
            let is_nothing = matches!(outcome, Outcome::Nothing { .. });
            if is_nothing {
                let copies = {
                    let _guard = self.lock(class);
                    self.copies_that_fill(class)
                };
                if let Some(copies) = copies {
                    return self.fail(GrowableInsertError::TooManyCopies { copies });
                }
                self.grow_if_crowded(1, GROUPS_PER_INSERT);
            }
            if let Some(added) = attempt() {
                return Ok(added);
            }
            // Another search would find nothing.
            if is_nothing && self.state().buckets() == buckets {
                break;
            }
        }
        loop {
            if let Some(result) = self.add_alone(class, absent) {
                return result.or_else(|error| self.fail(error));
            }
        }
    }

    /// Counts an insert that fails.
    fn fail(&self, error: GrowableInsertError) -> Result<bool, GrowableInsertError> {
        self.counters().insert_refused();
        Err(error)
    }

    /// How many copies of the class there are, if they fill its two buckets: no other bucket may hold one. The caller holds
    /// the class's stripe.
    fn copies_that_fill(&self, class: Class) -> Option<usize> {
        let copies = self.copies(class).iter().sum();
        let state = self.state();
        let slots = class.sides.iter().map(|&side| self.layout(state.place(side).depth).slots()).sum::<usize>();
        (copies == slots).then_some(copies)
    }

    /// `add_slow` while no other thread changes the size or removes a copy. `None` if the table has grown instead.
    fn add_alone(&self, class: Class, absent: bool) -> Option<Result<bool, GrowableInsertError>> {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        let (state, len) = (self.state(), self.len());
        let capacity = self.plan.capacity(state);
        let is_crowded = len >= capacity;
        // It may grow, and perhaps it is why this fails.
        let mut error = GrowableInsertError::Full { len, capacity };
        if is_crowded {
            match self.split_group() {
                Ok(()) => return None,
                Err(why) => error = why,
            }
        }
        let result = self.under_all_locks(|all| {
            loop {
                if absent && self.copies(class) != [0; 2] {
                    return Ok(false);
                }
                if self.add(class) {
                    return Ok(true);
                }
                let relocate =
                    |class: Class, side: usize| self.relocate(&self.stripe(class).locked_with_all(all), class, side);
                if let Outcome::Nothing { .. } = self.search(class.sides, &relocate) {
                    let too_many = |copies| GrowableInsertError::TooManyCopies { copies };
                    return Err(self.copies_that_fill(class).map_or(error, too_many));
                }
            }
        });
        if let Err(GrowableInsertError::Full { .. }) = result
            && len as f64 >= LEAST_LOAD * capacity as f64
        {
            return self.split_group().err().map(Err);
        }
        Some(result)
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let class = self.plan.classes.of(hash);
        // The processor starts no load before it has taken the lock, but it does start a prefetch.
        self.prefetch_class(self.state(), class);
        let guard = self.stripe(class).lock(self.counters());
        let copies = self.copies(class);
        let removed = (0..2).any(|side| copies[side] > 0 && self.take_on(&guard, class, side));
        self.counters().removal(removed)
    }

    /// `insert` for each hash, in order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError<GrowableInsertError>> {
        let (mut window, mut inserted) = (Window::new(hashes), 0);
        while let Some(hashes) = self.next_block(&mut window) {
            for &hash in hashes {
                self.insert(hash).map_err(|error| InsertBatchError::new(inserted, error))?;
                inserted += 1;
            }
        }
        Ok(inserted)
    }

    /// `remove` for each hash, in order.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut window = Window::new(hashes);
        while let Some(hashes) = self.next_block(&mut window) {
            let mut removed = [false; BLOCK];
            for (&hash, removed) in hashes.iter().zip(&mut removed) {
                *removed = self.remove(hash);
            }
            answers(&removed[..hashes.len()]);
        }
    }

    /// The hashes of the next block of a batch of changes. Prefetches what those to come will need.
    fn next_block<'w>(&self, window: &'w mut Window<'_, ()>) -> Option<&'w [u64]> {
        while let Some(coming) = window.coming() {
            self.prefetch(&coming.hashes[..coming.len]);
        }
        let (block, ()) = window.next()?;
        Some(&block.hashes[..block.len])
    }

    /// Removes every copy that is there when it begins. The size stays.
    pub(crate) fn clear(&self) {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        // All locks, so that no relocation carries a copy past this loop.
        self.under_all_locks(|all| {
            self.stripes.iter().for_each(|stripe| stripe.locked_with_all(all).bump());
            let state = self.state();
            let mut copies = 0;
            for number in 0..state.buckets() {
                let _gate = self.gate(number);
                let removed = self.store(number, Bucket::default());
                copies += self.layout(state.depth(number)).occupied(removed) as i64;
            }
            self.counters().add_len(-copies);
        });
    }
}
