//! CONCURRENT: how a growing table gets more and fewer buckets: when an insert grows it, splits, merges, and the room
//! that a merge needs. (The room that an insert needs is in `room.rs`.) `growth/mod.rs` has the argument.

use crate::error::insert::{GrowableInsertError, ReserveError};
use crate::growth::growing_table::{GrowingTable, SplitError, SplitMemory, WORDS_PER_SPLIT, load};
use crate::growth::plan::Plan;
use crate::growth::room::{Relocation, WORDS_PER_HOP};
use crate::search::path::{self, Graph, Hop, Outcome};
use crate::sync::sizes::{GROUP, MERGE_TRIES, MOVED_PER_MERGE};
use crate::sync::{self, MutexGuard, Ordering};
use crate::table::image::spare::Spare;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, State};
use crate::word::halves::Halves;
use crate::word::layout::Entry;
use crate::word::layouts::EntryList;

/// The share of its capacity that a table must hold to grow where room is hard to find. (In a small table, a few keys may by
/// chance have the same two buckets. In any other, many keys of several copies each may have.) So keys that were chosen to
/// collide cannot drive the memory beyond a fixed multiple of what the keys need.
const LEAST_LOAD: f64 = 0.25;

/// Whether a table of this capacity holds at least [`LEAST_LOAD`] of it.
pub(super) fn is_quarter_full(len: usize, capacity: usize) -> bool {
    len as f64 >= LEAST_LOAD * capacity as f64
}

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

    fn hops(&self, number: usize, mut each: impl FnMut(Entry, usize)) {
        let (classes, depth, other) = (self.table.plan.classes, self.smaller.depth(number), 1 - number % 2);
        self.classes_in(number).for_each(|class| {
            each(Entry(classes.stored(class, depth)), self.smaller.place(class.sides[other]).number);
        });
    }
}

impl GrowingTable {
    /// Splits groups as long as the table holds more items than its capacity; at most `groups`, which it lowers. Does nothing
    /// while another thread changes the size.
    pub(super) fn grow_if_over_capacity(&self, groups: &mut usize) {
        self.grow_while(|| self.len() > self.capacity(), groups);
    }

    /// Splits groups as long as the table [`is_quarter_full`]; at most `groups`, which it lowers. Does nothing while another
    /// thread changes the size.
    pub(super) fn grow_if_quarter_full(&self, groups: &mut usize) {
        self.grow_while(|| is_quarter_full(self.len(), self.capacity()), groups);
    }

    /// Splits groups as long as that is due; at most `groups`, which it lowers. Does nothing while another thread
    /// changes the size.
    fn grow_while(&self, is_due: impl Fn() -> bool, groups: &mut usize) {
        // An insert that finds no room reports why the table cannot grow.
        while *groups > 0
            && is_due()
            && self.split_if(|| sync::try_lock(&self.resizing().lock), &is_due).is_ok_and(|is_split| is_split)
        {
            *groups -= 1;
        }
    }

