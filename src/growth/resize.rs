//! CONCURRENT: how a growing table gets more and fewer buckets. `growth/mod.rs` has the argument.

use crate::error::insert::{GrowableInsertError, ReserveError};
use crate::growth::table::{GrowingTable, load};
use crate::plan::path::{self, Graph, Hop, Outcome};
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, GROUP, State, both};
use crate::word::layout::Entry;
use crate::word::layouts::Entries;

/// How often a merge makes room for copies that do not fit, while other threads take that room.
const TRIES: usize = if cfg!(ccf_model) { 1 } else { 8 };

/// The most copies that a merge moves out of one bucket per try: those of two buckets, and some that other threads add.
const MOVED: usize = if cfg!(ccf_model) { 1 } else { 32 };

/// The most groups that an insert that finds the table too full splits.
const GROUPS_PER_CHECK: usize = if cfg!(ccf_model) { 1 } else { 4 };

/// The table as it will be after the merge of a group, for a search: so no copy is moved to a bucket that will have no
/// room for it.
struct Merged<'a> {
    table: &'a GrowingTable,
    smaller: State,
}

impl Merged<'_> {
    /// The classes of the copies that a bucket will have.
    fn classes_in(&self, number: usize) -> impl Iterator<Item = Class> {
        let (level, split) = (self.smaller.level(), self.smaller.split() as usize);
        let is_merged = (split..split + GROUP).contains(&number);
        let depth = if is_merged { level + 1 } else { self.smaller.depth(number) };
        let halves = [Some(number), is_merged.then_some(number + (1 << level))].into_iter().flatten();
        halves.flat_map(move |half| self.table.classes_in(half, depth))
    }
}

impl Graph for Merged<'_> {
    fn len(&self) -> usize {
        self.smaller.buckets()
    }

    fn load(&self, number: usize) -> Bucket {
        self.table.load(number)
    }

    fn prefetch(&self, _: usize) {}

    fn has_room(&self, number: usize, _: Bucket) -> bool {
        self.classes_in(number).count() < self.table.layout(self.smaller.depth(number)).slots()
    }

    fn hops(&self, number: usize, _: Bucket) -> impl Iterator<Item = (Entry, usize)> {
        let (classes, depth, other) = (self.table.plan.classes, self.smaller.depth(number), 1 - number % 2);
        self.classes_in(number)
            .map(move |class| (Entry(classes.stored(class, depth)), self.smaller.place(class.sides[other]).number))
    }
}

