//! CONCURRENT: how an insert makes room in a table that grows, and how it makes sure that there is none.
//!
//! An insert that finds both buckets full first lets the table grow, if that has more items than it is made for. Then it
//! searches for a path to a bucket with room, as in a table of a fixed size (`plan/path.rs`). A path is a plan: each hop
//! names a class and a side, and checks under the stripe and the gates where that is by then. So a split or a merge that
//! comes in between does no harm.
//!
//! # Why an insert that fails is right to
//! In the end the insert holds the lock by which the size changes, and those of all stripes. So the size stays, no copy is
//! taken out, and no relocation is half done: others can only add. It searches once more. If there is no path, each bucket
//! that it saw was full and stays full, so this is a moment without room. If there is one, it is carried out, and the copy
//! is added unless another thread has taken the room. Each further turn is due to a copy that another thread has added,
//! and free slots run out. So contention alone is never a reason to fail.
//!
//! An insert that fails has added nothing and taken nothing out. If there is no room for it, the table grows as long as it has
//! more than [`LEAST_LOAD`] of the items that it is made for. (Keys of one class are counted first: the table does not grow
//! for them.)

use crate::error::insert::InsertError;
use crate::error::kind::FilterKind;
use crate::growth::table::{GrowingTable, load};
use crate::plan::path::{self, Graph, Hop, Outcome};
use crate::sync::fault::{self, Fault};
use crate::table::stripe::Guard;
use crate::word::bucket::Bucket;
use crate::word::classes::{Class, GROUP, State};
use crate::word::layout::Entry;

/// The number of searches that an insert makes while others change the table. After that it makes one that no thread can
/// disturb.
const SEARCHES: u32 = if cfg!(ccf_model) { 1 } else { 4 };

/// How many groups an insert splits that finds no room.
const GROUPS_PER_INSERT: usize = 2;

/// The share of what it is made for that a table must have to grow for an insert that finds no room. (In a small table, a few
/// keys may by chance have the same two buckets. In any other, keys with several copies may have.) So keys that were chosen
/// to collide cannot drive the memory beyond a fixed multiple of what the keys need.
const LEAST_LOAD: f64 = 0.25;

/// A table in one state, as a search sees it.
struct View<'a> {
    table: &'a GrowingTable,
    state: State,
}

impl Graph for View<'_> {
    fn len(&self) -> usize {
        self.state.buckets()
    }

    fn load(&self, number: usize) -> Bucket {
        let at = number.wrapping_sub(self.state.split() as usize);
        if self.state.is_moving() && at < GROUP {
            return load(&self.table.moving[at]);
        }
        self.table.words.get(number).map_or(Bucket::default(), load)
    }

    fn has_room(&self, number: usize, word: Bucket) -> bool {
        self.table.layout(self.state.depth(number)).has_room(word)
    }

    fn hops(&self, number: usize, word: Bucket) -> impl Iterator<Item = (Entry, usize)> {
        let (classes, depth, other) = (self.table.plan.classes, self.state.depth(number), 1 - number % 2);
        self.table.layout(depth).stored(word).into_iter().map(move |stored| {
            let class = classes.of_stored(number, depth, stored);
            (Entry(stored), self.state.place(class.sides[other]).number)
        })
    }
}

impl GrowingTable {
    /// Adds a copy, if it is to be `absent` unless there is one, where neither bucket had room. Returns whether it did. Does
    /// not count it.
    #[cold]
    #[inline(never)]
    pub(super) fn add_slow(&self, class: Class, absent: bool) -> Result<bool, InsertError> {
        let attempt = || if absent { self.add_if_absent(class) } else { self.add(class).then_some(true) };
        for _ in 0..SEARCHES {
            if let Some(copies) = self.copies_that_fill(class) {
                return self.fail(class, InsertError::TooManyCopies { filter: FilterKind::Growable, copies });
            }
            self.grow_if_crowded(1, GROUPS_PER_INSERT);
            self.search(class.sides, &|class, side| {
                let guard = self.stripe(class).lock_unless(Fault::RelocateWithoutLock, &self.counters);
                self.relocate(&guard, class, side)
            });
            if let Some(added) = attempt() {
                return Ok(added);
            }
        }
        loop {
            if let Some(result) = self.add_alone(class, absent) {
                return result.or_else(|error| self.fail(class, error));
            }
        }
    }