    /// Splits the next group of buckets under the lock `resizing`, which it takes by `lock`, if that is due. Returns whether it
    /// did. The caller holds no lock.
    pub(crate) fn split_if<'a>(
        &self,
        lock: impl Fn() -> Option<MutexGuard<'a, ()>>,
        is_due: impl Fn() -> bool,
    ) -> Result<bool, GrowableInsertError> {
        let mut memory = SplitMemory::default();
        // Not for longer than a group: an insert may wait for it.
        while let Some(resizing) = lock()
            && is_due()
        {
            let split = self.split_group(&mut memory);
            drop(resizing);
            match split {
                Ok(()) => return Ok(true),
                Err(SplitError::Failed(error)) => return Err(error),
                Err(SplitError::Short) => memory.fill(self),
            }
        }
        Ok(false)
    }

    /// Splits the next group of buckets. The caller holds the lock `resizing`, and has got the memory before.
    pub(crate) fn split_group(&self, memory: &mut SplitMemory) -> Result<(), SplitError> {
        self.recover();
        let state = self.state();
        let (level, split, buckets) = (state.level(), state.split() as usize, state.buckets());
        if buckets == self.plan.last() {
            return Err(self.limit_reached(self.len()).into());
        }
        if self.grown_beyond_limit(buckets + GROUP).is_some() {
            self.end_growth_here();
            return Err(self.limit_reached(self.len()).into());
        }
        memory.prepare(self, buckets + GROUP)?;
        self.resizing().touched.fetch_max((buckets + GROUP) as u64, Ordering::Relaxed);
        let _gates = self.gates_of_group(split, level);
        // Under the gates: no save begins from here on.
        if !self.running_saves().has_enough(&memory.spare, WORDS_PER_SPLIT) {
            return Err(SplitError::Short);
        }
        let spare = self.running_saves().spare_if_running(Some(&memory.spare));
        for nth in 0..GROUP {
            self.copy_for_saves(split + nth, spare);
            self.copy_for_saves(split + nth + (1 << level), spare);
            self.publish(nth, self.load(split + nth));
        }
        self.change_state(state.moving());
        let halves = Halves::new(self.plan.classes, level, self.layout(level), self.layout(level + 1));
        for (number, whole) in (split..).zip(self.moving()) {
            let [low, high] = halves.of(number, load(whole));
            self.store(number + (1 << level), high);
            self.store(number, low);
        }
        self.change_state(State::of_buckets(buckets + GROUP));
        Ok(())
    }

    /// Lowers the limit to what the table can hold at its present size. The caller holds the lock `resizing`, and has found that
    /// the table cannot grow as far as was planned: its words take more memory, because the system had no range of addresses.
    pub(super) fn end_growth_here(&self) {
        let most = self.plan.full_capacity(self.state()) as u64;
        self.resizing().most.fetch_min(most, Ordering::Relaxed);
    }

    /// Why the table, which holds `len` items, takes no more of them.
    pub(super) fn limit_reached(&self, len: usize) -> GrowableInsertError {
        let (capacity, last) = (self.most(), self.state().buckets().max(self.plan.last()));
        match self.grown_beyond_limit(last + GROUP) {
            Some((needed, limit)) if last < self.plan.largest => {
                GrowableInsertError::MemoryLimit { len, capacity, needed, limit }
            }
            _ => GrowableInsertError::MaxCapacity { len, max_capacity: capacity },
        }
    }

    /// Undoes the last split of a group, if that is due. Returns whether it did: there may be no room. The caller holds no
    /// lock.
    pub(crate) fn merge_if(&self, is_due: impl Fn() -> bool) -> bool {
        let (spare, mut words) = (Spare::default(), WORDS_PER_SPLIT);
        loop {
            // Not for longer than a group: an insert may wait for it.
            let resizing = self.resizing().lock.lock();
            let merged = if is_due() { self.merge_group(&spare) } else { Some(false) };
            drop(resizing);
            if let Some(is_merged) = merged {
                return is_merged;
            }
            self.running_saves().fill(&spare, words);
            // Twice as much the next time, until it is enough for all the copies that a merge may move.
            words = words.saturating_mul(2);
        }
    }

    /// Undoes the last split of a group. Returns whether there was room; `None` if that takes more spare memory. The caller
    /// holds the lock `resizing`.
    fn merge_group(&self, spare: &Spare) -> Option<bool> {
        self.recover();
        let state = self.state();
        let Some(buckets) = state.buckets().checked_sub(GROUP).filter(|&buckets| buckets >= self.least_buckets())
        else {
            return Some(false);
        };
        let smaller = State::of_buckets(buckets);
        let (level, split) = (smaller.level(), smaller.split() as usize);
        if self.layout(level).slots() < self.layout(level + 1).slots()
            && !(split..split + GROUP).all(|number| self.may_merge(number, smaller))
        {
            return Some(false);
        }
        for _ in 0..MERGE_TRIES {
            let gates = self.gates_of_group(split, level);
            let mut too_full = [false; GROUP];
            for (nth, too_full) in too_full.iter_mut().enumerate() {
                match self.merged(split + nth, level) {
                    Some(whole) => self.publish(nth, whole),
                    None => *too_full = true,
                }
            }
            if !too_full.contains(&true) {
                // Under the gates: no save begins from here on.
                if !self.running_saves().has_enough(spare, WORDS_PER_SPLIT) {
                    return None;
                }
                let spare = self.running_saves().spare_if_running(Some(spare));
                (0..GROUP).for_each(|nth| self.copy_for_saves(split + nth, spare));
                self.change_state(smaller.moving());
                for nth in 0..GROUP {
                    self.store(split + nth, load(&self.moving()[nth]));
                }
                self.change_state(smaller);
                return Some(true);
            }
            drop(gates);
            for nth in (0..GROUP).filter(|&nth| too_full[nth]) {
                if !self.make_room_to_merge(split + nth, smaller, spare)? {
                    return Some(false);
                }
            }
        }
        Some(false)
    }

    /// Whether no class in this bucket's halves has more copies than it may have in the smaller table. (Copies that other
    /// threads add meanwhile are not seen.)
    fn may_merge(&self, number: usize, smaller: State) -> bool {
        let level = smaller.level();
        [number, number + (1 << level)].into_iter().flat_map(|half| self.classes_in(half, level + 1)).all(|class| {
            let _guard = self.lock(class);
            self.copies(class).iter().sum::<usize>() <= self.most_copies(class, smaller)
        })
    }

    /// Both halves of a split bucket as one word, if that has room for them. It is atomic if the caller holds the gates
    /// of both.
    fn merged(&self, number: usize, level: u32) -> Option<Bucket> {
        let mut all = EntryList::default();
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

    /// For a merge: moves copies out of the two halves of a bucket until the whole one has room for the rest. Returns
    /// `false` if there was no room elsewhere, and `None` if that takes more spare memory. The caller holds the lock
    /// `resizing`.
    fn make_room_to_merge(&self, number: usize, smaller: State, spare: &Spare) -> Option<bool> {
        for _ in 0..MOVED_PER_MERGE {
            if self.merged(number, smaller.level()).is_some() {
                break;
            }
            let mut is_short = false;
            let outcome =
                path::search(&Merged { table: self, smaller }, [number; 2], &mut |Hop { entry, from, .. }| {
                    let class = self.plan.classes.of_stored(from, smaller.depth(from), entry.0);
                    let placed = self.placed(class, self.state());
                    let changing = self.running_saves().lock_with(spare, WORDS_PER_HOP, self.lock(class));
                    is_short = changing.is_none();
                    changing.is_some_and(|changing| {
                        let spare = changing.spare();
                        self.relocate(&changing.guard, spare, placed, from % 2, None) == Relocation::Moved
                    })
                });
            if is_short {
                return None;
            }
            if let Outcome::Nothing { .. } = outcome {
                return Some(false);
            }
        }
        Some(true)
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
        let wanted = self.len().saturating_add(additional);
        let too_large = || ReserveError::CapacityTooLarge { additional, largest: self.plan.max_capacity() };
        let without_limit = Plan { within_limit: usize::MAX, ..self.plan };
        let buckets = self.plan.buckets_for(wanted).or_else(|| without_limit.buckets_for(wanted));
        let buckets = buckets.ok_or_else(too_large)?;
        if let Some((needed, limit)) = self.grown_beyond_limit(buckets) {
            return Err(ReserveError::MemoryLimit { additional, needed, limit });
        }
        let _request = self.request(buckets);
        self.grow_to(buckets).map_err(|error| match error {
            GrowableInsertError::OutOfMemory { bytes } => ReserveError::OutOfMemory { bytes },
            _ => too_large(),
        })
    }

    /// Grows the table to at least this many buckets.
    fn grow_to(&self, buckets: usize) -> Result<(), GrowableInsertError> {
        while self.split_if(|| Some(self.resizing().lock.lock()), || self.state().buckets() < buckets)? {}
        Ok(())
    }

    /// Grows the table to at least this many buckets, unless it would then go beyond a limit. Returns whether it has them.
    pub(crate) fn grow_if_possible(&self, buckets: usize) -> bool {
        let _request = self.request(buckets);
        self.grown_beyond_limit(buckets).is_none() && self.grow_to(buckets).is_ok()
    }

    /// Makes the table as small as its items, a capacity of this many, and requests of more that are running allow.
    pub(crate) fn shrink_to(&self, capacity: usize) {
        let is_enough = || {
            let (buckets, wanted) = (self.state().buckets(), self.len().max(capacity));
            buckets > self.plan.first && self.plan.capacity(State::of_buckets(buckets - GROUP)) >= wanted
        };
        while self.merge_if(is_enough) {}
        self.give_back();
    }

    /// Returns the memory of the words beyond the end to the system.
    pub(crate) fn give_back(&self) {
        // No bucket is added meanwhile.
        let _resizing = self.resizing().lock.lock();
        // A running save may still read words beyond the end. One that begins later does not.
        if !self.running_saves().any() {
            let buckets = self.state().buckets();
            if self.words.release(Self::sizes(&self.plan), buckets) {
                self.resizing().touched.store(buckets as u64, Ordering::Relaxed);
            }
        }
    }
}
