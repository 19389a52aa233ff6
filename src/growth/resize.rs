//! CONCURRENT: how a table that grows gets more and fewer buckets. `growth/mod.rs` has the argument.

use crate::error::insert::{InsertError, ReserveError};
use crate::growth::table::{GrowingTable, Refusal, load};
use crate::plan::path::Outcome;
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, GROUP, State};
use crate::word::layouts::{MOST_SLOTS, Stored};

/// How often a merge tries to make room for copies that do not fit while others take that room.
const TRIES: usize = if cfg!(ccf_model) { 1 } else { 8 };

/// How many copies a merge sends away at most, of one bucket. More are only needed if others add as many.
const COPIES_SENT_AWAY: usize = 4 * MOST_SLOTS;

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
            let whole = load(&self.moving[nth]);
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
            if !(split..split + GROUP).all(|number| self.make_fit(number, smaller)) {
                return false;
            }
            let _gates = self.gates_of_group(split);
            // Others may have added copies meanwhile.
            let fits = (0..GROUP).all(|nth| {
                let mut all = Stored::default();
                self.halves(split + nth, level).for_each(|(class, _)| all.push(self.plan.classes.stored(class, level)));
                let whole = self.layout(level).of(all);
                whole.is_some_and(|whole| {
                    self.publish(nth, whole);
                    true
                })
            });
            if !fits {
                continue;
            }
            if !fault::injected(Fault::MergesUnannounced) {
                self.change_state(smaller.moving());
            }
            for nth in 0..GROUP {
                self.set_aside(split + nth, Fault::SplitSetsNothingAside);
                self.store(split + nth, load(&self.moving[nth]));
            }
            self.change_state(smaller);
            return true;
        }
        false
    }

    /// The classes of the copies in both buckets that this one of the smaller size has become, each with its side there.
    fn halves(&self, number: usize, level: u32) -> impl Iterator<Item = (Class, usize)> {
        [number, number + (1 << level)].into_iter().flat_map(move |number| {
            let stored = self.layout(level + 1).entries(self.load(number));
            stored.map(move |entry| (self.plan.classes.of_stored(number, level + 1, entry.0), number % 2))
        })
    }

    /// Moves copies of these two buckets to their other sides until one bucket of the smaller size has room for the others.
    /// Returns whether it has.
    fn make_fit(&self, number: usize, smaller: State) -> bool {
        let (level, first) = (smaller.level(), smaller.split() as usize);
        let relocate = |class: Class, side: usize| self.relocate(&self.lock(class), class, side);
        // A copy that stays in the group would only be too much in another bucket of it.
        let is_outside = |class: Class, side: usize| {
            let other = class.sides[1 - side] as usize & ((1 << level) - 1);
            !(first..first + GROUP).contains(&other)
        };
        for _ in 0..COPIES_SENT_AWAY {
            let mut copies = [None; 2 * MOST_SLOTS];
            self.halves(number, level).zip(&mut copies).for_each(|(copy, place)| *place = Some(copy));
            let copies = || copies.iter().flatten().copied();
            if copies().count() <= self.layout(level).slots() {
                return true;
            }
            let with_room = |outside: bool| {
                copies().any(|(class, side)| is_outside(class, side) == outside && relocate(class, side))
            };
            let with_path = |outside: bool| {
                copies().any(|(class, side)| {
                    is_outside(class, side) == outside
                        && matches!(self.search([class.sides[1 - side]; 2], &relocate), Outcome::Planned)
                        && relocate(class, side)
                })
            };
            if !(with_room(true) || with_path(true) || with_room(false) || with_path(false)) {
                return false;
            }
        }
        false
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