    /// Counts an insert that fails.
    fn fail(&self, _: Class, error: InsertError) -> Result<bool, InsertError> {
        self.counters.insert_refused();
        Err(error)
    }

    /// How many copies of the class there are, if they fill its two buckets: no other bucket may hold one.
    fn copies_that_fill(&self, class: Class) -> Option<usize> {
        let _guard = self.lock(class);
        let copies = self.copies(class).iter().sum();
        let state = self.state();
        let slots = class.sides.iter().map(|&side| self.layout(state.place(side).depth).slots()).sum::<usize>();
        (copies == slots).then_some(copies)
    }

    /// `add_slow` while no other thread changes the size or takes a copy out. `None` if the table has grown instead.
    fn add_alone(&self, class: Class, absent: bool) -> Option<Result<bool, InsertError>> {
        let _resizing = self.resizing().lock.lock();
        self.recover();
        let (state, len) = (self.state(), self.len());
        let capacity = self.plan.capacity(state);
        let is_crowded = len >= capacity;
        // It may grow, and perhaps it is why this fails.
        let mut error = InsertError::Full { filter: FilterKind::Growable, len, capacity };
        if is_crowded {
            match self.split_group() {
                Ok(()) => return None,
                Err(why) => error = why,
            }
        }
        let result = self.under_all_locks(Fault::FullWithoutLocks, || {
            let guard = self.stripe(class).held();
            loop {
                if absent && self.copies(class) != [0; 2] {
                    return Ok(false);
                }
                if self.add(class) {
                    return Ok(true);
                }
                let _ = &guard;
                let relocate = |class: Class, side: usize| self.relocate(&self.stripe(class).held(), class, side);
                if let Outcome::Nothing { .. } = self.search(class.sides, &relocate) {
                    let copies: usize = self.copies(class).iter().sum();
                    let slots: usize =
                        class.sides.iter().map(|&side| self.layout(state.place(side).depth).slots()).sum();
                    return Err(if copies == slots {
                        InsertError::TooManyCopies { filter: FilterKind::Growable, copies }
                    } else {
                        error
                    });
                }
            }
        });
        let may_grow = !is_crowded && len as f64 >= LEAST_LOAD * capacity as f64;
        if let Err(InsertError::Full { .. }) = result
            && may_grow
        {
            return self.split_group().err().map(Err);
        }
        Some(result)
    }

    /// Searches for a path to room in a bucket of either side, and carries it out.
    pub(super) fn search(&self, sides: [u32; 2], relocate: &dyn Fn(Class, usize) -> bool) -> Outcome {
        let state = self.state();
        let view = View { table: self, state };
        let mut hops = 0;
        let outcome =
            path::search(&view, sides.map(|side| state.place(side).number), &mut |Hop { entry, from, .. }| {
                let class = self.plan.classes.of_stored(from, state.depth(from), entry.0);
                let relocated = relocate(class, from % 2);
                hops += u64::from(relocated);
                relocated
            });
        if hops > 0 {
            self.counters.relocated(hops);
        }
        outcome
    }

    /// Moves a copy of the class from this side to the other, if there is one and there is room. The guard is that of its
    /// stripe.
    pub(crate) fn relocate(&self, guard: &Guard<'_>, class: Class, side: usize) -> bool {
        if self.copies(class)[side] == 0 && !fault::injected(Fault::RelocateWithoutRecheck) {
            return false;
        }
        if fault::injected(Fault::RelocateClearsFirst) {
            return self.take_for_relocation(guard, class, side) && self.add_on(class, 1 - side);
        }
        // From here to the take there are two copies. At no moment is there none.
        self.add_for_relocation(class, 1 - side) && {
            self.take_for_relocation(guard, class, side);
            true
        }
    }

    fn add_for_relocation(&self, class: Class, side: usize) -> bool {
        self.add_on(class, side)
    }

    fn take_for_relocation(&self, guard: &Guard<'_>, class: Class, side: usize) -> bool {
        self.take_on(guard, class, side, Fault::RelocateWithoutBump, Fault::RelocateSetsNoSourceAside)
    }
}