impl GrowingTable {
    /// Grows the table if it holds more items than its capacity. Inserts call it at intervals.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_load(&self) {
        self.grow_if_crowded(0, GROUPS_PER_CHECK);
    }

    /// Splits at most `groups` groups, until the capacity suffices for `more` items than there are. Does nothing while
    /// another thread changes the size.
    pub(super) fn grow_if_crowded(&self, more: usize, groups: usize) {
        let is_crowded = || self.len() + more > self.capacity();
        if !is_crowded() {
            return;
        }
        if let Some(_resizing) = crate::sync::try_lock(&self.resizing().lock) {
            // An insert that finds no room reports why the table cannot grow.
            let _ = (0..groups).take_while(|_| is_crowded()).try_for_each(|_| self.split_group());
        }
    }

    /// Splits the next group of buckets. The caller holds the lock `resizing`.
    pub(crate) fn split_group(&self) -> Result<(), GrowableInsertError> {
        self.recover();
        let state = self.state();
        let (level, split, buckets) = (state.level(), state.split() as usize, state.buckets());
        if buckets == self.plan.largest {
            return Err(GrowableInsertError::MaxCapacity { len: self.len(), max_capacity: self.max_capacity() });
        }
        if let Some((needed, limit)) = self.grown_beyond_limit(buckets + GROUP) {
            return Err(GrowableInsertError::MemoryLimit { len: self.len(), needed, limit });
        }
        if !self.prepare_to_grow() {
            return Err(GrowableInsertError::OutOfMemory { bytes: Self::memory_to_grow(&self.plan) });
        }
        let extended = self.words.extend(Self::sizes(&self.plan), buckets + GROUP);
        extended.map_err(|bytes| GrowableInsertError::OutOfMemory { bytes })?;
        self.resizing().touched.fetch_max((buckets + GROUP) as u64, Ordering::Relaxed);
        let _gates = self.gates_of_group(split, level);
        for nth in 0..GROUP {
            self.publish(nth, self.load(split + nth));
        }
        if !fault::injected(Fault::SplitsUnannounced) {
            self.change_state(state.moving());
        }
        let (from, to) = (self.layout(level), self.layout(level + 1));
        for nth in 0..GROUP {
            let (number, whole) = (split + nth, load(&self.moving()[nth]));
            let mut halves = [Entries::default(); 2];
            from.entries(whole).for_each(|entry| {
                let class = self.plan.classes.of_stored(number, level, entry.0);
                let half = (class.sides[number % 2] >> level) as usize & 1;
                halves[half].push(Entry(self.plan.classes.stored(class, level + 1)));
            });
            let [low, high] = both(halves, |half| to.of(half).expect("a deeper bucket has as many slots"));
            self.set_aside(number, Fault::SplitSetsNothingAside);
            self.set_aside(number + (1 << level), Fault::SplitSetsNothingAside);
            self.store(number + (1 << level), high);
            self.store(number, low);
        }
        self.change_state(State::of_buckets(buckets + GROUP));
        Ok(())
    }

    /// Undoes the last split of a group. Returns whether there was room. The caller holds the lock `resizing`.
    pub(crate) fn merge_group(&self) -> bool {
        self.recover();
        let state = self.state();
        let Some(buckets) = state.buckets().checked_sub(GROUP).filter(|&buckets| buckets >= self.plan.first) else {
            return false;
        };
        let smaller = State::of_buckets(buckets);
        let (level, split) = (smaller.level(), smaller.split() as usize);
        for _ in 0..TRIES {
            let gates = self.gates_of_group(split, level);
            let mut crowded = [false; GROUP];
            for (nth, crowded) in crowded.iter_mut().enumerate() {
                match self.merged(split + nth, level) {
                    Some(whole) => self.publish(nth, whole),
                    None => *crowded = true,
                }
            }
            if !crowded.contains(&true) {
                if !fault::injected(Fault::MergesUnannounced) {
                    self.change_state(smaller.moving());
                }
                for nth in 0..GROUP {
                    self.set_aside(split + nth, Fault::SplitSetsNothingAside);
                    self.store(split + nth, load(&self.moving()[nth]));
                }
                self.change_state(smaller);
                return true;
            }
            drop(gates);
            if !(0..GROUP).filter(|&nth| crowded[nth]).all(|nth| self.make_room(split + nth, smaller)) {
                return false;
            }
        }
        false
    }

    /// Both halves of a split bucket as one word, if that has room for them. It is atomic if the caller holds the gates
    /// of both.
    fn merged(&self, number: usize, level: u32) -> Option<Bucket> {
        let mut all = Entries::default();
        for half in [number, number + (1 << level)] {
            self.classes_in(half, level + 1).for_each(|class| all.push(Entry(self.plan.classes.stored(class, level))));
        }
        self.layout(level).of(all)
    }

    /// The classes of the copies in a bucket of this depth.
    fn classes_in(&self, number: usize, depth: u32) -> impl Iterator<Item = Class> {
        let entries = self.layout(depth).entries(self.load(number));
        entries.map(move |entry| self.plan.classes.of_stored(number, depth, entry.0))
    }

    /// Moves copies out of the two halves of a bucket until the whole one has room for the rest. Returns `false` if
    /// there was no room elsewhere. The caller holds the lock `resizing`.
    fn make_room(&self, number: usize, smaller: State) -> bool {
        for _ in 0..MOVED {
            if self.merged(number, smaller.level()).is_some() {
                break;
            }
            let outcome =
                path::search(&Merged { table: self, smaller }, [number; 2], &mut |Hop { entry, from, .. }| {
                    let class = self.plan.classes.of_stored(from, smaller.depth(from), entry.0);
                    self.relocate(&self.lock(class), class, from % 2)
                });
            if let Outcome::Nothing { .. } = outcome {
                return false;
            }
        }
        true
    }

    /// Stores the whole word of a bucket that is about to be moved.
    fn publish(&self, nth: usize, whole: Bucket) {
        // Release, with `load`: a thread that reads this sees that the last change of the size is over.
        self.moving()[nth].store(whole.0, Ordering::Release);
    }

    /// Makes room for this many further copies, or none.
    pub(crate) fn reserve(&self, additional: usize) -> Result<(), ReserveError> {
        if additional == 0 {
            return Ok(());
        }
        let _request = self.resizing().requests.lock();
        let wanted = self.len().saturating_add(additional);
        let too_large = || ReserveError::CapacityTooLarge { additional, largest: self.plan.max_capacity() };
        let buckets = self.plan.buckets_for(wanted).ok_or_else(too_large)?;
        if let Some((needed, limit)) = self.grown_beyond_limit(buckets) {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        loop {
            // Not for longer than a group: an insert may wait for it.
            let _resizing = self.resizing().lock.lock();
            if self.state().buckets() >= buckets {
                return Ok(());
            }
            self.split_group().map_err(|error| match error {
                GrowableInsertError::OutOfMemory { bytes } => ReserveError::OutOfMemory { bytes },
                _ => too_large(),
            })?;
        }
    }

    /// Makes the table as small as its items, and a capacity of this many, allow.
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
        self.give_back();
    }

    /// Returns the memory of the words beyond the end to the system.
    pub(crate) fn give_back(&self) {
        // No bucket is added meanwhile.
        let _resizing = (!fault::injected(Fault::GivesBackWithoutLock)).then(|| self.resizing().lock.lock());
        // A running save may still read words beyond the end. One that begins later does not.
        let is_needed = self.saving().is_running() && !fault::injected(Fault::GivesBackBesideSave);
        let buckets = self.state().buckets();
        if !is_needed && self.words.release(Self::sizes(&self.plan), buckets) {
            self.resizing().touched.store(buckets as u64, Ordering::Relaxed);
        }
    }
}
