//! CONCURRENT: how a table that grows gets more and fewer buckets. `growth/mod.rs` has the argument.

use crate::error::insert::{InsertError, ReserveError};
use crate::growth::table::{GrowingTable, Refusal};
use crate::sync::fault::{self, Fault};
use crate::sync::{MutexGuard, Ordering};
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, GROUP, State};
use crate::word::layouts::Stored;

/// How often a merge tries to make room for copies that do not fit while others take that room.
const TRIES: usize = if cfg!(ccf_model) { 1 } else { 8 };

/// How many groups an insert splits at most that finds the table too full.
const GROUPS_PER_CHECK: usize = if cfg!(ccf_model) { 1 } else { 4 };

impl GrowingTable {
    /// Lets the table grow if it has more items than it is made for. Inserts call it at intervals.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_load(&self) {
        self.grow_if_crowded(GROUPS_PER_CHECK);
    }

    /// Splits so many groups at most, until the table is made for what is in. If another thread is at it, leaves it to that.
    pub(super) fn grow_if_crowded(&self, groups: usize) {
        let is_crowded = || self.len() >= self.capacity();
        if !is_crowded() {
            return;
        }
        if let Some(_resizing) = crate::sync::try_lock(&self.resizing().lock) {
            // An insert that finds no room says why the table cannot grow.
            let _ = (0..groups).take_while(|_| is_crowded()).try_for_each(|_| self.split_group());
        }
    }

    /// Splits the next group of buckets. The caller has the lock for that.
    pub(crate) fn split_group(&self) -> Result<(), InsertError> {
        self.recover();
        let state = self.state();
        let (level, split, buckets) = (state.level(), state.split() as usize, state.buckets());
        if buckets == self.plan.largest() {
            return Err(InsertError::MaxCapacity { len: self.len(), max_capacity: self.max_capacity() });
        }
        match Self::check_limit(&self.plan, buckets + GROUP) {
            Err(Refusal::MemoryLimit { needed, limit }) => {
                return Err(InsertError::MemoryLimit { len: self.len(), needed, limit });
            }
            Err(Refusal::OutOfMemory { .. }) | Ok(()) => {}
        }
        if !self.words.lengthen(self.plan.pages, level) {
            return Err(InsertError::OutOfMemory { bytes: size_of::<u64>() << level });
        }
        self.resizing().touched.fetch_max((buckets + GROUP) as u64, Ordering::Relaxed);
        let _gates = self.gates_of_group(split);
        for nth in 0..GROUP {
            self.publish(nth, self.load(split + nth));
        }
        if !fault::injected(Fault::SplitsUnannounced) {
            self.change_state(state.moving());
        }
        for nth in 0..GROUP {
            let whole = super::table::load(&self.moving[nth]);
            let number = split + nth;
            let mut halves = [Stored::default(); 2];
            for stored in self.layout(level).stored(whole) {
                let class = self.plan.classes.of_stored(number, level, stored);
                let side = class.sides[number % 2];
                halves[(side >> level) as usize & 1].push(self.plan.classes.stored(class, level + 1));
            }
            let [low, high] =
                halves.map(|half| self.layout(level + 1).of(half).expect("a deeper bucket has as many slots"));
            self.set_aside(number, Fault::SplitSetsNothingAside);
            self.set_aside(number + (1 << level), Fault::SplitSetsNothingAside);
            self.store(number + (1 << level), high);
            self.store(number, low);
        }
        self.change_state(State::of_buckets(buckets + GROUP));
        Ok(())
    }

    /// Merges the last group of buckets that was split with those that it became. Returns whether there was room. The caller
    /// has the lock for that.
    pub(crate) fn merge_group(&self) -> bool {
        self.recover();
        let state = self.state();
        let Some(buckets) = state.buckets().checked_sub(GROUP).filter(|&buckets| buckets >= self.plan.first) else {
            return false;
        };
        let smaller = State::of_buckets(buckets);
        let (level, split) = (smaller.level(), smaller.split() as usize);
        for _ in 0..TRIES {
            let gates = self.gates_of_group(split);
            let mut excess = None;
            for nth in 0..GROUP {
                match self.merged(split + nth, level) {
                    Ok(whole) => self.publish(nth, whole),
                    Err(class) => excess = Some(class),
                }
            }
            let Some((class, side)) = excess else {
                if !fault::injected(Fault::MergesUnannounced) {
                    self.change_state(smaller.moving());
                }
                for nth in 0..GROUP {
                    self.set_aside(split + nth, Fault::SplitSetsNothingAside);
                    self.store(split + nth, super::table::load(&self.moving[nth]));
                }
                self.change_state(smaller);
                return true;
            };
            drop(gates);
            if !self.send_away(class, side) {
                return false;
            }
        }
        false
    }

    /// Undoes what a thread has begun that died while it moved copies: they are in `moving` all of them. The caller has the
    /// lock by which the size changes.
    pub(super) fn recover(&self) {
        let state = self.state();
        if !state.is_moving() {
            return;
        }
        let first = state.split() as usize;
        let _gates = self.gates_of_group(first);
        for nth in 0..GROUP {
            self.set_aside(first + nth, Fault::SplitSetsNothingAside);
            self.store(first + nth, super::table::load(&self.moving[nth]));
        }
        self.change_state(State::of_buckets(state.buckets()));
    }

    /// The whole of a bucket that is split, or the class and the side of a copy for which there is no room. The caller holds
    /// the gate.
    fn merged(&self, number: usize, level: u32) -> Result<Bucket, (Class, usize)> {
        let (mut all, mut last) = (Stored::default(), None);
        for number in [number, number + (1 << level)] {
            for stored in self.layout(level + 1).stored(self.load(number)) {
                let class = self.plan.classes.of_stored(number, level + 1, stored);
                all.push(self.plan.classes.stored(class, level));
                last = Some((class, number % 2));
            }
        }
        self.layout(level).of(all).ok_or_else(|| last.expect("an empty bucket has room"))
    }

    /// Moves a copy to its other side, and others away from there if need be. Returns whether there was room.
    fn send_away(&self, class: Class, side: usize) -> bool {
        let relocate = |class: Class, side: usize| self.relocate(&self.lock(class), class, side);
        for _ in 0..TRIES {
            if relocate(class, side) || self.copies_now(class)[side] == 0 {
                return true;
            }
            // From both buckets that the copy could go to: they are one.
            self.search([class.sides[1 - side]; 2], &relocate);
        }
        false
    }

    fn copies_now(&self, class: Class) -> [usize; 2] {
        let _guard = self.lock(class);
        self.copies(class)
    }

    /// The gates of the group of buckets from here on, in order.
    fn gates_of_group(&self, first: usize) -> [MutexGuard<'_, ()>; GROUP] {
        core::array::from_fn(|nth| self.gate(first + nth))
    }

    /// Stores the whole word of a bucket that is about to be moved.
    fn publish(&self, nth: usize, whole: Bucket) {
        // Release, with `load`: a thread that reads this sees that the last change of the size is over.
        self.moving[nth].swap(whole.0, Ordering::SeqCst);
    }

    /// Makes room for this many further copies, or none.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        if additional == 0 {
            return Ok(());
        }
        let _request = self.resizing().requests.lock();
        let wanted = self.len().saturating_add(additional);
        let too_large = ReserveError::CapacityTooLarge { additional, largest: self.plan.max_capacity() };
        let buckets = self.plan.buckets_for(wanted).ok_or(too_large)?;
        if let Err(Refusal::MemoryLimit { needed, limit }) = Self::check_limit(&self.plan, buckets) {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        loop {
            // Not for longer than a group: an insert may wait for it.
            let _resizing = self.resizing().lock.lock();
            if self.state().buckets() >= buckets {
                return Ok(());
            }
            self.split_group().map_err(|error| match error {
                InsertError::OutOfMemory { bytes } => ReserveError::OutOfMemory { bytes },
                _ => too_large,
            })?;
        }
    }

    /// Makes the table as small as what is in, and this many items, allow.
    pub(crate) fn shrink_to(&self, capacity: usize) {
        let _request = self.resizing().requests.lock();
        loop {
            // Not for longer than a group: an insert may wait for it.
            let _resizing = self.resizing().lock.lock();
            let wanted = self.len().max(capacity);
            let is_enough = |buckets: usize| self.plan.capacity(State::of_buckets(buckets)) >= wanted;
            let buckets = self.state().buckets();
            if buckets == self.plan.first || !is_enough(buckets - GROUP) || !self.merge_group() {
                break;
            }
        }
        let _resizing = self.resizing().lock.lock();
        let buckets = self.state().buckets();
        // A save that is running may yet read what is beyond the end. One that begins later does not.
        if !self.saving().is_running() && self.words.release(buckets) {
            self.resizing().touched.store(buckets as u64, Ordering::Relaxed);
        }
    }
}
