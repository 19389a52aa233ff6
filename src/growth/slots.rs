//! CONCURRENT: the steps on the buckets of one class, of which all changes consist. Each holds one gate for a few
//! instructions.

use crate::growth::table::GrowingTable;
use crate::table::stripe::Guard;
use crate::word::classes::{Class, Place, both};

impl GrowingTable {
    /// Adds a copy to the emptier of the class's buckets, if either has room. Does not count it.
    #[inline(always)]
    pub(super) fn add(&self, class: Class) -> bool {
        // This only determines where to try first. Both words are loaded before either is decoded, so the loads
        // overlap.
        let state = self.state();
        let [first, second] = both(class.sides, |side| state.place(side));
        let words = [self.load_if_there(first.number), self.load_if_there(second.number)];
        let free = [self.layout(first.depth).free(words[0]), self.layout(second.depth).free(words[1])];
        let emptier = usize::from(free[1] > free[0]);
        (free[emptier] > 0 && self.add_on(class, emptier)) || (free[1 - emptier] > 0 && self.add_on(class, 1 - emptier))
    }

    /// Adds a copy on this side, if its bucket has room. Does not count it.
    pub(crate) fn add_on(&self, class: Class, side: usize) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).add(seen, self.plan.classes.stored(class, depth)) else { return false };
        self.set_aside(number);
        self.store(number, changed);
        true
    }

    /// Adds a copy of the class unless there is one. `None` if there is no room. Does not count it.
    pub(super) fn add_if_absent(&self, class: Class) -> Option<bool> {
        let _guard = self.stripe(class).lock(self.counters());
        if self.copies(class) != [0; 2] {
            return Some(false);
        }
        self.add(class).then_some(true)
    }

    /// Takes a copy of the class out on this side. The guard is that of its stripe. `false` if there is none.
    pub(super) fn take_on(&self, guard: &Guard<'_>, class: Class, side: usize) -> bool {
        let side = class.sides[side];
        let (_gate, Place { number, depth }) = self.enter(side);
        let seen = self.load(number);
        let Some(changed) = self.layout(depth).remove(seen, self.plan.classes.stored(class, depth)) else {
            return false;
        };
        self.set_aside(number);
        guard.bump();
        self.store(number, changed);
        true
    }
}
